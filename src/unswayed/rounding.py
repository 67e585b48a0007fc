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
    """A share as people say it; 100% only where it is all, 0% only where it is nothing.

    >>> percent(0.731), percent(0.9995), percent(0.0004)
    ('73%', '99.9%', '0.1%')
    """
    if 0.99 < share < 1:
        return f"{int(share * 1000) / 10:.1f}%"
    return f"{math.ceil(share * 1000 - TINY) / 10:.1f}%" if 0 < share < 0.01 else f"{round(100 * share)}%"


def signed(gap: float, digits: int) -> str:
    """A difference with so many decimals; one that cannot be seen in them has no sign.

    >>> signed(0.123, 2), signed(-0.004, 2), signed(0.0, 2)
    ('+0.12', '0.00', '0.00')
    """
    text = f"{gap:+.{digits}f}"
    return text if float(text) else text[1:]


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
