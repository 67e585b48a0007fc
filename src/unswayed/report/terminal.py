"""The same facts in a terminal: a table, a curve made of block characters, and the weakest targets."""

from collections.abc import Callable

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from unswayed.report import alone
from unswayed.report.advice import advice
from unswayed.report.summary import WIDEST, Summary
from unswayed.report.words import confidence, headline, staying, verdict
from unswayed.rounding import near, nice_sizes, percent, round_step, signed

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT, WIDTH = 9, 56
BESIDE = 24  # what stands beside the columns of the curve: marks, the floor, the name of the axis
ALONE = {"adds": "additions alone", "deletes": "deletions alone"}


def print_summary(summary: Summary, console: Console, *, weakest: int = 5) -> None:
    """Print what was proven: headline, table with its floor, curve, the weakest targets."""
    console.print()
    console.print(Text(headline(summary), style="bold"))
    console.print(Text(verdict(summary)))
    if said := staying(summary):
        console.print(Text(said))
    console.print()
    console.print(fitting(console, 3, lambda most: accuracy_table(summary, most)))
    console.print()
    ascii_only = not console.encoding.lower().startswith("utf")
    console.print(curve(summary, ascii_only=ascii_only, width=min(WIDTH, max(console.width - BESIDE, 8))))
    console.print()
    console.print(fitting(console, 0, lambda most: weakest_table(summary, weakest, most)))
    console.print(Text(advice(summary)))
    console.print(Text(confidence(summary), style="dim"))


def fitting(console: Console, least: int, table: Callable[[int], Table]) -> Table:
    """The table with as many columns, from 8 down to `least`, as the terminal has room for."""
    free = console.options.update(max_width=1_000)
    tables = (table(most) for most in range(8, least, -1))
    fits = (found for found in tables if Measurement.get(console, free, found).maximum <= console.width)
    return next(fits, None) or table(least)


def _plain_table(title: str | None = None) -> Table:
    return Table(
        title=title, box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left", title_style="bold"
    )


def accuracy_table(summary: Summary, most: int = 8) -> Table:
    """Certified accuracy at a few sizes, `most` of them, above the floor at the same sizes, and the difference."""
    kinds = summary.sides if summary.apart else {}
    far = [min(int(sizes.max()) + 1, WIDEST) for sizes in kinds.values()]
    sizes = nice_sizes(max([summary.top, *far]), most)
    what = "certified accuracy" if summary.truth is not None else "share certified"
    table = _plain_table()
    table.add_column("attack size k", style="dim")
    for size in sizes:
        table.add_column(str(size), justify="right")
    shares = summary.share(sizes).tolist()
    table.add_row(what, *[near(share, 2) for share in shares], style="bold")
    for change in summary.sides:
        table.add_row(ALONE[change], *[near(share, 2) for share in summary.share(sizes, change).tolist()])
    if summary.positive is not None:
        name, right = summary.label_name(summary.positive), summary.precision_shown(sizes, 2)
        table.add_row(
            Text(f"{name} stays flagged"), *[near(share, 2) for share in summary.recall(sizes).tolist()]
        )
        if right is not None:
            table.add_row("… precision at least", *right)
    if summary.attack_curve is not None:
        table.add_row(
            "unbroken by attack", *[f"{summary.attack_curve[min(size, summary.top)]:.2f}" for size in sizes]
        )
    if summary.base is not None and summary.truth is not None:
        table.add_row("unsmoothed model", near(summary.base, 2), *["–"] * (len(sizes) - 1), style="dim")
    if summary.floor is not None and summary.truth is not None:
        floor = summary.floor
        table.add_row("floor", *[f"{floor:.2f}"] * len(sizes), style="yellow")
        gaps = [Text(signed(share - floor, 2), style="green" if share > floor else "red") for share in shares]
        table.add_row("above the floor", *gaps)
    return table


def curve(summary: Summary, *, ascii_only: bool = False, width: int = WIDTH) -> Text:
    """The curve as filled columns, `width` at most, the floor as a dashed line through them."""
    last = summary.top
    wide, step = max(1, width // (last + 1)), -(-(last + 1) // width)  # columns a size, or sizes a column
    shares = [share for share in summary.curve.share.tolist()[::step] for _ in range(wide)]
    floor = summary.floor if summary.truth is not None else None
    level = None if floor is None else min(int(floor * HEIGHT), HEIGHT - 1)
    picture = Text()
    for line in range(HEIGHT - 1, -1, -1):
        mark = {HEIGHT - 1: "100%", HEIGHT // 2: " 50%", 0: "  0%"}.get(line, "    ")
        picture.append(f"{mark} ┤" if not ascii_only else f"{mark} |", style="dim")
        for share in shares:
            full = min(max(share * HEIGHT - line, 0.0), 1.0)
            if line == level:
                picture.append(
                    "-" if ascii_only else "╌", style="yellow on blue" if full >= 0.5 else "yellow"
                )
            elif ascii_only:
                picture.append("#" if full >= 0.5 else " ", style="blue")
            else:
                picture.append(BLOCKS[round(full * 8)], style="blue")
        if line == level and floor is not None:
            picture.append(f" floor {percent(floor)}", style="yellow")
        picture.append("\n")
    picture.append(_axis(last, wide, step, max(width // 7, 1)), style="dim")
    return picture


def _axis(last: int, wide: int, step: int, marks: int) -> str:
    cells = [" "] * ((last // step + 1) * wide + 6)
    for size in range(0, last + 1, round_step(last, marks)):
        for place, digit in enumerate(str(size)):
            cells[size // step * wide + wide // 2 + place] = digit
    return "      " + "".join(cells).rstrip() + "  attack size k"


def _truth(summary: Summary, label: int) -> str:
    return "unknown" if label < 0 else summary.label_name(label)


def weakest_table(summary: Summary, most: int, more: int = 8) -> Table:
    """The targets that an attacker would try first, with `more` columns of evidence at most."""
    certs = summary.certs
    table = _plain_table(title=f"The weakest {summary.unit}s")
    shown = [column for column in certs.evidence() if column.title and column.values.ndim == 1]
    truth = ["truth"] if summary.truth is not None else []
    evidence = [*summary.sides, *(column.title for column in shown)][:more]
    for name in (summary.unit, "label", *truth, "K", *evidence):
        table.add_column(name, justify="left" if name in ("label", "truth") else "right", overflow="fold")
    for place in summary.order[:most].tolist():
        known = [] if summary.truth is None else [Text(_truth(summary, int(summary.truth[place])))]
        seen = (
            *(alone.shown(summary, change, place) for change in summary.sides),
            *(column.shown(place) for column in shown),
        )
        table.add_row(
            Text(summary.target_name(place)),
            Text(summary.label_name(int(certs.label[place]))),
            *known,
            str(size) if (size := int(certs.size[place])) >= 0 else "-",
            *seen[:more],
        )
    return table
