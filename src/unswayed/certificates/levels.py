"""How sure certificates are, in words and numbers that never round up."""

import math
import warnings
from fractions import Fraction

from unswayed.errors import DoubtfulSetting

DOUBT = Fraction(1, 20)  # what is said of all certificates together holds with probability 1 − this

USUAL = 0.1  # a level above it is warned of


def confidence_in_words(alpha: float) -> str:
    """1 − alpha in per cent, never rounded up to certainty.

    >>> confidence_in_words(0.001), confidence_in_words(1e-12)
    ('99.9%', '1 − 1e-12')
    """
    return f"{100 * (1 - alpha):.10g}%" if alpha >= 1e-9 else f"1 − {alpha:g}"


def doubt_in_words(alpha: float) -> str:
    """What a level above 0.1 means, in words; empty below.

    >>> doubt_in_words(0.2)
    'alpha = 0.2 lets one certificate in 5 be wrong; 0.001 is usual, and alpha is not the confidence but 1 minus it.'
    """
    if alpha <= USUAL:
        return ""
    return (
        f"alpha = {alpha:g} lets one certificate in {1 / alpha:.2g} be wrong; 0.001 is usual, and alpha is not the confidence "
        "but 1 minus it."
    )


def warn_of_level(alpha: float) -> None:
    """Warn of a level at which many certificates may be wrong."""
    if said := doubt_in_words(alpha):
        warnings.warn(said, DoubtfulSetting, stacklevel=4)


def rounded_down(probability: float) -> str:
    """Nine decimals, none too large: what is at least `probability` is at least this.

    >>> rounded_down(1 - 1e-10), rounded_up(1e-10)
    ('0.999999999', '1e-09')
    """
    return f"{math.floor(probability * 1e9) / 1e9:.9g}"


def rounded_up(probability: float) -> str:
    """Nine decimals, none too small."""
    return f"{math.ceil(probability * 1e9) / 1e9:.9g}"


def most_wrong(alpha: float, certified: int, shown: int) -> int:
    """At most this many of the `shown` certificates are wrong, with probability 95%, however they depend on each other.

    Of all `certified` targets at most alpha times as many are expected to be wrong, and Markov's inequality needs nothing
    more. Those shown may have been picked after looking, so the bound of all is theirs.

    >>> most_wrong(0.001, 100, 100), most_wrong(0.001, 50, 50)
    (1, 0)
    """
    expected = Fraction(str(alpha)) * certified
    return min(max(math.ceil(expected / DOUBT) - 1, 0), shown)
