"""`unswayed reproduce`: rerun the published figures, resumably."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed.cli.common import emit, note, working

PAGES = ("beyond", "paying", "hiding")  # experiments that are no figure of the paper
app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(
    epilog="Examples: [bold]unswayed reproduce figure1 --seeds 5[/bold], [bold]unswayed reproduce paying[/bold] (some hours a split); stop "
    "it and run it again: it goes on where it was."
)
def reproduce(
    experiments: Annotated[
        list[str],
        typer.Argument(
            help="table1, figure1, figure2, figure3, figure4, figure5, or all; or beyond, paying or hiding."
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many random splits.")] = 1,
    recipe: Annotated[
        str, typer.Option(help="faithful: as published; best: what does best under noise.")
    ] = "faithful",
    samples: Annotated[
        int | None,
        typer.Option(
            min=1000, help="Noisy graphs for each target, in thousands (50,000; beyond and paying: 10,000)."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    runs: Annotated[Path, typer.Option(help="Where trainings and votes are kept.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where rows and curves are written.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Rerun the published figures (train, poll once at the largest number of samples, certify, draw), or a page beyond them.

    `beyond` certifies whole graphs under asymmetric noise: rows, the tables of its page, plots. `paying` shows where certificates pay: every graph by every method, with rows, page and figure. `hiding` is about added links and fake nodes alone.
    """
    from unswayed.cli.inputs import read_device

    where, named = read_device(device), [name for name in experiments if name not in PAGES]
    written = _figures(named, recipe, seeds, runs, out, where, samples or 50_000) if named else []
    for name in PAGES:
        if name in experiments:
            written += _page(name, seeds, runs, out, where, samples or 10_000)
    if json:
        emit({"written": [str(path) for path in written]})
        return
    if "table1" in experiments or "all" in experiments:
        _print_statistics()
    for path in written:
        note(f"Written: {path}")


def _figures(
    names: list[str], recipe: str, seeds: int, runs: Path, out: Path, device: str, samples: int
) -> list[Path]:
    from unswayed.experiments.reproduce import prepare, publish

    how: dict[str, Any] = {"recipe": recipe, "seeds": seeds, "runs": runs, "samples": samples, "say": note}
    prepare(names, device=device, working=working, **how)
    return publish(names, out=out, **how)


def _page(name: str, seeds: int, runs: Path, out: Path, device: str, samples: int) -> list[Path]:
    """Do what a page lacks and write it; every one has its cases, its work and its page in a folder of its name."""
    work = import_module(f"unswayed.experiments.{name}")
    page = import_module(f"unswayed.experiments.{name}.page")
    work.prepare(work.cases(range(seeds)), runs=runs, device=device, samples=samples, say=note)
    written: list[Path] = page.publish(work.results(runs), out)
    return written


def _print_statistics() -> None:
    from rich.console import Console
    from rich.table import Table

    from unswayed.datasets import PAPER, load
    from unswayed.experiments.table1 import statistics

    rows = [statistics(load(name)) for name in PAPER]
    table = Table(title="Datasets")
    for column in rows[0]:
        table.add_column(column, justify="left" if column in ("dataset", "task") else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int | float) else value for value in row.values()))
    Console().print(table)
