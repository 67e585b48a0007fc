"""A test that the most voted outcome is truly the most probable one, whatever the number of outcomes."""

from math import log, pi

import numpy as np
from numpy.typing import NDArray

from unswayed.theory.binomial import Ints, log_tail


def leads(top: Ints, runner_up: Ints, alpha: float, divisor: float = 1) -> NDArray[np.bool_]:
    """Where the most voted outcome is proved the most probable; wrong anywhere with probability at most alpha/divisor.

    With x votes against r for the next, n = x + r: reject unless Pr(Bin(n, ½) ≥ x | more than n/2) ≤ alpha/divisor.
    (After Hung and Fithian, 2019; the proof for every tie rule is in the documentation.)

    >>> leads(np.array([60, 60]), np.array([40, 30]), alpha=0.01)
    array([False,  True])
    """
    x, r = top.astype(np.float64), runner_up.astype(np.float64)
    n = x + r
    ahead = top > runner_up
    a, b = np.where(ahead, x, 2.0), np.maximum(np.where(ahead, r, 1.0), 1.0)
    half = np.full_like(a, 0.5)
    tail, error, _ = log_tail(a, b, half, half)
    tail = np.where(r == 0, -x * log(2), tail + error)
    # Pr(Bin(n, ½) = n/2) < 1/√(πn/2) for even n
    more = np.where(n % 2, 0.5, 0.5 * (1 - 1 / np.sqrt(pi * np.maximum(n, 2) / 2)))
    log_level = log(alpha) - log(divisor)
    return np.asarray(ahead & (tail - np.log(more) + 1e-12 * (1 + np.abs(tail)) <= log_level))
