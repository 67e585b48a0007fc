"""Clopper–Pearson limits that are proved, not hoped for: every limit returned errs on the safe side.

The tail of Bin(d, p) is a point mass (Stirling's series and two deviances, after Loader) times a sum of positive terms
whose remainder is bounded by a geometric series. Both have error bounds that float64 evaluates alongside, so
`tail ≤ level` is proved before a limit is returned; where that fails, python-flint's balls decide.
"""

from math import log, pi

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT = 2.0**-53
#: Roundings granted to each elementary step of the point mass; the library's own functions err by far less.
SLACK = 64


def excess(z: Floats) -> Floats:
    """log Γ(z) − ((z−½) log z − z + ½ log 2π) for z > 0, to 1e-14: by Stirling's series above 16."""
    inverse = 1 / (z * z)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / z
    direct = special.gammaln(z) - ((z - 0.5) * np.log(z) - z + 0.5 * log(2 * pi))
    return np.where(z > 16, series, direct)


def _deviance(x: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """x log(x/mean) + mean − x, and the size of its terms (rounding of `mean` itself weighs no more than these)."""
    away = x - mean
    main = x * np.log1p(away / mean)
    return main - away, np.abs(main) + np.abs(away)


def _remainder(a: Floats, b: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Not less than 1 + Σ_j Π_{i≤j} (b−i+1)/(a+i)·odds, up to rounding, and the number of terms summed."""
    result, steps, left = np.ones_like(a), np.zeros_like(a), np.arange(a.size)
    total, term, step = np.ones_like(a), np.ones_like(a), 0
    with np.errstate(under="ignore"):
        while left.size:
            for _ in range(8):
                term = term * (np.maximum(b - step, 0.0) / (a + (step + 1)) * odds)
                total = total + term
                step += 1
            ratio = np.maximum(b - step, 0.0) / (a + (step + 1)) * odds
            # ratios fall, so a geometric series bounds what is left
            rest = term * ratio / np.maximum(1 - ratio, UNIT)
            on = rest > 1e-12 * total  # NaN ends it too, and proves nothing
            if not on.all():
                result[left[~on]], steps[left[~on]] = (total + rest)[~on], step
                left, total, term, a, b, odds = left[on], total[on], term[on], a[on], b[on], odds[on]
    return result, steps


def log_tail(a: Floats, b: Floats, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    """log Pr(Bin(a+b, p) ≥ a) for a, b ≥ 1, a bound on its rounding, and its derivative in p.

    The value may be up to 1e-12 too large besides, never too small. q is 1 − p; it may be the given number and p the
    rounded one: the deviances barely notice.
    """
    d = a + b
    left, size_left = _deviance(a, d * p)
    right, size_right = _deviance(b, d * q)
    point = excess(d) - excess(a) - excess(b) + 0.5 * np.log(d / (2 * pi * a * b)) - left - right
    sums, terms = _remainder(a, b, p / q)
    error = SLACK * UNIT * (size_left + size_right + 32) + 8 * (terms + 8) * UNIT
    return point + np.log(sums), error, a / (p * sums)


def _prove(start: Floats, a: Floats, b: Floats, log_level: float, upper: bool) -> Floats:
    """Limits with the tail proved at most the level, and nearly as large; NaN where nothing was proved."""
    limit, best = start, np.full_like(start, np.nan)
    for _ in range(8):
        p, q = (1 - limit, limit) if upper else (limit, 1 - limit)
        tail, error, slope = log_tail(a, b, p, q)
        proved = tail + error <= log_level
        best = np.where(proved, (np.fmin if upper else np.fmax)(best, limit), best)
        spacing = slope * limit * 8 * UNIT
        if np.all(proved & (log_level - tail <= 4 * error + spacing)):
            break
        # Newton's steps: none goes too far, for the tail is log-concave
        move = (log_level - 2 * error - tail) / slope
        if upper:
            limit = np.minimum(np.nextafter(limit - move, np.inf), (1 + limit) / 2).clip(max=1 - UNIT)
        else:
            limit = np.maximum(np.nextafter(limit + move, -np.inf), limit / 2)
    return best


def _start(counts: Floats, d: Floats, log_level: float, upper: bool) -> Floats:
    """scipy's quantile where it has one, else NaN."""
    level = np.exp(log_level)
    if upper:
        guess = special.betainccinv(counts + 1, d - counts, level)
    else:
        guess = special.betaincinv(counts, d - counts + 1, level)
    return np.where((guess > 0) & (guess < 1), guess, np.nan)


def _by_balls(count: int, d: int, log_level: float, upper: bool) -> float:
    """The limit by bisection in ball arithmetic: slow, always proved."""
    import flint  # loaded only where float64 proves nothing

    share = count / d
    low, high = (share, 1.0) if upper else (0.0, share)
    with flint.ctx.workprec(256):
        level = flint.arb(log_level).exp()
        for _ in range(80):
            middle = (low + high) / 2
            p = flint.arb(middle)
            tail = (
                (1 - p).beta_lower(d - count, count + 1, 1)
                if upper
                else p.beta_lower(count, d - count + 1, 1)
            )
            safe = tail <= level
            low, high = (low, middle) if safe == upper else (middle, high)
    return high if upper else low


def _limit(counts: Ints, samples: Ints, log_level: float, upper: bool) -> Floats:
    """One-sided limits for counts strictly between 0 and d."""
    x, d = counts.astype(np.float64), samples.astype(np.float64)
    a, b = (d - x, x) if upper else (x, d - x)
    limit = _prove(_start(x, d, log_level, upper), a, b, log_level, upper)
    for i in np.flatnonzero(np.isnan(limit)):
        limit[i] = _by_balls(int(counts[i]), int(samples[i]), log_level, upper)
    return limit


def _limits(counts: Ints, samples: Ints, alpha: float, divisor: float, upper: bool) -> Floats:
    pairs, where = np.unique(np.stack([counts, samples]), axis=1, return_inverse=True)
    count, d = pairs
    log_level = log(alpha) - log(divisor)
    log_level -= 8 * UNIT * abs(log_level)
    all_or_none = log_level / d  # log of the limit when all d samples agree
    if upper:
        limit = np.where(count == 0, np.minimum(-np.expm1(all_or_none) * (1 + 16 * UNIT), 1.0), 1.0)
    else:
        limit = np.where(count == d, np.exp(all_or_none) * (1 - 16 * UNIT), 0.0)
    inner = (count > 0) & (count < d)
    if inner.any():
        limit[inner] = _limit(count[inner], d[inner], log_level, upper)
    return np.asarray(limit[where.reshape(counts.shape)])


def lower_limit(counts: Ints, samples: Ints, alpha: float, divisor: float = 1) -> Floats:
    """Not more than the p with Pr(Bin(samples, p) ≥ counts) = alpha/divisor: exceeds the truth that rarely.

    >>> bool(lower_limit(np.array([10_000]), np.array([10_000]), 0.001)[0] <= 0.001 ** 1e-4)
    True
    """
    return _limits(counts, samples, alpha, divisor, upper=False)


def upper_limit(counts: Ints, samples: Ints, alpha: float, divisor: float = 1) -> Floats:
    """Not less than the p with Pr(Bin(samples, p) ≤ counts) = alpha/divisor: falls below the truth that rarely."""
    return _limits(counts, samples, alpha, divisor, upper=True)
