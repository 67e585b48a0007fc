"""What a noise lets an attack do: the one question that every certificate under noise comes down to.

A law knows how probable it is, before (X) and after (Y) an attack, that the classifier sees one thing or another. From that
follow the least Pr(Y∈A) of a set of X-mass p_top and the largest Pr(Y∈B) of one of X-mass p_rest (Neyman and Pearson).
The attack is certified iff the first exceeds the second, strictly. Arrays here are flat, one element a cell.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
#: (positions, adds, deletes, ones) → which of these cells pass; `ones` is None where unknown.
Test = Callable[[Ints, Ints, Ints, Ints | None], Bools]


def left_by(top: Floats) -> Floats:
    """1 − p_top, rounded up: a minority leaves a number that no double may hold, and what is left to rivals is never too little.

    >>> left_by(np.array([0.75, 2 / 59])).tolist()
    [0.25, 0.9661016949152543]
    """
    return np.where(top >= 0.5, 1 - top, np.nextafter(1 - top, np.inf))


class Law(ABC):
    """Exactly which attacks the two probabilities rule out under one noise."""

    @abstractmethod
    def worst_case(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """(least Pr(Y∈A), largest Pr(Y∈B)): floats to read and draw; `certified` settles what rounding leaves open."""

    @abstractmethod
    def certified(
        self,
        top: Floats,
        rest: Floats,
        adds: Ints,
        deletes: Ints,
        ones: Ints | None = None,
        times: int = 1,
    ) -> Bools:
        """Exactly which cells have times · Pr(Y∈A) > Pr(Y∈B) after this one attack; p_rest is clipped to 1 − p_top."""

    def covered(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> Bools:
        """Which cells are certified against this attack and every smaller one; a law that is not monotone says how."""
        return self.certified(top, rest, adds, deletes, ones)

    @abstractmethod
    def largest(
        self, test: Test, there: Bools, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """The largest K ≤ cap such that every feasible attack of at most K entries passes; −1 where not `there`.

        `change` confines the attacker to additions ("adds") or to deletions ("deletes") alone. `ones` says how many
        entries are 1, so that only attacks that exist count.
        """

    def size(
        self, top: Floats, rest: Floats, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """The largest K ≤ cap such that every feasible attack of at most K entries is certified; −1 where p_top ≤ p_rest."""

        def test(i: Ints, adds: Ints, deletes: Ints, held: Ints | None) -> Bools:
            return self.certified(top[i], rest[i], adds, deletes, held)

        return self.largest(test, top > rest, cap, ones, change)


#: (indices, k) → which of them are certified against all attacks on k entries.
Attack = Callable[[Ints, int], Bools]


def search(count: int, cap: int, passes: Attack) -> Ints:
    """For each index below `count` the largest k ≤ cap with `passes`, which must hold at 0 and be monotone in k."""
    size = np.zeros(count, dtype=np.int64)
    active, low, k = np.arange(count), 0, 1
    work: list[tuple[Ints, int, int]] = []
    while active.size and low < cap:
        good = passes(active, k)
        work.append((active[~good], low, k))
        active, low, k = active[good], k, min(2 * k, cap)
    size[active] = low
    while work:
        index, low, high = work.pop()
        if high - low <= 1 or not index.size:
            size[index] = low
            continue
        middle = (low + high) // 2
        good = passes(index, middle)
        work += [(index[good], middle, high), (index[~good], low, middle)]
    return size
