"""`unswayed bench`: how fast the engines are on this machine, as ratios to one graph at a time."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed.cli import options as opt
from unswayed.cli.common import command_line, console, emit, note

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(epilog="Examples: [bold]unswayed bench --quick --only gcn-mean,gat[/bold]")
def bench(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the JSON document to this file.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the samples.")] = False,
    only: Annotated[str | None, typer.Option(help="Models to time, such as gcn-mean,gat.")] = None,
    baseline: Annotated[int, typer.Option(min=20, help="Noisy graphs asked one at a time.")] = 200,
    as_json: opt.Json = False,
) -> None:
    """Time the fast and the generic engine against one noisy graph at a time, all in one run.

    Every model is trained on the clean data first. The baseline is the faster of one and of all threads. The audit asks some
    of the answers again, one graph at a time, as often in a small poll as in a large one; its time is shown apart.
    """
    from unswayed.errors import InputError
    from unswayed.experiments import bench as timing

    cases = tuple(c for c in timing.CASES if only is None or c.model in only.split(","))
    if not cases:
        raise InputError(
            f"--only names no model that is timed: {', '.join(sorted({c.model for c in timing.CASES}))}."
        )
    lines = []
    for line in timing.run(cases, baseline=baseline, quick=quick):
        note(f"{line.dataset} {line.model}: {line.times_baseline:,.0f} times one graph at a time")
        if line.why:
            note(f"  the slow way, because {line.why}")
        lines.append(line)
    options = [("quick", quick), ("only", only), ("baseline", baseline)]
    document = timing.document(lines, command_line("bench", options))
    if out is not None:
        out.write_text(json.dumps(document, indent=2) + "\n")
    if as_json:
        emit(document)
    else:
        console().print(_table(lines))


def _table(lines: list[Any]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from unswayed.rounding import at_least

    table = Table(
        box=SIMPLE_HEAD,
        title="Seconds for one million noisy graphs",
        caption="with audit: the answers asked again included; generic and one by one: the slow ways; "
        "agree: votes equal to one graph at a time, same noise",
    )
    table.add_column("asked", overflow="fold")
    for name in ("fast", "with\naudit", "generic", "one by\none", "times\nfaster", "agree"):
        table.add_column(name, justify="right", min_width=6)
    for line in lines:
        table.add_row(
            f"{line.dataset} {line.model}, {line.threat}, {line.noise}: {line.engine} engine",
            f"{line.seconds_a_million:,.2f}",
            f"{line.audited_seconds:,.2f}",
            f"{1e3 * line.generic_ms:,.0f}",
            f"{1e3 * line.baseline_ms:,.0f}",
            f"{line.times_baseline:,.0f}",
            f"{at_least(100 * line.agreement, 1)}%",
        )
    return table
