"""Fake nodes: what noise that hides nodes and edges proves about them.

Both worlds are drawn with the same coins. Where none of the attacker's doing is seen they look alike, so the answer can
differ only elsewhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from unswayed.errors import InputError
from unswayed.theory.hiding import UNIT, Hiding, ball, positive
from unswayed.theory.law import Bools, Floats, Ints


@dataclass(frozen=True)
class Shielded(Hiding):
    """Every node loses all its edges with probability `nodes`, every edge is lost with probability `edges`.

    An addition is a fake node with up to `links` links (None: any number). Given what is hidden of the honest nodes, it is
    unseen with probability at least s = n + (1−n)·e^links: a link to a node that is not hidden is lost with probability e
    alone. On average over the honest nodes too, it is unseen with probability at least t = n + (1−n)(e+n−en)^links (losses
    of links are positively correlated: Harris). So of any set of X-mass p, at most q(p) = min(p(1−s^k), 1−t^k) meets k
    fake nodes, and the attack is certified if p_top − q(p_top) > p_rest + q(1 − p_rest). Using t alone, as if it were
    independent of what the classifier sees, would be unsound. `target_hidden=False`: the target keeps its edges.
    """

    nodes: Fraction
    edges: Fraction
    links: int | None = None
    target_hidden: bool = True

    def known(self, ones: Ints | None, like: Ints) -> Ints:
        """There is nothing to delete."""
        return np.zeros_like(like) if ones is None else ones

    def unseen(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """(n, 1 − n, what a visible node's link, what any link is lost with)."""
        n, e = self.nodes, self.edges
        return n, 1 - n, e, e + n - e * n

    def chances(self, k: Any, number: Any) -> tuple[Any, Any]:
        """(s^k, t^k), computed with `number` made of the four exact probabilities."""
        n, rest, sure, any_link = (number(p) for p in self.unseen())
        if self.links is None:
            return n**k, n**k
        first = any_link if self.target_hidden else sure
        mean = first * any_link ** (self.links - 1) if self.links else any_link**0
        return (n + rest * sure**self.links) ** k, (n + rest * mean) ** k

    def worst_case(
        self, top: Floats, rest: Floats, adds: Ints, deletes: Ints, ones: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """(a lower bound of Pr(Y∈A), an upper bound of Pr(Y∈B)) for flat arrays."""
        least, mean = self.chances(adds, np.float64)
        rest = np.minimum(rest, 1 - top)

        def met(p: Floats) -> Floats:
            return np.asarray(np.minimum(p * (1 - least), 1 - mean))

        return top - met(top), rest + met(1 - rest)

    def certified(
        self,
        top: Floats,
        rest: Floats,
        adds: Ints,
        deletes: Ints,
        ones: Ints | None = None,
        times: int = 1,
    ) -> Bools:
        """Which flat cells are certified against so many fake nodes; no honest node's edge may be deleted."""
        if np.any(deletes > 0):
            raise InputError("Hide certifies against fake nodes only: deletes must be 0.")
        kept, lost = self.worst_case(top, rest, adds, deletes)
        margin = self.error(adds, times)
        gap = times * kept - lost
        certified = gap > margin
        for i in np.flatnonzero(np.abs(gap) <= margin):
            certified[i] = self.decide(float(top[i]), float(rest[i]), int(adds[i]), times)
        return np.asarray(certified)

    def error(self, adds: Ints, times: int) -> Floats:
        """A bound on the rounding of times · Pr(Y∈A) − Pr(Y∈B)."""
        return np.asarray(16 * (times + 1) * ((self.links or 0) + 4) * (adds + 4) * UNIT)

    def decide(self, top: float, rest: float, adds: int, times: int = 1) -> bool:
        """Whether the bound certifies one cell, whatever the rounding."""
        p_top = Fraction(top)
        p_rest = min(Fraction(rest), 1 - p_top)

        def gap() -> Any:
            least, mean = self.chances(adds, ball)
            met = [(ball(p) * (1 - least)).min(1 - mean) for p in (p_top, 1 - p_rest)]
            return times * (ball(p_top) - met[0]) - ball(p_rest) - met[1]

        return positive(gap)
