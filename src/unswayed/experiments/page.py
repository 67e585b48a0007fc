"""The results page, written from the rows alone: no result in it was typed by hand but the published ones.

python -m unswayed.experiments.page docs/results
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.experiments.figures import draw_gains
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
INTRODUCTION = """\
---
hide-toc: true
---

# Results

Certified accuracy at K is the share of test targets whose certified label is right and whose certified size is at least
K. An abstention counts as wrong. Every figure is a mean over random splits (20 training labels a class and 100 test
nodes; a tenth of the graphs), with the sample standard deviation over splits behind ±.

*Transductive*: every node may be used in training, without its label. *Inductive*: the test nodes, their features and
their edges are absent from all training, the teacher's included. The *floor* is the best structure-free model of the
same protocol and split, chosen on development targets: no edge can change its answer, so it is certified at every K for
free. The *gain* is what a certificate adds to it. *Edgeless* is the accuracy of the same weights asked without any edge:
where it equals the certified accuracy, the model ignores its edges.
"""
CHOICES = """\
## What was chosen, and on what

Hyper-parameters were chosen on validation nodes and development graphs: [what was tried](choices.md). In the best recipe
the weights are trained once, under β = 0.7, and asked at every β. A curve is the mean of the seeds that were run to the end
at its β; the rows name them.

```{toctree}
:hidden:

paying
choices
beyond
speed
mutation
```
"""
SOURCES = """\
## Where these numbers come from

Times of processes that shared a machine are added up; what one process needs for everything is on the page about
[speed](speed.md).
"""
WALL = """\
## What the graph can still say

If K is at least the degree of a node, erasing its whole row is one of the attacks covered. So the certified label of that
node is what the smoothed classifier says of a node without edges, and certified accuracy at K cannot exceed the
accuracy without edges on nodes of degree up to K plus the share of nodes of larger degree. The last columns give that
share for the test nodes: it is all the room a certificate has above a structure-free model.

Graphs have no such wall, but the noise hides their structure, too. In a molecule of 18 atoms all 153 pairs are noisy: the
number of noisy edges has a standard deviation of 5.7, and one bond more moves its mean by 0.4. What withstands the noise is
mostly how many atoms of each kind there are, so certified accuracy follows the floor of the same split.

A size never exceeds the number of pairs, so a graph of few nodes counts as lost at every larger K, even where its label
withstands any change whatever. That is why curves on PROTEINS and IMDB-MULTI step down at β = 0.5, where all others are
flat: 3% of the PROTEINS have fewer than 15 pairs, 9% fewer than 30, and 36% of IMDB-MULTI. The floor is not charged for
this, so the gain on PROTEINS at 10 and 15 is understated by up to 0.01 and 0.03.
"""
GAINS = """\
![Certified accuracy less the structure-free floor](gains.png)

The same at every perturbation size, also as [SVG](gains.svg): above the dotted line a certificate says more than the best
model we found that never looks at an edge.
"""


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


def page(folder: Path) -> str:
    """The whole page from every rows file in `folder`, where the plot of the gains is written too."""
    shown: list[str] = [INTRODUCTION]
    every: list[Row] = []
    figures: list[str] = []
    for experiment in EXPERIMENTS[1:]:
        for recipe in RECIPES:
            path = folder / f"{experiment}-{recipe}.json"
            if path.exists():
                every += read_rows(path)
                figures += [f"## {TITLES[experiment]} ({recipe} recipe)", ""]
                figures += [f"![{TITLES[experiment]}, {recipe} recipe]({path.stem}.png)", ""]
                figures += [f"Rows: [{path.name}]({path.name}), curves also as [SVG]({path.stem}.svg).", ""]
    unique = {tuple(row[name] for name in (*GROUP, "seed", "beta", "alpha", "samples")): row for row in every}
    groups = headline(list(unique.values()))
    draw_gains(groups, folder / "gains")
    setting = f"β = {BETA}, α = {ALPHA}, d = {SAMPLES[-1]:,}, bounds `strict`"
    shown += [f"## The published setting: {setting}", "", *table(groups), "", WALL, *gains(groups), "", GAINS]
    shown += [
        *figures,
        CHOICES,
        SOURCES,
        *provenance(list(unique.values())),
        "",
    ]
    return "\n".join(shown)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / "index.md").write_text(page(target))
