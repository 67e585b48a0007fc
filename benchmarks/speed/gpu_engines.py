"""Time the engines on a CUDA card: PYTHONPATH=src python3 -m benchmarks.speed.gpu_engines --data DIR [--out DIR]

`--device cpu --samples 20` only shows that everything starts. Prints a table, a profile of where the time goes and how far each figure is from what the card's arithmetic and bandwidth
allow, and writes gpu_engines.json. Every vote table is compared with the CPU's on a small part first.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unswayed.experiments.one_graph import timed


def main() -> None:
    options = _options()
    if options.data:
        os.environ["UNSWAYED_DATA"] = options.data
    _use_kernel(options.kernel)
    from unswayed.experiments.runs import commit, device_name

    rows = []
    for name, dataset, model, samples, everyone in CASES:
        if options.only and name not in options.only.split(","):
            continue
        try:
            question = _question(dataset, model, everyone, options.device, name == "generic")
            rows.append(_measure(name, question, options.samples or samples, everyone, options.profile))
        except Exception as error:  # one case that fails must not lose the others' figures
            rows.append({"case": name, "error": f"{type(error).__name__}: {error}"})
        print(json.dumps({k: v for k, v in rows[-1].items() if k != "profile"}), flush=True)
    document = {
        "card": device_name(options.device),
        "torch": torch.__version__,
        "commit": commit(),
        "peaks": _peaks(options.device),
        "kernels": _kernels(),
        "rows": rows,
    }
    out = Path(options.out or ".")
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu_engines.json").write_text(json.dumps(document, indent=2) + "\n")
    _print(rows)
    print(f"kernels: {_kernels()}")


# name, dataset, model, samples, all nodes (else 100)
CASES: list[tuple[str, str, str, int, bool]] = [
    ("gcn-mean", "cora", "gcn-mean", 10_000, False),
    ("gat", "cora", "gat", 10_000, False),
    ("gcn", "cora", "gcn", 10_000, False),
    ("sage", "cora", "sage", 10_000, False),
    ("generic", "cora", "gcn-mean", 10_000, False),
    ("gcn-mean-1e8", "cora", "gcn-mean", 1_000_000, False),
    ("pubmed-all", "pubmed", "gcn-mean", 10_000, True),
    ("pubmed-gat", "pubmed", "gat", 10_000, False),
    ("mutag-gin", "mutag", "gin", 10_000, False),
    ("proteins-gin", "proteins", "gin", 10_000, False),
    *((name, "cora", name, 10_000, False) for name in ("gcn-3", "sage-3", "gin-3", "gat-3", "appnp-10")),
]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with the datasets")
    parser.add_argument("--out", default=os.environ.get("OUT"), help="folder for gpu_engines.json")
    parser.add_argument("--only", help="cases, separated by commas")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=0, help="of every case, instead of its own")
    parser.add_argument("--profile", action="store_true", help="also run torch's profiler")
    parser.add_argument(
        "--kernel", choices=["auto", "torch", "triton"], default="auto", help="how noise is drawn"
    )
    return parser.parse_args()


def _use_kernel(kind: str) -> None:
    from unswayed.sampling import stream
    from unswayed.sampling.engines.cards import philox

    if kind == "torch":
        philox.triton = None  # so that no engine registers it
        stream.FLIP_KERNELS.pop("cuda", None)
        return
    found = philox.register()
    print(f"fused noise kernel: {'in use' if found else 'not in use'}", flush=True)
    if kind == "triton" and not found:
        raise SystemExit("The fused kernel is missing or gives other bits than the plain path.")


def _question(dataset: str, model: str, everyone: bool, device: str, generic: bool) -> Any:
    from unswayed import datasets, models
    from unswayed.experiments.deep_networks import DEEP
    from unswayed.sampling.question import Question
    from unswayed.sampling.threats import AllPairs, Row
    from unswayed.theory.noise import Flip

    data = datasets.load(dataset)
    torch.manual_seed(0)
    if model in DEEP:
        network = DEEP[model](data.num_features, data.num_classes)
    else:
        network = models.build(model, data.num_features, data.num_classes, task=data.task)
    if data.task == "graph":
        threat: Any = AllPairs(data.graphs)
    else:
        _train(network, data.data, device)
        n = data.data.num_nodes
        threat = Row(data.data, torch.arange(n) if everyone else torch.randperm(n)[:100])
    engine = "generic" if generic else "fast"
    return Question(network.eval(), threat, Flip(beta=0.7), device=device, engine=engine)


def _train(network: Any, data: Any, device: str) -> None:
    """A few clean steps, so that states and scores are spread as a trained model's."""
    network.to(device).train()
    x, edges, y = data.x.to(device), data.edge_index.to(device), data.y.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(100 if device != "cpu" else 5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x, edges), y).backward()
        optimizer.step()
    network.cpu()


def _measure(name: str, question: Any, samples: int, everyone: bool, profile: bool) -> dict[str, Any]:
    from unswayed.sampling.engines import choose

    engine = choose(question)
    few = tuple(range(min(10, len(question.threat))))
    agree = _agreement(question, engine, few)
    engine.count(0, min(samples, 64))
    engine.count(0, min(samples, 10_000), None if not everyone else tuple(range(512)))
    on_card = torch.device(question.device).type == "cuda"
    if on_card:
        torch.cuda.reset_peak_memory_stats()
    times = 1 if everyone or samples > 10_000 else 3
    runs = [timed(lambda: engine.count(0, samples))[0] for _ in range(times)]
    seconds = min(runs)
    row = {
        "case": name,
        "engine": engine.name,
        "graphs": samples * len(question.threat),
        "seconds": seconds,
        "runs": runs,
        "ns_a_graph": 1e9 * seconds / (samples * len(question.threat)),
        "agreement_with_cpu": agree,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30 if on_card else 0.0,
        **_roofline(question, samples, seconds, name),
        **(_without_kernels(engine, min(samples, 10_000), None if not everyone else few) if on_card else {}),
    }
    if profile:
        row["profile"] = _profile(lambda: engine.count(0, min(samples, 10_000), few if everyone else None))
    return row


def _without_kernels(engine: Any, samples: int, targets: tuple[int, ...] | None) -> dict[str, Any]:
    """The same by torch's operations alone: seconds, and how many votes are others."""
    from unswayed.sampling.engines.cards import fused

    fast = engine.count(0, samples, targets)
    fused.ENABLED = False
    try:
        engine.count(0, min(samples, 64), targets)
        seconds, counts = timed(lambda: engine.count(0, samples, targets))
    finally:
        fused.ENABLED = True
    return {"plain_seconds": seconds, "votes_moved": int(np.abs(fast - counts).sum()) // 2}


def _agreement(question: Any, engine: Any, few: tuple[int, ...]) -> float:
    """Share of single votes that are the CPU's, on a few targets."""
    from unswayed.sampling.engines import choose

    slow = choose(replace(question, device="cpu", engine="fast"))
    same = [np.array_equal(engine.count(s, s + 1, few), slow.count(s, s + 1, few)) for s in range(20)]
    return float(np.mean(same))


@cache
def _peaks(device: str) -> dict[str, float]:
    """Measured on this card: float32 matrix products (no TF32), and copying."""
    side, numbers = (8192, 2**30) if torch.device(device).type == "cuda" else (512, 2**20)
    a, b = torch.rand(side, side, device=device), torch.empty(numbers, device=device)
    seconds = min(timed(lambda: a @ a)[0] for _ in range(3))
    copy = min(timed(b.clone)[0] for _ in range(3))
    return {"float32_flops": 2 * side**3 / seconds, "bytes_a_second": 2 * 4 * numbers / copy}


def _roofline(question: Any, samples: int, seconds: float, name: str) -> dict[str, float]:
    """The arithmetic of the matrix products, and the least bytes that pass through memory, each written and read once."""
    peaks, flops = _peaks(question.device), _products(question, samples, name)
    moved = 2 * 4.0 * samples * _numbers(question, name)
    least = max(flops / peaks["float32_flops"], moved / peaks["bytes_a_second"])
    return {"flops": flops, "least_bytes": moved, "least_seconds": least, "share_of_limit": least / seconds}


def _products(question: Any, samples: int, name: str) -> float:
    """Operations of the sums over rows; of deeper models, of whole modules and of small graphs memory is the limit."""
    if question.threat.kind != "row" or name in (*STATES, "generic"):
        return 0.0
    n, targets, (classes, hidden) = question.threat.graph.num_nodes, len(question.threat), _widths(question)
    return {
        "gcn": 3.0 * samples * targets * n * hidden,  # add, compare, multiply-add for every attached state
        "gat": 2.0 * samples * n * targets * 72 + 10.0 * samples * n * targets,
        # nodes sorted by score: the first layer's sums serve all targets
        "pubmed-gat": 2.0 * samples * n * 144 + (8.0 + 10.0) * samples * n * targets,
    }.get(name, 2.0 * samples * n * (targets * classes + hidden))


# numbers that each node of a noisy graph has between rounds that all nodes take part in: rows of 16 after two rounds; after the second
# alone, where the first leaves a node in one of two states; one weight in each of ten rounds that are read backwards
STATES = {"gcn-3": 32, "sage-3": 16, "gin-3": 16, "gat-3": 16, "appnp-10": 10}


def _numbers(question: Any, name: str) -> float:
    """How many numbers one sample of all targets writes and reads at the least."""
    threat = question.threat
    if threat.kind != "row":  # an adjacency matrix, for each of five layers
        return float(sum(5 * graph.num_nodes**2 for graph in threat.graphs))
    n, targets = threat.graph.num_nodes, len(threat)
    if name in STATES:
        return float(STATES[name] * n * targets)
    if name == "generic":  # a message over every link in both layers
        links = threat.graph.edge_index.shape[1] + 2 * (1 - question.noise.beta) * n
        return float(links * sum(_widths(question)) * targets)
    return float(n)  # noise, the same for all targets


def _widths(question: Any) -> tuple[int, int]:
    """Classes, and hidden numbers, of the models that are timed on rows."""
    return (3 if question.threat.graph.num_nodes > 10_000 else 7), 16


def _profile(work: Callable[[], Any]) -> str:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    table = seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=60)
    print(table, flush=True)
    return str(table)


def _kernels() -> dict[str, bool]:
    """Which fused kernels were tried, and whether they said what torch's operations say."""
    from unswayed.sampling.engines.cards import fused

    return {f"{name}, width {width}": agreed for (name, *_, width), agreed in fused._agreed.items()}


def _print(rows: list[dict[str, Any]]) -> None:
    print(
        f"{'case':<14} {'engine':<8} {'graphs':>12} {'seconds':>10} {'of the limit':>12} {'agrees':>7} {'GiB':>6} {'plain':>10} {'moved':>6}"
    )
    for row in rows:
        if "error" in row:
            print(f"{row['case']:<14} {row['error']}")
            continue
        share = f"{row['share_of_limit']:.0%}" if "share_of_limit" in row else ""
        print(
            f"{row['case']:<14} {row['engine']:<8} {row['graphs']:>12,} {row['seconds']:>10.4f} {share:>12} "
            f"{row['agreement_with_cpu']:>7.1%} {row['peak_memory_gib']:>6.1f} "
            f"{row.get('plain_seconds', 0.0):>10.4f} {row.get('votes_moved', 0):>6}"
        )


if __name__ == "__main__":
    main()
