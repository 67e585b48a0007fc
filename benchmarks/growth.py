"""How time and memory grow: with the nodes of the graph, the samples and the targets.

    python benchmarks/growth.py --out docs/results [--largest 200000]

Synthetic graphs of average degree 4, a mean-aggregating GCN. Writes growth.json and growth.png; the peak memory is that of a
process of its own for each point.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def point(n: int, samples: int, targets: int) -> dict[str, Any]:
    """Time and peak memory of one setting, in this process."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.utils import to_undirected

    from unswayed import models
    from unswayed.sampling.engines.row_engine import RowEngine
    from unswayed.sampling.question import Question
    from unswayed.sampling.threat import Row
    from unswayed.theory.noise import Flip

    torch.manual_seed(0)
    edges = to_undirected(torch.randint(0, n, (2, 2 * n)))
    edges = edges[:, edges[0] != edges[1]]
    data = Data(x=torch.randn(n, 32), edge_index=edges, num_nodes=n)
    model = models.build("gcn-mean", 32, 7)
    engine = RowEngine(Question(model, Row(data, torch.randperm(n)[:targets]), Flip(beta=0.7)))
    engine.count(0, 16)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    engine.count(0, samples)
    return {
        "n": n,
        "samples": samples,
        "targets": targets,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_mib": before / 1024,
    }


def sweeps(largest: int) -> dict[str, list[tuple[int, int, int]]]:
    nodes = [n for n in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000) if n <= largest]
    return {
        "nodes": [(n, 500, 20) for n in nodes],
        "samples": [(2_708, s, 100) for s in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)],
        "targets": [(2_708, 2_000, t) for t in (1, 10, 30, 100, 300, 1_000, 2_708)],
    }


def fresh(setting: tuple[int, int, int]) -> dict[str, Any]:
    """The point, measured in a new process."""
    command = [sys.executable, __file__, "--point", *map(str, setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(result, flush=True)
    return result


def draw(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    names = {"nodes": "n", "samples": "samples", "targets": "targets"}
    for axis, (sweep, key) in zip(axes, names.items(), strict=True):
        rows = found[sweep]
        axis.loglog([r[key] for r in rows], [r["cpu_seconds"] for r in rows], "o-", color="#1f77b4")
        axis.set(xlabel=sweep, ylabel="CPU seconds")
        memory = axis.twinx()
        memory.semilogx([r[key] for r in rows], [r["peak_mib"] for r in rows], "s--", color="#999999")
        memory.set(ylabel="peak memory, MiB", ylim=(0, None))
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--largest", type=int, default=200_000)
    parser.add_argument("--point", type=int, nargs=3)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(point(*options.point)))
        return
    found = {
        name: [fresh(setting) for setting in settings] for name, settings in sweeps(options.largest).items()
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "growth.json").write_text(json.dumps(found, indent=2) + "\n")
    draw(found, options.out / "growth.png")


if __name__ == "__main__":
    main()
