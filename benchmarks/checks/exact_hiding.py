"""Hold certificates under noise that only hides against exact arithmetic on random cases: none above, none below.

    python -m benchmarks.checks.exact_hiding --cases 100000

Nothing here uses the package's laws. What may be seen is listed with its exact probabilities before and after each attack, from
the definition of the noise, sorted by exact ratio, and filled in fractions; every feasible attack of at most K entries is
tried, and those of K + 1 until one succeeds. What only the attacked world can show belongs to the rivals.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np

from benchmarks.checks.exact_check import random_votes, run
from unswayed.theory import AddDelete, Hide, Keep, Mask, bound_votes, certified_size, intercepted_size, reach

ATTACKS = ("any", "adds", "deletes")
Atoms = tuple[tuple[Fraction, Fraction], ...]


@lru_cache(maxsize=50_000)
def seen_of_seats(kept: int, seats: int, ones: int, adds: int, deletes: int) -> Atoms:
    """Sets of seen neighbours, by how many are common to both rows: one class of equal sets for each number."""

    def law(row: int, number: int) -> Fraction:
        places = max(row, seats)
        blanks = math.comb(places - row, kept - number) if number <= kept else 0
        return Fraction(blanks, math.comb(places, kept))  # of one set of so many neighbours

    before, after, common = ones, ones - deletes + adds, ones - deletes
    atoms = [
        (math.comb(common, j) * law(before, j), math.comb(common, j) * law(after, j)) for j in range(kept + 1)
    ]
    x, y = (sum((atom[side] for atom in atoms), Fraction(0)) for side in (0, 1))
    return ordered([*atoms, (1 - x, Fraction(0)), (Fraction(0), 1 - y)])


@lru_cache(maxsize=50_000)
def seen_of_entries(p_add: Fraction, p_delete: Fraction, adds: int, deletes: int) -> Atoms:
    """Noisy values of the attacked entries: i deleted ones and j added ones read 1."""
    atoms = []
    for i in range(deletes + 1):
        for j in range(adds + 1):
            ways = math.comb(deletes, i) * math.comb(adds, j)
            x = (1 - p_delete) ** i * p_delete ** (deletes - i) * p_add**j * (1 - p_add) ** (adds - j)
            y = p_add**i * (1 - p_add) ** (deletes - i) * (1 - p_delete) ** j * p_delete ** (adds - j)
            atoms.append((ways * x, ways * y))
    return ordered(atoms)


def ordered(atoms: list[tuple[Fraction, Fraction]]) -> Atoms:
    """Without what is never seen, the most probable under X relative to Y first."""
    some = [atom for atom in atoms if atom[0] or atom[1]]
    return tuple(sorted(some, key=lambda atom: atom[0] / (atom[0] + atom[1]), reverse=True))


def take(atoms, p: Fraction) -> Fraction:
    """Y-mass of the set of X-mass p that takes atoms in the given order; those of no X-mass are never in the way."""
    mass = Fraction(0)
    for x, y in atoms:
        part = min(Fraction(1), p / x) if x else Fraction(0)
        p, mass = p - part * x, mass + part * y
    return mass


def survives(noise, top: Fraction, rest: Fraction, ones: int, adds: int, deletes: int) -> bool:
    """Whether one attack is certified, exactly (with Hide: by its stated bound, exactly)."""
    rest = min(rest, 1 - top)
    if isinstance(noise, Hide):
        return survives_fakes(noise, top, rest, adds)
    if isinstance(noise, Keep):
        atoms = seen_of_seats(noise.kept, noise.seats, ones, adds, deletes)
    else:
        atoms = seen_of_entries(Fraction(noise.p_add), Fraction(noise.p_delete), adds, deletes)
    free = sum((y for x, y in atoms if not x), Fraction(0))
    return take(atoms, top) > free + take(atoms[::-1], rest)


def survives_fakes(noise: Hide, top: Fraction, rest: Fraction, fakes: int) -> bool:
    n, e = Fraction(noise.nodes), Fraction(noise.edges)
    least = mean = n
    if noise.links is not None:
        least = n + (1 - n) * e**noise.links
        mean = n + (1 - n) * (1 - (1 - e) * (1 - n)) ** noise.links

    def met(p: Fraction) -> Fraction:
        return min(p * (1 - least**fakes), 1 - mean**fakes)

    return top - met(top) > rest + met(1 - rest)


def attacks(k: int, ones: int, cap: int, change: str) -> list[tuple[int, int]]:
    """Every feasible attack of exactly k entries."""
    splits = [(k - r, r) for r in range(min(k, ones) + 1) if k - r <= cap - ones]
    return [(a, r) for a, r in splits if not (change == "adds" and r) and not (change == "deletes" and a)]


def withstands(noise, top, rest, ones, cap, change, k) -> bool:
    return all(survives(noise, top, rest, ones, a, r) for a, r in attacks(k, ones, cap, change))


def random_noise(rng: np.random.Generator):
    kind, p = rng.random(), float(rng.choice([rng.uniform(0.3, 0.99), 0.5, 0.75, 0.9, 0.95]))
    if kind < 0.5:
        kept = int(rng.integers(1, 6))
        return Keep(kept, kept + int(rng.integers(0, rng.choice([2, 10, 60]))))
    if kind < 0.7:
        return AddDelete(0, p)
    if kind < 0.85:
        return AddDelete(p, 0)
    links = [None, 1, 2, 5][int(rng.integers(4))]
    return Hide(float(rng.choice([p, 0.9, 0.98])), float(rng.choice([0.0, 0.5, 0.8])), links)


def check_lies(rng: np.random.Generator, rows: int) -> Counter:
    """Nodes that lie: one noise, one table of paths, `rows` targets; sizes by the stated bound, exactly."""
    noise, nodes, hops = (
        Mask(*rng.choice([0.5, 0.8, 0.9, 0.97], 2)),
        int(rng.integers(1, 13)),
        int(rng.integers(1, 4)),
    )
    paths = rng.integers(0, rng.choice([2, 4, 30]), (nodes, hops))
    masked, lost = Fraction(noise.features), Fraction(noise.edges)
    seen = []
    for row in paths.tolist():
        broken = math.prod(
            ((1 - (1 - lost) ** (h + 1)) ** count for h, count in enumerate(row)), start=Fraction(1)
        )
        seen.append((1 - masked) * (1 - broken))
    unseen = [
        math.prod((1 - each for each in sorted(seen, reverse=True)[:k]), start=Fraction(1))
        for k in range(nodes + 1)
    ]
    d, classes = int(10 ** rng.uniform(1, 5)), int(rng.integers(2, 8))
    found = bound_votes(random_votes(rng, rows, classes, d), d, 0.001)
    sizes = intercepted_size(
        found.p_top, found.p_rest, np.repeat(reach(paths, masked, lost)[None], rows, axis=0)
    )
    tally = Counter({"cases": rows, "Mask": rows})
    for top, rest, size in zip(
        map(Fraction, found.p_top), map(Fraction, found.p_rest), sizes.tolist(), strict=True
    ):
        safe = [top - min(rest, 1 - top) > 2 * (1 - p) for p in unseen]
        right = -1 if top <= rest else (safe.index(False) if not all(safe) else nodes + 1) - 1
        tally += Counter({"above": int(size > right), "below": int(size < right), "abstained": int(size < 0)})
        tally["settled"] += int(0 <= size < nodes)
    return tally


def check_group(rng: np.random.Generator, rows: int) -> Counter:
    """One noise, one length and number of ones, `rows` targets."""
    if rng.random() < 0.1:
        return check_lies(rng, rows)
    noise, classes = random_noise(rng), int(rng.integers(2, 8))
    d, alpha = int(10 ** rng.uniform(1, 5)), float(rng.choice([0.05, 0.001, 1e-6]))
    cap = int(rng.integers(1, 13))
    ones = 0 if isinstance(noise, Hide) else int(rng.integers(0, cap + 1))
    change = str(rng.choice(ATTACKS, p=[0.6, 0.2, 0.2]))
    found = bound_votes(random_votes(rng, rows, classes, d), d, alpha)
    sizes = certified_size(found.p_top, found.p_rest, noise, cap, ones=ones, change=change)
    tally: Counter = Counter()
    for top, rest, size in zip(found.p_top, found.p_rest, sizes.tolist(), strict=True):
        tally += judge(noise, Fraction(top), Fraction(rest), ones, cap, change, size)
    return tally


def judge(noise, top: Fraction, rest: Fraction, ones: int, cap: int, change: str, size: int) -> Counter:
    """One reported certificate against the definition; no slack is granted: the floats given are exact numbers."""
    tally = Counter({"cases": 1, type(noise).__name__: 1, change: 1, "abstained": int(size < 0)})
    most = {"any": cap, "adds": cap - ones, "deletes": ones}[change]
    sound = [withstands(noise, top, rest, ones, cap, change, k) for k in range(1, min(size + 1, most) + 1)]
    tally["above"] = int(size >= 0 and (top <= rest or not all(sound[:size])))
    tally["below"] = int((size < 0 and top > rest) or (0 <= size < most and bool(sound[size])))
    tally["settled"] = int(0 <= size < most)
    return tally


if __name__ == "__main__":
    run(__doc__, check_group, "above below", wrong="above below")
