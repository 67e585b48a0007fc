"""What each kind of bounds makes of the same votes: mean certified size, and the share certified at 5, 10 and 15.

    python benchmarks/bounds_gain.py [votes.npz] --alpha 0.001

Without a vote file, votes are simulated: seven classes, 50,000 samples, from near-ties to near-unanimity.
"""

import argparse

import numpy as np

from unswayed.theory import Flip, bound_votes, certified_size
from unswayed.theory.bounds import METHODS


def simulated(rng: np.random.Generator, targets: int, classes: int, d: int) -> np.ndarray:
    doubt = 10 ** rng.uniform(-5, 0, size=(targets, 1))
    law = doubt * rng.dirichlet(np.full(classes, 0.5), size=targets) + (1 - doubt) * np.eye(classes)[0]
    return np.stack([rng.multinomial(d, p) for p in law])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("votes", nargs="?")
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    counts, samples, noise, cap = (
        simulated(np.random.default_rng(a.seed), 3000, 7, 50_000),
        50_000,
        Flip(0.7),
        2707,
    )
    if a.votes:
        import unswayed as us

        votes = us.load(a.votes)
        counts, samples, noise, cap = votes.counts, votes.samples, votes.noise, votes.entries
    print(f"{'bounds':24s} {'mean K':>8s} {'abstain':>8s} {'K≥5':>8s} {'K≥10':>8s} {'K≥15':>8s}")
    for method in METHODS:
        bounds = bound_votes(counts, samples, a.alpha, method)
        sizes = {method: certified_size(bounds.p_top, bounds.p_rest, noise, cap)}
        rest = np.where(bounds.p_top > 0.5, 1 - bounds.p_top, 1.0)
        sizes[f"{method}, two-class"] = certified_size(bounds.p_top, rest, noise, cap)
        for name, size in sizes.items():
            at = "".join(f"{(size >= k).mean():9.4f}" for k in (5, 10, 15))
            print(f"{name:24s} {size.clip(0).mean():8.3f} {(size < 0).mean():8.4f}{at}")


if __name__ == "__main__":
    main()
