"""`unswayed attack`: try to break what is certified, and bound from above what is not."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.certify import command_of, make_plan, words_of
from unswayed.cli.common import console, emit, note
from unswayed.cli.document import document

if TYPE_CHECKING:
    from unswayed.attack import Attacks
    from unswayed.cli.attack_proofs import Met
    from unswayed.cli.plan import Plan
    from unswayed.cli.record import Record
    from unswayed.report.summary import Summary

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed attack --dataset cora --model sage --nodes 3,17,42 --report attacked.html

  unswayed attack --store runs/proofs

  unswayed attack --dataset mutag --model gin --kind gradient --attempts 20 --no-beyond
"""
PANEL = "The attack"


class Kind(StrEnum):
    """How entries to change are chosen."""

    RANDOM = "random"
    GREEDY = "greedy"
    GRADIENT = "gradient"


@app.command(epilog=EXAMPLES)
def attack(
    dataset: opt.Dataset = None,
    edges: opt.Edges = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    nodes: opt.Nodes = "test",
    threat: opt.Threat = None,
    model: opt.Model = None,
    weights: opt.Weights = None,
    threshold: opt.Threshold = None,
    recipe: opt.RecipeOption = kinds.Recipe.CLEAN,
    protocol: opt.ProtocolOption = kinds.Protocol.TRANSDUCTIVE,
    kind: Annotated[
        list[Kind] | None,
        typer.Option(
            help="random, greedy or gradient; may be given several times. \\[default: all]",
            rich_help_panel=PANEL,
        ),
    ] = None,
    attempts: Annotated[
        int, typer.Option(help="Attacks of each kind within the certified size.", rich_help_panel=PANEL)
    ] = 5,
    beyond: Annotated[
        bool,
        typer.Option(help="Also look for the smallest larger attack that succeeds.", rich_help_panel=PANEL),
    ] = True,
    most: Annotated[
        int | None, typer.Option(help="Largest attack to try; by default all entries.", rich_help_panel=PANEL)
    ] = None,
    judge_samples: Annotated[
        int, typer.Option(help="Noisy copies behind each verdict, at most.", rich_help_panel=PANEL)
    ] = 10_000,
    beta: opt.Beta = None,
    p_add: opt.PAdd = None,
    p_delete: opt.PDelete = None,
    samples: opt.Samples = 10_000,
    alpha: opt.Alpha = 0.001,
    bounds: opt.Bounds = kinds.BoundsKind.STRICT,
    seed: opt.Seed = 0,
    store: opt.Store = None,
    positive: opt.Positive = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Search for attacks on the smoothed model: none may succeed within K, and one beyond K bounds the truth from above.

    Exits with 1 if an attack within a certified size succeeds: then a certificate is wrong.
    """
    words = words_of(locals())
    _check(attempts, most, judge_samples)
    if (proofs := _proofs(words, store)) is not None:
        return _show_proofs(proofs, report, as_json)
    chosen = [str(each) for each in kind] if kind else None
    settings = {"attempts": attempts, "beyond": beyond, "most": most, "samples": judge_samples, "seed": seed}
    found, record = attack_words(words, store, kinds=chosen, **settings)
    summary = replace(record.summarise(found.certs), attacked=found.attacked)
    if report is not None:
        _write(summary, record, report)
    if as_json:
        emit({**document(record, found.certs, report), "attacks": facts(found, record)})
    else:
        _tell(found, record, summary.unit)
    if not found.sound:
        raise typer.Exit(1)
    return None


def _check(attempts: int, most: int | None, samples: int) -> None:
    """Refuse what the attacks would refuse after certifying."""
    from unswayed.errors import InputError

    for flag, value, least in (("attempts", attempts, 0), ("most", most, 1), ("judge-samples", samples, 100)):
        if value is not None and value < least:
            raise InputError(f"--{flag} must be {least} or more, not {value}.")


def _proofs(words: dict[str, Any], store: Path | None) -> "Met | None":
    """Proofs bring their attacks along; None where certificates are not proofs."""
    from unswayed.cli.attack_proofs import met

    return met(words, store)


def _show_proofs(found: "Met", report: Path | None, as_json: bool) -> None:
    summary = replace(found.record.summarise(found.certs), attacked=found.attacked)
    if report is not None:
        _write(summary, found.record, report)
    if as_json:
        emit({**document(found.record, found.certs, report), "attacks": found.facts()})
        return
    for line in found.lines():
        console().print(line, markup=False)


def attack_words(words: dict[str, Any], store: Path | None, **settings: Any) -> "tuple[Attacks, Record]":
    """Certify what the words ask for, then attack it."""
    from unswayed.attack import attack as attack_all
    from unswayed.certificates import certify
    from unswayed.certificates.presenting import plural
    from unswayed.cli.flags import asked
    from unswayed.cli.models import make_model
    from unswayed.cli.plan import make_record, make_threat, run_plan

    _check_named(words, store)
    plan = make_plan(words, store)
    target = make_threat(plan, None)
    net = make_model(plan)
    record = make_record(plan, _command(words, plan, settings), None, net)
    note(f"Polling {plural(len(target), 'target')}, {plan.samples:,} samples each …")
    votes = run_plan(plan, target, net, record)
    certs = certify(votes, alpha=plan.alpha, bounds=plan.bounds, family=plan.family)
    note(f"Attacking {plural(int((~certs.abstained).sum()), 'certified target')} …")
    return attack_all(asked(plan, net), target, certs, progress=_progress(len(target)), **settings), record


def _check_named(words: dict[str, Any], store: Path | None) -> None:
    """Votes alone cannot be attacked: the model is asked again, so it must be said which, and on what."""
    from unswayed.cli.record import read_record
    from unswayed.errors import InputError, StoreError

    if store is None or words["dataset"] is not None or words["edges"] is not None:
        return
    if not store.is_dir():
        raise StoreError(f"There is no store {store}; make one with: unswayed certify … --store {store}.")
    if (record := read_record(store)) is not None:
        again = record.command.replace("unswayed certify", "unswayed attack", 1)
        raise InputError(
            f"An attack asks the model of {store} again, so say what that was ({again} --store {store})."
        )


def _command(words: dict[str, Any], plan: "Plan", settings: dict[str, Any]) -> str:
    """The command that does this attack again."""
    kinds = [("kind", kind) for kind in settings["kinds"] or ()]
    usual = {"attempts": 5, "most": None, "judge_samples": 10_000}
    given = {"attempts": settings["attempts"], "most": settings["most"], "judge_samples": settings["samples"]}
    other = [(name, value) for name, value in given.items() if value != usual[name]]
    return command_of(words, plan, "attack", *kinds, *other, ("no_beyond", not settings["beyond"]))


def _progress(total: int) -> Any:
    if not sys.stderr.isatty():
        return None
    return lambda done: print(f"\r{done} of {total} targets attacked", end="", file=sys.stderr, flush=True)


def facts(found: "Attacks", record: "Record") -> dict[str, Any]:
    """What the attacks found, JSON-ready."""
    name = dict(zip(found.certs.targets.tolist(), record.names, strict=True))
    return {
        "within": {kind: int(found.attempts[:, place].sum()) for place, kind in enumerate(found.kinds)},
        "judged": found.judged,
        "rebuilt": found.rebuilt,
        "breaches": [
            {"target": name[breach.target], "kind": breach.kind, "entries": list(breach.entries)}
            for breach in found.breaches
        ],
        "attacked": {
            name[target]: {"size": size, "kind": kind}
            for target, size, kind in zip(
                found.certs.targets.tolist(), found.attacked.tolist(), found.by, strict=True
            )
            if size >= 0
        },
    }


def _tell(found: "Attacks", record: "Record", unit: str) -> None:
    from unswayed.certificates.presenting import plural
    from unswayed.cli.attack_proofs import listed, weakest_first

    place = console()
    tried = ", ".join(f"{int(found.attempts[:, i].sum()):,} {kind}" for i, kind in enumerate(found.kinds))
    verdict = (
        "none succeeded."
        if found.sound
        else f"{len(found.breaches)} SUCCEEDED: a certificate is wrong; please report it."
    )
    place.print(f"Within the certified sizes: {tried} attacks; {verdict}")
    place.print(
        f"Of {found.judged:,} verdicts {found.rebuilt:,} come from a question built anew on the attacked graph."
    )
    hit = found.attacked >= 0
    sure = int((~found.certs.abstained).sum())
    place.print(f"Beyond them: an attack was found for {int(hit.sum())} of {sure} certified {unit}s.")
    lines = listed(
        weakest_first(found.attacked),
        lambda spot: (
            f"  {unit} {record.names[spot]}: safe up to {plural(int(found.certs.size[spot]), 'change')}, broken by "
            f"{int(found.attacked[spot])} ({found.by[spot]})."
        ),
    )
    for line in lines:
        place.print(line, markup=False)


def _write(summary: "Summary", record: "Record", path: Path) -> None:
    from unswayed.files import write_atomically
    from unswayed.report.html import render

    write_atomically(path, render(summary, record.graph).encode())
    note(f"The report is in {path}.")
