"""`unswayed report`: the HTML report of a stored run, at the recorded confidence or another one."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unswayed.cli import kinds
from unswayed.cli import options as opt
from unswayed.cli.attacker import one_attacker
from unswayed.cli.certify import save_report
from unswayed.cli.common import beside, check_apart, console, emit, warn
from unswayed.cli.document import document, save_table

if TYPE_CHECKING:
    from unswayed.certificates import Certified
    from unswayed.cli.record import Record
    from unswayed.votes import Votes

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

EXAMPLES = """
[bold]Examples[/bold]

  unswayed report runs/cora

  unswayed report runs/cora --out cora.html --alpha 0.01
"""


@app.command(epilog=EXAMPLES)
def report(
    store: Annotated[
        Path,
        typer.Argument(
            help="The folder that `certify --store` filled, or a file of votes or certificates.",
            metavar="STORE",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", callback=beside)] = Path(
        "unswayed-report.html"
    ),
    alpha: Annotated[float | None, typer.Option(help="Another alpha than the recorded one.")] = None,
    bounds: Annotated[
        kinds.BoundsKind | None, typer.Option(help="Other bounds than the recorded ones.")
    ] = None,
    family: Annotated[
        bool, typer.Option("--family", help="One confidence for all targets together.")
    ] = False,
    shared: opt.Shared = None,
    csv: opt.Csv = None,
    as_json: opt.Json = False,
) -> None:
    """Write the report of a stored run: one HTML file that needs nothing else."""
    from unswayed.cli.record import open_run

    check_apart([store], out, csv)
    record, found = open_run(store)
    _check_finished(record, found)
    level = {
        "alpha": record.alpha if alpha is None else alpha,
        "bounds": record.bounds if bounds is None else str(bounds),
        "family": record.family or family,
    }
    record = _relevelled(record, level, found)
    certs = record.certify(found)
    attacker = one_attacker(record, certs, shared)
    save_report(record, certs, out, attacker)
    if csv is not None:
        save_table(record, certs, csv)
    if as_json:
        emit(document(record, certs, out, attacker))
    else:
        table = "" if csv is None else f", its table in {csv}"
        console().print(f"The report of {store} is in {out}{table}.", soft_wrap=True, markup=False)


def _check_finished(record: "Record", found: "Votes | Certified") -> None:
    from unswayed.votes import Votes

    drawn = int(found.samples.max(initial=0)) if isinstance(found, Votes) else record.samples
    if drawn < record.samples and not record.finished:
        warn(
            f"The run is unfinished: {drawn:,} of {record.samples:,} samples; the same certify command goes on."
        )


def _relevelled(record: "Record", level: dict[str, Any], found: "Votes | Certified") -> "Record":
    """The run at another level than the recorded one, which it says of itself and warns of."""
    from unswayed.cli.record import LOOKED
    from unswayed.errors import InputError
    from unswayed.votes import Votes

    other = [name for name, value in level.items() if getattr(record, name) != value]
    if not other:
        return record
    if not isinstance(found, Votes):
        raise InputError(f"These are certificates, not votes: their {' and '.join(other)} cannot be changed.")
    said = LOOKED.format(names=" and ".join(other))
    warn(f"{said[0].upper()}{said[1:]}.")
    was = ", ".join(f"{name} {getattr(record, name)}" for name in other)
    return replace(record, **level, training={**record.training, "another level": f"was {was}; {said}"})
