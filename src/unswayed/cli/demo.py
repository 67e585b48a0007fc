"""`unswayed demo`: from nothing to a report in under three minutes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed.cli import options as opt
from unswayed.cli.certify import certify_words, save_report, words_of
from unswayed.cli.common import console, emit, note

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

WORDS = words_of({"dataset": "cora", "model": "gcn-mean", "beta": 0.7})


@app.command(epilog="Examples: [bold]unswayed demo --out cora.html[/bold]")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the report goes.")] = Path(
        "unswayed-report.html"
    ),
    as_json: opt.Json = False,
) -> None:
    """Train a GCN on Cora, certify 100 nodes with 10,000 samples each, and write a report.

    Cora is fetched if this machine does not have it; where that fails, Zachary's karate club stands in.
    """
    from unswayed.cli.certify import document
    from unswayed.report.terminal import print_summary

    certs, record = certify_words(choose(), want=None, store=None)
    save_report(record, certs, out)
    if as_json:
        emit(document(record, certs, out))
        return
    place = console()
    print_summary(record.summarise(certs), place)
    place.print()
    place.print(f"The report is in {out.resolve()}: open it in any browser.", soft_wrap=True, markup=False)
    place.print("Now your own model: unswayed certify --help", style="dim")


def choose() -> dict[str, Any]:
    """The demo's words: on Cora if it can be had, else on the karate club, saying so."""
    from unswayed.cli.inputs import KARATE, fetch
    from unswayed.errors import InputError, WorldError

    try:
        fetch(str(WORDS["dataset"]))
        return WORDS
    except (InputError, WorldError) as error:
        note(
            f"Cora could not be fetched ({' '.join(str(error).split())}), so this runs on the karate club instead."
        )
        return {**WORDS, "dataset": KARATE, "nodes": "all", "beta": 0.8}
