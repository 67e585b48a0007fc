"""Top-k certificates: how large an attack leaves a given label among the k most probable ones.

If k other labels were all at least as probable as the label after the attack, any t of them would together be at least t
times as probable. Choose the t with the smallest bounds: before the attack they weigh at most s_t, the sum of the t
smallest among the k largest bounds, so after it at most Pr(Y∈B) for a B of X-mass s_t. Hence t · Pr(Y∈A) > Pr(Y∈B) for
any one t certifies the attack (after Jia et al., 2020, for noise on bits). Sound for a label fixed beforehand.
"""

import numpy as np
from numpy.typing import ArrayLike

from unswayed.errors import InputError
from unswayed.theory.checks import check_counts, check_ones, check_probability, fit
from unswayed.theory.regions import Floats, Law
from unswayed.theory.size import Bools, Ints, SplitTest, certify_pairs, confine, every_split, search


def _rival_sums(label: Floats, others: Floats, k: int) -> Floats:
    """s_1 … s_k along the last axis: sums of the smallest of the k largest bounds, rounded up, at most 1 − p_label."""
    largest = -np.sort(-others, axis=-1)[..., :k]
    sums = np.cumsum(largest[..., ::-1], axis=-1) * (1 + k * 2.0**-51)
    left = np.where(label >= 0.5, 1 - label, np.nextafter(1 - label, np.inf))
    return np.asarray(np.minimum(sums, left[..., None]).clip(max=1.0))


def certified_topk_size(
    p_label: ArrayLike,
    p_others: ArrayLike,
    k: int,
    noise: Law,
    cap: ArrayLike,
    *,
    ones: ArrayLike | None = None,
    change: str = "any",
) -> Ints:
    """A size K such that no change of at most K entries moves the label out of the k most probable; −1 if it is not there.

    `p_label` is a lower bound of the label's probability; the last axis of `p_others` holds upper bounds of the other
    labels' probabilities. For k = 1 this is `certified_size`. `change` may be "adds" or "deletes": of these alone.

    >>> from unswayed.theory import Flip
    >>> [int(certified_topk_size(0.7, [0.2, 0.08, 0.02], k, Flip(beta=0.7), cap=99)) for k in (1, 2, 3, 4)]
    [0, 1, 2, 99]
    """
    label, others = _checked(p_label, p_others, k)
    label, first, caps = fit(label, others[..., 0] if others.shape[-1] else label, check_counts(cap, "cap"))
    caps, known = confine(change, caps, check_ones(ones, label.shape, caps))
    if others.shape[-1] < k:  # too few rivals to push it out
        return np.array(caps)
    sums = _rival_sums(label, np.broadcast_to(others, (*first.shape, others.shape[-1])), int(k))
    flat = sums.reshape(-1, int(k))
    ones_flat = None if known is None else known.ravel()
    return _sizes(label.ravel(), flat, noise, ones_flat, caps.ravel()).reshape(label.shape)


def is_certified_topk(
    p_label: ArrayLike, p_others: ArrayLike, k: int, noise: Law, *, adds: int = 0, deletes: int = 0
) -> Bools:
    """Whether this attack, and every smaller one, is proved to leave the label among the k most probable.

    >>> from unswayed.theory import Flip
    >>> [bool(is_certified_topk(0.7, [0.2, 0.08, 0.02], 2, Flip(beta=0.7), adds=a)) for a in (1, 2)]
    [True, False]
    """
    label, others = _checked(p_label, p_others, k)
    label, first = fit(label, others[..., 0] if others.shape[-1] else label)
    if others.shape[-1] < k:
        return np.ones(label.shape, np.bool_)
    sums = _rival_sums(label, np.broadcast_to(others, (*first.shape, others.shape[-1])), int(k))
    test = _test(label.ravel(), sums.reshape(-1, int(k)), noise)
    return test(np.arange(label.size), int(adds), int(deletes)).reshape(label.shape)


def _checked(p_label: ArrayLike, p_others: ArrayLike, k: int) -> tuple[Floats, Floats]:
    label, others = check_probability(p_label, "p_label"), check_probability(p_others, "p_others")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number, 1 or more, not {k!r}.")
    if others.ndim == 0:
        raise InputError("p_others needs an axis of labels.")
    return label, others


def _test(label: Floats, sums: Floats, law: Law) -> SplitTest:
    def test(index: Ints, adds: int, deletes: int) -> Bools:
        good = np.zeros(index.size, dtype=np.bool_)
        for t in range(1, sums.shape[1] + 1):
            top, rest = label[index], sums[index, t - 1]
            good |= (top > 0) & (rest == 0)
            ask = ~good & (top > 0)
            if ask.any():
                good[ask] = certify_pairs(top[ask], rest[ask], law, adds, deletes, t)
        return good

    return test


def _sizes(label: Floats, sums: Floats, law: Law, ones: Ints | None, cap: Ints) -> Ints:
    if not label.size:
        return np.zeros(0, dtype=np.int64)
    test = _test(label, sums, law)
    there = test(np.arange(label.size), 0, 0)
    size = np.minimum(search(label.size, int(cap.max()), every_split(test, law, ones, cap)), cap)
    return np.where(there, size, -1)
