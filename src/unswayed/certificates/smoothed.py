"""Certificates of a smoothed classifier: what the votes prove about each target, and at which confidence.

`certify` is pure: the same votes and settings give the same certificates, on any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates.advice import next_size_in_words, own_ceiling, samples_needed
from unswayed.certificates.checking import about_votes, certifiable
from unswayed.certificates.levels import confidence_in_words, rounded_down, rounded_up, warn_of_level
from unswayed.certificates.polled import Polled
from unswayed.certificates.protocol import Column, check_change
from unswayed.errors import InputError
from unswayed.spelling import spelled
from unswayed.theory.bounds import bound_votes, ceiling
from unswayed.theory.size import certified_size, grid
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

UNANIMOUS = " No votes could be clearer: a larger size would take more samples, or more noise."


@dataclass(frozen=True, eq=False)
class Certificates(Polled):
    """For each target a label and a size K: no change of at most K entries changes the smoothed classifier's label.

    This holds for each target separately with confidence 1 − `alpha`, or for all targets together when `family` is
    true. Where the votes prove no top label, `label` and `size` are −1. The smoothed label is the most probable of all
    outcomes, "no answer" among them, or with `rivals="labels"` the most probable of the labels.
    """

    p_top: FloatArray
    p_rest: FloatArray
    rivals: str = "all"

    kind = "smoothed"

    @classmethod
    def proved(
        cls,
        votes: Votes,
        sizes: Callable[[FloatArray, FloatArray], IntArray],
        *,
        alpha: float,
        bounds: str,
        family: bool,
        rivals: str,
        **own: Any,
    ) -> Self:
        """The most voted labels, and the sizes that the bounds on their probabilities prove; `own` is what a family adds."""
        parts = max(votes.polled_together, 1) if family else 1
        found = bound_votes(votes.counts, votes.samples, alpha, bounds, parts, rivals)
        warn_of_level(alpha)
        size = sizes(found.p_top, found.p_rest).astype(np.int64)
        return cls(
            label=np.where(size < 0, -1, found.label).astype(np.int64),
            size=size,
            about=about_votes(votes),
            p_top=np.array(found.p_top, np.float64),
            p_rest=np.array(found.p_rest, np.float64),
            votes=votes,
            alpha=float(alpha),
            bounds=bounds,
            family=bool(family),
            rivals=rivals,
            **own,
        )

    def sizes(self, change: str = "any") -> IntArray:
        """The largest proven number of changes of this kind alone."""
        if check_change(change) == "any":
            return self.size
        about = self.about
        return certified_size(
            self.p_top, self.p_rest, self.noise, about.entries, ones=about.ones, change=change
        )

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: is the label proven against a added and r deleted entries?"""
        if adds < 0 or deletes < 0:
            raise InputError("The grid needs adds and deletes of 0 or more.")
        cells = grid(self.p_top, self.p_rest, self.noise, adds, deletes, ones=self.about.ones)
        return np.asarray(cells & ~self.abstained[:, None, None], bool)

    def outcome(self, label: str) -> str:
        """No attack moves the smoothed classifier."""
        return f"moves the smoothed classifier off label {label}"

    def grounds(self, position: int) -> str:
        """The votes and the bounds they prove."""
        counts = self.votes.counts[position]
        top = int(counts.argmax())
        name, won, how = self.about.label_name(top), int(counts[top]), self.how(position)
        if self.abstained[position]:
            return (
                f"Among {how}, label {name} came first with {won:,} votes, but that does not prove it the most probable "
                f"one with confidence {confidence_in_words(self.alpha)}. More samples or a noise closer to the identity may "
                "settle it."
            )
        clearest = UNANIMOUS if won == int(self.votes.samples[position]) else ""
        return (
            f"Among {how}, label {name} won {won:,}; so its probability is at least {rounded_down(self.p_top[position])} "
            f"and no other label's exceeds {rounded_up(self.p_rest[position])}.{clearest}"
        )

    def terms(self) -> str:
        """It is about the smoothed classifier, by one of two definitions."""
        return f"{super().terms()} {self.definition()}"

    def definition(self) -> str:
        """Which label is called the smoothed classifier's."""
        if self.rivals == "labels":
            return "The label had to beat every other label; “no answer” does not count against it."
        return "The label had to beat every other label, and “no answer” too."

    def facts(self) -> dict[str, Any]:
        """The settings, for machines."""
        return {**super().facts(), "rivals": self.rivals}

    def settings(self) -> dict[str, str]:
        """Everything that was asked, and what the label is."""
        return {**super().settings(), "Label": self.definition()}

    def evidence(self) -> tuple[Column, ...]:
        """The two bounds, and the votes."""
        top = "a lower bound on the winner's probability"
        rest = "an upper bound on any other label's probability"
        return (
            Column("p_top", self.p_top, "p top", top, "down"),
            Column("p_rest", self.p_rest, "p rest", rest, "up"),
            *self.counted(),
        )

    def terms_of_size(self) -> list[tuple[str, str]]:
        """K and the two bounds."""
        return [
            (
                "K, the certified size",
                f"No attacker who {self.about.words.attack('K')} can change the winning label. This is a proof from "
                "the votes, not the outcome of attacks that were tried; attacks nobody has thought of are covered.",
            ),
            (
                "p top and p rest",
                "The winner's true share of the vote is at least p top, any other label's at most p rest. "
                "The further apart, the larger K.",
            ),
        ]

    @property
    def ceiling(self) -> int | None:
        """The largest size that unanimous votes could prove with these samples, noise and confidence."""
        votes = self.votes
        most = int(votes.samples.max(initial=1))
        return ceiling(
            votes.noise,
            most,
            self.level,
            votes.classes,
            self.bounds,
            cap=votes.entries,
            ones=votes.ones,
            rivals=self.rivals,
        )

    @property
    def lead(self) -> FloatArray:
        """How far the winner is ahead."""
        return self.p_top - self.p_rest

    def proven(self, position: int, label: int) -> str:
        """The bound on this label's probability."""
        if label == int(self.votes.counts[position].argmax()):
            return f"at least {rounded_down(self.p_top[position])}"
        if label < 0 and self.rivals == "labels":
            return "no rival"
        return f"at most {rounded_up(self.p_rest[position])}"

    def advice(self, position: int) -> dict[str, Any]:
        """The ceiling, and how many samples the next size would take."""
        wanted, drawn = int(self.size[position]) + 1, int(self.votes.samples[position])
        needed, reach = samples_needed(self, position, wanted), own_ceiling(self, position)
        words = next_size_in_words(wanted, drawn, needed)
        return {
            "p_top": float(self.p_top[position]),
            "p_rest": float(self.p_rest[position]),
            "ceiling": reach,
            "next_size": wanted,
            "needed": needed,
            "advice": f"The ceiling: {drawn:,} unanimous votes would prove K = {reach}. {words}",
        }


@spelled()
def certify(
    votes: Votes, *, alpha: float = 0.001, bounds: str = "strict", family: bool = False, rivals: str = "all"
) -> Certificates:
    """Certificates that hold with confidence 1 − `alpha`: for each target, or with `family` for all of them together.

    `bounds="strict"` holds for the label chosen from these same votes; `"paper"` is the published rule, whose level is
    proved for a label fixed beforehand; `"anytime"` holds however often one looks and whenever sampling stops.
    `rivals="labels"` defines the smoothed label as the most probable one of the labels: "no answer" then weakens the
    label but is no rival, so a model that answers only where it is confident may be certified further.

    >>> from unswayed import Flip
    >>> votes = Votes.from_counts([[9_990, 10], [5_100, 4_900]], Flip(beta=0.7), entries=2_707)
    >>> certs = certify(votes, alpha=0.001)
    >>> certs.label, certs.size
    (array([ 0, -1]), array([11, -1]))
    """
    certifiable(votes, bounds)

    def sizes(p_top: FloatArray, p_rest: FloatArray) -> IntArray:
        return certified_size(p_top, p_rest, votes.noise, votes.entries, ones=votes.ones)

    return Certificates.proved(votes, sizes, alpha=alpha, bounds=bounds, family=family, rivals=rivals)
