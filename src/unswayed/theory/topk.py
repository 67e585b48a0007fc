"""Top-k certificates: how large an attack leaves a given label among the k most probable ones.

If k other labels were all at least as probable as the label after the attack, any t of them would together be at least t
times as probable. Choose the t with the smallest bounds: before the attack they weigh at most s_t, the sum of the t
smallest among the k largest bounds, so after it at most Pr(Y∈B) for a B of X-mass s_t. Hence t · Pr(Y∈A) > Pr(Y∈B) for
any one t certifies the attack (after Jia et al., 2020, for noise on bits). Sound for a label fixed beforehand.
"""

import numpy as np
from numpy.typing import ArrayLike

from unswayed.errors import InputError
from unswayed.theory.checks import check_count, check_counts, check_ones, check_probability, fit
from unswayed.theory.law import Bools, Floats, Ints, Law, Test, left_by
from unswayed.theory.size import AnyNoise, law_of


def _rival_sums(label: Floats, others: Floats, k: int) -> Floats:
    """s_1 … s_k along the last axis: sums of the smallest of the k largest bounds, rounded up, at most 1 − p_label."""
    largest = -np.sort(-others, axis=-1)[..., :k]
    sums = np.cumsum(largest[..., ::-1], axis=-1) * (1 + k * 2.0**-51)
    return np.asarray(np.minimum(sums, left_by(label)[..., None]).clip(max=1.0))


def certified_topk_size(
    p_label: ArrayLike,
    p_others: ArrayLike,
    k: int,
    noise: AnyNoise,
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
    label, caps = fit(label, others[..., 0] if others.shape[-1] else label, check_counts(cap, "cap"))[::2]
    known = check_ones(ones, label.shape, caps)
    flat, ones_flat = caps.ravel(), None if known is None else known.ravel()
    law, everybody = law_of(noise), np.arange(label.size)
    if others.shape[-1] < k:  # too few rivals to push it out
        test: Test = lambda i, adds, deletes, held: np.ones(i.shape, np.bool_)  # noqa: E731
    else:
        test = _test(label, others, int(k), law)
    none = np.zeros(label.size, np.int64)
    found = law.largest(test, test(everybody, none, none, ones_flat), flat, ones_flat, change)
    return found.reshape(label.shape)


def is_certified_topk(
    p_label: ArrayLike,
    p_others: ArrayLike,
    k: int,
    noise: AnyNoise,
    *,
    adds: int = 0,
    deletes: int = 0,
    ones: ArrayLike | None = None,
) -> Bools:
    """Whether this attack is proved to leave the label among the k most probable.

    >>> from unswayed.theory import Flip
    >>> [bool(is_certified_topk(0.7, [0.2, 0.08, 0.02], 2, Flip(beta=0.7), adds=a)) for a in (1, 2)]
    [True, False]
    """
    label, others = _checked(p_label, p_others, k)
    label = fit(label, others[..., 0] if others.shape[-1] else label)[0]
    if others.shape[-1] < k:
        return np.ones(label.shape, np.bool_)
    a, d = (np.full(label.size, check_count(n, name)) for n, name in ((adds, "adds"), (deletes, "deletes")))
    held = None if ones is None else np.broadcast_to(np.asarray(ones, np.int64), label.shape).ravel()
    d = d if held is None else np.minimum(d, held)  # what is not there cannot be deleted
    return _test(label, others, int(k), law_of(noise))(np.arange(label.size), a, d, held).reshape(label.shape)


def _checked(p_label: ArrayLike, p_others: ArrayLike, k: int) -> tuple[Floats, Floats]:
    label, others = check_probability(p_label, "p_label"), check_probability(p_others, "p_others")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number, 1 or more, not {k!r}.")
    if others.ndim == 0:
        raise InputError("p_others needs an axis of labels.")
    return label, others


def _test(label: Floats, others: Floats, k: int, law: Law) -> Test:
    """Whether any t of the k strongest rivals cannot all catch up with the label after the attack."""
    sums = _rival_sums(label, np.broadcast_to(others, (*label.shape, others.shape[-1])), k).reshape(-1, k)
    top = label.ravel()

    def test(i: Ints, adds: Ints, deletes: Ints, ones: Ints | None) -> Bools:
        good = np.zeros(i.size, dtype=np.bool_)
        for t in range(1, k + 1):
            ask = np.flatnonzero(~good & (top[i] > 0))
            held = None if ones is None else ones[ask]
            rest = sums[i[ask], t - 1]
            good[ask] = law.certified(top[i[ask]], rest, adds[ask], deletes[ask], held, times=t)
        return good

    return test
