"""The law of noise that flips every entry by itself: regions by likelihood ratio, decided exactly.

float64 decides wherever its proven error allows; ball arithmetic of rising precision and at last exact integers decide
the rest, so the answer is exact for the floats given.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unswayed.errors import InputError
from unswayed.theory.exact import decide
from unswayed.theory.law import Attack, Bools, Floats, Ints, Law, Test, left_by, search
from unswayed.theory.regions import TINY, Flips, Side, probabilities, table
from unswayed.theory.splits import Splits
from unswayed.theory.tails import Judge

#: Probabilities below this are left to ball arithmetic: the tables may have lost terms to underflow.
SMALL = 1e-280
#: Up to `FEW` entries, or `MANY` where there are more than `LONE` targets, every split is simply asked, unless sizes of `FAR` are expected.
FEW, MANY, LONE, FAR = 8, 256, 8, 64
WIDE = 2**7  # entries from which on an attack is judged without a table if it can be
#: (indices, adds, deletes) → which of them are certified against that attack.
SplitTest = Callable[[Ints, int, int], Bools]


@dataclass(frozen=True)
class EntryWise(Law):
    """A 0 becomes 1 and a 1 becomes 0 with exactly known probabilities, every entry independently of all others."""

    flips: Flips

    def worst_case(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """The least Pr(Y∈A) and the largest Pr(Y∈B)."""
        kept, lost = np.empty_like(top), np.empty_like(top)
        rest = np.minimum(rest, 1 - top)
        for a, d, here in _attacks(adds, deletes):
            regions = table(self.flips, a, d)
            kept[here] = _mass_top(top[here], regions.top, regions.bottom)
            lost[here] = _mass_top(rest[here], regions.bottom, regions.top)
        return kept, lost

    def certified(
        self,
        top: Floats,
        rest: Floats,
        adds: Ints,
        deletes: Ints,
        ones: Ints | None = None,
        times: int = 1,
    ) -> Bools:
        """Exactly which cells are certified against this attack; certification is monotone in adds and in deletes."""
        rest = np.minimum(rest, left_by(top))
        result = np.asarray((top > 0) & (rest == 0))
        left = (top > 0) & ~result
        for a, d, here in _attacks(adds[left], deletes[left]):
            i = np.flatnonzero(left)[here]
            result[i] = certify_pairs(top[i], rest[i], self.flips, a, d, times)
        return result

    def largest(
        self, test: Test, there: Bools, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """Doubling and bisection over every feasible split."""
        cap, ones = confine(change, cap, ones)
        at = np.flatnonzero(there)

        def split(index: Ints, adds: int, deletes: int) -> Bools:
            i = at[index]
            return test(i, np.full(i.size, adds), np.full(i.size, deletes), None if ones is None else ones[i])

        result = np.full(cap.shape, -1, dtype=np.int64)
        if at.size:
            held = None if ones is None else ones[at]
            passes = every_split(split, self.flips, held, cap[at])
            result[at] = np.minimum(search(at.size, int(cap[at].max()), passes), cap[at])
        return result

    def size(
        self, top: Floats, rest: Floats, cap: Ints, ones: Ints | None = None, change: str = "any"
    ) -> Ints:
        """The largest certified size; majorities and minorities apart, since a majority needs only one side of a table."""
        cap, ones = confine(change, cap, ones)
        hopeless, free = _easy(top, rest, self.flips)
        size = np.where(hopeless, -1, cap)
        left, major = ~(hopeless | free), top >= 0.5
        for group in (left & major, left & ~major):
            if group.any():
                held = None if ones is None else ones[group]
                size[group] = self._largest(top[group], rest[group], held, cap[group])
        return size

    def _largest(self, top: Floats, rest: Floats, ones: Ints | None, cap: Ints) -> Ints:
        rest = np.minimum(rest, 1 - top)

        def test(index: Ints, adds: int, deletes: int) -> Bools:
            return certify_pairs(top[index], rest[index], self.flips, adds, deletes)

        passes, most = every_split(test, self.flips, ones, cap), int(cap.max())
        p_add, p_delete = (float(p) for p in probabilities(self.flips))
        if p_add == p_delete:
            return np.minimum(search(top.size, most, passes), cap)
        lone = top.size <= LONE
        far = lone and min(self._judge(*each).expected for each in zip(top, rest, strict=True)) >= FAR
        few = 0 if far else FEW if lone else MANY
        size = np.minimum(search(top.size, min(most, few), passes), cap)
        for i in np.flatnonzero((size == few) & (cap > few)):
            size[i] = self._beyond(
                few, self._judge(top[i], rest[i]), None if ones is None else int(ones[i]), int(cap[i])
            )
        return size

    def _judge(self, top: float, rest: float) -> Judge:
        return Judge.of(float(top), float(rest), *probabilities(self.flips))

    def _beyond(self, few: int, judge: Judge, ones: int | None, cap: int) -> int:
        """The size of one target that withstands `few` entries: splits are judged in bulk, and what that leaves open exactly."""
        pair = np.array([judge.top]), np.array([judge.rest])

        def test(adds: int, deletes: int) -> bool:
            wide = adds + deletes > WIDE  # tables take long
            verdict = judge.judged(adds, deletes) if wide else 0
            return verdict > 0 if verdict else bool(certify_pairs(*pair, self.flips, adds, deletes)[0])

        return Splits(test, judge, ones, cap).largest(few, judge.expected)


def _attacks(adds: Ints, deletes: Ints) -> list[tuple[int, int, Bools]]:
    """(adds, deletes, where) of every attack that occurs."""
    pairs = np.unique(np.stack([adds, deletes], axis=1), axis=0).tolist()
    if len(pairs) == 1:
        return [(pairs[0][0], pairs[0][1], np.ones(adds.shape, np.bool_))]
    return [(a, d, (adds == a) & (deletes == d)) for a, d in pairs]


def _mass_top(p: Floats, top: Side, bottom: Side) -> Floats:
    """Y-mass of a set of X-mass `p` filled from `top`, through its complement (exactly 1 − p) where that is smaller."""
    return np.where(p >= 0.5, 1 - bottom.fill(1 - p), top.fill(p))


def certify_pairs(top: Floats, rest: Floats, flips: Flips, adds: int, deletes: int, times: int = 1) -> Bools:
    """Exactly which flat pairs have times · Pr(Y∈A) > Pr(Y∈B) after one attack; 0 < p_top < 1, 0 < p_rest ≤ 1 − p_top."""
    regions = table(flips, adds, deletes)
    error = 8 * regions.error
    b = regions.bottom.fill(rest)
    major = top >= 0.5
    a = 1 - regions.bottom.fill(1 - top)
    scale = np.full_like(top, 3.0)  # no sum of the terms of a `fill` exceeds 3
    if not major.all():
        a = np.where(major, a, regions.top.fill(top))
        scale = np.where(major, scale, regions.top.scale(top))
    gap, margin = times * a - b, error * (times * scale + b) + TINY
    certified = gap > margin
    unsure = (np.abs(gap) <= margin) | (np.minimum(rest, top) < SMALL)
    for i in np.flatnonzero(unsure):
        certified[i] = decide(float(top[i]), float(rest[i]), flips, adds, deletes, times)
    return np.asarray(certified)


def _easy(top: Floats, rest: Floats, flips: Flips) -> tuple[Bools, Bools]:
    """(no top label is proved, every attack whatever its size is certified) for pairs before clipping."""
    hopeless = top <= rest
    free = ~hopeless & ((top == 1) | (rest == 0))
    if sum(probabilities(flips)) == 1:  # the noisy input says nothing about the clean one
        free = ~hopeless
    return hopeless, free


def every_split(test: SplitTest, flips: Flips, ones: Ints | None, cap: Ints) -> Attack:
    """Whether every feasible split adds + deletes = k passes; with equal probabilities one split stands for all."""
    p_add, p_delete = probabilities(flips)

    def one(index: Ints, k: int) -> Bools:
        return test(index, 0, k)

    def all_splits(index: Ints, k: int) -> Bools:
        good = k <= cap[index]
        for adds in _outside_in(k):
            ask = good.copy()
            if ones is not None:
                ask &= (k - adds <= ones[index]) & (adds <= cap[index] - ones[index])
            if ask.any():
                good[ask] = test(index[ask], adds, k - adds)
        return good

    return one if p_add == p_delete else all_splits


def _outside_in(k: int) -> list[int]:
    """0, k, 1, k−1, …: pure attacks first, they fail soonest as a rule."""
    order = np.empty(k + 1, dtype=np.int64)
    order[::2] = np.arange(k // 2 + 1)
    order[1::2] = np.arange(k, k // 2, -1)
    return [int(i) for i in order]


def confine(change: str, cap: Ints, ones: Ints | None) -> tuple[Ints, Ints | None]:
    """(entries, ones) that leave only attacks of this kind: "any", "adds" alone or "deletes" alone."""
    if change == "any":
        return cap, ones
    if change == "adds":
        zeros = cap if ones is None else cap - ones
        return zeros, np.zeros_like(zeros)
    if change == "deletes":
        held = cap if ones is None else ones
        return held, held
    raise InputError(f"change must be one of any, adds, deletes, not {change!r}.")
