"""A proof for many attacks at once: splits of one number of entries into additions and deletions that surely hold or fail.

For any price λ the set of X-mass p that weighs most under Y weighs at most λp + Σ(Y − λX)⁺. With λ between the ratios of
two neighbouring regions the sum is Pr(Y ≥ t) − λ Pr(X ≥ t), where t counts differing entries: two tails of sums of two
binomials. With λ the ratio of the region below t, in which the set ends if Pr(X ≥ t) ≤ p ≤ Pr(X ≥ t − 1), it weighs no less. Tails come from their characteristic functions, for all splits at once: exactly periodic sums, cut off where
Hoeffding's bound and |1 − p + p·e^{iθ}| ≤ exp(−p(1−p)(1 − cos θ)) leave less than is granted. What is not proved here is asked
of the exact test, so a bad t or a rounding costs time and never an answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, log, log1p, pi, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from unswayed.theory.law import Bools, Floats, Ints

UNIT = 2.0**-53
NEGLIGIBLE = 45.0  # e^−45: what is cut off
AROUND = (-1, 0, 1)  # thresholds tried, beside the one of a normal law
SLACK = 1e-9  # granted to prices, and to what they add up to
BLOCKS, CHUNK = 64, 2**12  # blocks of splits tried first, and splits looked at together


def tails(first: Ints, second: Ints, p: float, q: float, t: Ints) -> tuple[Floats, float]:
    """(Pr(Bin(first, p) + Bin(second, q) ≥ t) [splits, thresholds], a bound on the absolute error); NaN far from the mean."""
    trials = int((first + second).max())
    variance = first * p * (1 - p) + second * q * (1 - q)
    period = 2 * int(_half_width(trials, float(variance.max())) + 4) + 1
    theta = _waves(period, float(variance.min()))
    start = np.rint(first * p + second * q).astype(np.int64) - period // 2
    size, angle = (
        np.outer(first, a) + np.outer(second, b) for a, b in zip(_log(p, theta), _log(q, theta), strict=True)
    )
    phi = np.exp(size + 1j * (angle - np.outer(start, theta))) / -np.expm1(-1j * theta)
    place = t - start[:, None]
    inside = (place >= 0) & (place <= period)
    turns = _turns(place.clip(0, period), theta, period)
    waves = np.stack([np.einsum("sm,sm->s", phi, turn).real for turn in turns], axis=1)
    found = (period - place + 2 * (waves - phi.real.sum(axis=1, keepdims=True))) / period
    rounding = 64 * (trials * len(theta) / period + 64) * UNIT
    return np.where(inside, found, np.nan), 4 * exp(-NEGLIGIBLE) * period + rounding


def _log(p: float, theta: Floats) -> tuple[Floats, Floats]:
    """log(1 − p + p·e^{iθ}), its real and its imaginary part, each within a few units of its last place: it is multiplied by trials."""
    less = 2 * np.sin(theta / 2) ** 2  # 1 − cos θ
    return np.log1p(-2 * p * (1 - p) * less) / 2, np.arctan2(p * np.sin(theta), 1 - p * less)


def _half_width(trials: int, variance: float) -> float:
    """How far from its mean a sum of so many independent zeros and ones strays with probability at most 2e^−45.

    The smaller of Hoeffding's bound and Bernstein's, t²/(2(variance + t/3)) = 45.
    """
    return min(
        sqrt(trials * NEGLIGIBLE / 2),
        NEGLIGIBLE / 3 + sqrt((NEGLIGIBLE / 3) ** 2 + 2 * NEGLIGIBLE * variance),
    )


def _waves(period: int, variance: float) -> Floats:
    """θ of the waves that a sum of this variance leaves standing; the period is odd: all but the constant one have mirror images."""
    theta = 2 * pi * np.arange(1, period // 2 + 1) / period
    return np.asarray(theta[variance * (1 - np.cos(theta)) < NEGLIGIBLE])


def _turns(place: Ints, theta: Floats, period: int) -> Iterator[Any]:
    """e^{−iθ·place}, [splits, waves] for one threshold after the other; from one table where places outnumber the period."""
    every = np.exp(-1j * np.outer(np.arange(period + 1), theta)) if place.size > period else None
    for there in place.T:
        yield np.exp(-1j * np.outer(there, theta)) if every is None else every[there]


def judged(p_top: float, p_rest: float, p_add: float, p_delete: float, adds: Ints, deletes: Ints) -> Ints:
    """1 where one of these attacks is proved certified, −1 where it is proved not to be, 0 where neither."""
    if p_add + p_delete > 1:  # entries that agree instead of entries that differ
        p_add, p_delete = 1 - p_add, 1 - p_delete
    step = log1p(-p_add) + log1p(-p_delete) - log(p_add) - log(p_delete)
    if step < 1e-6:
        return np.zeros(len(adds), dtype=np.int64)
    none = deletes * (log(p_add) - log1p(-p_delete)) + adds * (log(p_delete) - log1p(-p_add))
    sides = np.array([1 - p_top, p_rest])
    middle = _quantiles(sides, p_add, p_delete, adds, deletes)
    t = (middle[:, :, None] + np.array(AROUND)).transpose(1, 0, 2)  # splits, sides, thresholds
    flat = t.reshape(len(adds), -1)
    before, error = tails(deletes, adds, p_delete, p_add, flat)
    after, more = tails(deletes, adds, 1 - p_add, 1 - p_delete, flat)
    left, after = sides[:, None] - before.reshape(t.shape), after.reshape(t.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        price = np.exp(none[:, None, None] + (t - 1) * step)
        most = price * (1 + SLACK) * (left + error) + after + more
        least = price * (1 - SLACK) * (left - error) + after - more
    most = np.where(np.isfinite(most), most, 1.0).min(axis=2).sum(axis=1)
    ends_here = (left[..., 1:] >= error) & (left[..., :-1] <= -error)
    least = np.where(ends_here, least[..., 1:], 0.0).max(axis=2).sum(axis=1)
    return np.asarray(np.where(1 - most > SLACK, 1, np.where(1 - least < -SLACK, -1, 0)))


def _quantiles(sides: Floats, p_add: float, p_delete: float, adds: Ints, deletes: Ints) -> Ints:
    """int64[sides, splits]: about where tails of these masses begin, by a normal law corrected for its skew."""
    added, deleted = p_add * (1 - p_add), p_delete * (1 - p_delete)
    mean, variance = deletes * p_delete + adds * p_add, deletes * deleted + adds * added
    skew = (deletes * deleted * (1 - 2 * p_delete) + adds * added * (1 - 2 * p_add)) / np.maximum(
        variance, UNIT
    )
    far = -ndtri(np.maximum(sides, 1e-300))[:, None]
    return np.ceil(mean + far * np.sqrt(variance) + (far**2 - 1) * skew / 6).astype(np.int64)


def expected_size(p_top: float, p_rest: float, p_add: float, p_delete: float) -> int:
    """About how many entries of one kind a normal law would certify: where a search may begin."""
    kept = 1 - p_add - p_delete
    gap = (float(ndtri(p_top)) - float(ndtri(p_rest))) / 2
    variance = min(p_add * (1 - p_add), p_delete * (1 - p_delete))
    return int(min(variance * (gap / kept) ** 2, 1e9)) if kept else 10**9


@dataclass(frozen=True)
class Splits:
    """Attacks on k entries of one target, of which `ones` are 1 (None: unknown) and `cap` there are: every split must hold.

    `test(adds, deletes)` says exactly whether one holds, `sure` proves many at once.
    """

    test: Callable[[int, int], bool]
    sure: Callable[[Ints, Ints], Bools]
    ones: int | None
    cap: int

    def ends(self, k: int) -> tuple[int, int]:
        """The fewest and the most deletions of a split that exists."""
        return (0, k) if self.ones is None else (max(0, k - (self.cap - self.ones)), min(k, self.ones))

    def holds(self, k: int, deletes: int) -> bool:
        """Whether the split with so many deletions, or as near to it as there is one, holds."""
        low, high = self.ends(k)
        r = min(max(deletes, low), high)
        return self.test(k - r, r)

    def largest(self, low: int, start: int) -> int:
        """The largest k ≤ cap of which every split holds, if every split of `low` does; `start` is a guess.

        Along a fixed share of deletions certification falls with k, since neither additions nor deletions ever become fewer.
        """
        high = 1 + last(lambda k: self.holds(k, 0), low, self.cap, start)
        high = self._below_the_weakest(low, self._below(low, high, 1, 1))
        while high - low > 1:
            k = high - 1
            failing = self._unsure(k, *self.ends(k))
            if failing is None:
                return k
            high = self._below(low, high, failing, k)
        return low

    def _below(self, low: int, high: int, deletes: int, of: int) -> int:
        """A bound on what fails, no larger than `high`, by splits with this share of deletions."""

        def holds(k: int) -> bool:
            return self.holds(k, k * deletes // of)

        return high if high - low < 2 or holds(high - 1) else 1 + last(holds, low, high - 2, high - 2, 1)

    def _below_the_weakest(self, low: int, high: int) -> int:
        """The same by a few shares, then ever nearer to the weakest of them: what fails early need not be proved to hold."""
        of = high - 1
        first, final = self.ends(of)
        near = [
            4**i for i in range((final - first).bit_length() // 2 + 1)
        ]  # what is weak is often near an end
        tried = np.array([*(first + i for i in near), *(final - i for i in near)])
        tried = tried[(first < tried) & (tried < final)]
        unsure, weakest = tried[~self.sure(of - tried, tried)] if tried.size else tried, None
        for deletes in unsure.tolist():
            if (found := self._below(low, high, deletes, of)) < high:
                high, weakest = found, deletes
        step = 1 if weakest is None else min(weakest - first, final - weakest)
        while weakest is not None and step > 1:
            step //= 2
            for deletes in (weakest - step, weakest + step):
                if first < deletes < final and (found := self._below(low, high, deletes, of)) < high:
                    high, weakest = found, deletes
                    break
        return high

    def _unsure(self, k: int, low: int, high: int) -> int | None:
        """The same, asking exactly about splits that are not surely certified: those in the middle of them first."""
        width = max(1, (high - low) // BLOCKS)
        deletes = np.arange(low, high + 1, width)
        while len(deletes):
            most = np.minimum(
                deletes + width - 1, high
            )  # no split of a block has more deletions, or additions
            parts = range(0, len(deletes), CHUNK)
            sure = [self.sure(k - deletes[at : at + CHUNK], most[at : at + CHUNK]) for at in parts]
            deletes = deletes[~np.concatenate(sure)]
            if width == 1:
                break
            finer = max(1, width // 8)
            deletes = (deletes[:, None] + np.arange(0, width, finer)).ravel()
            deletes, width = deletes[deletes <= high], finer
        asked = sorted(deletes.tolist(), key=lambda r: abs(r - deletes[len(deletes) // 2]))
        return next((r for r in asked if not self.test(k - r, r)), None)


def last(holds: Callable[[int], bool], low: int, high: int, start: int, step: int | None = None) -> int:
    """The largest k from `low` to `high` that holds, if `low` does and whatever is below one that holds.

    Found from `start` by ever longer steps; the first is a 32nd of the way, or `step`.

    >>> last(lambda k: k <= 700, 2, 1000, 690)
    700
    """
    k = min(max(start, low + 1), high)
    step = step or max(1, k // 32)
    if k > low and holds(k):
        while k < high and holds(min(k + step, high)):
            k, step = min(k + step, high), 3 * step
        low, high = k, min(k + step, high + 1)
    else:
        high = max(k, low + 1)
        while (k := max(high - step, low)) > low and not holds(k):
            high, step = k, 3 * step
        low = k
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
