"""Votes and proofs on power-law graphs of up to a million nodes: seconds and peak memory, each in a process of its own.

    python -m benchmarks.speed.scale --out docs/results/benchmarks [--nodes 10000 170000 1000000] [--targets 1000] [--samples 1000]
    python -m benchmarks.speed.scale --out DIR --device cuda        # on a card; says how many votes differ from the CPU's
    python -m benchmarks.speed.scale --out docs/results/benchmarks --join DIR/scale.json

Degrees follow a power law with mean 16; 100 features in a memory-mapped file, 40 classes, GraphSAGE with two layers of 64. Votes are
polled with a few links kept, and with links deleted and ten added; proofs are those of untrained label ballots that know a fifth of the labels.
Writes scale.json, scale.png and scale.svg; rows that are there already and were not measured again stay. With --join nothing is
measured: rows come from other files.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import unswayed as us
from unswayed.experiments.runs import commit, device_name

FEATURES, CLASSES, WIDTH, DEGREE = 100, 40, 64, 16
KINDS = ("keep", "add and delete", "prove")
LIMIT_GIB = 8.0
COMPARED = 100  # targets whose votes on a card are held against the CPU's, all samples of them


def power_law(n: int, folder: Path) -> Data:
    """Ends are drawn by the weights 1/√(rank + 20); neighbours mostly share a class; features lie in a file."""
    rng = np.random.default_rng(0)
    reach = np.sqrt(rng.random((2, n * DEGREE // 2)))  # the distribution of ranks, drawn by inversion
    low, high = np.sqrt(20.0), np.sqrt(n + 20.0)
    rank = ((low + rng.random(reach.shape) * (high - low)) ** 2 - 20).astype(np.int64).clip(0, n - 1)
    del reach
    first, second = rng.permutation(n)[rank]
    y = rng.integers(CLASSES, size=n)
    like = rng.random(first.shape) < 0.5  # half of all links go to somebody of the same class
    by_class = np.argsort(y, kind="stable")
    begin = np.searchsorted(y[by_class], np.arange(CLASSES + 1))
    place = begin[y[first]] + (rng.random(first.shape) * (begin[y[first] + 1] - begin[y[first]])).astype(
        np.int64
    )
    second = np.where(like, by_class[place.clip(0, n - 1)], second)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(n, FEATURES))
    for start in range(0, n, 2**16):
        rows = rng.standard_normal((min(2**16, n - start), FEATURES), dtype=np.float32)
        rows[np.arange(len(rows)), y[start : start + len(rows)]] += 1.0
        x[start : start + len(rows)] = rows
    x.flush()
    del x
    mapped = torch.from_numpy(np.load(folder / "x.npy", mmap_mode="c"))
    edges = torch.from_numpy(np.stack([np.concatenate([first, second]), np.concatenate([second, first])]))
    return Data(x=mapped, edge_index=edges, y=torch.from_numpy(y), num_nodes=n)


def noise_of(kind: str, n: int) -> Any:
    """What is polled: five of fifty seats, or four in ten links lost and about ten won."""
    return us.Keep(5, 50) if kind == "keep" else us.AddDelete(p_add=10 / n, p_delete=0.4)


Work = Callable[[str, torch.Tensor, int], Any]  # from device, targets and answers to audit to votes or proofs


def voting(kind: str, data: Data, samples: int) -> Work:
    torch.manual_seed(0)
    model = GraphSAGE(FEATURES, WIDTH, 2, CLASSES).eval()
    noise = noise_of(kind, data.num_nodes)

    def poll(device: str, targets: torch.Tensor, audit: int) -> Any:
        asked = us.Row(data, targets)
        return us.poll(model, asked, noise, device=device, samples=samples, audit=audit, progress=False)

    return poll


def proving(data: Data) -> Work:
    known, ballots = torch.where(torch.arange(data.num_nodes) % 5 == 0, data.y, -1), us.LabelBallots(CLASSES)

    def prove(device: str, targets: torch.Tensor, audit: int) -> Any:
        if not ballots.frozen:
            ballots.freeze(data, known=known)
        return us.prove(ballots.to(device), us.Row(data, targets))

    return prove


def point(kind: str, n: int, targets: int, samples: int, audit: int, device: str = "cpu") -> dict[str, Any]:
    """Seconds and peak memory of one setting, in this process."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        data = power_law(n, Path(folder))
        asked = torch.randperm(n, generator=torch.Generator().manual_seed(1))[:targets]
        work = proving(data) if kind == "prove" else voting(kind, data, samples)
        torch.zeros(1, device=device)  # a card is awake before the clock starts
        before = host_gib()
        wall, cpu = time.perf_counter(), time.process_time()
        found = work(device, asked, audit)
        row = {
            "kind": kind,
            "n": n,
            "edges": data.num_edges,
            "targets": targets,
            "samples": None if kind == "prove" else samples,
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "before_gib": before,
            "peak_gib": host_gib(),
            **on_card(device),
        }
        row |= facts(found)
        if device != "cpu":
            row |= against_cpu(found, work("cpu", asked if kind == "prove" else asked[:COMPARED], 0))
    return row | {"device": device_name(device), "commit": commit(), "load": os.getloadavg()[0]}


def host_gib() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def on_card(device: str) -> dict[str, float]:
    """The most that tensors took on the card at a time, and what torch took of it to hold them."""
    if torch.device(device).type != "cuda":
        return {}
    most = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return {"card_gib": most[0] / 2**30, "card_reserved_gib": most[1] / 2**30}


def against_cpu(found: Any, here: Any) -> dict[str, int]:
    """How many answers of the first targets were compared with the CPU's, and how many differ."""
    if not isinstance(found, us.Votes):
        size = found.size[: len(here.size)]
        return {"compared": len(size), "differing": int((size != here.size).sum())}
    counts = found.counts[: len(here.counts)]
    return {"compared": int(here.counts.sum()), "differing": int(abs(counts - here.counts).sum()) // 2}


def facts(found: Any) -> dict[str, Any]:
    """What a poll says of itself, and the sizes that came of it."""
    if not isinstance(found, us.Votes):
        return {"mean_size": float(np.mean(found.size))}
    certs, notes = us.certify(found), found.notes
    told = {"engine": notes["engine"], "counting_seconds": notes["spent"]["seconds"]}
    audited = {f"audit_{name}": notes["audit"][name] for name in ("asked", "agreed", "seconds")}
    return {**told, **audited, "abstained": int(certs.abstained.sum()), "mean_size": float(certs.size.mean())}


def fresh(*setting: Any) -> dict[str, Any]:
    """The point, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.speed.scale", "--point", *map(str, setting)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(row), flush=True)
    return row


def read(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


def merged(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """All rows of the file, with these in place of older ones of the same kind, size and device; it is written again."""
    before = read(path) if path.exists() else []
    every = {(row["n"], row["kind"], row["device"]): row for row in [*before, *rows]}
    told = [every[place] for place in sorted(every)]
    path.write_text(
        json.dumps({"command": "python -m benchmarks.speed.scale", "rows": told}, indent=2) + "\n"
    )
    return told


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "unswayed"
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    devices = sorted({row["device"] for row in rows})
    for (number, device), (colour, kind) in itertools.product(enumerate(devices), enumerate(KINDS)):
        mine = [row for row in rows if (row["kind"], row["device"]) == (kind, device)]
        clock = "cpu_seconds" if device.startswith("CPU") else "seconds"
        look = {"color": f"C{colour}", "marker": "os^"[number % 3], "linestyle": ("-", "--", ":")[number % 3]}
        for axis, name in zip(axes, (clock, "peak_gib"), strict=True):
            axis.loglog(
                [row["n"] for row in mine], [row[name] for row in mine], label=f"{kind}, {device}", **look
            )
        card = [row for row in mine if "card_gib" in row]
        axes[1].loglog([row["n"] for row in card], [row["card_gib"] for row in card], **look, alpha=0.4)
    axes[1].axhline(LIMIT_GIB, color="0.5", linestyle=":", label="the limit we set")
    labels = "seconds (of processors, on a CPU)", "peak memory, GiB (pale: of the card)"
    for axis, label in zip(axes, labels, strict=True):
        axis.set(xlabel="nodes", ylabel=label)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].set_yticks(ticks := (0.5, 1, 2, 4, 8), labels=list(map(str, ticks)))
    axes[1].minorticks_off()
    figure.legend(*axes[1].get_legend_handles_labels(), fontsize="small", loc="outside right center")
    for suffix in (".png", ".svg"):
        figure.savefig(
            path.with_suffix(suffix), dpi=110, metadata={"Date": None} if suffix == ".svg" else None
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 50_000, 170_000, 500_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--targets", type=int, default=1_000)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--audit", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--join", type=Path, nargs="+", help="files of rows to publish, in place of a measurement"
    )
    parser.add_argument("--point", nargs=6)
    a = parser.parse_args()
    if a.point:
        kind, *numbers, device = a.point
        print(json.dumps(point(kind, *map(int, numbers), device)))
        return
    a.out.mkdir(parents=True, exist_ok=True)
    for rows in map(read, a.join) if a.join else measured(a):
        draw(merged(rows, a.out / "scale.json"), a.out / "scale")


def measured(a: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    """One row after the other, so that a run which is stopped keeps what it has measured."""
    for n, kind in itertools.product(a.nodes, a.kinds):
        yield [fresh(kind, n, a.targets, a.samples, a.audit, a.device)]


if __name__ == "__main__":
    main()
