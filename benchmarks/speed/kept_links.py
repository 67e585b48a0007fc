"""Microseconds a sample and target where a few links are kept, as graphs grow and as more links are kept, in one run.

    python -m benchmarks.speed.kept_links

Columns: nodes of the graph, neighbours of the targets, links kept, microseconds by the engine that gathers what is kept, and by the row
engine, which goes through the whole row.
"""

import argparse
import json
import time

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import unswayed as us
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.engines.rows.kept import KeptEngine
from unswayed.sampling.question import Question


def made_up(n: int, degree: int, targets: int) -> Data:
    """A random graph of mean degree 10, in which the first nodes have so many neighbours each."""
    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(targets, n, (2, 5 * n), generator=draw)
    hub = torch.arange(targets).repeat_interleave(degree)
    leaf = targets + torch.stack(
        [torch.randperm(n - targets, generator=draw)[:degree] for _ in range(targets)]
    )
    ends = torch.cat([ends, torch.stack([hub, leaf.flatten()])], dim=1)
    return Data(x=torch.randn(n, 16, generator=draw), edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def microseconds(engine, samples: int, targets: int) -> float:
    engine.labels(0, samples)  # what a target needs once is made here
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        engine.labels(0, samples)
        best = min(best, time.process_time() - begin)
    return best / samples / targets * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--targets", type=int, default=4)
    parser.add_argument("--largest", type=int, default=100_000)
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, rows = GraphSAGE(16, 16, 2, 4).eval(), []
    shapes = [(n, 30, 5) for n in (1000, 10_000, 100_000)]
    shapes += [(10_000, 300, 5), (10_000, 3000, 5), (10_000, 30, 10), (10_000, 30, 20), (10_000, 30, 40)]
    for n, degree, kept in shapes:
        if n > a.largest:
            continue
        threat = us.Row(made_up(n, degree, a.targets), range(a.targets))
        asked = Question(model, threat, us.Keep(kept, 50))
        times = [microseconds(kind(asked), a.samples, a.targets) for kind in (KeptEngine, RowEngine)]
        rows.append(
            {
                "nodes": n,
                "degree": degree,
                "kept": kept,
                "kept_us": round(times[0], 2),
                "row_us": round(times[1], 2),
            }
        )
        print(json.dumps(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
