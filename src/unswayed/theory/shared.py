"""Many targets, one attacker: at most how many of them a budget of changes can flip in all.

A target with certified size K takes at least K + 1 changes that count for it. How many targets one change can count for
decides the bound. Targets that abstained are no part of it: nothing was ever promised about them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.checks import check_count, check_counts

Ints = NDArray[np.int64]
#: Prices of the dual programme are whole multiples of one over this, so that the bound they prove is exact.
SCALE = 2**30


def _counts(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values).ravel()
    return check_counts(array if array.size else array.astype(np.int64), name)


def _needs(sizes: ArrayLike, budget: int) -> tuple[Ints, int]:
    """(changes that each target within reach takes, ascending; the budget)."""
    whole = check_count(budget, "budget")
    needs = np.sort(_counts(sizes, "sizes")) + 1
    return needs[needs <= whole], whole


def flipped_anywhere(sizes: ArrayLike, budget: int) -> int:
    """At most so many targets can be flipped where every change may count for every target.

    >>> flipped_anywhere([0, 2, 5], budget=3)
    2
    """
    return len(_needs(sizes, budget)[0])


def flipped_apart(sizes: ArrayLike, budget: int) -> int:
    """At most so many targets can be flipped where every change counts for one of them: separate graphs, rows of bits.

    >>> flipped_apart([0, 2, 5], budget=3)
    1
    """
    needs, whole = _needs(sizes, budget)
    return int(np.searchsorted(np.cumsum(needs), whole, side="right"))


def flipped_rows(sizes: ArrayLike, budget: int) -> int:
    """At most so many nodes can be flipped where a changed edge counts for its two ends alone.

    t targets take Σ(K + 1) changes of their rows. An edge is in two of these rows only if both its ends are among the t, and
    there are t(t−1)/2 such pairs: so the sum is at most B + min(B, t(t−1)/2). The targets must be different nodes.

    >>> flipped_rows([0, 0, 2, 5], budget=3)
    3
    """
    needs, whole = _needs(sizes, budget)
    t = np.arange(1, len(needs) + 1)
    possible = np.cumsum(needs) <= whole + np.minimum(whole, t * (t - 1) // 2)
    return int(t[possible].max(initial=0))


def flipped_within(sizes: ArrayLike, fields: Sequence[ArrayLike], edges: int, budget: int) -> int:
    """At most so many targets can be flipped where a change counts for the targets in whose field it lies.

    `fields[i]` lists the entries, numbered below `edges`, that target i can see. The bound is that of a linear programme:
    at most Σ t_i, where target i takes K_i + 1 times t_i from its field, and 0 ≤ t ≤ 1. HiGHS finds prices for the dual; they
    are rounded to whole multiples and the bound they prove is computed in integers, so no solver needs to be trusted.

    >>> flipped_within([0, 0, 0], [[0, 1], [1, 2], [3]], edges=4, budget=1)
    2
    """
    whole, counts = check_count(budget, "budget"), _counts(sizes, "sizes")
    if len(fields) != len(counts):
        raise InputError(f"There are {len(counts)} targets but {len(fields)} fields.")
    seen = [np.unique(_counts(field, "fields")) for field in fields]
    if any(len(field) and field[-1] >= edges for field in seen):
        raise InputError(f"The fields name entries beyond the {edges} there are.")
    within = [i for i, field in enumerate(seen) if counts[i] < min(whole, len(field))]
    if not within:
        return 0
    needs, near = counts[within] + 1, [seen[i] for i in within]
    bound = _programme(needs, near, edges, whole)
    return min(bound, len(within))


def _programme(needs: Ints, fields: list[Ints], edges: int, budget: int) -> int:
    """The integer part of a proven bound on the programme's value."""
    from scipy import sparse
    from scipy.optimize import linprog

    count = len(needs)
    rows = np.repeat(np.arange(count), [len(field) for field in fields])
    used, columns = np.unique(np.concatenate(fields), return_inverse=True)
    member = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(count, len(used)))
    takes: Any = sparse.hstack([sparse.diags(needs.astype(np.float64)), -member])
    total: Any = sparse.csr_matrix(np.r_[np.zeros(count), np.ones(len(used))])
    limits: Any = sparse.vstack([takes, total])
    solved: Any = linprog(
        np.r_[-np.ones(count), np.zeros(len(used))],
        A_ub=limits.tocsr(),
        b_ub=np.r_[np.zeros(count), float(budget)],
        bounds=(0, 1),
        method="highs",
    )
    prices = np.zeros(count + 1) if solved.ineqlin is None else -solved.ineqlin.marginals
    return _dual(needs, member.T.tocsr(), prices, budget)


def _dual(needs: Ints, member: Any, prices: NDArray[np.float64], budget: int) -> int:
    """⌊Σ max(0, 1 − need·u) + λ·budget + Σ_e max(0, Σ_{i sees e} u − λ)⌋ for whole multiples u, λ ≥ 0: weak duality, in integers."""
    whole = np.rint(np.nan_to_num(prices).clip(0, len(needs)) * SCALE).astype(np.int64)
    u, price = whole[:-1], int(whole[-1])
    idle = int(np.maximum(SCALE - needs * u, 0).sum())
    crowded = int(np.maximum(member.astype(np.int64) @ u - price, 0).sum())
    return (idle + price * budget + crowded) // SCALE
