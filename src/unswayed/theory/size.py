"""The certified size: exactly the largest attack that the two probabilities and the noise rule out.

For an attack (adds, deletes), let A be the set of X-mass p_top that is least probable under Y, and B the set of X-mass
p_rest that is most probable under Y (Neyman and Pearson). The attack is certified iff Pr(Y∈A) > Pr(Y∈B), strictly.
float64 decides wherever its proven error allows; ball arithmetic of rising precision and at last exact integers decide
the rest, so the answer is exact for the floats given.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.noise import Flip, Noise
from unswayed.theory.regions import TINY, Floats, Law, Side, probabilities, table, weights

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
#: Probabilities below this are left to ball arithmetic: the tables may have lost terms to underflow.
SMALL = 1e-280
PRECISIONS = (128, 512, 2048, 8192)


def _probability(value: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers between 0 and 1.") from error
    if not np.all((array >= 0) & (array <= 1)):  # NaN fails both
        raise InputError(f"{name} must lie between 0 and 1, without NaN.")
    return array


def _pair(p_top: ArrayLike, p_rest: ArrayLike) -> tuple[Floats, Floats]:
    top, rest = _probability(p_top, "p_top"), _probability(p_rest, "p_rest")
    try:
        top, rest = np.broadcast_arrays(top, rest)
    except ValueError as error:
        raise InputError(f"p_top {top.shape} and p_rest {rest.shape} have shapes that do not fit.") from error
    return top, rest


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} must be a whole number, 0 or more, not {value!r}.")
    return int(value)


# --- exact decisions -----------------------------------------------------------------------------------------------


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


def _gap(p_top: Fraction, p_rest: Fraction, law: Law, adds: int, deletes: int, precision: int | None) -> tuple[Any, Any]:
    """(Pr(Y∈A), Pr(Y∈B)) times the same positive number, as fractions or as balls."""
    import flint  # noqa: PLC0415  (loaded only where float64 cannot decide)

    x, y, total = weights(law, adds, deletes, precision)

    def scaled(p: Fraction) -> Any:
        value = flint.fmpq(p.numerator, p.denominator) * total
        return value if precision is None else flint.arb(value)

    def clamp(part: Any, whole: Any) -> Any:
        return part if precision is None else part.max(0).min(whole)

    return _fill(x, y, scaled(p_top), clamp), _fill(x[::-1], y[::-1], scaled(p_rest), clamp)


def exact_worst_case(
    p_top: Fraction, p_rest: Fraction, law: Law, adds: int = 0, deletes: int = 0
) -> tuple[Fraction, Fraction]:
    """Exactly (Pr(Y∈A), Pr(Y∈B)) for rational probabilities; p_rest is clipped to 1 − p_top.

    >>> exact_worst_case(Fraction(11, 14), Fraction(3, 14), Fraction(7, 10), deletes=1)
    (Fraction(1, 2), Fraction(1, 2))
    """
    *_, total = weights(law, adds, deletes)
    gap = _gap(p_top, min(p_rest, 1 - p_top), law, adds, deletes, None)
    a, b = (Fraction(int(value.p), int(value.q)) / total for value in map(_rational, gap))
    return a, b


def _rational(value: Any) -> Any:
    import flint  # noqa: PLC0415

    return flint.fmpq(value)


def decide(p_top: float, p_rest: float, law: Law, adds: int, deletes: int) -> bool:
    """Exactly whether Pr(Y∈A) > Pr(Y∈B), by balls of rising precision and, for ties, by integers."""
    import flint  # noqa: PLC0415

    top = Fraction(p_top)
    rest = min(Fraction(p_rest), 1 - top)
    for precision in PRECISIONS:
        with flint.ctx.workprec(precision):
            a, b = _gap(top, rest, law, adds, deletes, precision)
            if a > b:
                return True
            if a <= b:
                return False
    a, b = _gap(top, rest, law, adds, deletes, None)
    return bool(a > b)


# --- float decisions -----------------------------------------------------------------------------------------------


def _mass_top(p: Floats, top: Side, bottom: Side) -> Floats:
    """Y-mass of a set of X-mass `p` filled from `top`, through its complement (exactly 1 − p) where that is smaller."""
    return np.where(p >= 0.5, 1 - bottom.fill(1 - p), top.fill(p))


def worst_case(
    p_top: ArrayLike, p_rest: ArrayLike, noise: Law, adds: int = 0, deletes: int = 0
) -> tuple[Floats, Floats]:
    """The least Pr(Y∈A) and the largest Pr(Y∈B) that the bounds allow after the attack; p_rest is clipped to 1 − p_top.

    Floats for reading and plotting; `is_certified` settles what rounding leaves open.

    >>> worst_case(0.9, 0.1, Flip(beta=0.75), deletes=1)
    (array(0.7), array(0.3))
    """
    top, rest = _pair(p_top, p_rest)
    rest = np.minimum(rest, 1 - top)
    regions = table(noise, _count(adds, "adds"), _count(deletes, "deletes"))
    return _mass_top(top, regions.top, regions.bottom), _mass_top(rest, regions.bottom, regions.top)


def _test(top: Floats, rest: Floats, law: Law, adds: int, deletes: int) -> Bools:
    """Exactly which flat pairs (0 < p_rest < p_top < 1, p_rest ≤ 1 − p_top) are certified against one attack."""
    regions = table(law, adds, deletes)
    error = 8 * regions.error
    b = regions.bottom.fill(rest)
    if top.size and top.min() >= 0.5:
        gap = 1 - regions.bottom.fill(1 - top) - b
        margin: Any = 3 * error
    else:
        complement = 1 - top
        low = regions.bottom.fill(complement)
        high = regions.top.fill(top)
        major = top >= 0.5
        gap = np.where(major, 1 - low, high) - b
        margin = np.where(major, 3 * error, error * (regions.top.scale(top) + b) + TINY)
    certified = gap > margin
    unsure = np.abs(gap) <= margin
    unsure |= np.minimum(rest, 1 - top) < SMALL
    unsure |= top < SMALL
    for i in np.flatnonzero(unsure):
        certified[i] = decide(float(top[i]), float(rest[i]), law, adds, deletes)
    return np.asarray(certified)


def _easy(top: Floats, rest: Floats, law: Law) -> tuple[Bools, Bools]:
    """(no top label is proved, every attack whatever its size is certified) for pairs before clipping."""
    hopeless = top <= rest
    free = ~hopeless & ((top == 1) | (rest == 0))
    if sum(probabilities(law)) == 1:  # the noisy input says nothing about the clean one
        free = ~hopeless
    return hopeless, free


def is_certified(
    p_top: ArrayLike, p_rest: ArrayLike, noise: Law, *, adds: int = 0, deletes: int = 0
) -> Bools:
    """Exactly whether this attack, and every smaller one, is proved unable to change the label.

    >>> is_certified([0.78, 0.79], [0.22, 0.21], Flip(beta=0.7), deletes=1)
    array([False,  True])
    """
    top, rest = _pair(p_top, p_rest)
    adds, deletes = _count(adds, "adds"), _count(deletes, "deletes")
    hopeless, free = _easy(top, rest, noise)
    result = free | (~hopeless & (adds + deletes == 0))
    left = ~hopeless & ~result
    if left.any():
        t = top[left]
        result[left] = _test(t, np.minimum(rest[left], 1 - t), noise, adds, deletes)
    return np.asarray(result)


# --- searching for the size ----------------------------------------------------------------------------------------

Attack = Callable[[Ints, int], Bools]


def _search(count: int, cap: int, passes: Attack) -> Ints:
    """For each index below `count` the largest k ≤ cap with `passes`, which must hold at 0 and be monotone in k."""
    size = np.zeros(count, dtype=np.int64)
    active, low, k = np.arange(count), 0, 1
    work: list[tuple[Ints, int, int]] = []
    while active.size and low < cap:
        good = passes(active, k)
        work.append((active[~good], low, k))
        active, low, k = active[good], k, min(2 * k, cap)
    size[active] = low
    while work:
        index, low, high = work.pop()
        if high - low <= 1 or not index.size:
            size[index] = low
            continue
        middle = (low + high) // 2
        good = passes(index, middle)
        work += [(index[good], middle, high), (index[~good], low, middle)]
    return size


def _passes(top: Floats, rest: Floats, law: Law, ones: Ints | None, cap: int) -> Attack:
    """Whether every feasible split adds + deletes = k is certified; with equal probabilities one split stands for all."""
    p_add, p_delete = probabilities(law)

    def one(index: Ints, k: int) -> Bools:
        return _test(top[index], rest[index], law, 0, k)

    def all_splits(index: Ints, k: int) -> Bools:
        good = np.ones(index.size, dtype=np.bool_)
        for adds in _outside_in(k):
            ask = good.copy()
            if ones is not None:
                ask &= (k - adds <= ones[index]) & (adds <= cap - ones[index])
            if ask.any():
                good[ask] = _test(top[index[ask]], rest[index[ask]], law, adds, k - adds)
        return good

    return one if p_add == p_delete else all_splits


def _outside_in(k: int) -> list[int]:
    """0, k, 1, k−1, …: pure attacks first, they fail soonest as a rule."""
    order = np.empty(k + 1, dtype=np.int64)
    order[::2] = np.arange(k // 2 + 1)
    order[1::2] = np.arange(k, k // 2, -1)
    return [int(i) for i in order]


def _ones(ones: ArrayLike | None, shape: tuple[int, ...], cap: int) -> Ints | None:
    if ones is None:
        return None
    try:
        array = np.broadcast_to(np.asarray(ones), shape)
    except ValueError as error:
        raise InputError(f"`ones` does not fit the shape {shape} of the probabilities.") from error
    if not np.issubdtype(array.dtype, np.integer) or np.any((array < 0) | (array > cap)):
        raise InputError("`ones` must be whole numbers between 0 and the number of entries.")
    return array.astype(np.int64)


def certified_size(
    p_top: ArrayLike, p_rest: ArrayLike, noise: Law, cap: int, *, ones: ArrayLike | None = None
) -> Ints:
    """Exactly the largest K ≤ cap such that no change of K entries can change the label; −1 where p_top ≤ p_rest.

    p_rest is clipped to 1 − p_top. `cap` is the number of entries. Where `ones`, the number of entries that are 1, is
    given, only attacks that exist count: at most `ones` deletions and `cap − ones` additions.

    >>> certified_size([0.89, 0.89, 0.5], [0.02, 0.11, 0.5], Flip(beta=0.7), cap=2707)
    array([ 4,  1, -1])
    """
    top, rest = _pair(p_top, p_rest)
    cap = _count(cap, "cap")
    known = _ones(ones, top.shape, cap)
    hopeless, free = _easy(top, rest, noise)
    size = np.where(hopeless, -1, np.where(free, cap, 0)).astype(np.int64)
    left = ~hopeless & ~free
    for group in (left & (top >= 0.5), left & (top < 0.5)):
        if group.any():
            t = top[group]
            r = np.minimum(rest[group], 1 - t)
            passes = _passes(t, r, noise, None if known is None else known[group], cap)
            size[group] = _search(t.size, cap, passes)
    return size


def grid(p_top: ArrayLike, p_rest: ArrayLike, noise: Noise, adds: int, deletes: int) -> Bools:
    """Exactly which attacks of up to `adds` additions and `deletes` deletions are certified: bool[…, adds+1, deletes+1].

    >>> grid(0.89, 0.02, Flip(beta=0.7), adds=2, deletes=3)
    array([[ True,  True,  True,  True],
           [ True,  True,  True,  True],
           [ True,  True,  True, False]])
    """
    top, rest = _pair(p_top, p_rest)
    adds, deletes = _count(adds, "adds"), _count(deletes, "deletes")
    if isinstance(noise, Flip):
        sums = np.add.outer(np.arange(adds + 1), np.arange(deletes + 1))
        return np.asarray(certified_size(top, rest, noise, adds + deletes)[..., None, None] >= sums)
    result = np.zeros((*top.shape, adds + 1, deletes + 1), dtype=np.bool_)
    for a in range(adds + 1):
        for d in range(deletes + 1):
            alive = np.ones(top.shape, dtype=np.bool_)
            if a:
                alive &= result[..., a - 1, d]
            if d:
                alive &= result[..., a, d - 1]
            if alive.any():
                result[alive, a, d] = is_certified(top[alive], rest[alive], noise, adds=a, deletes=d)
    return result
