"""How often a certificate's bounds are false, in simulation, against the alpha that was promised.

    python -m benchmarks.checks.coverage --repetitions 10000

A certificate is false when it does not abstain and p_top exceeds the label's probability or p_rest falls short of the
largest other outcome's. Near-ties are the hard cases: the label is chosen from the very votes that bound it.
"""

import argparse
import json
import time

import numpy as np
from scipy import stats

from unswayed.theory import Flip, bound_votes, certified_size

#: Probabilities of the labels; what is missing from one gives no answer.
LAWS = {
    "2 classes, tie": [0.5, 0.5],
    "2 classes, near-tie": [0.51, 0.49],
    "2 classes, clear": [0.8, 0.2],
    "2 classes, near-tie, no answer .2": [0.41, 0.39],
    "2 classes, near-tie, no answer .8": [0.11, 0.09],
    "3 classes, tie": [1 / 3, 1 / 3, 1 / 3],
    "3 classes, two tied": [0.45, 0.45, 0.1],
    "3 classes, near-tie, no answer .34": [0.34, 0.32, 0.0],
    "3 classes, clear": [0.7, 0.2, 0.1],
    "7 classes, tie": [1 / 7] * 7,
    "7 classes, two tied": [0.3, 0.3, 0.1, 0.1, 0.1, 0.05, 0.05],
    "7 classes, tie, no answer 1/8": [1 / 8] * 7,
    "7 classes, clear": [0.6, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05],
}


def is_false(law: np.ndarray, bounds, rivals: str = "all") -> np.ndarray:
    """Which certificates claim what is not so."""
    outcomes = np.append(law, max(0.0, 1 - law.sum()) if rivals == "all" else 0.0)
    rows = np.arange(len(bounds.label))
    others = np.tile(outcomes, (len(rows), 1))
    others[rows, bounds.label] = -1
    wrong = (bounds.p_top > law[bounds.label]) | (bounds.p_rest < others.max(axis=1))
    return wrong & (bounds.p_top > bounds.p_rest)


def draw(law: np.ndarray, d: int, repetitions: int, rng: np.random.Generator) -> np.ndarray:
    silent = max(0.0, 1 - law.sum())
    return rng.multinomial(d, np.append(law, silent) / (law.sum() + silent), size=repetitions)[:, : len(law)]


def false_rate(
    law, d: int, alpha: float, method: str, repetitions: int, rng: np.random.Generator, rivals: str = "all"
) -> float:
    law = np.asarray(law, dtype=float)
    found = bound_votes(draw(law, d, repetitions, rng), d, alpha, method, rivals=rivals)
    return float(is_false(law, found, rivals).mean())


def family_false_rate(
    targets: int, d: int, alpha: float, repetitions: int, rng: np.random.Generator
) -> float:
    """How often any of many certificates at alpha/targets is false when one noise draw serves all targets."""
    laws = rng.dirichlet([8.0, 8.0, 4.0], size=targets)
    # half of the targets are tied
    laws[: targets // 2, :2] = laws[: targets // 2, :2].mean(axis=1, keepdims=True)
    false = 0
    for _ in range(repetitions):
        shared = np.sort(rng.random(d))
        edges = np.searchsorted(shared, laws.cumsum(axis=1)[:, :-1])
        counts = np.diff(np.column_stack([np.zeros(targets, int), edges, np.full(targets, d)]), axis=1)
        bounds = bound_votes(counts, d, alpha, family_size=targets)
        false += any(is_false(laws[i], _row(bounds, i)).any() for i in range(targets))
    return false / repetitions


def looking_false_rate(law, looks: int, d: int, alpha: float, method: str, repetitions: int, rng) -> float:
    """How often a certificate is false at any of `looks` looks, d more samples before each."""
    law = np.asarray(law, dtype=float)
    counts, ever = np.zeros((repetitions, len(law)), dtype=np.int64), np.zeros(repetitions, dtype=bool)
    for look in range(1, looks + 1):
        counts += draw(law, d, repetitions, rng)
        ever |= is_false(law, bound_votes(counts, look * d, alpha, method))
    return float(ever.mean())


def levels_false_rate(laws, d: int, alpha: float, noises, repetitions: int, rng) -> float:
    """How often the certificate of the noise level with the largest size is false, each level polled at alpha/levels."""
    bounds = [bound_votes(draw(law, d, repetitions, rng), d, alpha, family_size=len(laws)) for law in laws]
    sizes = [certified_size(b.p_top, b.p_rest, noise, 100) for b, noise in zip(bounds, noises, strict=True)]
    false = np.stack([is_false(law, b) for law, b in zip(laws, bounds, strict=True)])
    return float(np.take_along_axis(false, np.argmax(sizes, axis=0)[None], axis=0).mean())


def _row(bounds, i: int):
    return type(bounds)(bounds.label[i : i + 1], bounds.p_top[i : i + 1], bounds.p_rest[i : i + 1])


def asked(what: str) -> argparse.Namespace:
    """How much is to be simulated, from the command line."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    a = asked(__doc__)
    rng, begun = np.random.default_rng(a.seed), time.perf_counter()
    print(f"false certificates in {a.repetitions} repetitions of {a.samples} samples (alpha .05 | .001)")
    worst = {}
    for name, law in LAWS.items():
        cells = []
        for method in ("strict", "tight", "paper", "anytime"):
            rates = [false_rate(law, a.samples, alpha, method, a.repetitions, rng) for alpha in (0.05, 0.001)]
            worst[method] = np.maximum(worst.get(method, 0), rates)
            cells.append(f"{method} {rates[0]:.4f} | {rates[1]:.4f}")
        print(f"{name:36s} {'    '.join(cells)}")
    print("the same where no answer is no rival (rivals='labels')")
    for name in (name for name in LAWS if "no answer" in name):
        cells = []
        for method in ("strict", "tight", "anytime"):
            rates = [
                false_rate(LAWS[name], a.samples, alpha, method, a.repetitions, rng, "labels")
                for alpha in (0.05, 0.001)
            ]
            worst[f"{method}, labels"] = np.maximum(worst.get(f"{method}, labels", 0), rates)
            cells.append(f"{method} {rates[0]:.4f} | {rates[1]:.4f}")
        print(f"{name:36s} {'    '.join(cells)}")
    print("false at any of 50 looks, 20 samples apart, alpha .01")
    looking = {}
    for name in ("2 classes, tie", "2 classes, clear", "3 classes, two tied", "7 classes, clear"):
        rates = {
            m: looking_false_rate(LAWS[name], 50, 20, 0.01, m, a.repetitions, rng)
            for m in ("strict", "anytime")
        }
        looking[name] = rates
        print(f"{name:36s} {'    '.join(f'{m} {r:.4f}' for m, r in rates.items())}")
    near = [np.array(law) for law in ([0.5, 0.5], [0.52, 0.48], [0.48, 0.52])]
    chosen = levels_false_rate(near, a.samples, 0.05, [Flip(b) for b in (0.6, 0.7, 0.8)], a.repetitions, rng)
    limits = [float(stats.binom.ppf(0.9999, a.repetitions, alpha) / a.repetitions) for alpha in (0.05, 0.001)]
    family = family_false_rate(50, a.samples, 0.05, a.repetitions, rng)
    summary = {
        "worst": {m: list(map(float, r)) for m, r in worst.items()},
        "limits": limits,
        "family of 50 at .05": family,
        "best of 3 noise levels at .05": chosen,
    }
    print(json.dumps({**summary, "seconds": round(time.perf_counter() - begun, 1)}))
    sound = all((rates <= limits).all() for method, rates in worst.items() if method != "paper")
    sound &= max(rates["anytime"] for rates in looking.values()) <= 0.01 and max(family, chosen) <= limits[0]
    raise SystemExit(int(not sound))


if __name__ == "__main__":
    main()
