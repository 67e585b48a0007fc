"""`unswayed explain`: one target's certificate in words."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.certify import certify_words, words_of
from unswayed.cli.common import console, emit

if TYPE_CHECKING:
    from rich.console import Console

    from unswayed.certificates import Explanation

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed explain 17 --store runs/cora

  unswayed explain 17 --dataset cora --model gcn-mean --samples 5000

  unswayed explain 17 --dataset cora --model label-ballots
"""

NOISE = ("beta", "p_add", "p_delete", "top")  # words that say something of votes alone


@app.command(epilog=EXAMPLES)
def explain(
    node: Annotated[
        str, typer.Argument(help="The node or graph: its number, or its name in your files.", metavar="NODE")
    ],
    store: Annotated[
        Path | None,
        typer.Option(
            help="A run that `certify --store` or `prove --store` made; nothing is computed anew.",
            rich_help_panel=opt.DATA,
        ),
    ] = None,
    dataset: opt.Dataset = None,
    edges: opt.Edges = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    threat: opt.Threat = None,
    model: opt.Model = None,
    weights: opt.Weights = None,
    recipe: opt.RecipeOption = kinds.Recipe.CLEAN,
    protocol: opt.ProtocolOption = kinds.Protocol.TRANSDUCTIVE,
    beta: opt.Beta = None,
    p_add: opt.PAdd = None,
    p_delete: opt.PDelete = None,
    samples: opt.Samples = 10_000,
    alpha: opt.Alpha = 0.001,
    bounds: opt.Bounds = kinds.BoundsKind.STRICT,
    top: opt.Top = None,
    seed: opt.Seed = 0,
    device: opt.Device = "cpu",
    as_json: opt.Json = False,
) -> None:
    """Say what one node's certificate means: votes, bounds, the ceiling, and what the next K would cost."""
    words = words_of(locals(), nodes=node, floor=False)
    found = _stored(store, node, words) if store is not None else _fresh(words, node)
    if as_json:
        emit(found.to_json())
    else:
        _print(found, console())


def _stored(store: Path, node: str, words: dict[str, object]) -> "Explanation":
    from unswayed.cli.record import open_run
    from unswayed.errors import InputError
    from unswayed.report.explain import explain as facts

    if words["dataset"] is not None or words["edges"] is not None:
        raise InputError(
            "Give --store to explain a stored run, or a dataset to certify the node now, not both."
        )
    for name in ("model", "weights", *NOISE):
        if words[name] is not None:
            raise InputError(
                f"A stored run is explained as it was made: leave --{name.replace('_', '-')} out."
            )
    record, votes = open_run(store)
    if node not in record.names:
        raise InputError(
            f"The run in {store} has no target {node!r}; its first targets are {', '.join(record.names[:8])}. Where the data has it, add "
            f"--nodes all, or its name, and a new --store to {record.command}."
        )
    if record.names.count(node) > 1:
        raise InputError(
            f"{node!r} is the name of several targets in {store}; explain them from Python, by position."
        )
    return facts(record.summarise(record.certify(votes)), record.names.index(node))


def _fresh(words: dict[str, object], node: str) -> "Explanation":
    """The node certified, or proved, here and now."""
    from unswayed.cli.proving import prove_asked, proved_by_name
    from unswayed.cli.targets import PARTS
    from unswayed.errors import InputError
    from unswayed.report.explain import explain as facts

    if all(words[name] is None for name in ("dataset", "edges", "features", "labels")):
        raise InputError(
            f"Say whose node it is: unswayed explain {node} --store FOLDER explains what certify or prove kept with --store; "
            "--dataset cora, or --edges, --features and --labels, certifies it now."
        )
    part = node in PARTS
    if "," in node or (part and words["dataset"] is not None):  # only nodes of one's own files have names
        raise InputError(f"explain takes one node, not {node!r}.")
    asked = {**words, "nodes": f"{node},"} if part else words
    if proved_by_name(words["model"]):
        for name in NOISE:
            if words[name] is not None:
                raise InputError(
                    f"--model {words['model']} is proved without noise: leave --{name.replace('_', '-')} out."
                )
        certs, record = prove_asked(asked)
    else:
        certs, record = certify_words(asked, want=None, store=None)
    return facts(record.summarise(certs), 0)


def _print(found: "Explanation", place: "Console") -> None:
    title = f"{found.name}: " + (
        "no guarantee" if found.size < 0 else f"label {found.label}, K = {found.size}"
    )
    place.print()
    place.print(Text(title, style="bold"))
    place.print(Text(found.statement))
    place.print()
    if found.bars:
        place.print(_bars(found))
        place.print()
    for sentence in found.sentences:
        place.print(Text(sentence))


def _bars(found: "Explanation") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    name, value, note = found.titles
    for title, side in ((name, "left"), (value, "right"), ("share", "right"), ("", "left"), (note, "left")):
        table.add_column(title, justify=side, overflow="fold")  # type: ignore[arg-type]
    for place, bar in enumerate(found.bars):
        drawn = Text("█" * round(30 * min(max(bar.share, 0.0), 1.0)), style="blue" if place == 0 else "dim")
        table.add_row(Text(bar.name), Text(bar.value), f"{bar.share:.4f}", drawn, Text(bar.note))
    return table
