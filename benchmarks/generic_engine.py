"""The generic engine against one-graph-at-a-time PyG, on the CPU, as ratios measured in one run (best of five turns each).

    python benchmarks/generic_engine.py [--seconds 4] [--threads 1 2] [--json]

"wall" is the faster of one and two threads on either side, and means something on an idle machine only. "CPU" is processor
time on one thread, which a busy machine disturbs less; it does not replace the former.

Both ask the same model about the same noisy graphs and must count the same votes. The baseline is
handed the noise ready drawn; the engine draws its own. Datasets are read from $UNSWAYED_DATA.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch_geometric.datasets import Planetoid, TUDataset
from torch_geometric.nn import GIN, GATConv, GCNConv, global_add_pool

from unswayed.sampling.engines.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.structures import layout_of
from unswayed.sampling.threats import AllPairs, Row
from unswayed.theory.noise import Flip


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


def dataset(name: str):
    """A PyG dataset read from a temporary copy of the raw files."""
    root = tempfile.mkdtemp(prefix="unswayed-bench-")
    shutil.copytree(Path(os.environ["UNSWAYED_DATA"]) / name, Path(root) / name)
    return TUDataset(root, name) if name == "MUTAG" else Planetoid(root, name)


def cases():
    """(name, question): the three settings of this benchmark."""
    noise = Flip(beta=0.7)
    cora, mutag = dataset("Cora"), dataset("MUTAG")
    torch.manual_seed(0)
    for kind in (GCN, GAT):
        model = kind(cora.num_features, cora.num_classes).eval()
        yield f"Cora {kind.__name__} Row", Question(model, Row(cora[0], [10, 1708]), noise, engine="generic")
    model = GraphGIN(mutag.num_features, mutag.num_classes).eval()
    graphs = [mutag[i] for i in range(0, len(mutag), 24)]
    yield "MUTAG GIN AllPairs", Question(model, AllPairs(graphs), noise, engine="generic")


def one_at_a_time(question: Question, samples: int, clock=time.perf_counter):
    """Counts and seconds of plain PyG: build one noisy graph, ask, next."""
    threat, spent = question.threat, 0.0
    counts = []
    for target in range(len(threat)):
        layout = layout_of(question, target)
        flips = question.stream.flips(0, samples, layout.drawn, question.noise)
        x, node = layout.graph.x, getattr(threat, "nodes", None)
        zeros = torch.zeros(layout.graph.num_nodes, dtype=torch.long)
        labels = []
        with torch.no_grad():
            begin = clock()
            for i in range(samples):
                edges = layout.edges((flips[0][i : i + 1],) * 2)
                out = question.model(x, edges) if node is not None else question.model(x, edges, zeros)
                labels.append(int(out[node[target] if node is not None else 0].argmax()))
            spent += clock() - begin
        counts.append(np.bincount(labels, minlength=out.shape[1]))
    return np.array(counts), spent / samples / len(threat)


def engine_time(engine: GenericEngine, samples: int, clock=time.perf_counter):
    begin = clock()
    counts = engine.count(0, samples)
    return counts, (clock() - begin) / samples / len(engine.question.threat)


def compare(name: str, question: Question, seconds: float, threads: list[int]) -> dict:
    torch.set_num_threads(1)
    one_at_a_time(question, 2)
    _, guess = one_at_a_time(question, 4)
    slow = max(4, int(seconds / 15 / guess / len(question.threat)))
    engine = GenericEngine(question)
    engine.count(0, 200)  # finds its batch size
    _, guess = engine_time(engine, 64)
    fast = max(64, min(1000, int(seconds / 15 / guess / len(question.threat))))
    assert np.array_equal(one_at_a_time(question, slow)[0], engine.count(0, slow)), "the engines disagree"
    ways = [("CPU", 1, time.process_time), *((f"{t} thread", t, time.perf_counter) for t in threads)]
    best: dict[str, float] = {}
    for _ in range(5):
        for label, number, clock in ways:
            torch.set_num_threads(number)
            for who, spent in (
                ("base", one_at_a_time(question, slow, clock)[1]),
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
