"""`unswayed reproduce`: rerun the published figures, resumably."""

from pathlib import Path
from typing import Annotated

import typer

from unswayed.cli.common import emit, note, working

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(
    epilog="Examples: [bold]unswayed reproduce figure1 --seeds 5[/bold]; stop it and run it again: it goes on where it was."
)
def reproduce(
    experiments: Annotated[
        list[str], typer.Argument(help="table1, figure1, figure2, figure3, figure4, figure5, or all.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many random splits.")] = 1,
    recipe: Annotated[
        str, typer.Option(help="faithful: as published; best: what does best under noise.")
    ] = "faithful",
    samples: Annotated[
        int, typer.Option(min=1000, help="Noisy graphs for each target, in thousands.")
    ] = 50_000,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    runs: Annotated[Path, typer.Option(help="Where trainings and votes are kept.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where rows and curves are written.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Rerun the published figures: train, poll once at the largest number of samples, certify, draw."""
    from unswayed.cli.inputs import read_device
    from unswayed.experiments.reproduce import prepare, publish

    prepare(
        experiments,
        recipe=recipe,
        seeds=seeds,
        runs=runs,
        device=read_device(device),
        samples=samples,
        say=note,
        working=working,
    )
    written = publish(experiments, recipe=recipe, seeds=seeds, runs=runs, out=out, samples=samples, say=note)
    if json:
        emit({"written": [str(path) for path in written]})
        return
    if "table1" in experiments or "all" in experiments:
        _print_statistics()
    for path in written:
        note(f"Written: {path}")


def _print_statistics() -> None:
    from rich.console import Console
    from rich.table import Table

    from unswayed.datasets import PAPER, load
    from unswayed.experiments.table import statistics

    rows = [statistics(load(name)) for name in PAPER]
    table = Table(title="Datasets")
    for column in rows[0]:
        table.add_column(column, justify="left" if column in ("dataset", "task") else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int | float) else value for value in row.values()))
    Console().print(table)
