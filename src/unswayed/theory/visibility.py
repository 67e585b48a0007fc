"""Noise that only hides, entry by entry or by drawing a few of a row's ones: exact laws of what is seen."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from unswayed.errors import InputError
from unswayed.theory.hiding import UNIT, Common, Regions, ball
from unswayed.theory.law import Floats, Ints


@dataclass(frozen=True)
class Unseen(Regions):
    """Entries hide one by one: an attacked one stays unseen with probability `p`.

    With p_add = 0, an added entry is unseen after the attack and a deleted one before it (`adding=False`); with p_delete = 0 it
    is the other way round (`adding=True`), since what is seen there is an entry that is 0. Either way one common region,
    "nothing attacked is seen", of X-mass a = p^i and Y-mass b = p^j, where i and j count the deletions and the additions.
    For a fixed number of entries the margin b(2 − (1 − p_top + p_rest)/a) − 1 is concave in 1/a, so one of the two extreme
    splits is the worst; certification falls with each of i and j.
    """

    p: Fraction
    adding: bool = False
    extremes = True

    def _powers(self, adds: Any, deletes: Any) -> tuple[Any, Any]:
        """(exponent of a, exponent of b)."""
        return (adds, deletes) if self.adding else (deletes, adds)

    def common(self, adds: Ints, deletes: Ints, ones: Ints) -> Common:
        """One region."""
        i, j = self._powers(adds, deletes)
        with np.errstate(under="ignore"):
            return np.power(float(self.p), i)[:, None], np.power(float(self.p), j)[:, None]

    def balls(self, adds: int, deletes: int, ones: int) -> list[tuple[Any, Any]]:
        """One region."""
        i, j = self._powers(adds, deletes)
        return [(ball(self.p) ** i, ball(self.p) ** j)]

    def error(self, adds: Ints, deletes: Ints) -> Floats:
        """One rounding of p for every power, and those of the power itself."""
        return np.asarray(16 * (adds + deletes + 4) * UNIT)


@dataclass(frozen=True)
class Seats(Regions):
    """Of max(degree, seats) seats, the row's ones and blanks, `kept` are drawn without replacement, and no other one is seen.

    A row of d ones, r of them deleted and k added, has m = d − r in common with the attacked one. What is seen of both worlds
    is a set of j of these m: X-mass C(m,j)·C(D₀−d, s−j)/C(D₀,s) with D₀ = max(d, D), Y-mass C(m,j)·C(D₁−m−k, s−j)/C(D₁,s)
    with D₁ = max(m+k, D). The ratio moves one way with j: up iff the attack leaves more blanks. Certification falls with k
    (a newcomer who is seen can be exchanged for a blank, or for a neighbour not yet seen), but not always with r: every
    smaller number of deletions must hold too.
    """

    kept: int
    seats: int
    falling = False

    def known(self, ones: Ints | None, like: Ints) -> Ints:
        """How much is seen depends on the degree."""
        if ones is None:
            raise InputError(
                "With Keep the certificate depends on the number of ones: give `ones=`, the degree of each target."
            )
        return ones

    def _blanks(self, adds: Any, deletes: Any, ones: Any) -> tuple[Any, Any, Any, Any]:
        """(seats before, blanks before, seats after, blanks after)."""
        after = ones - deletes + adds
        first, second = np.maximum(ones, self.seats), np.maximum(after, self.seats)
        return first, first - ones, second, second - after

    def common(self, adds: Ints, deletes: Ints, ones: Ints) -> Common:
        """s + 1 regions: how many common ones are seen."""
        first, blank, second, left = self._blanks(adds, deletes, ones)
        shared = ones - deletes
        x, y = self._drawn(shared, blank, first), self._drawn(shared, left, second)
        turn = (blank > left)[:, None]
        return np.where(turn, x[:, ::-1], x), np.where(turn, y[:, ::-1], y)

    def _drawn(self, shared: Ints, blanks: Ints, seats: Ints) -> Floats:
        """Pr(j of the shared ones and s − j blanks, nothing else), seat after seat: sums of positive terms only."""
        mass = np.zeros((len(shared), self.kept + 1))
        mass[:, 0] = 1
        j = np.arange(self.kept + 1)
        for drawn in range(self.kept):
            open_seats = (seats - drawn).astype(np.float64)[:, None]
            blank = np.maximum(blanks[:, None] - (drawn - j), 0) * (j <= drawn)
            more = np.maximum(shared[:, None] - j, 0)
            with np.errstate(under="ignore"):
                stay, move = mass * blank / open_seats, mass * more / open_seats
            stay[:, 1:] += move[:, :-1]
            mass = stay
        return mass

    def balls(self, adds: int, deletes: int, ones: int) -> list[tuple[Any, Any]]:
        """s + 1 regions, from integers."""
        import flint

        first, blank, second, left = (int(n) for n in self._blanks(adds, deletes, ones))
        shared, s = ones - deletes, self.kept
        before, after = _choose(first, s), _choose(second, s)
        order = range(s, -1, -1) if blank > left else range(s + 1)
        ways = [(_choose(shared, j), _choose(blank, s - j), _choose(left, s - j)) for j in order]
        return [(flint.arb(m * b) / before, flint.arb(m * c) / after) for m, b, c in ways]

    def error(self, adds: Ints, deletes: Ints) -> Floats:
        """Three roundings for every seat drawn, and those of the sums."""
        return np.full(len(adds), 16 * (self.kept + 4) * UNIT)


def _choose(n: int, k: int) -> Any:
    import flint

    return flint.fmpz.bin_uiui(n, k) if 0 <= k <= n else flint.fmpz(0)
