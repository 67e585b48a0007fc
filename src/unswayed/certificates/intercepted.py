"""Certificates against nodes that lie about their features: how many of them leave the smoothed label as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unswayed.certificates.checking import certifiable
from unswayed.certificates.protocol import check_change
from unswayed.certificates.smoothed import Certificates
from unswayed.errors import InputError, Unsupported
from unswayed.theory.bounds import bound_votes
from unswayed.theory.interception import lies
from unswayed.theory.noise import Noise
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


class Interception(Protocol):
    """What must be known of the threat: who it is, and how probably liars are noticed."""

    targets: IntArray

    def describe(self) -> dict[str, Any]:
        """What the votes' provenance calls it."""

    def noticed(self, noise: Noise) -> FloatArray:
        """float[targets, k+1]: upper bounds on the probability that any of k liars is seen; the last is for all nodes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Intercepted(Certificates):
    """For each target a label and a size K: no features that K nodes may give themselves change the smoothed label.

    `met[t, k]` bounds the probability that any of k liars is seen at target t.
    """

    met: FloatArray

    kind = "intercepted"

    def sizes(self, change: str = "any") -> IntArray:
        """Lies count as changes of any kind, and as what is added; nothing can be deleted."""
        return np.minimum(self.size, 0) if check_change(change) == "deletes" else self.size

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: is the label proven against a liars? There is nothing to delete."""
        if adds < 0 or deletes < 0:
            raise InputError("The grid needs adds and deletes of 0 or more.")
        cells = self.size[:, None, None] >= np.arange(adds + 1)[None, :, None]
        return np.repeat(cells, deletes + 1, axis=2)

    @property
    def reach(self) -> str:
        """One liar may be heard by every target, and may be one of them."""
        self._check_family()
        if self.about.threat.get("own") == "False":
            raise Unsupported(
                "Each target was taken for honest (own=False), and one attacker may lie at several of them; certify against "
                "Intercept(data, nodes), where targets may lie as well."
            )
        return "anywhere"

    @property
    def ceiling(self) -> int | None:
        """The largest size that unanimous votes could prove with these samples, noise and confidence."""
        drawn = np.full(len(self), self.votes.samples.max(initial=1))
        return int(self._unanimous(drawn).max(initial=0))

    def _unanimous(self, drawn: IntArray) -> IntArray:
        counts = np.zeros((len(self), self.votes.classes), np.int64)
        counts[:, 0] = drawn
        found = bound_votes(counts, drawn, self.level, self.bounds, rivals=self.rivals)
        return lies(found.p_top, found.p_rest, self.met, self.about.entries)

    def advice(self, position: int) -> dict[str, Any]:
        """The ceiling of this target."""
        reach, drawn = int(self._unanimous(self.votes.samples)[position]), int(self.votes.samples[position])
        known = {"p_top": float(self.p_top[position]), "p_rest": float(self.p_rest[position])}
        return {
            **known,
            "ceiling": reach,
            "advice": f"The ceiling: {drawn:,} unanimous votes would prove K = {reach}.",
        }


def certify_intercepted(
    votes: Votes,
    threat: Interception,
    *,
    alpha: float = 0.001,
    bounds: str = "strict",
    family: bool = False,
    rivals: str = "all",
) -> Intercepted:
    """How many nodes may lie about their features, with confidence 1 − `alpha`: for each target, or with `family` for all.

    `threat` is the `Intercept` that was polled: it knows the paths around each target. The other words are those of `certify`.
    """
    certifiable(votes, bounds)
    polled = votes.provenance.get("threat")
    if not isinstance(polled, Mapping) or _question(polled) != _question(threat.describe()):
        raise InputError(
            "These votes were polled against another threat; give the Intercept that they were polled with."
        )
    met = threat.noticed(votes.noise)[_rows(votes, threat)]

    def sizes(p_top: FloatArray, p_rest: FloatArray) -> IntArray:
        return lies(p_top, p_rest, met, votes.entries)

    return Intercepted.proved(votes, sizes, alpha=alpha, bounds=bounds, family=family, rivals=rivals, met=met)


def _rows(votes: Votes, threat: Interception) -> IntArray:
    """Where the threat has the targets of these votes, which may have been picked, or put in another order, since."""
    place = {int(target): row for row, target in enumerate(threat.targets)}
    return np.array([place[int(target)] for target in votes.targets], np.int64)


def _question(threat: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the answers: all but how people speak of it."""
    return {name: value for name, value in threat.items() if name != "words"}
