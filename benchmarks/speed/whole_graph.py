"""How long it takes to poll every node of a graph under whole-graph noise, and what drawing every pair would cost.

python -m benchmarks.speed.whole_graph [--dataset cora --samples 10000 --p-add 0.001 --p-delete 0.4 --device cpu]
"""

import argparse
import json

import torch

from unswayed import AddDelete, AllPairs, poll
from unswayed.datasets import load
from unswayed.experiments.one_graph import timed
from unswayed.models import build
from unswayed.sampling.sparse import SparseStream
from unswayed.sampling.stream import Stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--models", nargs="+", default=["gcn", "sage"])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--p-add", type=float, default=0.001)
    parser.add_argument("--p-delete", type=float, default=0.4)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    dataset, device = load(options.dataset), options.device
    noise, n = AddDelete(p_add=options.p_add, p_delete=options.p_delete), dataset.graph.num_nodes
    pairs, stream = n * (n - 1) // 2, Stream(0)
    sparse, dense = SparseStream(stream), 16
    rows = [
        {
            "dataset": options.dataset,
            "pairs": pairs,
            "sparse_draw_ms": 1e3
            * timed(lambda: sparse.additions(0, 64, pairs, noise, device=device))[0]
            / 64,
            "dense_draw_ms": 1e3
            * timed(lambda: stream.flips(0, dense, pairs, noise, device=device))[0]
            / dense,
        }
    ]
    print(json.dumps(rows[0]), flush=True)
    for name in options.models:
        model = build(name, dataset.num_features, dataset.num_classes).to(device)
        threat = AllPairs(dataset.graph, torch.arange(n))
        seconds, _ = timed(
            lambda m=model, t=threat: poll(m, t, noise, samples=options.samples, device=device)
        )
        row = {"model": name, "nodes": n, "samples": options.samples, "seconds": seconds, "device": device}
        print(json.dumps({**row, "ms_a_graph": 1e3 * seconds / options.samples}), flush=True)


if __name__ == "__main__":
    main()
