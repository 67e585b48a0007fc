"""Nodes that lie about their features: how probably any of them is noticed, and how many may lie.

Features are masked and edges deleted at random, and both worlds are drawn with the same coins. The answer for a target can
differ only where some liar is seen: its features are shown, and a path of remaining edges of at most as many hops as the
target can see leads to it. If that happens with probability at most Δ, then p_top falls and p_rest rises by at most Δ.
Both worlds may show something the other cannot, each with probability Δ, so p_top − p_rest > 2Δ is also all that can be asked
for where Δ is exact.
"""

from fractions import Fraction

import numpy as np

from unswayed.theory.hiding import UNIT
from unswayed.theory.law import Bools, Floats, Ints


def reach(paths: Ints, features: Fraction, edges: Fraction) -> Floats:
    """An upper bound, rounded up, on the probability that a node's features are seen at the target.

    `paths` is int[…, L]: how many paths of 1 … L edges lead from the node to the target. Features are masked with
    probability `features`, edges deleted with probability `edges`. Paths break together rather than apart (Harris).

    >>> reach(np.array([[1, 0], [0, 2]]), Fraction(1, 2), Fraction(1, 2))
    array([0.25   , 0.21875])
    """
    broken = np.ones(paths.shape[:-1])
    for hops in range(1, paths.shape[-1] + 1):
        broken = broken * float(1 - (1 - edges) ** hops) ** paths[..., hops - 1]
    seen = float(1 - features) * (1 - broken)
    slack = 8 * (paths.sum(axis=-1) + 8) * UNIT
    return np.asarray(np.where(paths.sum(axis=-1) == 0, 0.0, np.minimum(seen + slack, 1.0)))


def noticed(seen: Floats) -> Floats:
    """float[targets, nodes + 1]: upper bounds, rounded up, on the probability that any of the k loudest nodes is seen.

    `seen` is float[targets, nodes], as `reach` gives it; for the target itself, the probability that its features are not
    masked. Liars are overlooked together rather than apart (Harris), so k of them are noticed with at most 1 − Π(1 − seen).

    >>> noticed(np.array([[0.1, 0.3, 0.2]])).round(3)
    array([[0.   , 0.3  , 0.44 , 0.496]])
    """
    worst = -np.sort(-seen, axis=1)
    steps = np.arange(1, worst.shape[1] + 1)
    met = np.zeros((len(seen), len(steps) + 1))
    met[:, 1:] = np.minimum(1 - np.cumprod(1 - worst, axis=1) + 4 * (steps + 1) * UNIT, 1.0)
    met[:, 1:][worst == 0] = 0  # who cannot be seen adds nothing …
    return np.asarray(np.maximum.accumulate(met, axis=1))  # … to what is noticed of the others


def survives(top: Floats, rest: Floats, met: Floats) -> Bools:
    """Where p_top − p_rest > 2Δ, whatever the rounding; arrays broadcast, and p_rest is clipped to 1 − p_top."""
    return np.asarray((top - np.minimum(rest, 1 - top)) * (1 - 4 * UNIT) > 2 * met)


def intercepted_size(top: Floats, rest: Floats, seen: Floats) -> Ints:
    """How many nodes may lie about their features: the largest k for which no k of them can change the label.

    `seen` is float[targets, nodes]: upper bounds on the probability that a node's features are seen at the target
    (`reach`; for the target itself, that they are not masked). Certified while p_top − p_rest > 2(1 − Π(1 − seen)) over the
    k largest; −1 where p_top ≤ p_rest.

    >>> intercepted_size(np.array([0.9]), np.array([0.1]), np.array([[0.1, 0.3, 0.2]]))
    array([1])
    """
    top, rest, seen = np.atleast_1d(top), np.atleast_1d(rest), np.atleast_2d(seen)
    return lies(top, rest, noticed(seen), np.full(len(seen), seen.shape[1]))


def lies(top: Floats, rest: Floats, met: Floats, cap: Ints) -> Ints:
    """The largest k with p_top − p_rest > 2Δ for k liars, from Δ[targets, k] as `noticed` gives it; −1 where p_top ≤ p_rest.

    The last column must be that of all nodes, or of too many: where even that holds, all `cap` may lie.
    """
    size = np.logical_and.accumulate(survives(top[:, None], rest[:, None], met), axis=1).sum(axis=1) - 1
    size = np.where(size == met.shape[1] - 1, cap, size)
    return np.asarray(np.where(top > rest, size, -1), dtype=np.int64)
