"""The figure of "Where certificates pay": gain over the floor against K, one line a graph."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import InputError
from unswayed.experiments.paying import DATASETS
from unswayed.experiments.paying.rows import AT, Group, gains, grouped
from unswayed.experiments.saved_figures import save
from unswayed.experiments.spread import standard_error
from unswayed.report.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
SHOWN = tuple(name for name in DATASETS if name != "citeseer")  # as flat as Cora and PubMed
LOWEST = -0.6  # where the picture ends; a line that leaves it has its name at the edge
FLAT = {"cora": "--", "pubmed": ":"}  # graphs of few links, drawn in grey
# instead of black, which is the floor's, and of a colour used twice
DARK = {"photo": "#6a3d9a", "computers": "#8c564b"}
# what the links of each graph are, for readers who do not know the graphs by name
LINKS = {
    "highschool": "contacts", "primaryschool": "contacts", "amherst41": "friends", "cornell5": "friends", "polblogs": "blogs",
    "emaileucore": "e-mail", "photo": "shop", "computers": "shop", "cora": "citations", "pubmed": "citations",
}  # fmt: skip
EXACT = ("trained", "label ballots")  # the first that was run on any graph is drawn


def draw(rows: Sequence[Row], stem: Path, protocol: str = "inductive") -> list[Path]:
    """Gain over the floor against K: exact above, smoothed below, one line a graph, as PNG and SVG."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("The figure needs matplotlib: pip install 'unswayed[report]'.") from error
    groups = grouped(rows, "any")
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(7.2, 6.4), sharex=True, sharey=True, layout="constrained"
    )
    for ax, methods, title in (
        (above, EXACT, "Proved (ballots)"),
        (below, ("smoothed",), "Smoothed (noise and votes)"),
    ):
        _panel(ax, groups, methods, protocol)
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    below.set_xlabel("K: links of a node that an attacker may add or delete")
    figure.supylabel("certified accuracy above the floor", fontsize="medium")
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for path in paths:
        save(figure, path, dpi=130)
    pyplot.close(figure)
    return paths


def _panel(ax: "Axes", groups: dict[Group, list[Row]], methods: Sequence[str], protocol: str) -> None:
    ax.plot((0, 20), (0, 0), color="0.25", linewidth=1.2)
    ax.axhspan(0, 1, color=COLOURS[0], alpha=0.05, linewidth=0)
    ax.text(10, 0.9, "here certificates pay", va="top", ha="center", fontsize=9, color="0.35")
    ends: list[tuple[float, str, str]] = [(0.0, "the floor: no edges", "0.25")]
    method = next((m for m in methods if any(key[1:3] == (protocol, m) for key in groups)), methods[0])
    for place, dataset in enumerate(SHOWN):
        mine = groups.get((dataset, protocol, method, "any"))
        if mine is None:
            continue
        gain = gains(mine)
        middle, error = gain.mean(axis=0), standard_error(gain)
        colour = "0.45" if dataset in FLAT else DARK.get(dataset, COLOURS[place % len(COLOURS)])
        ax.plot(AT, middle, FLAT.get(dataset, "-"), color=colour, linewidth=1.8, marker="o", markersize=3)
        ax.fill_between(AT, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)
        ends.append((max(float(middle[-1]), LOWEST + 0.05), f"{dataset} ({LINKS[dataset]})", colour))
    for height, (end, name, colour) in zip(
        _apart([end[0] for end in sorted(ends)]), sorted(ends), strict=True
    ):
        ax.plot((20.15, 20.75), (end, height), color=colour, linewidth=0.7)
        ax.text(20.9, height, name, color=colour, fontsize=8, va="center")
    ax.set(xlim=(0, 27.5), ylim=(LOWEST, 0.95), xticks=AT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)


def _apart(heights: Sequence[float], least: float = 0.075) -> list[float]:
    """The heights, lowest first, moved apart where two names would lie on each other: halfway between only up and only down.

    All are lifted where the lowest name would lie on the edge of the picture.
    """
    up, down = list(heights), list(heights)
    for i in range(1, len(heights)):
        up[i] = max(up[i], up[i - 1] + least)
        down[-1 - i] = min(down[-1 - i], down[-i] - least)
    lift = max(0.0, LOWEST + least / 2 - (up[0] + down[0]) / 2)
    return [(high + low) / 2 + lift for high, low in zip(up, down, strict=True)]
