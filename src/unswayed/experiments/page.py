"""The tables and figures of the results page, from the rows alone: none was typed by hand but the published ones.

python -m unswayed.experiments.page docs/results
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.experiments.figures import draw_gains
from unswayed.experiments.marked_pages import fill
from unswayed.experiments.rows import read_rows
from unswayed.experiments.settings import ALPHA, BETA, EXPERIMENTS, RECIPES, SAMPLES
from unswayed.experiments.spread import plus_minus

Row = dict[str, Any]
AT = (1, 5, 10, 15)
GROUP = ("dataset", "model", "recipe", "protocol")
SOURCE = ("command", "commit", "device")
# Certified accuracy at K = 5, 10 and 15 as printed in the paper (GCN, transductive; GIN)
PUBLISHED = {("cora", "gcn-mean"): (0.55, 0.50, 0.49), ("mutag", "gin"): (0.45, 0.45, 0.40)}
TITLES = {
    "figure1": "Figure 1: node classification, noise level varied",
    "figure2": "Figure 2: graph attention, noise level varied",
    "figure3": "Figure 3: graph classification, noise level varied",
    "figure4": "Figure 4: confidence varied",
    "figure5": "Figure 5: number of samples varied",
}


def headline(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """The rows at the published setting (β, α, most samples), by what was trained."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if (row["beta"], row["alpha"], row["samples"]) == (BETA, ALPHA, SAMPLES[-1]):
            groups[tuple(row[name] for name in GROUP)].append(row)
    return dict(sorted(groups.items()))


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def table(groups: dict[tuple[str, ...], list[Row]]) -> Iterator[str]:
    """Certified accuracy beside the published one, the floor and the accuracy without edges."""
    yield "| dataset | model | recipe | protocol | seeds | K = 1 | K = 5 | K = 10 | K = 15 | published at 5 / 10 / 15 | floor | edgeless | clean |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for key, rows in groups.items():
        shares = [plus_minus([row["certified_accuracy"][str(k)] for row in rows]) for k in AT]
        paper = " / ".join(f"{value:.2f}" for value in PUBLISHED.get((key[0], key[1]), ())) or "–"
        others = [_mean(rows, name) for name in ("floor", "accuracy_edgeless", "clean_accuracy")]
        cells = [*key, str(len(rows)), *shares, paper, *(f"{value:.3f}" for value in others)]
        yield f"| {' | '.join(cells)} |"


def gains(groups: dict[tuple[str, ...], list[Row]]) -> Iterator[str]:
    """Certified accuracy less the floor of the same split, and the room the degree wall leaves."""
    yield "| dataset | model | recipe | protocol | gain at 1 | gain at 5 | gain at 10 | gain at 15 | degree > 1 | > 5 | > 10 | > 15 |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for key, rows in groups.items():
        gain = [
            plus_minus([row["certified_accuracy"][str(k)] - row["floor"] for row in rows], "+.3f") for k in AT
        ]
        node = rows[0]["task"] == "node"
        walls = [f"{np.mean([row['wall'][str(k)] for row in rows]):.2f}" if node else "–" for k in AT]
        yield f"| {' | '.join([*key, *gain, *walls])} |"


def provenance(rows: Sequence[Row]) -> Iterator[str]:
    """Command, commit, machine and time of everything shown; a training is counted once, whatever is read off it."""
    training: dict[tuple[str, ...], dict[Any, float]] = defaultdict(dict)
    polling: dict[tuple[str, ...], dict[Any, float]] = defaultdict(dict)
    for row in rows:
        source, trained = tuple(row[name] for name in SOURCE), tuple(row[name] for name in (*GROUP, "seed"))
        training[source][trained] = row["seconds_training"]
        polling[source][trained, row["beta"]] = row["seconds"] - row["seconds_training"]
    yield "| command | commit | machine | trainings | seconds | polls | seconds |"
    yield "|---|---|---|---|---|---|---|"
    for source in sorted(training):
        command, *where = source
        times = [f"{len(part)} | {sum(part.values()):,.0f}" for part in (training[source], polling[source])]
        yield f"| `{command}` | {' | '.join([*where, *times])} |"


def figures(paths: Sequence[tuple[str, str, Path]]) -> Iterator[str]:
    """A heading, the picture and the rows of each (experiment, recipe, rows file)."""
    for experiment, recipe, path in paths:
        yield from (f"## {TITLES[experiment]} ({recipe} recipe)", "")
        yield from (f"![{TITLES[experiment]}, {recipe} recipe]({path.stem}.png)", "")
        yield from (f"Rows: [{path.name}]({path.name}), curves also as [SVG]({path.stem}.svg).", "")


def parts(found: Sequence[tuple[str, str, Path]], groups: dict[tuple[str, ...], list[Row]]) -> dict[str, str]:
    """Every table of the page, and its figures, by name."""
    setting = f"β = {BETA}, α = {ALPHA}, d = {SAMPLES[-1]:,}, bounds `strict`"
    shown: dict[str, Iterable[str]] = {
        "published": [f"## The published setting: {setting}", "", *table(groups)],
        "gains": gains(groups),
        "figures": figures(found),
        "sources": provenance(list(distinct(found).values())),
    }
    return {name: "\n".join(lines) + "\n" for name, lines in shown.items()}


def distinct(found: Sequence[tuple[str, str, Path]]) -> dict[tuple[Any, ...], Row]:
    """The rows of all these files, each once, though several figures show it."""
    names = (*GROUP, "seed", "beta", "alpha", "samples")
    return {tuple(row[name] for name in names): row for *_, path in found for row in read_rows(path)}


def write_page(folder: Path) -> Path:
    """Fill index.md from every rows file in `folder`, where the plot of the gains is written too."""
    asked = [(e, recipe, folder / f"{e}-{recipe}.json") for e in EXPERIMENTS[1:] for recipe in RECIPES]
    found = [(experiment, recipe, path) for experiment, recipe, path in asked if path.exists()]
    groups = headline(list(distinct(found).values()))
    draw_gains(groups, folder / "gains")
    return fill(folder / "index.md", parts(found, groups))


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
