"""What a vote of separate groups proves: how many groups must change before the label can.

Every edge lies in one group, found from its ends' numbers alone, and a classifier answers on each group by itself. A
changed edge is a change of one group, which moves that group's answer from any outcome to any other.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.checks import check_counts

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def hashed_size(counts: ArrayLike) -> tuple[Ints, Ints]:
    """(label, K): no change of at most K groups changes the most voted label; −1 and −1 where no group answered.

    `counts` is int64[targets, classes], how many groups say each class; ties go to the lower class. A group without an
    answer is counted nowhere. One changed group takes at most one vote from the label A and gives at most one to a rival
    c, so n_A − n_c falls by at most 2, also where the group had no answer before or has none afterwards; A stays the
    label while n_A − n_c ≥ [c < A].

    >>> hashed_size([[5, 2, 3], [3, 3, 0], [0, 0, 0]])
    (array([ 0,  0, -1]), array([ 1,  0, -1]))
    """
    votes = check_counts(counts, "counts")
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise InputError(
            f"counts must have shape [targets, classes] with two or more classes, not {votes.shape}."
        )
    label = votes.argmax(axis=1)  # the first of equal ones
    size = (_leads(votes, label) // 2).min(axis=1)
    silent = votes.sum(axis=1) == 0
    return np.where(silent, -1, label), np.where(silent, -1, size)


def _leads(votes: Ints, label: Ints) -> Ints:
    """n_A − n_c − [c < A] for every rival; no rival leads by itself, so its own column holds the most that can be."""
    own = label[:, None]
    rival = np.arange(votes.shape[1])[None, :]
    lead = np.take_along_axis(votes, own, axis=1) - votes - (rival < own)
    return np.where(rival == own, np.iinfo(np.int64).max, lead)


def hashed_grid(size: ArrayLike, zeros: ArrayLike, ones: ArrayLike, adds: int, deletes: int) -> Bools:
    """bool[targets, adds+1, deletes+1]: where at most so many additions and deletions are within the size.

    There are only `zeros` entries to add and `ones` to delete, so a cell beyond those is no larger an attack.
    """
    k, free, held = (np.asarray(value)[:, None, None] for value in (size, zeros, ones))
    added = np.minimum(np.arange(adds + 1)[None, :, None], free)
    deleted = np.minimum(np.arange(deletes + 1)[None, None, :], held)
    return np.asarray((added + deleted <= k) & (k >= 0))
