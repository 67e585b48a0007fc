"""Hold reported certificates against exact arithmetic on random cases: never above the exact size, hardly ever below.

    python -m benchmarks.checks.exact_check --cases 100000

Nothing here uses the package's own regions or limits. Regions are single atoms (i deleted entries and j added entries
that differ from the clean input), weighed by integers and sorted by their exact ratio. Limits are checked by
python-flint's incomplete beta function: the reported one must be safe, and one part in 10¹¹ further must not be.
"""

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from unswayed.theory import AddDelete, Flip, bound_votes, certified_size

LOOSE = Fraction(1, 10**11)


@lru_cache(maxsize=20_000)
def atoms(p_add: Fraction, p_delete: Fraction, adds: int, deletes: int) -> list[tuple[Fraction, Fraction]]:
    """(X-mass, Y-mass) of every atom, most probable under X relative to Y first."""
    result = []
    # of the ones under attack, i read 0: unlike the clean input, like the attacked one
    for i in range(deletes + 1):
        x_i = math.comb(deletes, i) * p_delete**i * (1 - p_delete) ** (deletes - i)
        y_i = math.comb(deletes, i) * (1 - p_add) ** i * p_add ** (deletes - i)
        for j in range(adds + 1):  # of the zeros under attack, j read 1
            x_j = math.comb(adds, j) * p_add**j * (1 - p_add) ** (adds - j)
            y_j = math.comb(adds, j) * (1 - p_delete) ** j * p_delete ** (adds - j)
            result.append((x_i * x_j, y_i * y_j))
    return sorted(result, key=lambda atom: atom[0] / atom[1], reverse=True)


def fill(ordered: list[tuple[Fraction, Fraction]], p: Fraction) -> Fraction:
    """Y-mass of the set of X-mass p that takes atoms in the given order, the last in part."""
    mass = Fraction(0)
    for x, y in ordered:
        if p <= x:
            return mass + y * p / x
        p, mass = p - x, mass + y
    return mass


def survives(p_top: Fraction, p_rest: Fraction, noise: Flip | AddDelete, adds: int, deletes: int) -> bool:
    """Whether this one attack is certified, exactly."""
    if isinstance(noise, Flip):
        adds, deletes = 0, adds + deletes
    regions = atoms(Fraction(noise.p_add), Fraction(noise.p_delete), adds, deletes)
    return fill(regions, p_top) > fill(regions[::-1], min(p_rest, 1 - p_top))


def survives_all(p_top: Fraction, p_rest: Fraction, noise: Flip | AddDelete, k: int) -> bool:
    """Whether every attack on k entries is certified, exactly."""
    splits = [0] if isinstance(noise, Flip) else range(k + 1)
    return all(survives(p_top, p_rest, noise, adds, k - adds) for adds in splits)


def slow_size(p_top: Fraction, p_rest: Fraction, noise: Flip | AddDelete, cap: int) -> int:
    """The certified size by trying every k in turn."""
    if p_top <= p_rest:
        return -1
    return next((k for k in range(cap) if not survives_all(p_top, p_rest, noise, k + 1)), cap)


def tail(p: Fraction, x: int, d: int, upper: bool) -> flint.arb:
    """Pr(Bin(d, p) ≤ x) if upper, else Pr(Bin(d, p) ≥ x), as a ball."""
    ball = flint.arb(flint.fmpq(p.numerator, p.denominator))
    return (1 - ball).beta_lower(d - x, x + 1, 1) if upper else ball.beta_lower(x, d - x + 1, 1)


def limit_fault(limit: float, x: int, d: int, level: Fraction, upper: bool) -> str | None:
    """What is wrong with a reported limit, if anything: 'unsafe' or 'loose'."""
    exact = Fraction(limit)
    if x == (d if upper else 0):
        return None if exact == upper else "unsafe"
    with flint.ctx.workprec(256):
        alpha = flint.arb(flint.fmpq(level.numerator, level.denominator))
        if exact != upper and not tail(exact, x, d, upper) <= alpha:
            return "unsafe"
        beyond = exact * (1 - LOOSE) if upper else min(exact * (1 + LOOSE), Fraction(1))
        return None if beyond == 1 or tail(beyond, x, d, upper) >= alpha else "loose"


def random_noise(rng: np.random.Generator) -> Flip | AddDelete:
    if rng.random() < 0.7:
        return Flip(
            float(rng.choice([rng.uniform(0.52, 0.98), rng.uniform(0.02, 0.48), 0.6, 0.7, 0.8, 0.9, 0.625]))
        )
    add, delete = (
        rng.choice([rng.uniform(0.01, 0.9), 0.1, 0.25, 0.001]),
        rng.choice([rng.uniform(0.05, 0.9), 0.4, 0.7]),
    )
    return AddDelete(float(add), float(delete))


def random_votes(rng: np.random.Generator, rows: int, classes: int, d: int) -> np.ndarray:
    """Vote counts from unanimous to tied, sometimes with samples that gave no answer."""
    spread = rng.dirichlet(np.full(classes + 1, rng.choice([0.05, 0.2, 1.0])), size=rows)
    doubt = 10 ** rng.uniform(-4, 0, size=(rows, 1))
    spread = doubt * spread + (1 - doubt) * np.eye(classes + 1)[rng.integers(classes, size=rows)]
    if rng.random() < 0.7:
        spread[:, -1] = 0
        spread /= spread.sum(axis=1, keepdims=True)
    return np.stack([rng.multinomial(d, p) for p in spread])[:, :classes]


def check_group(rng: np.random.Generator, rows: int) -> Counter[str]:
    """One noise, one level, one method; `rows` targets."""
    noise, classes, method = random_noise(rng), int(rng.integers(2, 11)), str(rng.choice(["strict", "paper"]))
    d = int(10 ** rng.uniform(0.5, 3)) if rng.random() < 0.97 else int(10 ** rng.uniform(3, 6))
    alpha = float(rng.choice([0.05, 0.01, 0.001, 1e-6, 1e-12]))
    cap = int(rng.integers(1, 41 if isinstance(noise, Flip) else 9))
    counts = random_votes(rng, rows if d <= 1000 else 2, classes, d)
    bounds = bound_votes(counts, d, alpha, method)
    sizes = certified_size(bounds.p_top, bounds.p_rest, noise, cap)
    if rng.random() < 0.5:  # few targets at a time go another way through the theory than many
        pairs = zip(bounds.p_top, bounds.p_rest, strict=True)
        sizes = np.array([certified_size(top, rest, noise, cap) for top, rest in pairs])
    parts = {"paper": classes, "strict": 2 if classes == 2 else classes + 2}[method]
    tally: Counter[str] = Counter()
    for row, label, p_top, p_rest, size in zip(
        counts, bounds.label, bounds.p_top, bounds.p_rest, sizes, strict=True
    ):
        tally += judge(
            row, int(label), p_top, p_rest, int(size), d, Fraction(alpha) / parts, method, noise, cap
        )
    return tally


def judge(row, label, p_top, p_rest, size, d, level, method, noise, cap) -> Counter[str]:
    """Compare one reported certificate with the exact one; 'below' also counts what 10⁻¹¹ of slack could explain."""
    tally = Counter({"cases": 1, type(noise).__name__: 1, method: 1})
    faults = [limit_fault(p_top, int(row[label]), d, level, upper=False)]
    top_edge = min(Fraction(p_top) * (1 + LOOSE), Fraction(1))
    rest_edge = 1 - top_edge
    if not (method == "strict" and len(row) == 2):
        runner_up = max(*(int(c) for i, c in enumerate(row) if i != label), d - int(row.sum()))
        if Fraction(p_rest) < 1 - Fraction(p_top):
            faults.append(limit_fault(p_rest, runner_up, d, level, upper=True))
        rest_edge = min(Fraction(p_rest) * (1 - LOOSE), rest_edge)
    tally += Counter(fault for fault in faults if fault)
    low, rest = Fraction(p_top), Fraction(p_rest)
    honest = size == -1 or (low > rest and survives_all(low, rest, noise, size))
    tally["above"] = 0 if honest else 1
    better = (
        top_edge > rest_edge
        if size == -1
        else size < cap and survives_all(top_edge, rest_edge, noise, size + 1)
    )
    tally["below"] = int(better)
    tally["abstained"] = int(size == -1)
    return tally


def run(about: str, group: Callable[[np.random.Generator, int], Counter], told: str, wrong: str) -> None:
    """Groups of 50 random cases until there are enough: prints the tally, and exits with 1 if anything `wrong` was found."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, tally, begun = np.random.default_rng(arguments.seed), Counter(), time.perf_counter()
    while tally["cases"] < arguments.cases:
        tally.update(group(rng, 50))
    verdicts = {name: tally[name] for name in ("cases", *told.split())}
    print(json.dumps({**tally, **verdicts, "seconds": round(time.perf_counter() - begun, 1)}))
    raise SystemExit(any(tally[name] for name in wrong.split()))


if __name__ == "__main__":
    run(__doc__, check_group, "above below unsafe loose", wrong="above unsafe")
