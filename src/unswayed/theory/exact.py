"""Exact decisions where float64 cannot decide: balls of rising precision, and integers for ties."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from unswayed.theory.regions import Flips, weights

PRECISIONS = (128, 512, 2048, 8192)


def _fill(x: list[Any], y: list[Any], p: Any, clamp: Callable[[Any, Any], Any]) -> Any:
    """Y-weight of the set that takes regions in order until its X-weight is `p`; sound for balls, exact for numbers."""
    used_x = used_y = 0
    for mass_x, mass_y in zip(x, y, strict=True):
        if used_x >= p:  # comparisons of balls hold only when they are certain
            break
        if used_x + mass_x <= p:
            used_y += mass_y
        else:
            used_y += clamp(p - used_x, mass_x) * mass_y / mass_x
        used_x += mass_x
    return used_y


def _weigh(
    p_top: Fraction, p_rest: Fraction, flips: Flips, adds: int, deletes: int, precision: int | None
) -> tuple[Any, Any]:
    """(Pr(Y∈A), Pr(Y∈B)) times the same positive number, as fractions or as balls."""
    import flint  # loaded only where float64 cannot decide

    x, y, total = weights(flips, adds, deletes, precision)

    def scaled(p: Fraction) -> Any:
        value = flint.fmpq(p.numerator, p.denominator) * total
        return value if precision is None else flint.arb(value)

    def clamp(part: Any, whole: Any) -> Any:
        return part if precision is None else part.max(0).min(whole)

    return _fill(x, y, scaled(p_top), clamp), _fill(x[::-1], y[::-1], scaled(p_rest), clamp)


def exact_worst_case(
    p_top: Fraction, p_rest: Fraction, flips: Flips, adds: int = 0, deletes: int = 0
) -> tuple[Fraction, Fraction]:
    """Exactly (Pr(Y∈A), Pr(Y∈B)) for rational probabilities; p_rest is clipped to 1 − p_top.

    >>> exact_worst_case(Fraction(11, 14), Fraction(3, 14), Fraction(7, 10), deletes=1)
    (Fraction(1, 2), Fraction(1, 2))
    """
    *_, total = weights(flips, adds, deletes)
    gap = _weigh(p_top, min(p_rest, 1 - p_top), flips, adds, deletes, None)
    a, b = (Fraction(int(value.numerator), int(value.denominator)) / total for value in gap)
    return a, b


def decide(p_top: float, p_rest: float, flips: Flips, adds: int, deletes: int, times: int = 1) -> bool:
    """Exactly whether times · Pr(Y∈A) > Pr(Y∈B), by balls of rising precision and, for ties, by integers."""
    import flint

    top = Fraction(p_top)
    rest = min(Fraction(p_rest), 1 - top)
    for precision in PRECISIONS:
        with flint.ctx.workprec(precision):
            a, b = _weigh(top, rest, flips, adds, deletes, precision)
            if times * a > b:
                return True
            if times * a <= b:
                return False
    a, b = _weigh(top, rest, flips, adds, deletes, None)
    return bool(times * a > b)
