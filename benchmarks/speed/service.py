"""What a request costs in a service that was checked once, against a poll that checks everything anew, in one run.

python -m benchmarks.speed.service [--nodes 100000] [--samples 1000] [--noises adddelete,keep,flip,ballots] [--repeats 5] [--out service.json]

Times are processor seconds (on a busy machine the wall clock says little) and wall seconds, the best of several. The poll is
one of the same node, samples and noise, without its audit.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import to_undirected

import unswayed as us

NOISES = {
    "adddelete": us.AddDelete(p_add=0.001, p_delete=0.4),
    "keep": us.Keep(kept=5, seats=50),
    "flip": us.Flip(beta=0.7),
}
FEATURES, HIDDEN, CLASSES, DEGREE = 64, 64, 8, 14
MANY = 50


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def synthetic(nodes: int) -> Data:
    rng = np.random.default_rng(0)
    ends = torch.from_numpy(rng.integers(0, nodes, (2, nodes * DEGREE // 2)))
    edges = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=nodes)
    x = torch.from_numpy(rng.standard_normal((nodes, FEATURES), dtype=np.float32))
    return Data(x=x, edge_index=edges, y=torch.from_numpy(rng.integers(0, CLASSES, nodes)))


def timed(ask: Callable[[], Any], repeats: int) -> dict[str, float]:
    """The least processor and wall seconds."""
    busy, wall = [], []
    for _ in range(repeats):
        begun, used = time.perf_counter(), time.process_time()
        ask()
        busy.append(time.process_time() - used)
        wall.append(time.perf_counter() - begun)
    return {"processor": round(min(busy), 5), "wall": round(min(wall), 5)}


def smoothed(name: str, data: Data, samples: int, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    model, noise = Sage().eval(), NOISES[name]
    cold = timed(lambda: us.poll(model, us.Row(data, [5]), noise, samples=samples, audit=0), 1)
    begun = time.process_time()
    service = us.Smoothed(model, noise, data, samples=samples, audit=0)
    opened = time.process_time() - begun
    rng = np.random.default_rng(1)
    one, many = (lambda size=size: rng.integers(0, len(data.x), size) for size in (1, MANY))
    service.certify(one())
    warm = timed(lambda: service.certify(one()), repeats)
    fifty = timed(lambda: service.certify(many()), max(1, repeats // 2))
    row = {
        "noise": str(noise),
        "engine": service.about["engines"]["row"]["engine"],
        "cold poll, one node": cold,
        "opening the service": round(opened, 3),
        "warm certify, one node": warm,
        f"warm certify, {MANY} nodes": fifty,
        "cold / warm": round(cold["processor"] / warm["processor"], 1),
        f"{MANY} nodes / one": round(fifty["processor"] / warm["processor"], 1),
    }
    if name != "keep":
        service.predict(_arrival(service, data, rng))  # the engine for those who arrive is chosen now
        row["warm certify, one arrival"] = timed(
            lambda: service.certify(_arrival(service, data, rng)), repeats
        )
    return row


def _arrival(service: us.Smoothed, data: Data, rng: np.random.Generator) -> Any:
    x = torch.from_numpy(rng.standard_normal((1, data.x.shape[1]), dtype=np.float32))
    return service.arriving(x, [rng.integers(0, len(data.x), DEGREE)])


def ballots(data: Data, repeats: int) -> dict[str, Any]:
    told = torch.from_numpy(np.random.default_rng(2).random(len(data.x)) < 0.2)
    net = us.LabelBallots(CLASSES).freeze(data, known=torch.where(told, data.y, -1))
    begun = time.process_time()
    service = us.Smoothed(net, None, data, audit=0)
    opened = time.process_time() - begun
    rng = np.random.default_rng(3)
    for _ in range(20):
        service.certify(_arrival(service, data, rng))  # the lists of each label are sorted when first used
    return {
        "model": "LabelBallots",
        "opening the service": round(opened, 3),
        "a node, with proof": timed(lambda: service.certify(rng.integers(0, len(data.x), 1)), 20 * repeats),
        "an arrival, with proof": timed(lambda: service.certify(_arrival(service, data, rng)), 20 * repeats),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noises", default="adddelete,keep,flip,ballots")
    parser.add_argument("--out")
    given = parser.parse_args()
    torch.set_num_threads(1)
    data, rows = synthetic(given.nodes), []
    for name in given.noises.split(","):
        row = (
            ballots(data, given.repeats)
            if name == "ballots"
            else smoothed(name, data, given.samples, given.repeats)
        )
        print(json.dumps(row, indent=1), file=sys.stderr, flush=True)
        rows.append(row)
    told = {
        "nodes": given.nodes,
        "edges": data.edge_index.shape[1] // 2,
        "samples": given.samples,
        "rows": rows,
    }
    if given.out:
        with open(given.out, "w") as file:
            json.dump(told, file, indent=1)


if __name__ == "__main__":
    main()
