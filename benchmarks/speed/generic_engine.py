"""The generic engine against one-graph-at-a-time PyG, on the CPU, as ratios measured in one run (best of five turns each).

    python -m benchmarks.speed.generic_engine [--seconds 4] [--threads 1 2] [--json]

"wall" is the faster of one and two threads on either side, and means something on an idle machine only. "CPU" is processor
time on one thread, which a busy machine disturbs less; it does not replace the former.

Both ask the same model about the same noisy graphs and must count the same votes. The baseline is
handed the noise ready drawn; the engine draws its own.
"""

import argparse
import json
import time

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import GIN, GATConv, GCNConv, global_add_pool

from benchmarks.loading import NOISE
from unswayed.datasets import load
from unswayed.experiments.one_graph import one_at_a_time
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Row


class GCN(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class GAT(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GATConv(features, 8, heads=8), GATConv(64, classes)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class GraphGIN(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.body, self.head = GIN(features, 32, 5), nn.Linear(32, classes)

    def forward(self, x, edge_index, batch):
        return self.head(global_add_pool(self.body(x, edge_index), batch))


def cases():
    """(name, question): the three settings of this benchmark."""
    cora, mutag = load("cora"), load("mutag")
    torch.manual_seed(0)
    for kind in (GCN, GAT):
        model = kind(cora.num_features, cora.num_classes).eval()
        threat = Row(cora.graph, [10, 1708])
        yield f"Cora {kind.__name__} Row", asked(model, threat, cora.num_classes)
    model = GraphGIN(mutag.num_features, mutag.num_classes).eval()
    graphs = mutag.graphs[::24]
    yield "MUTAG GIN AllPairs", asked(model, AllPairs(graphs), mutag.num_classes)


def asked(model: nn.Module, threat, classes: int) -> Question:
    return Question(model, threat, NOISE, engine="generic", classes=classes)


def baseline(question: Question, samples: int, clock=time.perf_counter):
    """Counts, and seconds a graph, of plain PyG: build one noisy graph, ask, next."""
    targets = len(question.threat)
    spent, labels = one_at_a_time(question, samples * targets, clock)
    counts = [np.bincount(labels[target::targets], minlength=question.classes) for target in range(targets)]
    return np.array(counts), spent / samples / targets


def engine_time(engine: GenericEngine, samples: int, clock=time.perf_counter):
    begin = clock()
    counts = engine.count(0, samples)
    return counts, (clock() - begin) / samples / len(engine.question.threat)


def compare(name: str, question: Question, seconds: float, threads: list[int]) -> dict:
    torch.set_num_threads(1)
    baseline(question, 2)
    _, guess = baseline(question, 4)
    slow = max(4, int(seconds / 15 / guess / len(question.threat)))
    engine = GenericEngine(question)
    engine.count(0, 200)  # finds its batch size
    _, guess = engine_time(engine, 64)
    fast = max(64, min(1000, int(seconds / 15 / guess / len(question.threat))))
    assert np.array_equal(baseline(question, slow)[0], engine.count(0, slow)), "the engines disagree"
    ways = [("CPU", 1, time.process_time), *((f"{t} thread", t, time.perf_counter) for t in threads)]
    best: dict[str, float] = {}
    for _ in range(5):
        for label, number, clock in ways:
            torch.set_num_threads(number)
            for who, spent in (
                ("base", baseline(question, slow, clock)[1]),
                ("engine", engine_time(engine, fast, clock)[1]),
            ):
                best[f"{who} {label}"] = min(1000 * spent, best.get(f"{who} {label}", np.inf))
    wall = {who: min(best[f"{who} {t} thread"] for t in threads) for who in ("base", "engine")}
    return {
        "case": name,
        "wall ratio": wall["base"] / wall["engine"],
        "CPU ratio": best["base CPU"] / best["engine CPU"],
        "ms a graph": best,
        "samples": [slow, fast],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="rough time for each case")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [compare(name, question, arguments.seconds, arguments.threads) for name, question in cases()]
    if arguments.json:
        print(json.dumps({"rows": rows}, indent=2))
        return
    for row in rows:
        shown = "  ".join(f"{key} {value:.3f}" for key, value in row["ms a graph"].items())
        print(
            f"{row['case']:20} wall {row['wall ratio']:5.1f}x  CPU {row['CPU ratio']:5.1f}x   ms a graph: {shown}"
        )


if __name__ == "__main__":
    main()
