"""Limits that hold at every number of samples at once: look as often as you like, stop when you like.

For x hits in t samples, Beta-binomial evidence over likelihood, M_t(p) = B(a+x, a+t−x) / (B(a, a) pˣ(1−p)ᵗ⁻ˣ), is a
non-negative martingale of mean 1 when p is the truth, so with probability 1 − level it never reaches 1/level (Ville).
The limits are the ends of {p : M_t(p) < 1/level}, rounded outward; both hold together, for all t, at that one level.
"""

from math import log, pi

import numpy as np
from scipy import special

from unswayed.theory.binomial import SLACK, UNIT, Floats, Ints, excess
from unswayed.theory.regions import TINY

#: The mixture's parameter. Small: probabilities near 0 and 1 are where certificates live.
PRIOR = 0.1


def _stirling(x: Floats, a: float) -> Floats:
    """(x+a−½) log(x+a) − x log x, without cancellation."""
    return np.asarray(x * np.log1p(a / np.maximum(x, 1.0)) + (a - 0.5) * np.log(x + a))


def _evidence(x: Floats, y: Floats) -> Floats:
    """log of B(a+x, a+y)/B(a, a) over the largest likelihood."""
    t, a = x + y, PRIOR
    parts = _stirling(x, a) + _stirling(y, a) - _stirling(t, 2 * a)
    rest = excess(x + a) + excess(y + a) - excess(t + 2 * a)
    return np.asarray(parts + rest + 0.5 * log(2 * pi) - special.betaln(a, a))


def log_martingale(x: Floats, y: Floats, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """log M(p) after x hits and y misses, with q = 1 − p, and a bound on its error."""
    t = x + y
    left, right = x - t * p, y - t * q
    main = special.xlog1py(x, left / (t * p)), special.xlog1py(y, right / (t * q))
    size = np.abs(main[0]) + np.abs(main[1]) + np.abs(left) + np.abs(right)
    value = main[0] + main[1] - left - right + _evidence(x, y)
    return np.asarray(value), np.asarray(SLACK * UNIT * (size + 64))


def _limit(hits: Ints, samples: Ints, log_level: float, upper: bool) -> Floats:
    """The end of the interval on one side; 0 or 1 where nothing better is proved."""
    x, t = hits.astype(np.float64), samples.astype(np.float64)
    a, b = (t - x, x) if upper else (x, t - x)  # log M falls on (0, a/t) as a function of the logit of p
    share = (a + 0.5) / (t + 1)
    logit = special.logit(share) - 8 / np.sqrt(t * share * (1 - share))
    best = np.full_like(x, 1.0 if upper else 0.0)
    for _ in range(24):  # Newton's steps on a convex function: from the second on they come from one side
        near, outward = (special.expit(-logit), np.inf) if upper else (special.expit(logit), -np.inf)
        limit = np.nextafter(near, outward).clip(TINY, 1 - UNIT)
        p, q = (1 - limit, limit) if upper else (limit, 1 - limit)
        value, error = log_martingale(a, b, p, q)
        proved = (value - error >= -log_level) & (a > t * p)
        best = np.where(proved, np.minimum(best, limit) if upper else np.maximum(best, limit), best)
        logit = logit + (-log_level + 2 * error - value) / np.minimum(t * p - a, -1e-3)
    return best


def limits(hits: Ints, samples: Ints, alpha: float, divisor: float, upper: bool) -> Floats:
    """Limits on a probability that hold at all numbers of samples together with confidence 1 − alpha/divisor.

    >>> limits(np.array([95]), np.array([100]), 0.05, 1, upper=False).round(3)
    array([0.837])
    """
    log_level = log(alpha) - log(divisor)
    log_level -= 8 * UNIT * abs(log_level)
    pairs, where = np.unique(np.stack([hits, samples]), axis=1, return_inverse=True)
    return _limit(pairs[0], pairs[1], log_level, upper)[where.reshape(hits.shape)]
