"""Seconds for certified sizes, beside the published direct summation over 2n + 1 regions, in the same run.

python -m benchmarks.speed.certificate_speed
"""

import argparse
import json
import time
import timeit
from math import comb

import numpy as np

from unswayed.theory import AddDelete, Flip, ceiling, certified_size, grid


def published_masses(n: int, k: int, keep: int, unit: int) -> list[tuple[int, int]]:
    """Integer weights of the 2n + 1 regions R(m) under X and Y, each a sum over the vectors' distance w from the input."""
    flip, regions = unit - keep, []
    keeps = [keep**e for e in range(n + 1)]
    flips = [flip**e for e in range(n + 1)]
    for m in range(n, -n - 1, -1):
        i, odd = divmod(k - m, 2)
        x = y = 0
        if not odd and 0 <= i <= k:
            for w in range(i, n - k + i + 1):
                t = comb(k, i) * comb(n - k, w - i)
                x += t * keeps[n - w] * flips[w]
                y += t * keeps[n - w - m] * flips[w + m]
        regions.append((x, y))
    return regions


NEAR_ONE = [(0.1, 0.85), (0.1, 0.895), (0.3, 0.69), (0.4, 0.59), (0.48, 0.515), (0.01, 0.98), (0.05, 0.9)]


def near_one(entries: int) -> dict[str, float]:
    """Milliseconds of processor time for one ceiling and one size where p_add + p_delete is near 1: first call, and best of five."""
    worst = {"first": 0.0, "best": 0.0}
    ceiling(AddDelete(0.2, 0.6), 10_000, 0.001, 7, cap=entries)  # what is loaded once
    for pair in NEAR_ONE:
        noise = AddDelete(*pair)
        for ask in (
            lambda noise=noise: ceiling(noise, 10_000, 0.001, 7, cap=entries),
            lambda noise=noise: ceiling(noise, 10**6, 0.001, 7, cap=entries, ones=4),
            lambda noise=noise: certified_size(0.95, 0.03, noise, entries),
        ):
            times = [
                seconds * 1e3 for seconds in timeit.repeat(ask, number=1, repeat=5, timer=time.process_time)
            ]
            worst = {"first": max(worst["first"], times[0]), "best": max(worst["best"], min(times))}
    return worst


def best_of(repeats: int, call) -> float:
    return min(timeit.repeat(call, number=1, repeat=repeats))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=2707)
    parser.add_argument("--direct-k", type=int, default=15, help="attack size of the direct summation")
    a = parser.parse_args()
    noise, rng = Flip(0.7), np.random.default_rng(0)
    p_top, p_rest = rng.random((2, a.pairs))
    million = best_of(3, lambda: certified_size(p_top, p_rest, noise, a.entries))
    one = best_of(50, lambda: certified_size(0.999, 0.0005, noise, a.entries))
    far = best_of(50, lambda: certified_size(0.999, 0.0005, noise, 10**9))
    p = rng.uniform(0.5, 1, 100)
    asymmetric = best_of(3, lambda: grid(p, 1 - p, AddDelete(0.01, 0.6), adds=20, deletes=20))
    direct = best_of(1, lambda: published_masses(a.entries, a.direct_k, 7, 10))
    result = {
        "pairs": a.pairs,
        "seconds_all_pairs": million,
        "milliseconds_one_pair": one * 1e3,
        "milliseconds_one_pair_of_1e9_entries": far * 1e3,
        "seconds_grid_21x21_of_100": asymmetric,
        "seconds_direct_summation_of_one_k": direct,
        "direct_over_one_pair": direct / one,
        **{f"milliseconds_near_one_{name}": value for name, value in near_one(a.entries).items()},
    }
    print(json.dumps({key: float(f"{value:.4g}") for key, value in result.items()}))


if __name__ == "__main__":
    main()
