"""Noise that only hides: exactly which attacks cannot matter because too little of them is ever seen.

An attack divides what the classifier may see into regions: those common to both worlds, what only the clean input (X) can
show, and what only the attacked one (Y) can show. Let F(p) be the largest Y-mass of a part of the common regions that has
X-mass at most p, and c their Y-mass in all. A set of X-mass p_top has Y-mass at least c − F(1 − p_top), and a set of X-mass
p_rest has Y-mass at most 1 − c + F(p_rest): what only Y can show belongs to the rivals even at p_rest = 0. Both are attained
(Neyman and Pearson), so the attack is certified iff the first exceeds the second.

F is the value of a linear programme, concave in p. Relative errors e in the masses therefore move it by at most about 2e,
and masses lost to underflow by less than that wherever p is not tiny: this is why float64 may decide away from ties.
"""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from unswayed.errors import InputError
from unswayed.theory.law import Bools, Floats, Ints, Law, Test, left_by, search

#: (X-masses, Y-masses), float64[cells, regions]: common regions, the lowest ratio X/Y first.
Common = tuple[Floats, Floats]

UNIT = 2.0**-53
SMALL, TINY = 1e-280, 1e-290
PRECISIONS = (128, 512, 2048, 8192)
CELLS = 2**16  # attacks weighed at a time
CHANGES = ("any", "adds", "deletes")


def fill(x: Floats, y: Floats, p: Floats) -> Floats:
    """F(p) of every cell: Y-mass of the set that takes common regions in order, the last in part, up to X-mass p."""
    before = np.zeros_like(x)
    np.cumsum(x[:, :-1], axis=1, out=before[:, 1:])
    with np.errstate(over="ignore", under="ignore"):
        share = np.divide(p[:, None] - before, x, out=np.ones_like(x), where=x > 0).clip(0, 1)
        return np.asarray((share * y).sum(axis=1))


def weigh(common: Common, top: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """(least Pr(Y∈A), largest Pr(Y∈B)) in float64."""
    x, y = common
    whole = y.sum(axis=1)
    return whole - fill(x, y, 1 - top), 1 - whole + fill(x, y, rest)


class Hiding(Law):
    """What a noise that only hides lets an attack do.

    A larger attack is never easier to survive in additions, nor in deletions if `falling`. `extremes` says that of all
    attacks on k entries one with the fewest or the most deletions is the worst.
    """

    falling: ClassVar[bool] = True
    extremes: ClassVar[bool] = False

    def known(self, ones: Ints | None, like: Ints) -> Ints | None:
        """The number of ones of every target; a law that does not depend on it needs none."""
        return ones

    def covered(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> Bools:
        """Which cells are certified against this attack and every smaller one."""
        ones = self.known(ones, adds)
        most = deletes if ones is None else np.minimum(deletes, ones)  # there is nothing more to delete
        if self.falling:
            return self.certified(top, rest, adds, most, ones)
        position, fewer = all_up_to(most)
        good = np.ones(len(top), dtype=np.bool_)
        held = None if ones is None else ones[position]
        passed = self.certified(top[position], rest[position], adds[position], fewer, held)
        good[position[~passed]] = False
        return good

    def size(
        self, top: Floats, rest: Floats, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """The largest K ≤ cap such that every feasible attack of at most K entries is certified; −1 where p_top ≤ p_rest."""

        def test(i: Ints, adds: Ints, deletes: Ints, held: Ints | None) -> Bools:
            return self.certified(top[i], rest[i], adds, deletes, held)

        return self._largest(test, top > rest, cap, ones, change, self.extremes)

    def largest(
        self, test: Test, there: Bools, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """The largest K ≤ cap such that every feasible attack of at most K entries passes; −1 where not `there`."""
        return self._largest(test, there, cap, ones, change, extremes=False)

    def _largest(
        self, test: Test, there: Bools, cap: Ints, ones: Ints | None, change: str, extremes: bool
    ) -> Ints:
        ones = self.known(ones, cap)
        most_adds, most_deletes = room(change, cap, ones)
        most = np.minimum(cap, most_adds + most_deletes)
        at = np.flatnonzero(there)

        def passes(index: Ints, k: int) -> Bools:
            i = at[index]
            total = np.minimum(k, most[i])
            low, high = np.maximum(0, total - most_adds[i]), np.minimum(total, most_deletes[i])
            position, deletes = ends(low, high) if extremes else all_up_to(high)
            i = i[position]
            adds = np.minimum(total[position] - deletes, most_adds[i])
            good = np.ones(len(index), dtype=np.bool_)
            good[position[~test(i, adds, deletes, None if ones is None else ones[i])]] = False
            return good

        result = np.full(cap.shape, -1, dtype=np.int64)
        if at.size:
            result[at] = np.minimum(search(len(at), int(most[at].max()), passes), most[at])
        return result


class Regions(Hiding):
    """A law whose common regions are known: `certified` and `size` are exact for the floats given."""

    @abstractmethod
    def common(self, adds: Ints, deletes: Ints, ones: Ints) -> Common:
        """The masses of the common regions of every cell, each within `error` relative."""

    @abstractmethod
    def balls(self, adds: int, deletes: int, ones: int) -> list[tuple[Any, Any]]:
        """The same for one attack, in ball arithmetic of the present precision."""

    @abstractmethod
    def error(self, adds: Ints, deletes: Ints) -> Floats:
        """A bound on the relative error of every mass and of every sum of masses."""

    def _held(self, ones: Ints | None, like: Ints) -> Ints:
        held = self.known(ones, like)
        return np.zeros_like(like) if held is None else held

    def worst_case(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """(least Pr(Y∈A), largest Pr(Y∈B)) for flat arrays."""
        return weigh(self.common(adds, deletes, self._held(ones, adds)), top, np.minimum(rest, 1 - top))

    def certified(
        self,
        top: Floats,
        rest: Floats,
        adds: Ints,
        deletes: Ints,
        ones: Ints | None = None,
        times: int = 1,
    ) -> Bools:
        """Exactly which flat cells have times · Pr(Y∈A) > Pr(Y∈B) after this one attack."""
        held = self._held(ones, adds)
        parts = []
        for low in range(0, len(top), CELLS):
            cut = slice(low, low + CELLS)
            parts.append(self._certified(top[cut], rest[cut], adds[cut], deletes[cut], held[cut], times))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

    def _certified(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints, times: int
    ) -> Bools:
        common = self.common(adds, deletes, ones)
        left = left_by(top)
        rest = np.minimum(rest, left)
        kept, lost = weigh(common, top, rest)
        gap = times * kept - lost
        margin = 8 * (2 * times + 3) * self.error(adds, deletes)
        thin = ((common[0] < TINY) & (common[1] > TINY)).any(axis=1) & (np.minimum(left, rest) < SMALL)
        certified = gap > margin
        for i in np.flatnonzero((np.abs(gap) <= margin) | thin):
            cell = int(adds[i]), int(deletes[i]), int(ones[i])
            certified[i] = self.decide(float(top[i]), float(rest[i]), *cell, times=times)
        return np.asarray(certified)

    def decide(
        self, top: float, rest: float, adds: int, deletes: int, ones: int = 0, *, times: int = 1
    ) -> bool:
        """Exactly whether one cell is certified."""
        p_top = Fraction(top)
        left, p_rest = 1 - p_top, min(Fraction(rest), 1 - p_top)

        def gap() -> Any:
            regions = self.balls(adds, deletes, ones)
            whole = sum(y for _, y in regions)
            kept = whole - _ball_fill(regions, ball(left))
            return times * kept - 1 + whole - _ball_fill(regions, ball(p_rest))

        return positive(gap)


def positive(gap: Callable[[], Any]) -> bool:
    """Whether a number is above 0, by balls of rising precision; what none of them tells from 0 is not."""
    import flint  # loaded only where float64 cannot decide

    for precision in PRECISIONS:
        with flint.ctx.workprec(precision):
            found = gap()
            if found > 0:
                return True
            if found <= 0:
                return False
    return False


def room(change: str, cap: Ints, ones: Ints | None) -> tuple[Ints, Ints]:
    """The most additions and the most deletions that such an attacker could make."""
    if change not in CHANGES:
        raise InputError(f"change must be one of {', '.join(CHANGES)}, not {change!r}.")
    none = np.zeros_like(cap)
    adds, deletes = (cap, cap) if ones is None else (cap - ones, ones)
    return none if change == "deletes" else adds, none if change == "adds" else deletes


def ends(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(position, deletions): the fewest and the most."""
    position = np.arange(len(low))
    return np.concatenate([position, position]), np.concatenate([low, high])


def all_up_to(high: Ints) -> tuple[Ints, Ints]:
    """(position, deletions): every number from none to `high`."""
    position = np.repeat(np.arange(len(high)), high + 1)
    return position, np.arange(len(position)) - np.repeat(np.cumsum(high + 1) - (high + 1), high + 1)


def ball(p: Fraction) -> Any:
    """A ball around p."""
    import flint

    return flint.arb(flint.fmpq(p.numerator, p.denominator))


def _ball_fill(regions: list[tuple[Any, Any]], p: Any) -> Any:
    """F(p) in balls."""
    import flint

    found, before = flint.arb(0), flint.arb(0)
    for x, y in regions:
        found += y if x == 0 else y * ((p - before) / x).max(flint.arb(0)).min(flint.arb(1))
        before += x
    return found
