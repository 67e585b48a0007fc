"""Bounds for many attacks at once: what a set weighs under Y at most and at least, in floats with proven errors.

For any price λ the set of X-mass p that weighs most under Y weighs at most λp + Σ(Y − λX)⁺. With λ the ratio of region t − 1
the sum is Pr(Y ≥ t) − λ Pr(X ≥ t), where t counts differing entries; and if the set ends in that region, because
Pr(X ≥ t) ≤ p ≤ Pr(X ≥ t − 1), it weighs no less. Any t is a proof, so a bad one costs time and never an answer.

Let r of k attacked entries be deletions, and call the bound h(r), with t fixed. Moving one entry from additions to
deletions changes Pr(X ≥ t) by (p_delete − p_add)·x, where x = Pr(X′ = t − 1) without that entry, and Pr(Y ≥ t) by λ(r + 1)(1 − p_delete)/p_add
times as much. Hence h(r + 1) − h(r) has the sign of (p_delete − p_add)·d(r), d(r) = (1 − p_add)·x − p + Pr(X ≥ t), and
d(r + 1) − d(r) = (p_delete − p_add)·Pr(X″ = t − 2) without two of the entries: h falls and then rises. So **between two splits h is
nowhere above the larger of its values at them**: two splits speak for all between them.

Tails come from characteristic functions: exactly periodic sums, cut off where Hoeffding's or Bernstein's bound and
|1 − p + p·e^{iθ}| ≤ exp(−p(1−p)(1 − cos θ)) leave less than is granted.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import acos, exp, factorial, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from unswayed.theory.law import Floats, Ints

UNIT = 2.0**-53
SINE = [(-1) ** j * (2 * pi) ** (2 * j + 1) / factorial(2 * j + 1) for j in range(10)]  # of 2πu, |u| ≤ 1/4
NEGLIGIBLE = 38.0  # e^−38: what is cut off
AROUND, FEW = (0, -1, 1), 8.0  # regions tried, beside the likeliest where the variance is less than this
ROWS = 512  # worked on together: what a processor has at hand
SLACK = 1e-9  # granted to prices, and to what they add up to


def tails(first: Ints, second: Ints, p: float, q: float, t: Ints) -> tuple[Floats, float]:
    """(Pr(Bin(first, p) + Bin(second, q) ≥ t), a bound on the absolute error), one t a split; NaN far from the mean."""
    trials = int((first + second).max())
    variance = first * p * (1 - p) + second * q * (1 - q)
    off = t - first * p - second * q
    half = _half_width(trials, float(variance.max())) + 4
    inside = np.abs(off) <= half
    period = 2 * int(half + np.abs(off[inside]).max(initial=0.0)) + 3
    theta, less = _waves(period, float(variance.min()))
    (shrink_p, turn_p), (shrink_q, turn_q) = _log(p, theta, less), _log(q, theta, less)
    below = period // 2  # the window begins so far below t, wherever t is
    # (1 − e^{iθ·below})/(1 − e^{−iθ}) = −sin(θ·below/2)/sin(θ/2) · e^{iθ(below + 1)/2}
    weight = np.sin(theta * (below / 2)) / np.sin(theta / 2) * (-2 / period)
    begin = theta * ((below + 1) / (4 * pi))
    shrinks, turns = np.array([shrink_p, shrink_q]), np.array([turn_p, turn_q, theta]) / (2 * pi)
    counts, found = np.array([first, second, -t]).T, np.empty(len(t))
    for at in range(0, len(t), ROWS):
        some = counts[at : at + ROWS]
        waves = np.exp(some[:, :2] @ shrinks) * _cosine(some @ turns + begin)
        found[at : at + ROWS] = (period - below) / period + waves @ weight
    standing = float(np.exp(-float(variance.min()) * less).sum())
    rounding = 64 * (trials * standing / period + 64) * UNIT
    return np.where(inside, found, np.nan), 4 * exp(-NEGLIGIBLE) * period + rounding


def _log(p: float, theta: Floats, less: Floats) -> tuple[Floats, Floats]:
    """log(1 − p + p·e^{iθ}), its real and its imaginary part, each within a few units of its last place: it is multiplied by trials."""
    return np.log1p(-2 * p * (1 - p) * less) / 2, np.arctan2(p * np.sin(theta), 1 - p * less)


def _cosine(turns: Floats) -> Floats:
    """cos 2πx within a few units of 2⁻⁵³, by the series of the sine; several times as fast as the library's."""
    u = 0.25 - np.abs(turns - np.rint(turns))
    square, out = u * u, np.full_like(u, SINE[-1])
    for coefficient in SINE[-2::-1]:
        out *= square
        out += coefficient
    return np.asarray(out * u)


def _half_width(trials: int, variance: float) -> float:
    """How far from its mean a sum of so many independent zeros and ones strays with probability at most 2e^−38.

    The smaller of Hoeffding's bound and Bernstein's, t²/(2(variance + t/3)) = 38.
    """
    return min(
        sqrt(trials * NEGLIGIBLE / 2),
        NEGLIGIBLE / 3 + sqrt((NEGLIGIBLE / 3) ** 2 + 2 * NEGLIGIBLE * variance),
    )


def _waves(period: int, variance: float) -> tuple[Floats, Floats]:
    """θ and 1 − cos θ of the waves that a sum of this variance leaves standing; the period is odd: all but the constant one have
    mirror images."""
    last = acos(max(1 - NEGLIGIBLE / variance, -1.0)) if variance else pi
    theta = 2 * pi * np.arange(1, min(period // 2, int(last * period / (2 * pi)) + 1) + 1) / period
    less = 2 * np.sin(theta / 2) ** 2
    stands = variance * less < NEGLIGIBLE
    return theta[stands], less[stands]


@dataclass(frozen=True)
class Judge:
    """What can be said of attacks on one target in floats: `margin` is the least Pr(Y∈A) − Pr(Y∈B) that is proved."""

    top: float
    rest: float
    p_add: float
    p_delete: float

    @classmethod
    def of(cls, top: float, rest: float, p_add: Fraction, p_delete: Fraction) -> "Judge":
        """Where p_add + p_delete > 1, entries that agree are counted instead of entries that differ."""
        if p_add + p_delete > 1:
            p_add, p_delete = 1 - p_add, 1 - p_delete
        return cls(top, rest, float(p_add), float(p_delete))

    @property
    def step(self) -> float:
        """The logarithm of the ratios of neighbouring regions."""
        return log1p(-self.p_add) + log1p(-self.p_delete) - log(self.p_add) - log(self.p_delete)

    @property
    def known(self) -> bool:
        """Whether regions can be told apart by floats."""
        return self.step >= 1e-6

    @property
    def expected(self) -> int:
        """About how many entries of one kind a normal law would certify: where a search may begin."""
        kept = 1 - self.p_add - self.p_delete
        gap = (float(ndtri(self.top)) - float(ndtri(self.rest))) / 2
        variance = min(self.p_add * (1 - self.p_add), self.p_delete * (1 - self.p_delete))
        return max(1, int(min(variance * (gap / kept) ** 2, 1e9))) if kept else 10**9

    @cached_property
    def sides(self) -> tuple[Floats, Floats, Floats]:
        """X-mass at most, at least, and how often it counts, [side, 1, 1]: of what is not A, and of B; as one where they hardly differ."""
        other, rest = 1 - self.top, self.rest
        alike = abs(other - rest) <= 1e-9 * rest
        each = [(max(other, rest), min(other, rest), 2)] if alike else [(other, other, 1), (rest, rest, 1)]
        large, small, times = np.array(each, dtype=np.float64).T[..., None, None]
        return large, small, times

    def places(self, p: Floats | float, adds: Ints, deletes: Ints) -> Floats:
        """About where the tail of X-mass p begins, between whole numbers: a normal law, corrected for skew and flatness."""
        added, deleted = self.p_add * (1 - self.p_add), self.p_delete * (1 - self.p_delete)
        variance = np.maximum(deletes * deleted + adds * added, UNIT)
        skew = deletes * deleted * (1 - 2 * self.p_delete) + adds * added * (1 - 2 * self.p_add)
        flat = deletes * deleted * (1 - 6 * deleted) + adds * added * (1 - 6 * added)
        skew, flat, spread = skew / variance, flat / variance, np.sqrt(variance)
        z = -ndtri(np.clip(p, 1e-300, 1 - UNIT))
        bent = (z**3 - 3 * z) * flat / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
        mean = deletes * self.p_delete + adds * self.p_add
        return np.asarray(mean + 0.5 + z * spread + (z**2 - 1) * skew / 6 + bent / spread)

    def regions(self, adds: Ints, deletes: Ints) -> Ints:
        """[side, 1, attack]: about the first region from which on differing entries weigh no more than the side."""
        return np.ceil(self.places(self.sides[0], adds, deletes)).astype(np.int64)

    def weighed(self, adds: Ints, deletes: Ints, t: Ints) -> "Weighed":
        """Tails and prices of regions t, with the attacks along its last axis; entries that agree under Y are drawn like those that differ under X."""
        a, d, each = *(np.broadcast_to(kind, t.shape).ravel() for kind in (adds, deletes)), t.ravel()
        both, error = tails(
            np.concatenate([d, a]),
            np.concatenate([a, d]),
            self.p_delete,
            self.p_add,
            np.concatenate([each, a + d + 1 - each]),
        )
        before, after = both.reshape(2, *t.shape)
        logs = log(self.p_add), log1p(-self.p_add), log(self.p_delete), log1p(-self.p_delete)
        none = deletes * (logs[0] - logs[3]) + adds * (logs[2] - logs[1])
        # of the exponent; all logarithms are below 0
        rounding = -16 * UNIT * sum(logs) * (adds + deletes + np.abs(t) + 1)
        with np.errstate(over="ignore"):
            return Weighed(
                before, 1 - after, error, np.exp(none + (t - 1) * self.step), np.float64(SLACK) + rounding
            )

    def margin(self, adds: Ints, deletes: Ints) -> Floats:
        """At least Pr(Y∈A) − Pr(Y∈B) after each attack, and hardly less than that."""
        spread = adds * self.p_add * (1 - self.p_add) + deletes * self.p_delete * (1 - self.p_delete)
        near = AROUND if float(spread.min(initial=FEW)) < FEW else AROUND[:1]
        t = self.regions(adds, deletes) + np.array(near)[:, None]
        return self._left(self.weighed(adds, deletes, t).most(self.sides[0]).min(axis=1, keepdims=True))

    def _left(self, most: Floats) -> Floats:
        """By how much the sides weigh less than 1 together, of which each weighs at most so much, [side, 1, attack]."""
        return np.asarray(1 - (self.sides[2] * most).sum(axis=(0, 1)) if self.known else 0 * most[0, 0])

    @property
    def span(self) -> float:
        """About how many neighbouring splits end in one region."""
        return 1 / max(abs(self.p_delete - self.p_add), UNIT)

    def block(self, k: int, low: Ints, high: Ints) -> Floats:
        """The same for all splits of k entries with `low` to `high` deletions: by their ends where these share a region."""
        narrow = 1 <= int((high - low).max()) <= self.span
        return self.between(k, low, high) if narrow else self.margin(k - low, high)

    def between(self, k: int, low: Ints, high: Ints) -> Floats:
        """The same by the two ends, one region for both."""
        middle, deletes = (low + high) // 2, np.stack([low, high])
        t = self.regions(k - middle, middle).repeat(2, axis=1)
        return self._left(
            self.weighed(k - deletes, deletes, t).most(self.sides[0]).max(axis=1, keepdims=True)
        )

    def judged(self, adds: int, deletes: int) -> int:
        """1 where this attack is proved certified, −1 where it is proved not to be, 0 where neither."""
        large, small, times = self.sides
        a, d = np.array([adds]), np.array([deletes])
        found = self.weighed(a, d, self.regions(a, d) + np.arange(-2, 2)[:, None])
        most = float((times * found.most(large).min(axis=1, keepdims=True)).sum())
        left = small - found.before
        ends_here = (left[:, 1:] >= found.error) & (left[:, :-1] <= -found.error)
        at_least = np.where(ends_here, found.least(small)[:, 1:], 0.0)
        least = float((times * at_least.max(axis=1, keepdims=True)).sum())
        return 0 if not self.known else 1 if 1 - most > SLACK else -1 if 1 - least < -SLACK else 0


class Weighed(NamedTuple):
    """Of some attacks and regions t: Pr(X ≥ t), Pr(Y ≥ t), the error of either, the ratio Y/X of region t − 1, and its
    relative error."""

    before: Floats
    after: Floats
    error: float
    price: Floats
    stray: Floats

    def most(self, p: Floats | float) -> Floats:
        """No set of X-mass p weighs more under Y: the price is rounded up where something is bought, down where it is given back."""
        bought = p - self.before + self.error
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.price * (bought + self.stray * np.abs(bought)) + self.after + self.error
        return np.where(np.isfinite(found), found, 1.0)

    def least(self, p: Floats | float) -> Floats:
        """The heaviest weighs no less, if it ends in region t − 1."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.price * (1 - self.stray) * (p - self.before - self.error) + self.after - self.error
