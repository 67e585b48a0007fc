"""The results page, written from the rows alone: no number in it was typed by hand but the published ones.

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

Row = dict[str, Any]
AT = (1, 5, 10, 15)
GROUP = ("dataset", "model", "recipe", "protocol")
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
# Results

Certified accuracy at K is the share of test targets whose certified label is right and whose certified size is at least
K. An abstention counts as wrong. Every figure is a mean over random splits (20 training labels a class and 100 test
nodes; a tenth of the graphs), with the standard deviation over splits behind ±.

*Transductive*: every node may be used in training, without its label. *Inductive*: the test nodes, their features and
their edges are absent from all training, the teacher's included. The *floor* is the best structure-free model of the
same protocol and split, chosen on validation targets: no edge can change its answer, so it is certified at every K for
free. The *gain* is what a certificate adds to it. *Edgeless* is the accuracy of the same weights asked without any edge:
where it equals the certified accuracy, the model ignores its edges.
"""
CHOICES = """\
## What was chosen, and on what

Hyper-parameters were chosen on validation targets of Cora and MUTAG and carried over to the other datasets: the teacher
(graph convolutions or personalised PageRank, picked on validation nodes in every run), dropout, weight decay, the width and
the learning rate of the student. During that search, accuracies on nodes
outside the training and validation sets of Cora, seeds 0 to 2, were on screen for eight teacher settings; they decided
nothing, but they were seen. In the best recipe the weights are trained once, under β = 0.7, and asked at every β.

The graph classifiers of the best recipe are five small GINs (two layers of 16) whose answers are averaged, trained on all
graphs outside the test set. They were chosen by cross-validation inside the development graphs; in that search no graph
was scored that is in a test set of the seeds 0 to 4. Certified shares at K = 1 / 5 / 10 / 15 on graphs held out, shares of
votes taken as probabilities: on MUTAG (109 graphs, five seeds) one GIN of five layers of 32 that stops on validation
graphs .83/.81/.80/.80, five of them on folds .84/.83/.83/.83, with the last weights .84 at K = 1, with weight decay 0.01
.85/.85/.84/.84, five small ones on standardised counts .84 (perceptron) and .85/.85/.85/.84 (linear), five linear readouts
of the counts without any edge .85 at every K. With one seed: ten small ones with both readouts .84, weight decay 0.01 .85,
and as chosen, with a penalty on copies of a graph that disagree, .86 at every K, as without edges. On PROTEINS (130
graphs, one fold) without that penalty .72/.69/.67/.66, with means in place of sums .70/.61/.59/.56, as chosen .74 at every
K, without edges .75. On IMDB-MULTI only the number of nodes withstands noise in small graphs: a perceptron on it was
right on .39 to .40 of 1,756 answers, one GIN on degrees .28/.06/.02/.01, smaller ones on constant inputs .38/.35/.35/.35
and, standardised, .39. Perceptrons on the size and statistics of the noisy edges had .31 to .35 at K = 1, with a penalty
or with a loss that rewards agreement, and .14 to .34 at K = 5; mixed into the law of the size with nine weights they lost
at K = 5 whatever the weight. Heard in large graphs alone (five thresholds, four weights) they had up to .40/.40 where the
law of the size had .39. So the GINs, too, hear the edges of graphs of more than 20 nodes alone. With weight decay 0.001
they ignored them (.41 on 528 graphs, .43 without edges); as chosen, the best of five thresholds and weights, .45 at every
K on 352 graphs of one seed, .44 without edges: a difference well within chance.

The attention network of the best recipe gives a node's own state a weight of its own (a residual) and no self-loop. On
noisy rows of the validation nodes of Cora, seed 0, it was right on 0.815 of them after the same 120 steps; with residual
and self-loop on 0.797, and as published, with the self-loop alone, on 0.757. Those two were tried before it, and after
it a learning rate of 0.01 in place of 0.003: 0.804. No other setting was run to the end for it.

A panel that is not shown has not been run to the end.

```{toctree}
:hidden:

beyond
speed
```
"""
WALL = """\
## What the graph can still say

If K is at least the degree of a node, erasing its whole row is one of the attacks covered. So the certified label of that
node is what the smoothed classifier says of a node without edges, and certified accuracy at K cannot exceed the
accuracy without edges on nodes of degree up to K plus the share of nodes of larger degree. The last columns give that
share for the test nodes: it is all the room a certificate has above a structure-free model.
"""
GAINS = """\
![Certified accuracy less the structure-free floor](gains.png)

The same at every perturbation size, also as [SVG](gains.svg): above the dotted line a certificate says more than a model
that never looks at an edge.
"""


def headline(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """The rows at the published setting (β, α, most samples), by what was trained."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if (row["beta"], row["alpha"], row["samples"]) == (BETA, ALPHA, SAMPLES[-1]):
            groups[tuple(row[name] for name in GROUP)].append(row)
    return dict(sorted(groups.items()))


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def table(groups: dict[tuple[str, ...], list[Row]]) -> Iterator[str]:
    """Certified accuracy beside the published one, the floor and the accuracy without edges."""
    yield "| dataset | model | recipe | protocol | seeds | K = 1 | K = 5 | K = 10 | K = 15 | published at 5 / 10 / 15 | floor | edgeless | clean |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for key, rows in groups.items():
        shares = [_spread([row["certified_accuracy"][str(k)] for row in rows]) for k in AT]
        paper = " / ".join(f"{value:.2f}" for value in PUBLISHED.get((key[0], key[1]), ())) or "–"
        others = [_mean(rows, name) for name in ("floor", "accuracy_edgeless", "clean_accuracy")]
        cells = [*key, str(len(rows)), *shares, paper, *(f"{value:.3f}" for value in others)]
        yield f"| {' | '.join(cells)} |"


def gains(groups: dict[tuple[str, ...], list[Row]]) -> Iterator[str]:
    """Certified accuracy less the floor of the same split, and the room the degree wall leaves."""
    yield "| dataset | model | recipe | protocol | gain at 1 | gain at 5 | gain at 10 | gain at 15 | degree > 1 | > 5 | > 10 | > 15 |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for key, rows in groups.items():
        gain = [_gain([row["certified_accuracy"][str(k)] - row["floor"] for row in rows]) for k in AT]
        node = rows[0]["task"] == "node"
        walls = [f"{np.mean([row['wall'][str(k)] for row in rows]):.2f}" if node else "–" for k in AT]
        yield f"| {' | '.join([*key, *gain, *walls])} |"


def _gain(values: Sequence[float]) -> str:
    return f"{np.mean(values):+.3f} ± {np.std(values):.3f}"


def provenance(rows: Sequence[Row]) -> Iterator[str]:
    """Command, commit, machine and time of everything shown."""
    groups: dict[tuple[str, str, str], float] = defaultdict(float)
    seen = set()
    for row in rows:
        if (one := (*(row[name] for name in (*GROUP, "seed", "beta", "device")),)) not in seen:
            seen.add(one)
            groups[row["command"], row["commit"], row["device"]] += row["seconds"]
    yield "| command | commit | machine | seconds of training and polling |"
    yield "|---|---|---|---|"
    for (command, commit, device), seconds in sorted(groups.items()):
        yield f"| `{command}` | {commit} | {device} | {seconds:,.0f} |"


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
        "## Where these numbers come from",
        "",
        *provenance(list(unique.values())),
        "",
    ]
    return "\n".join(shown)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / "index.md").write_text(page(target))
