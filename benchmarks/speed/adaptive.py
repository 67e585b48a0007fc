"""Classifier calls saved by stopping early, and certified size gained by better bounds, at the paper's setting.

    python -m benchmarks.speed.adaptive [--model gcn-mean --recipe clean --seeds 3 --samples 50000 --size 10]
                                  [--out docs/results/benchmarks/adaptive.json]

Both runs use the same sample numbers, so the adaptive one sees a prefix of the other's votes for every node.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loading import trained
from unswayed import Certificates, Flip, Row, Votes, certify, poll
from unswayed.experiments.spread import plus_minus
from unswayed.sampling.until import UntilSize
from unswayed.theory import bound_votes, certified_size

AT = (0, 5, 10, 15)


def measured(dataset: Any, parts: Any, model: Any, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One split: fixed and adaptive sampling of the same model."""
    noise, truth = Flip(beta=options.beta), dataset.labels[parts.test].numpy()
    threat = Row(dataset.graph, parts.test)
    begin = time.perf_counter()
    fixed = poll(model, threat, noise, samples=options.samples, seed=seed)
    middle = time.perf_counter()
    rule = UntilSize(size=options.size, alpha=options.alpha)
    adaptive = poll(model, threat, noise, samples=options.samples, seed=seed, until=rule)
    end = time.perf_counter()
    before, after = (
        certify(fixed, alpha=options.alpha),
        certify(adaptive, alpha=options.alpha, bounds="anytime"),
    )
    calls = int(fixed.samples.sum()), int(adaptive.samples.sum())
    return {
        "seed": seed,
        "calls_fixed": calls[0],
        "calls_adaptive": calls[1],
        "times_fewer": calls[0] / calls[1],
        "accuracy_at_size_fixed": float(before.accuracy(truth, options.size)),
        "accuracy_at_size_adaptive": float(after.accuracy(truth, options.size)),
        "certified_at_size_fixed": int((before.size >= options.size).sum()),
        "certified_at_size_adaptive": int((after.size >= options.size).sum()),
        "seconds_fixed": middle - begin,
        "seconds_adaptive": end - middle,
        "gained": gained(fixed, before, truth, options.alpha),
    }


def gained(votes: Votes, strict: Certificates, truth: np.ndarray, alpha: float) -> dict[str, Any]:
    """Sizes from the same votes under other bounds: two classes only, and the tighter simultaneous bound."""
    bounds = bound_votes(votes.counts, votes.samples, alpha)
    two = certified_size(bounds.p_top, 1 - bounds.p_top, votes.noise, votes.entries, ones=votes.ones)
    sizes = {"two classes": (bounds.label, two), "strict": (strict.label, strict.size)}
    for name in ("tight", "anytime", "paper"):
        certs = certify(votes, alpha=alpha, bounds=name)
        sizes[name] = (certs.label, certs.size)
    return {
        name: {
            "mean_size": float(np.maximum(size, 0).mean()),
            "abstained": int((size < 0).sum()),
            "larger_than_strict": int((size > strict.size).sum()),
            "smaller_than_strict": int((size < strict.size).sum()),
            "accuracy": {str(k): float(((size >= k) & (label == truth)).mean()) for k in AT},
        }
        for name, (label, size) in sizes.items()
    }


def spread(values: list[float], digits: int = 3) -> str:
    """Mean and standard deviation."""
    return plus_minus(values, f".{digits}f")


def tables(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Markdown: calls saved, then sizes gained."""
    setting = (
        f"{options.dataset}, {options.model} ({options.recipe}), β = {options.beta}, α = {options.alpha}, at most "
        f"{options.samples:,} samples, 100 test nodes, seeds {', '.join(str(row['seed']) for row in rows)}"
    )
    size = options.size
    text = (
        f"Setting: {setting}.\n\n| | fixed, strict | until size {size} is settled, anytime |\n|---|---|---|\n"
    )
    for name, key in (
        ("classifier calls a node", "calls"),
        (f"certified accuracy at {size}", "accuracy_at_size"),
    ):
        scale = 100 if key == "calls" else 1
        cells = [
            spread([row[f"{key}_{kind}"] / scale for row in rows], 0 if key == "calls" else 3)
            for kind in ("fixed", "adaptive")
        ]
        text += f"| {name} | {cells[0]} | {cells[1]} |\n"
    text += f"| times fewer calls | 1 | {spread([row['times_fewer'] for row in rows], 1)} |\n\n"
    text += (
        f"| bounds on the same {options.samples:,} votes | mean size | abstained | "
        + " | ".join(f"accuracy at {k}" for k in AT)
        + " |\n"
    )
    text += "|---|---|---|" + "---|" * len(AT) + "\n"
    for name in rows[0]["gained"]:
        mine = [row["gained"][name] for row in rows]
        cells = [spread([m["mean_size"] for m in mine], 2), spread([m["abstained"] for m in mine], 1)]
        cells += [spread([m["accuracy"][str(k)] for m in mine]) for k in AT]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--model", default="gcn-mean")
    parser.add_argument("--recipe", default="clean")
    parser.add_argument("--beta", type=float, default=0.7)
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        noise = Flip(beta=options.beta)
        taught = trained(options.dataset, options.model, recipe=options.recipe, noise=noise, seed=seed)
        rows.append(measured(*taught, options, seed))
        print(json.dumps(rows[-1], indent=1), flush=True)
    table = tables(rows, options)
    print(table)
    if options.out:
        about = {key: value for key, value in vars(options).items() if key != "out"}
        options.out.write_text(json.dumps({"setting": about, "runs": rows, "table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
