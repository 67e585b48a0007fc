"""A proof for many attacks at once: splits of one number of entries into additions and deletions that surely are certified.

For any price λ the set of X-mass p that weighs most under Y weighs at most λp + Σ(Y − λX)⁺. With λ between the ratios of
two neighbouring regions the sum is Pr(Y ≥ t) − λ Pr(X ≥ t), where t counts differing entries: two tails of sums of two
binomials. They come from their characteristic functions, for all splits at once: exactly periodic sums, cut off where
Hoeffding's bound and |1 − p + p·e^{iθ}| ≤ exp(−p(1−p)(1 − cos θ)) leave less than is granted. What is not proved here is asked
of the exact test, so a bad t or a rounding costs time and never an answer.
"""

from math import exp, log, log1p, pi, sqrt

import numpy as np
from scipy.special import ndtri

from unswayed.theory.law import Bools, Floats, Ints

UNIT = 2.0**-53
NEGLIGIBLE = 45.0  # e^−45: what is cut off
AROUND = (-1, 0, 1)  # thresholds tried, beside the one of a normal law


def tails(first: Ints, second: Ints, p: float, q: float, t: Ints) -> tuple[Floats, float]:
    """(Pr(Bin(first, p) + Bin(second, q) ≥ t) [splits, thresholds], a bound on the absolute error); NaN far from the mean."""
    trials = int((first + second).max())
    spread = float((first * p * (1 - p) + second * q * (1 - q)).min())
    period = (
        2 * int(sqrt(trials * NEGLIGIBLE / 2) + 4) + 1
    )  # odd: every wave but the constant one has a mirror image
    theta = 2 * pi * np.arange(1, period // 2 + 1) / period
    theta = theta[spread * (1 - np.cos(theta)) < NEGLIGIBLE]
    wave = np.exp(1j * theta)
    start = np.rint(first * p + second * q).astype(np.int64) - period // 2
    turned = np.outer(first, np.log(1 - p + p * wave)) + np.outer(second, np.log(1 - q + q * wave))
    phi = np.exp(turned - 1j * np.outer(start, theta)) / (1 - np.conj(wave))
    back = np.exp(-1j * np.outer(np.arange(period + 1), theta))  # every place within a period
    place = t - start[:, None]
    inside = (place >= 0) & (place <= period)
    found = np.full(t.shape, np.nan)
    for j in range(t.shape[1]):
        there = back[np.clip(place[:, j], 0, period)]
        waves = np.einsum("sm,sm->s", phi.real, there.real) - np.einsum("sm,sm->s", phi.imag, there.imag)
        found[:, j] = (period - place[:, j] + 2 * (waves - phi.real.sum(axis=1))) / period
    return np.where(inside, found, np.nan), 4 * exp(-NEGLIGIBLE) * period + 256 * (trials + 64) * UNIT


def surely_certified(
    p_top: float, p_rest: float, p_add: float, p_delete: float, adds: Ints, deletes: Ints
) -> Bools:
    """Which of these attacks, all on equally many entries, are proved certified; False says nothing."""
    if p_add + p_delete > 1:  # entries that agree instead of entries that differ
        p_add, p_delete = 1 - p_add, 1 - p_delete
    step = log1p(-p_add) + log1p(-p_delete) - log(p_add) - log(p_delete)
    if step < 1e-6:
        return np.zeros(len(adds), dtype=np.bool_)
    none = deletes * (log(p_add) - log1p(-p_delete)) + adds * (log(p_delete) - log1p(-p_add))
    mean = deletes * p_delete + adds * p_add
    deviation = np.sqrt(deletes * p_delete * (1 - p_delete) + adds * p_add * (1 - p_add))
    sides = np.array([1 - p_top, p_rest])
    middle = np.ceil(mean - np.outer(ndtri(np.maximum(sides, 1e-300)), deviation)).astype(np.int64)
    t = (middle[:, :, None] + np.array(AROUND)).transpose(1, 0, 2).reshape(len(adds), -1)
    before, error = tails(deletes, adds, p_delete, p_add, t)
    after, more = tails(deletes, adds, 1 - p_add, 1 - p_delete, t)
    with np.errstate(over="ignore", invalid="ignore"):
        price = np.exp(none[:, None] + (t - 1) * step + 1e-9)
        bound = price * (np.repeat(sides, len(AROUND)) - before + error) + after + more
    least = np.where(np.isfinite(bound), bound, 1.0).reshape(len(adds), 2, -1).min(axis=2)
    return np.asarray(1 - least.sum(axis=1) > 1e-9)
