"""`unswayed certify`: from a graph and a model to certificates, in one command."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.attacker import one_attacker, sees
from unswayed.cli.common import check_apart, command_line, console, emit, note
from unswayed.cli.document import document, save_table

if TYPE_CHECKING:  # scipy and torch load when a command runs, not when it is asked for help
    from unswayed.certificates import Certified
    from unswayed.cli.plan import Plan
    from unswayed.cli.record import Record

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed certify --dataset cora --model sage --recipe distill --report cora.html

  unswayed certify --edges E.csv --features X.csv --labels Y.csv --nodes 3,17,42

  unswayed certify --dataset cora --model mine.py:build --weights W.safetensors --store runs/mine

  unswayed certify --dataset mutag --model gin --recipe noise --beta 0.9 --json

  unswayed certify --dataset cora --threat all-pairs --p-add 0.001 --p-delete 0.6 --nodes all

  unswayed certify --dataset cora --threat inject --links 2 --hide 0.9/0.5

  unswayed certify --dataset cora --until-size 5 --budget 60 --samples 50000

  unswayed certify --dataset cora --top 2
"""


# what a run is asked by, and the value of whatever a command does not ask for
ASKED: dict[str, Any] = {
    "dataset": None, "edges": None, "features": None, "labels": None, "nodes": "test", "threat": None,
    "model": None, "weights": None, "recipe": "clean", "protocol": "transductive",
    "beta": None, "p_add": None, "p_delete": None, "keep": None, "hide": None, "links": None, "rivals": "all", "samples": 10_000, "alpha": 0.001, "bounds": "strict",
    "family": False, "seed": 0, "device": "cpu", "engine": "auto", "runner": "serial", "address": None,
    "batch_size": None, "floor": True, "until_size": None, "budget": None, "top": None, "audit": 300, "threshold": None,
    "positive": None, "directed": False, "edge_attr": None,
}  # fmt: skip
WITHOUT_EFFECT = ("floor", "device", "engine", "runner", "address", "batch_size")


def words_of(given: dict[str, Any], **other: Any) -> dict[str, Any]:
    """The words of a run from the arguments of a command; `other` takes precedence."""
    return {name: other.get(name, given.get(name, usual)) for name, usual in ASKED.items()}


@app.command(epilog=EXAMPLES)
def certify(
    dataset: opt.Dataset = None,
    edges: opt.Edges = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    nodes: opt.Nodes = "test",
    threat: opt.Threat = None,
    directed: opt.Directed = False,
    edge_attr: opt.EdgeAttr = None,
    model: opt.Model = None,
    weights: opt.Weights = None,
    threshold: opt.Threshold = None,
    recipe: opt.RecipeOption = kinds.Recipe.CLEAN,
    protocol: opt.ProtocolOption = kinds.Protocol.TRANSDUCTIVE,
    beta: opt.Beta = None,
    p_add: opt.PAdd = None,
    p_delete: opt.PDelete = None,
    keep: opt.Keep = None,
    hide: opt.Hide = None,
    links: opt.Links = None,
    samples: opt.Samples = 10_000,
    alpha: opt.Alpha = 0.001,
    bounds: opt.Bounds = kinds.BoundsKind.STRICT,
    rivals: opt.Rivals = kinds.RivalsKind.ALL,
    family: opt.Family = False,
    want_size: opt.WantSize = None,
    top: opt.Top = None,
    until_size: opt.UntilSize = None,
    budget: opt.Budget = None,
    seed: opt.Seed = 0,
    store: opt.Store = None,
    device: opt.Device = "cpu",
    engine: opt.Engine = kinds.EngineKind.AUTO,
    runner: opt.Runner = kinds.RunnerKind.SERIAL,
    address: opt.Address = None,
    batch_size: opt.BatchSize = None,
    audit: opt.Audit = 300,
    floor: opt.Floor = True,
    shared: opt.Shared = None,
    positive: opt.Positive = None,
    report: opt.Report = None,
    csv: opt.Csv = None,
    as_json: opt.Json = False,
) -> None:
    """Prove, for each node or graph, how many edges an attacker must change before the answer could change."""
    check_apart([edges, features, labels, weights, model, edge_attr], report, csv)
    words = words_of(locals())
    certs, record = certify_words(words, want=want_size, store=store)
    present(record, certs, report=report, csv=csv, as_json=as_json, shared=shared)


def certify_words(
    words: dict[str, Any], *, want: int | None, store: Path | None
) -> "tuple[Certified, Record]":
    """Certify what these command-line words ask for."""
    from unswayed.certificates.presenting import plural
    from unswayed.cli.models import make_floor, make_model
    from unswayed.cli.plan import make_record, make_threat, run_plan
    from unswayed.cli.record import write_record
    from unswayed.cli.unsmoothed import base_accuracy

    plan = make_plan(words, store)
    threat = make_threat(plan, plan.until_size if want is None else want)
    model = make_model(plan)
    one_answer = plan.top in (None, 1)  # which a floor, and the model itself, give
    floor = make_floor(plan) if words["floor"] and one_answer else None
    record = make_record(plan, command_of(words, plan), floor, model)
    most = "" if plan.until is None else "at most "
    note(f"Polling {plural(len(threat), 'target')}, {most}{plan.samples:,} samples each …")
    votes = run_plan(plan, threat, model, record)
    certs = record.certify(votes)
    base = base_accuracy(plan, threat, model) if one_answer else None
    record = replace(record, base=base, sees=sees(plan, threat, model), finished=True)
    if store is not None:
        write_record(store, record)
    return certs, record


def make_plan(words: dict[str, Any], store: Path | None, purpose: str = "certify") -> "Plan":
    """Check every word and read the data; nothing slow has happened yet when this refuses."""
    from unswayed.cli.flags import read_flag, read_positive, stays
    from unswayed.cli.inputs import read_dataset, read_device, read_noise
    from unswayed.cli.plan import Plan
    from unswayed.cli.record import check_place
    from unswayed.cli.targets import read_targets
    from unswayed.cli.threat import check_directed, read_edge_attr
    from unswayed.store import CERTIFICATES

    check_place(store, never=CERTIFICATES)
    check_directed(words["directed"], words["edges"], str(words["recipe"]))
    noise = read_noise(words["beta"], words["p_add"], words["p_delete"], words["keep"], words["hide"])
    device = read_device(words["device"])
    data, parts = read_dataset(
        words["dataset"], words["edges"], words["features"], words["labels"], words["seed"],
        directed=words["directed"], nodes=words["nodes"],
    )  # fmt: skip
    model, recipe = words["model"] or ("gcn-mean" if data.task == "node" else "gin"), str(words["recipe"])
    _check_model(model, data.task)
    chosen, positive = (
        read_targets(data, parts, words["nodes"]),
        read_positive(words["positive"], data),
    )
    return Plan(
        dataset=data,
        split=parts,
        targets=chosen,
        threat=None if words["threat"] is None else str(words["threat"]),
        noise=noise,
        directed=words["directed"],
        edge_attr=read_edge_attr(words["edge_attr"], data, model, recipe),
        model=model,
        weights=words["weights"],
        recipe=recipe,
        protocol=str(words["protocol"]),
        samples=words["samples"],
        alpha=words["alpha"],
        bounds=_bounds(str(words["bounds"]), words["until_size"], words["budget"]),
        family=words["family"],
        links=words["links"],
        rivals=str(words["rivals"]),
        seed=words["seed"],
        store=store,
        device=device,
        engine=str(words["engine"]),
        runner=_runner(str(words["runner"]), words["address"], device),
        batch_size=words["batch_size"],
        audit=words["audit"],
        purpose=purpose,
        until_size=words["until_size"],
        budget=words["budget"],
        top=words["top"],
        threshold=words["threshold"],
        positive=None if purpose == "select" else stays(positive, data, chosen),
        flag=read_flag(words["threshold"], positive, data, model),
    )


def _check_model(model: str, task: str) -> None:
    """Refuse a name that is no network of ours, and one of those that need no noise."""
    from unswayed.cli.proving import proved_by_name
    from unswayed.errors import InputError
    from unswayed.models.building import check_name

    if proved_by_name(model):
        raise InputError(f"--model {model} needs no noise: prove it with unswayed prove --model {model}.")
    if ":" not in model and not model.endswith(".py"):
        check_name(model, task)


def _bounds(asked: str, until_size: int | None, budget: float | None) -> str:
    from unswayed.errors import InputError

    if until_size is None and budget is None:
        return asked
    if asked not in ("strict", "anytime"):  # strict is the default, so nobody asked for it
        flag = "--budget" if until_size is None else "--until-size"
        raise InputError(f"{flag} looks at the votes again and again, which --bounds {asked} does not allow.")
    return "anytime"


def _runner(kind: str, address: str | None, device: str) -> Any:
    from unswayed.errors import InputError

    if kind == "serial":
        if address is not None:
            raise InputError("--address is for --runner ray.")
        return None
    from unswayed.runners.ray import RayRunner

    return RayRunner(address=address or "local", gpus_per_task=int(device.startswith("cuda")))


def command_of(words: dict[str, Any], plan: "Plan", command: str = "certify", *more: tuple[str, Any]) -> str:
    """The command that does this run again, without what is at its default or does not change what is said."""
    shown = {name: value for name, value in words.items() if name not in WITHOUT_EFFECT}
    shown["model"] = plan.model
    if all(shown[name] is None for name in ("beta", "p_add", "keep", "hide")):
        shown["beta"] = 0.7
    always = ("model", "samples", "alpha", "seed")  # defaults may change between versions
    pairs = [(name, value) for name, value in shown.items() if name in always or value != ASKED[name]]
    return command_line(command, [*pairs, *more])


def present(
    record: "Record",
    certs: "Certified",
    *,
    report: Path | None,
    csv: Path | None,
    as_json: bool,
    shared: int | None = None,
) -> None:
    """Print what was proven, to people or to machines, and write report and table where they are wanted."""
    from unswayed.report.terminal import print_summary

    summary, attacker = record.summarise(certs), one_attacker(record, certs, shared)
    if report is not None:
        save_report(record, certs, report, attacker)
    if csv is not None:
        save_table(record, certs, csv)
    if as_json:
        emit(document(record, certs, report, attacker))
        return
    place = console()
    print_summary(summary, place)
    if attacker is not None:
        place.print(attacker["sentence"], soft_wrap=True, markup=False)
    if report is not None:
        place.print(f"The report is in {report}.", soft_wrap=True, markup=False)
    if csv is not None:
        place.print(f"The table is in {csv}.", soft_wrap=True, markup=False)


def save_report(
    record: "Record", certs: "Certified", path: Path, shared: dict[str, Any] | None = None
) -> None:
    """Write the HTML report of a recorded run."""
    from unswayed.files import write_atomically
    from unswayed.report.html import render

    summary = record.summarise(certs)
    if shared is not None:
        told = {"One attacker, many targets": shared["sentence"]}
        summary = replace(summary, settings={**summary.settings, **told})
    write_atomically(path, render(summary, record.graph).encode())
