"""The certified size: exactly the largest attack that the two probabilities and the noise rule out.

For an attack (adds, deletes), let A be the set of X-mass p_top that is least probable under Y, and B the set of X-mass
p_rest that is most probable under Y (Neyman and Pearson). The attack is certified iff Pr(Y∈A) > Pr(Y∈B), strictly.
float64 decides wherever its proven error allows; ball arithmetic of rising precision and at last exact integers decide
the rest, so the answer is exact for the floats given.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.checks import check_count, check_counts, check_ones, check_probability, fit
from unswayed.theory.exact import decide
from unswayed.theory.regions import TINY, Floats, Law, Side, probabilities, table

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
#: Probabilities below this are left to ball arithmetic: the tables may have lost terms to underflow.
SMALL = 1e-280


def _pair(p_top: ArrayLike, p_rest: ArrayLike) -> tuple[Floats, Floats]:
    top, rest = check_probability(p_top, "p_top"), check_probability(p_rest, "p_rest")
    top, rest = fit(top, rest)
    return top, rest


def _mass_top(p: Floats, top: Side, bottom: Side) -> Floats:
    """Y-mass of a set of X-mass `p` filled from `top`, through its complement (exactly 1 − p) where that is smaller."""
    return np.where(p >= 0.5, 1 - bottom.fill(1 - p), top.fill(p))


def worst_case(
    p_top: ArrayLike, p_rest: ArrayLike, noise: Law, adds: int = 0, deletes: int = 0
) -> tuple[Floats, Floats]:
    """The least Pr(Y∈A) and the largest Pr(Y∈B) that the bounds allow after the attack; p_rest is clipped to 1 − p_top.

    Floats for reading and plotting; `is_certified` settles what rounding leaves open.

    >>> from unswayed.theory import Flip
    >>> worst_case(0.9, 0.1, Flip(beta=0.75), deletes=1)
    (array(0.7), array(0.3))
    """
    top, rest = _pair(p_top, p_rest)
    rest = np.minimum(rest, 1 - top)
    regions = table(noise, check_count(adds, "adds"), check_count(deletes, "deletes"))
    return _mass_top(top, regions.top, regions.bottom), _mass_top(rest, regions.bottom, regions.top)


def certify_pairs(top: Floats, rest: Floats, law: Law, adds: int, deletes: int, times: int = 1) -> Bools:
    """Exactly which flat pairs have times · Pr(Y∈A) > Pr(Y∈B) after one attack; 0 < p_top < 1, 0 < p_rest ≤ 1 − p_top."""
    regions = table(law, adds, deletes)
    error = 8 * regions.error
    b = regions.bottom.fill(rest)
    major = top >= 0.5
    a = 1 - regions.bottom.fill(1 - top)
    scale = np.full_like(top, 3.0)  # no sum of the terms of a `fill` exceeds 3
    if not major.all():
        a = np.where(major, a, regions.top.fill(top))
        scale = np.where(major, scale, regions.top.scale(top))
    gap, margin = times * a - b, error * (times * scale + b) + TINY
    certified = gap > margin
    unsure = (np.abs(gap) <= margin) | (np.minimum(rest, top) < SMALL)
    for i in np.flatnonzero(unsure):
        certified[i] = decide(float(top[i]), float(rest[i]), law, adds, deletes, times)
    return np.asarray(certified)


def _easy(top: Floats, rest: Floats, law: Law) -> tuple[Bools, Bools]:
    """(no top label is proved, every attack whatever its size is certified) for pairs before clipping."""
    hopeless = top <= rest
    free = ~hopeless & ((top == 1) | (rest == 0))
    if sum(probabilities(law)) == 1:  # the noisy input says nothing about the clean one
        free = ~hopeless
    return hopeless, free


def is_certified(
    p_top: ArrayLike, p_rest: ArrayLike, noise: Law, *, adds: ArrayLike = 0, deletes: ArrayLike = 0
) -> Bools:
    """Exactly whether this attack, and every smaller one, is proved unable to change the label.

    >>> from unswayed.theory import Flip
    >>> is_certified([0.78, 0.79], [0.22, 0.21], Flip(beta=0.7), deletes=1)
    array([False,  True])
    """
    top, rest = _pair(p_top, p_rest)
    top, rest, a, d = fit(top, rest, check_counts(adds, "adds"), check_counts(deletes, "deletes"))
    hopeless, free = _easy(top, rest, noise)
    result, left = np.array(free), ~(hopeless | free)
    for each_a, each_d in np.unique(np.stack([a[left], d[left]], axis=1), axis=0).tolist():
        here = left & (a == each_a) & (d == each_d)
        result[here] = certify_pairs(top[here], np.minimum(rest[here], 1 - top[here]), noise, each_a, each_d)
    return result


#: (indices, k) → which of them are certified against all attacks on k entries.
Attack = Callable[[Ints, int], Bools]
#: (indices, adds, deletes) → which of them are certified against that attack.
SplitTest = Callable[[Ints, int, int], Bools]


def search(count: int, cap: int, passes: Attack) -> Ints:
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


def every_split(test: SplitTest, law: Law, ones: Ints | None, cap: Ints) -> Attack:
    """Whether every feasible split adds + deletes = k passes; with equal probabilities one split stands for all."""
    p_add, p_delete = probabilities(law)

    def one(index: Ints, k: int) -> Bools:
        return test(index, 0, k)

    def all_splits(index: Ints, k: int) -> Bools:
        good = k <= cap[index]
        for adds in _outside_in(k):
            ask = good.copy()
            if ones is not None:
                ask &= (k - adds <= ones[index]) & (adds <= cap[index] - ones[index])
            if ask.any():
                good[ask] = test(index[ask], adds, k - adds)
        return good

    return one if p_add == p_delete else all_splits


def _outside_in(k: int) -> list[int]:
    """0, k, 1, k−1, …: pure attacks first, they fail soonest as a rule."""
    order = np.empty(k + 1, dtype=np.int64)
    order[::2] = np.arange(k // 2 + 1)
    order[1::2] = np.arange(k, k // 2, -1)
    return [int(i) for i in order]


def _largest(top: Floats, rest: Floats, law: Law, ones: Ints | None, cap: Ints) -> Ints:
    def test(index: Ints, adds: int, deletes: int) -> Bools:
        return certify_pairs(top[index], rest[index], law, adds, deletes)

    return np.minimum(search(top.size, int(cap.max()), every_split(test, law, ones, cap)), cap)


def confine(change: str, cap: Ints, ones: Ints | None) -> tuple[Ints, Ints | None]:
    """(entries, ones) that leave only attacks of this kind: "any", "adds" alone or "deletes" alone."""
    if change == "any":
        return cap, ones
    if change == "adds":
        zeros = cap if ones is None else cap - ones
        return zeros, np.zeros_like(zeros)
    if change == "deletes":
        held = cap if ones is None else ones
        return held, held
    raise InputError(f"change must be one of any, adds, deletes, not {change!r}.")


def certified_size(
    p_top: ArrayLike,
    p_rest: ArrayLike,
    noise: Law,
    cap: ArrayLike,
    *,
    ones: ArrayLike | None = None,
    change: str = "any",
) -> Ints:
    """Exactly the largest K ≤ cap such that no change of K entries can change the label; −1 where p_top ≤ p_rest.

    p_rest is clipped to 1 − p_top. `cap` is the number of entries. Where `ones`, the number of entries that are 1, is
    given, only attacks that exist count: at most `ones` deletions and `cap − ones` additions. `change` may be "adds" or
    "deletes": the largest number of additions, or of deletions, alone.

    >>> from unswayed.theory import Flip
    >>> certified_size([0.89, 0.89, 0.5], [0.02, 0.11, 0.5], Flip(beta=0.7), cap=2707)
    array([ 4,  1, -1])
    """
    top, rest = _pair(p_top, p_rest)
    top, rest, caps = fit(top, rest, check_counts(cap, "cap"))
    caps, known = confine(change, caps, check_ones(ones, top.shape, caps))
    hopeless, free = _easy(top, rest, noise)
    size = np.where(hopeless, -1, caps)
    left, major = ~(hopeless | free), top >= 0.5
    for group in (left & major, left & ~major):
        if group.any():
            t = top[group]
            r = np.minimum(rest[group], 1 - t)
            size[group] = _largest(t, r, noise, None if known is None else known[group], caps[group])
    return size


def grid(p_top: ArrayLike, p_rest: ArrayLike, noise: Law, adds: int, deletes: int) -> Bools:
    """Exactly which attacks of up to `adds` additions and `deletes` deletions are certified: bool[…, adds+1, deletes+1].

    >>> from unswayed.theory import Flip
    >>> grid(0.89, 0.02, Flip(beta=0.7), adds=2, deletes=3)
    array([[ True,  True,  True,  True],
           [ True,  True,  True,  True],
           [ True,  True,  True, False]])
    """
    top, rest = _pair(p_top, p_rest)
    adds, deletes = check_count(adds, "adds"), check_count(deletes, "deletes")
    if len(set(probabilities(noise))) == 1:
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
