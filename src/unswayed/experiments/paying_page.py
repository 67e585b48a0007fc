"""The page "Where certificates pay": tables and one figure, written from the rows alone."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.errors import InputError
from unswayed.experiments.paying import DATASETS, METHODS, Result
from unswayed.experiments.paying_rows import AT, gains, rows_of
from unswayed.experiments.rows import write_rows
from unswayed.experiments.spread import deviation, plus_minus
from unswayed.report.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
Group = tuple[str, str, str, str]
SHOWN = ("highschool", "amherst41", "cornell5", "polblogs", "emaileucore", "photo", "computers", "cora")
EXACT = ("trained", "label ballots")  # the first that was run is drawn
TOLD = {
    "label ballots": "proved, untrained label ballots",
    "trained": "proved, trained",
    "hashed": "proved, groups of edges",
    "smoothed": "smoothed, best noise",
}
INTRODUCTION = """\
---
hide-toc: true
---

# Where certificates pay

A certificate is worth having where it proves more than a model that never looks at an edge is right about, because that
model, the *floor*, cannot be attacked through edges at all. Two numbers decide it: how many nodes have more links than
the attacker may change (the degree wall), and how much the links say that features do not. `us.prospect` reads both off a
graph before anything is certified.

![Gain over the floor against the number of changed links](paying.svg)

*Certified accuracy at K less the strongest floor of the same protocol and splits. Above: exact proofs of ballots, one
network for all K. Below: ballots or networks under noise, the noise chosen on validation nodes. Bands: one sample standard deviation.*

"""
READING = """\
Every figure is a mean over random splits (the tables say how many), ± the sample standard deviation where it stands. Labels are known for 20% of each class (PolBlogs
10%, Photo and Computers 30%, Cora, CiteSeer and PubMed 20 nodes a class and 500 to choose with); three quarters of them train, one quarter
chooses, all of them speak. Half of the other nodes are tested. *Inductive*: test nodes, their features and their edges are absent from training. K counts links of the
node's own row that are added or deleted, except in the rows "groups of edges", where any edges of the whole graph may change. Floors: *labels*, a
perceptron on features; *distilled*, one taught by the best model that reads edges, which has seen the test nodes (transductive) or not
(inductive); *majority* where nodes have no features. Proofs hold with certainty; smoothed rows hold each with confidence 0.999.
"""


def publish(results: Sequence[Result], out: Path) -> list[Path]:
    """Write paying.json, paying.md and the figure into `out`; what was written."""
    rows = rows_of(results)
    if not rows:
        raise InputError(
            "There is no result to show yet: run the experiment first, floors included, for at least one split."
        )
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / "paying.json", rows)
    (out / "paying.md").write_text(page(rows))
    return [out / "paying.json", out / "paying.md", *draw(rows, out / "paying")]


def grouped(rows: Sequence[Row], budget: str) -> dict[Group, list[Row]]:
    """The splits of each (dataset, protocol, method, budget), graphs and methods in the experiment's order."""
    found: dict[Group, list[Row]] = defaultdict(list)
    for row in rows:
        if row["budget"] == budget:
            found[row["dataset"], row["protocol"], row["method"], budget].append(row)
    order = {name: place for place, name in enumerate((*DATASETS, *METHODS))}
    return dict(sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1], order[item[0][2]])))


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    text = [INTRODUCTION, READING]
    text.append("\n## The gain at a glance\n\n" + glance(rows))
    for budget, title in (
        ("any", "Any change of links"),
        ("adds", "Added links alone"),
        ("deletes", "Deleted links alone"),
    ):
        text.append(f"\n## {title}\n\n" + table(grouped(rows, budget)))
    text.append("\n## How it was run\n\n" + sources(rows))
    return "".join(text)


def glance(rows: Sequence[Row]) -> str:
    """For each graph and protocol: nodes above the wall, floors, and the gain of each method at 1, 5 and 10."""
    lines = ["| graph | protocol | method | degree > 5 | > 10 | floor | gain at 1 | at 5 | at 10 |\n"]
    lines.append("|" + "---|" * 9 + "\n")
    for (dataset, protocol, method, _), mine in grouped(rows, "any").items():
        gain = gains(mine)
        wall = [float(np.mean([row["wall"][k] for row in mine])) for k in ("5", "10")]
        cells = [plus_minus(gain[:, AT.index(k)].tolist()) for k in (1, 5, 10)]
        floor = float(np.mean([row["certified_accuracy"]["5"] for row in mine]) - gain[:, AT.index(5)].mean())
        lines.append(
            f"| {dataset} | {protocol} | {TOLD[method]} | {wall[0]:.2f} | {wall[1]:.2f} | {floor:.3f} | {' | '.join(cells)} |\n"
        )
    return "".join(lines)


def table(groups: dict[Group, list[Row]]) -> str:
    """Certified accuracy at every size, base accuracy and all floors."""
    head = "| graph | protocol | method | splits | base | " + " | ".join(f"K = {k}" for k in AT)
    lines = [f"{head} | floors |\n", "|" + "---|" * (len(AT) + 6) + "\n"]
    for (dataset, protocol, method, _), mine in groups.items():
        shares = [float(np.mean([row["certified_accuracy"][str(k)] for row in mine])) for k in AT]
        heights = {
            name: float(np.mean([row["floors"][name] for row in mine]))
            for name in mine[0]["floors"]
            if protocol in name or "distilled" not in name
        }
        told = ", ".join(f"{name.split()[0]} {height:.3f}" for name, height in heights.items())
        base = float(np.mean([row["base_accuracy"] for row in mine]))
        cells = " | ".join(f"{share:.3f}" for share in shares)
        lines.append(
            f"| {dataset} | {protocol} | {TOLD[method]} | {len(mine)} | {base:.3f} | {cells} | {told} |\n"
        )
    return "".join(lines)


def sources(rows: Sequence[Row]) -> str:
    """Which command, commit and machine made these rows, and how long each method took."""
    told = sorted({(row["command"], row["commit"], row["device"]) for row in rows})
    lines = [
        f"- `{command}`, commit {commit}, {device}; rows in `docs/results/paying.json`\n"
        for command, commit, device in told
    ]
    for method in METHODS:
        spent = [row["seconds"] for row in rows if row["method"] == method and row["budget"] == "any"]
        if spent:
            lines.append(f"- {TOLD[method]}: {np.median(spent):.1f} s a split (median over graphs)\n")
    return "".join(lines)


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
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def _panel(ax: "Axes", groups: dict[Group, list[Row]], methods: Sequence[str], protocol: str) -> None:
    ax.plot((0, 20), (0, 0), color="0.25", linewidth=1.2)
    ax.text(0.15, -0.03, "the floor: a model without edges", va="top", fontsize=8, color="0.25")
    ends: list[tuple[float, str, str]] = []
    for place, dataset in enumerate(SHOWN):
        mine = next((groups[key] for m in methods if (key := (dataset, protocol, m, "any")) in groups), None)
        if mine is None:
            continue
        gain = gains(mine)
        middle, error = gain.mean(axis=0), deviation(gain)
        colour = "0.45" if dataset == "cora" else COLOURS[place % len(COLOURS)]
        ax.plot(AT, middle, color=colour, linewidth=1.8, marker="o", markersize=3)
        ax.fill_between(AT, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)
        ends.append((float(middle[-1]), dataset, colour))
    for height, (_, dataset, colour) in zip(
        _apart([end[0] for end in sorted(ends)]), sorted(ends), strict=True
    ):
        ax.text(20.3, height, dataset, color=colour, fontsize=8, va="center")
    ax.set(xlim=(0, 23.5), ylim=(-0.6, 0.95), xticks=AT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)


def _apart(heights: Sequence[float], least: float = 0.075) -> list[float]:
    """The heights, lowest first, moved up where two names would lie on each other."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + least) if placed else height)
    return placed
