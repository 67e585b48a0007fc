"""How probable each likelihood-ratio region is before (X) and after (Y) an attack on `adds` zeros and `deletes` ones.

Let q count the attacked entries whose noisy value differs from the clean one. The ratio Pr(X=z)/Pr(Y=z) depends on z
through q alone, so adds + deletes + 1 regions carry everything, whatever the number of untouched entries. Under X,
q ~ Bin(deletes, p_delete) + Bin(adds, p_add); under Y, q ~ Bin(deletes, 1 − p_add) + Bin(adds, 1 − p_delete).
The ratio falls with q iff p_add + p_delete < 1. Regions are always listed from the highest ratio to the lowest.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import InputError
from unswayed.theory.noise import WORD, Noise

Floats = NDArray[np.float64]
#: A noise that flips entries one by one, or the exact keep probability β, or the exact pair (p_add, p_delete).
Flips = Noise | Fraction | tuple[Fraction, Fraction]

UNIT = 2.0**-53
#: Below this, sums may have lost terms to underflow and are not trusted.
TINY = 1e-290
LARGE = 2**13  # regions


@lru_cache(maxsize=256)
def probabilities(flips: Flips) -> tuple[Fraction, Fraction]:
    """Exactly (p_add, p_delete), both strictly between 0 and 1.

    >>> probabilities(Fraction(7, 10))
    (Fraction(3, 10), Fraction(3, 10))
    """
    if isinstance(flips, Fraction):
        pair = (1 - flips, 1 - flips)
    elif isinstance(flips, tuple):
        pair = flips
    else:
        add, delete = flips.thresholds
        pair = (Fraction(add, WORD), Fraction(delete, WORD))
    if not all(0 < p < 1 for p in pair):
        raise InputError(
            f"Flip probabilities must lie strictly between 0 and 1, not {pair[0]} and {pair[1]}."
        )
    return pair


def canonical(flips: Flips, adds: int, deletes: int) -> tuple[Flips, int, int]:
    """The same attack named in one way, so that tables are shared: with equal probabilities only the sum matters."""
    p_add, p_delete = probabilities(flips)
    return (flips, 0, adds + deletes) if p_add == p_delete else (flips, adds, deletes)


def compose(first: Floats, second: Floats) -> Floats:
    """The masses of the regions of two independent groups of attacked entries taken together (ratios add up in q).

    >>> compose(np.array([0.75, 0.25]), np.array([0.75, 0.25]))
    array([0.5625, 0.375 , 0.0625])
    """
    return np.convolve(first, second)


def _binomial(trials: int, p: float, q: float) -> Floats:
    """Binomial(trials, p) masses, q = 1 − p, with relative error below (13·trials + 1)·2⁻⁵³ wherever above `TINY`.

    Ratios of neighbours (6 roundings each, those of p and q included) multiplied outward from the mode or its
    neighbour, over their sum.
    """
    mode = int(trials * p)
    j = np.arange(trials, dtype=np.float64)
    up = (trials - j[mode:]) / (j[mode:] + 1) * (p / q)
    down = (j[:mode] + 1) / (trials - j[:mode]) * (q / p)
    with np.errstate(under="ignore"):
        terms = np.concatenate([np.cumprod(down[::-1])[::-1], [1.0], np.cumprod(up)])
        return np.asarray(terms / terms.sum())


def masses(flips: Flips, adds: int = 0, deletes: int = 0) -> tuple[Floats, Floats]:
    """Pr(X∈R) and Pr(Y∈R) of every region R, highest ratio first, each within `rounding(k)` relative.

    >>> masses(Fraction(3, 4), deletes=1)
    (array([0.75, 0.25]), array([0.25, 0.75]))
    """
    p_add, p_delete = probabilities(flips)
    if p_add + p_delete == 1:
        return np.ones(1), np.ones(1)
    a, d = float(p_add), float(p_delete)
    not_a, not_d = float(1 - p_add), float(1 - p_delete)
    with np.errstate(under="ignore"):
        x = compose(_binomial(deletes, d, not_d), _binomial(adds, a, not_a))
        y = compose(_binomial(deletes, not_a, a), _binomial(adds, not_d, d))
    return (x, y) if p_add + p_delete < 1 else (x[::-1], y[::-1])


def rounding(regions: int) -> float:
    """A bound on the relative error of every mass, and of every sum of masses, in a table of so many regions."""
    return 16 * (regions + 4) * UNIT


@dataclass(frozen=True)
class Side:
    """Cumulative masses from one end of the ordered regions: what a set that fills up from there weighs under Y."""

    x: Floats
    y: Floats
    slope: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats) -> "Side":
        """Sums from the front; one more entry than regions."""
        slope = np.divide(y, x, out=np.zeros_like(y), where=x > TINY)
        with np.errstate(under="ignore"):
            return cls(np.append(0.0, np.cumsum(x)), np.append(0.0, np.cumsum(y)), slope)

    def fill(self, p: Floats) -> Floats:
        """Y-mass of the set that takes regions in order, the last in part, until its X-mass is `p`."""
        q = np.minimum(self.x.searchsorted(p, side="right") - 1, self.slope.size - 1)
        with np.errstate(under="ignore"):
            return np.asarray(self.y[q] + (p - self.x[q]) * self.slope[q])

    def scale(self, p: Floats) -> Floats:
        """The quantity whose product with `rounding` bounds the error of `fill`, wherever the regions are."""
        q = np.minimum(self.x.searchsorted(p, side="right") - 1, self.slope.size - 1)
        with np.errstate(under="ignore"):
            return np.asarray(self.y[q + 1] + (p + self.x[q + 1]) * self.slope[q])


@dataclass(frozen=True)
class Table:
    """The regions of one attack in float64: `top` sums from the highest ratio, `bottom` from the lowest."""

    top: Side
    bottom: Side
    error: float


@lru_cache(maxsize=512)
def _table(flips: Flips, adds: int, deletes: int) -> Table:
    x, y = masses(flips, adds, deletes)
    return Table(Side.of(x, y), Side.of(x[::-1], y[::-1]), rounding(x.size))


def table(flips: Flips, adds: int = 0, deletes: int = 0) -> Table:
    """The float64 table of one attack; large ones are not kept, for a search would fill the memory with them."""
    flips, adds, deletes = canonical(flips, adds, deletes)
    return (_table if adds + deletes < LARGE else _table.__wrapped__)(flips, adds, deletes)


def _polynomials(flips: Flips, adds: int, deletes: int, poly: Any) -> tuple[Any, Any, int]:
    """Generating functions of q under X and Y with integer weights, and the integer that the weights of each sum to."""
    p_add, p_delete = probabilities(flips)
    unit = lcm(p_add.denominator, p_delete.denominator)
    add, delete = int(p_add * unit), int(p_delete * unit)
    x = poly([unit - delete, delete]) ** deletes * poly([unit - add, add]) ** adds
    y = poly([add, unit - add]) ** deletes * poly([delete, unit - delete]) ** adds
    return x, y, unit ** (adds + deletes)


def weights(
    flips: Flips, adds: int, deletes: int, precision: int | None = None
) -> tuple[list[Any], list[Any], int]:
    """Weights of all regions under X and Y and their sum: exact integers, or balls of `precision` bits around them."""
    import flint  # loaded only where float64 cannot decide

    p_add, p_delete = probabilities(flips)
    if p_add + p_delete == 1:
        return [flint.fmpz(1)], [flint.fmpz(1)], 1
    _, adds, deletes = canonical(flips, adds, deletes)
    x, y, total = _polynomials(flips, adds, deletes, flint.fmpz_poly if precision is None else flint.arb_poly)
    size = adds + deletes + 1
    order = range(size) if p_add + p_delete < 1 else range(size - 1, -1, -1)
    return [x[q] for q in order], [y[q] for q in order], total


def exact_masses(flips: Flips, adds: int = 0, deletes: int = 0) -> tuple[list[Fraction], list[Fraction]]:
    """Exactly Pr(X∈R) and Pr(Y∈R) of every region R, highest ratio first.

    >>> exact_masses(Fraction(7, 10), deletes=1)
    ([Fraction(7, 10), Fraction(3, 10)], [Fraction(3, 10), Fraction(7, 10)])
    """
    x, y, total = weights(flips, adds, deletes)
    return [Fraction(int(w), total) for w in x], [Fraction(int(w), total) for w in y]
