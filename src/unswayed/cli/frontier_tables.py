"""What `unswayed frontier` shows: a row for each noise, which to take, and the command that does."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from unswayed.cli.common import console

if TYPE_CHECKING:
    from unswayed.prospects import Prospect
    from unswayed.report.frontier import Point


def show(
    points: "list[Point]",
    best: int | None,
    want: int,
    split: tuple[int, int] | None,
    floor: float | None,
    command: str | None,
    drop: bool,
    flag: str | None = None,
    bearers: int = 0,
) -> None:
    """The points of a sweep, which of them to take, and how; `flag` is the label of which it is said how many stay flagged, of so many."""
    from unswayed.certificates.presenting import plural
    from unswayed.report.frontier import frontier as undominated
    from unswayed.report.terminal import fitting

    place, keep = console(), undominated(points, want)
    place.print()
    place.print(fitting(place, 0, lambda most: _table(points, best, want, split, floor, keep, min(most, 6))))
    if any(spot != best for spot in keep):
        place.print(Text("* beaten by no other both without attack and at the wanted size", style="dim"))
    if flag is not None:
        place.print()
        told = (
            f"Of the {plural(bearers, 'validation target')} truly {flag}, certified to stay flagged (recall)"
        )
        place.print(Text(told, style="bold"))
        place.print(fitting(place, 0, lambda most: _flagged(points, best, want, split, min(most, 6))))
    place.print()
    goal = f"K = {want}" if split is None else f"{split[0]} additions and {split[1]} deletions"
    if best is None or command is None:
        place.print(Text(_none(points, want, goal, drop, flag)))
        return
    if flag is not None:
        place.print(Text(_staying(points, best, want, goal, flag)))
    place.print(Text(_advice(points[best], points[best].wanted(want), goal, floor)))
    place.print(Text(command, style="bold"), soft_wrap=True)


def _none(points: "list[Point]", want: int, goal: str, drop: bool, flag: str | None) -> str:
    """Why no setting is recommended, and what may help."""
    if drop:
        return f"No setting proves more for {goal} than a model without edges has right, so none is recommended: drop the edges, which nobody can then forge."
    proving = [point for point in points if point.wanted(want) > 0]
    if not proving:
        return (
            f"No setting proves {goal} for a single target, so none is recommended; more samples, more noise or a model trained under "
            "noise may."
        )
    telling = [point for point in proving if not point.beware]
    if not telling:
        most = max(proving, key=lambda point: point.wanted(want))
        return f"No setting is recommended for {goal}. {most.beware}"
    return (
        f"No setting keeps a target that is truly {flag} flagged against {goal}, so none is recommended; "
        f"unswayed prove --model ballots --positive {flag} --precision P trains a model that is asked to flag some."
    )


def show_proofs(ahead: "Prospect", want: int, reached: float, command: str) -> None:
    """Say where proofs without noise are expected to hold more than the best of these noises."""
    from unswayed.rounding import percent

    place, expected = console(), ahead.certified(want)
    if ahead.near and reached <= ahead.floor:
        told = "A network trained from label ballots needs no noise, and may gain a little at few changes"
        place.print(Text(f"\n{told}:"))
        place.print(Text(command, style="bold"), soft_wrap=True)
    if not ahead.largest or expected <= reached:
        return
    place.print()
    told = f"Label ballots need no noise, and are expected to prove about {percent(expected)} right at K = {want}"
    if want > ahead.largest:
        told += f", and to pay up to K = {ahead.largest}"
    place.print(Text(f"{told}:"))
    place.print(Text(command, style="bold"), soft_wrap=True)


def _table(
    points: "list[Point]",
    best: int | None,
    want: int,
    split: tuple[int, int] | None,
    floor: float | None,
    keep: set[int],
    most: int,
) -> Table:
    """A row for each noise, with about `most` sizes; with 0, no more than no attack, the wanted size and the ceiling."""
    from unswayed.rounding import near

    sizes = _sizes(points, want, most)
    top = max(len(point.accuracy) - 1 for point in points)
    sides = points[0].sides if most else {}
    table = _empty("Certified accuracy on validation targets", sizes, want)
    for change in sides:
        table.add_column(f"{'+' if change == 'adds' else '−'}{min(want, top)}", justify="right")
    if split is not None:
        table.add_column(f"+{split[0]} −{split[1]}", justify="right", style="bold")
    table.add_column("ceiling", justify="right")
    table.add_column("")
    for spot, point in enumerate(points):
        mark = "← take" if spot == best else "*" if spot in keep else ""
        alone = (point.at(min(want, top), change) for change in sides)
        shares = (*map(point.at, sizes), *alone, point.split)
        cells = [near(share, 2) for share in shares if share is not None]
        table.add_row(
            str(point), *cells, str(point.ceiling), Text(mark), style="green" if spot == best else ""
        )
    if floor is not None:
        table.add_row(
            "floor",
            *[f"{floor:.2f}"] * (len(sizes) + len(sides) + (split is not None)),
            "",
            "",
            style="yellow",
        )
    return table


def _flagged(
    points: "list[Point]", best: int | None, want: int, split: tuple[int, int] | None, most: int
) -> Table:
    """Of those that bear the label, the share that stays flagged; a row for each noise."""
    from unswayed.rounding import near

    sizes = _sizes(points, want, most)
    table = _empty("", sizes, want)
    if split is not None:
        table.add_column(f"+{split[0]} −{split[1]}", justify="right", style="bold")
    for spot, point in enumerate(points):
        shares = [*map(point.recalled, sizes), point.split_recall]
        cells = [near(share, 2) for share in shares if share is not None]
        table.add_row(str(point), *cells, style="green" if spot == best else "")
    return table


def _sizes(points: "list[Point]", want: int, most: int) -> list[int]:
    from unswayed.rounding import nice_sizes

    top = max(len(point.accuracy) - 1 for point in points)
    return sorted({*nice_sizes(top, max(most, 1)), min(want, top)})


def _empty(title: str, sizes: list[int], want: int) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    table.add_column("noise", overflow="fold")
    for size in sizes:
        table.add_column(f"k={size}", justify="right", style="bold" if size == want else "")
    return table


def _staying(points: "list[Point]", best: int, want: int, goal: str, flag: str) -> str:
    """How many stay flagged at the setting that accuracy recommends, and whether another keeps more."""
    from unswayed.rounding import percent

    shares = [point.stays(want) or 0.0 for point in points]
    most = max(range(len(points)), key=lambda place: shares[place])
    text = (
        f"Against {goal}, {points[best]} keeps {percent(shares[best])} of those that are truly {flag} flagged"
    )
    if shares[most] > shares[best]:
        text += f"; {points[most]} keeps {percent(shares[most])}, but no more targets right"
    return f"{text}."


def _advice(best: "Point", share: float, goal: str, floor: float | None) -> str:
    from unswayed.rounding import percent

    text = f"For {goal}, {best} proves {percent(share)} of the validation targets right"
    if floor is not None and share <= floor:
        word = "beats" if share < floor else "reaches"
        return f"{text}, which a structure-free model ({percent(floor)}) {word} without any proof. To certify test targets with it:"
    return f"{text}. Certify test targets, with fresh noise, by:"
