"""How time and memory grow: with the nodes of the graph, the samples and the targets.

    python -m benchmarks.speed.growth --out docs/results/benchmarks [--largest 200000]

Synthetic graphs of average degree 4, a mean-aggregating GCN. Writes growth.json, growth.png and growth.svg; the peak memory is that of a
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
    from unswayed.sampling.engines.rows.engine import RowEngine
    from unswayed.sampling.question import Question
    from unswayed.sampling.threats import Row
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

    figure, axes = plt.subplots(2, 3, figsize=(11, 5.4), layout="constrained", sharey="row", sharex="col")
    names = {"nodes": "n", "samples": "samples", "targets": "targets"}
    for (time_axis, memory_axis), (sweep, key) in zip(axes.T, names.items(), strict=True):
        rows = found[sweep]
        fixed = {name: rows[0][name] for name in names.values() if name != key}
        at = [row[key] for row in rows]
        time_axis.loglog(at, [row["cpu_seconds"] for row in rows], "o-")
        time_axis.set_title(
            ", ".join(f"{name} = {value:,}" for name, value in fixed.items()), fontsize="medium"
        )
        memory_axis.semilogx(at, [row["peak_mib"] for row in rows], "s-", color="0.4")
        memory_axis.set(xlabel=sweep, ylim=(0, None))
        for axis in (time_axis, memory_axis):
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("peak memory, MiB")
    for name in (path.with_suffix(".png"), path.with_suffix(".svg")):
        figure.savefig(name, dpi=110, metadata={"Date": None} if name.suffix == ".svg" else None)


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
    draw(found, options.out / "growth")


if __name__ == "__main__":
    main()
