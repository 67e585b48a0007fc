"""`unswayed frontier`: which noise to use, chosen on validation targets with noise that certifies nothing."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.certify import command_of, make_plan, words_of
from unswayed.cli.common import command_line, emit, note, warn
from unswayed.cli.sweep import other_noises, read_sweep

if TYPE_CHECKING:
    from unswayed.cli.plan import Plan
    from unswayed.models.floors import Floor
    from unswayed.prospects import Prospect
    from unswayed.report.frontier import Point
    from unswayed.theory.noise import Noise

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed frontier --dataset cora --model sage --recipe distill --want-size 5

  unswayed frontier --dataset cora --betas 0.6,0.7,0.8,0.9 --count 50

  unswayed frontier --dataset photo --all-noises --want-adds 5

  unswayed frontier --dataset cora --p-adds 0.001,0.01 --p-deletes 0.3,0.6 --want-deletes 3
"""
SWEEP = opt.NOISE


@app.command(epilog=EXAMPLES)
def frontier(
    dataset: opt.Dataset = None,
    edges: opt.Edges = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    count: Annotated[
        int, typer.Option(help="How many validation targets to choose on.", rich_help_panel=opt.DATA)
    ] = 100,
    threat: opt.Threat = None,
    model: opt.Model = None,
    weights: opt.Weights = None,
    threshold: opt.Threshold = None,
    recipe: opt.RecipeOption = kinds.Recipe.CLEAN,
    protocol: opt.ProtocolOption = kinds.Protocol.TRANSDUCTIVE,
    betas: Annotated[
        str, typer.Option(help="The keep probabilities to try.", rich_help_panel=SWEEP)
    ] = "0.6,0.65,0.7,0.75,0.8,0.85,0.9,0.95",
    p_adds: Annotated[
        str | None,
        typer.Option("--p-adds", help="Asymmetric noise instead: the p_add to try.", rich_help_panel=SWEEP),
    ] = None,
    p_deletes: Annotated[
        str | None, typer.Option("--p-deletes", help="… with each of these p_delete.", rich_help_panel=SWEEP)
    ] = None,
    keeps: Annotated[
        str | None,
        typer.Option("--keeps", help="Kept seats to try as well, such as 3/30,5/50.", rich_help_panel=SWEEP),
    ] = None,
    all_noises: Annotated[
        bool,
        typer.Option(
            "--all-noises",
            help="Try asymmetric noise, noise that only deletes and kept seats as well.",
            rich_help_panel=SWEEP,
        ),
    ] = False,
    want_size: Annotated[
        int, typer.Option("--want-size", help="The K to recommend a setting for.", rich_help_panel=SWEEP)
    ] = 5,
    want_adds: Annotated[
        int, typer.Option("--want-adds", help="Instead of K: so many additions …", rich_help_panel=SWEEP)
    ] = 0,
    want_deletes: Annotated[
        int, typer.Option("--want-deletes", help="… and so many deletions.", rich_help_panel=SWEEP)
    ] = 0,
    samples: opt.Samples = 10_000,
    alpha: opt.Alpha = 0.001,
    bounds: opt.Bounds = kinds.BoundsKind.STRICT,
    seed: opt.Seed = 0,
    device: opt.Device = "cpu",
    engine: opt.Engine = kinds.EngineKind.AUTO,
    floor: opt.Floor = True,
    positive: opt.Positive = None,
    as_json: opt.Json = False,
) -> None:
    """Sweep the noise on validation targets, show accuracy against robustness, recommend a setting for a wanted K.

    The targets and the noise are not those that certify, so choosing here spends none of the confidence of a later
    `unswayed certify`.
    """
    words = words_of(locals(), nodes="val")
    from unswayed.errors import InputError
    from unswayed.report.frontier import recommend

    if min(want_size, want_adds, want_deletes) < 0 or count < 1:
        raise InputError(
            "--want-size, --want-adds and --want-deletes must be 0 or more and --count 1 or more."
        )
    noises = read_sweep(betas, p_adds, p_deletes, keeps)
    if all_noises:
        noises += other_noises()
    split = (want_adds, want_deletes) if want_adds or want_deletes else None
    points, height, plan, ahead, flag = _sweep(words, noises, count, floor, split)
    _warn_of_few(points, want_size, split, samples)
    best = recommend(points, want_size)
    alone = ahead if split is None and threat in (None, kinds.ThreatKind.ROW) else None
    drop = flag[0] is None and _dropped(alone, max(point.wanted(want_size) for point in points), height)
    best = None if drop else best
    command = (
        None
        if best is None
        else command_of({**words, "nodes": "test", **_noise_words(points[best].noise)}, plan)
    )
    if as_json:
        rows = [{**point.to_dict(), "recommended": place == best} for place, point in enumerate(points)]
        goal = (
            {"want_size": want_size} if split is None else {"want_adds": split[0], "want_deletes": split[1]}
        )
        expected = None if ahead is None else ahead.to_dict()
        emit({
            **goal, "prospect": expected, "floor": height, "positive": flag[0], "bearers": flag[1], "rows": rows, "command": command,
        })  # fmt: skip
    else:
        from unswayed.cli.frontier_tables import show, show_proofs

        show(points, best, want_size, split, height, command, drop, *flag)
        if alone is not None:
            reached = 0.0 if best is None else points[best].wanted(want_size)
            model = "ballots" if alone.near else "label-ballots"
            show_proofs(alone, want_size, reached, _prove_words(words, model))


def _dropped(ahead: "Prospect | None", reached: float, height: float | None) -> bool:
    """Whether the edges had better go: nothing is expected of them, and no noise proved more than there is without them."""
    if ahead is None or height is None:  # without a floor this is not known
        return False
    return ahead.way == "drop the edges" and reached <= height


def _prove_words(words: dict[str, Any], model: str) -> str:
    """The command that proves the same data without noise."""
    names = ("dataset", "edges", "features", "labels", "protocol", "seed", "positive")
    usual = {"protocol": "transductive", "seed": 0}
    asked = [(name, words[name]) for name in names if words[name] != usual.get(name)]
    return command_line("prove", [*asked, ("model", model)])


def _warn_of_few(points: "list[Point]", want: int, split: tuple[int, int] | None, samples: int) -> None:
    """Say where not even unanimous votes could have proven what is wanted."""
    if split is None and max(point.ceiling for point in points) < want:
        warn(
            f"{samples:,} samples are too few: even unanimous votes prove no more than "
            f"K = {max(point.ceiling for point in points)} under any of these noises; give more --samples, or more noise."
        )


def _noise_words(noise: "Noise") -> dict[str, Any]:
    given = noise.options()
    none = {"beta": None, "p_add": None, "p_delete": None, "keep": None, "hide": None}
    if "seats" in given:
        return {**none, "keep": f"{given['kept']}/{given['seats']}"}
    return {**none, **{name: round(value, 9) for name, value in given.items()}}


def _sweep(
    words: dict[str, Any], noises: "list[Noise]", count: int, with_floor: bool, split: tuple[int, int] | None
) -> "tuple[list[Point], float | None, Plan, Prospect | None, tuple[str | None, int]]":
    from dataclasses import replace

    from unswayed.certificates.presenting import plural
    from unswayed.cli.flags import label_name, read_positive, stays
    from unswayed.cli.models import make_floor, make_model
    from unswayed.cli.plan import run_plan
    from unswayed.naming import in_words
    from unswayed.report.frontier import Point
    from unswayed.report.summary import summarise
    from unswayed.report.words import monotony

    plan = replace(_held_out(make_plan(words, None, purpose="select"), count), noise=noises[0])
    positive = stays(read_positive(words["positive"], plan.dataset), plan.dataset, plan.targets)
    threat = plan.entries()
    found = make_floor(plan) if with_floor else None
    ahead = _look_ahead(plan, found)
    once = plan.recipe == "clean" or not plan.trains
    model = make_model(plan) if once else None
    points = []
    for noise in noises:
        if noise.threats and threat.kind not in noise.threats:
            note(f"{noise.brief} is not for this threat and is left out.")
            continue
        setting = replace(plan, noise=noise)
        note(f"Trying {noise.brief} on {plural(len(threat), 'validation target')} …")
        votes = run_plan(setting, threat, model if once else make_model(setting), None)
        certs = setting.certify(votes)
        truth = plan.targets.truth.numpy()
        point = Point.of(noise, certs, truth, setting.ceiling(threat), split, positive)
        names, how = plan.dataset.class_names or (), {"Recipe": plan.recipe if plan.trains else "clean"}
        told = summarise(certs, truth=in_words(truth, names), class_names=names or None, settings=how)
        points.append(replace(point, beware=monotony(told)))
    bearers = int((plan.targets.truth == positive).sum()) if positive is not None else 0
    flag = (None if positive is None else label_name(positive, plan.dataset), bearers)
    return points, None if found is None else found.accuracy, plan, ahead, flag


def _held_out(plan: "Plan", count: int) -> "Plan":
    """So many validation targets are asked about, and where networks would learn what they are, as strangers.

    Of graphs, some training graphs choose weights instead. Where test nodes are strangers but a teacher tells of validation nodes,
    half of these at least.
    """
    from dataclasses import replace

    import torch

    from unswayed.cli.targets import Targets
    from unswayed.datasets import Split

    train, val, test = plan.split.train, plan.split.val, plan.split.test
    few = len(train) // 10 or 1
    if plan.dataset.task == "graph":
        split = Split(train[few:], train[:few], val)
    elif plan.recipe == "distill" and plan.protocol == "inductive" and len(val) > 1:
        count = min(count, len(val) // 2)
        split = Split(train, val[count:], torch.cat([val[:count], test]))
    else:
        split = plan.split
    chosen = plan.targets
    return replace(
        plan,
        split=split,
        targets=Targets(chosen.ids[:count], chosen.names[:count], chosen.truth[:count]),
    )


def _look_ahead(plan: "Plan", floor: "Floor | None") -> "Prospect | None":
    """What certificates of a node's own links can be expected to pay, said before the first sample is drawn."""
    import torch

    from unswayed.prospects import prospect

    if plan.dataset.task != "node":
        return None
    labels = plan.dataset.labels
    told = torch.cat([plan.split.train, plan.split.val, plan.targets.ids])
    known = torch.full_like(labels, -1).index_copy(0, told, labels[told])
    ahead = prospect(plan.dataset.graph, known, floor=floor)
    # what Python calls a floor is an option here
    note(
        f"Before certifying: {ahead}".replace("so give its accuracy as the floor", "so leave --no-floor out")
    )
    return ahead
