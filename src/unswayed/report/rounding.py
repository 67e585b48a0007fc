"""Shares as text: none reads as all that is not all, and what is at least so much is never rounded up; and round sizes for axes."""

import math
from itertools import cycle

import numpy as np

TINY = 1e-9  # below this a share of whole targets differs by the rounding of floats alone


def at_least(share: float, digits: int) -> str:
    """A lower bound with so many decimals, cut off.

    >>> at_least(2 / 3, 2), at_least(0.29, 2)
    ('0.66', '0.29')
    """
    scale = 10**digits
    return f"{math.floor(share * scale + TINY) / scale:.{digits}f}"


def near(share: float, digits: int) -> str:
    """A share with so many decimals; 1 only where it is all.

    >>> near(2 / 3, 2), near(0.998, 2), near(1.0, 2)
    ('0.67', '0.99', '1.00')
    """
    text = f"{share:.{digits}f}"
    return at_least(share, digits) if share < 1 and float(text) == 1 else text


def percent(share: float) -> str:
    """A share as people say it.

    >>> percent(0.731), percent(0.9995)
    ('73%', '99.9%')
    """
    return f"{int(share * 1000) / 10:.1f}%" if 0.99 < share < 1 else f"{round(100 * share)}%"


def percent_at_least(share: float) -> str:
    """A lower bound as people say it.

    >>> percent_at_least(0.668), percent_at_least(0.29), percent_at_least(0.9995)
    ('66%', '29%', '99.9%')
    """
    return percent(share) if share > 0.99 else f"{at_least(100 * share, 0)}%"


def nice_sizes(top: int, most: int = 9) -> list[int]:
    """A few round sizes from 0 to about `top`, for the columns of a table.

    >>> nice_sizes(14)
    [0, 1, 2, 3, 5, 7, 10, 12, 14]
    """
    ladder = [0, 1, 2, 3, 5, 7, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120]
    inside = [size for size in ladder if size < top] + [top]
    picked = np.linspace(0, len(inside) - 1, min(most, len(inside))).round().astype(int)
    return [inside[place] for place in picked]


def round_step(last: int, most: int = 8) -> int:
    """The smallest of 1, 2, 5, 10, 20 … that cuts 0..last into at most `most` pieces."""
    step, factors = 1, cycle((2, 2.5, 2))
    while last > most * step:
        step = int(step * next(factors))
    return step
