"""Top-k certificates: how large an attack leaves a label among the k most probable outcomes, from the same votes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates.checking import about_votes, certifiable
from unswayed.certificates.levels import rounded_down, rounded_up, warn_of_level
from unswayed.certificates.polled import Polled
from unswayed.certificates.protocol import Column, check_change
from unswayed.errors import InputError
from unswayed.spelling import spelled
from unswayed.theory.anytime import limits
from unswayed.theory.binomial import lower_limit, upper_limit
from unswayed.theory.bounds import check_level
from unswayed.theory.topk import certified_topk_size, is_certified_topk
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


BOUNDS = ("strict", "anytime")  # those that are proved for several places at once


@dataclass(frozen=True, eq=False)
class TopCertificates(Polled):
    """For each target a label and a size: no change of at most so many entries moves it out of the k most probable.

    This holds for each target separately with confidence 1 − `alpha`, or for all together when `family` is true. `label` and
    `size` are −1 where the votes do not even prove that the label that was `asked` about is there. `p_label` is the proven
    lower bound of its probability, `p_others` the upper bounds of all other outcomes'.
    """

    asked: IntArray
    p_label: FloatArray
    p_others: FloatArray
    k: int
    fixed: bool  # whether the labels were given before the votes were drawn

    kind = "top"

    def sizes(self, change: str = "any") -> IntArray:
        """The largest proven number of changes of this kind alone."""
        if check_change(change) == "any":
            return self.size
        about, bounds = self.about, (self.p_label, self.p_others, self.k, self.noise)
        return certified_topk_size(*bounds, about.entries, ones=about.ones, change=change)

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: does the label stay among the k against a added and r deleted entries?"""
        if adds < 0 or deletes < 0:
            raise InputError("The grid needs adds and deletes of 0 or more.")
        cells = np.zeros((len(self), adds + 1, deletes + 1), bool)
        for a in range(adds + 1):
            for r in range(deletes + 1):
                cells[:, a, r] = is_certified_topk(
                    self.p_label, self.p_others, self.k, self.noise, adds=a, deletes=r, ones=self.about.ones
                )
        for axis in (1, 2):  # a cell counts only if every smaller attack holds too
            cells = np.logical_and.accumulate(cells, axis=axis)
        return cells & ~self.abstained[:, None, None]

    def outcome(self, label: str) -> str:
        """No attack moves the label out."""
        return f"moves label {label} out of the smoothed classifier's {self.k} most probable answers"

    def undone(self) -> str:
        """It stays among the k."""
        return f"can push it out of the {self.k} most probable"

    def tally(self, position: int) -> str:
        """How many votes the label won."""
        won = int(self.votes.counts[position, self.asked[position]])
        return f"Label {self.about.label_name(int(self.asked[position]))} won {won:,} of {int(self.votes.samples[position]):,} votes."

    def grounds(self, position: int) -> str:
        """The votes for the label, and the bound they prove."""
        label = int(self.asked[position])
        name, won = self.about.label_name(label), int(self.votes.counts[position, label])
        told = f"Among {self.how(position)}, label {name} won {won:,}"
        if self.abstained[position]:
            return f"{told}, but that does not prove it among the {self.k} most probable answers."
        return f"{told}; so its probability is at least {rounded_down(self.p_label[position])}."

    def evidence(self) -> tuple[Column, ...]:
        """The label asked about, its bound, and the votes."""
        bound = "a lower bound on the label's probability"
        return (
            Column("asked", self.asked, meaning="the label asked about"),
            Column("p_label", self.p_label, "p label", bound, "down"),
            *self.counted(),
        )

    def terms_of_size(self) -> list[tuple[str, str]]:
        """K and the bound."""
        return [
            (
                "K, the certified size",
                f"No attacker who {self.about.words.attack('K')} can push the label out of the {self.k} most probable "
                "answers. This is a proof from the votes, not the outcome of attacks that were tried.",
            ),
            ("p label", "The label's true share of the vote is at least this."),
        ]

    def facts(self) -> dict[str, Any]:
        """The settings and k."""
        return {**super().facts(), "k": self.k, "fixed": self.fixed}

    def settings(self) -> dict[str, str]:
        """The settings and what is asked."""
        whose = "a label fixed beforehand" if self.fixed else "the most voted label"
        return {"Asked": f"does {whose} stay among the {self.k} most probable", **super().settings()}

    @property
    def ceiling(self) -> int | None:
        """The largest size that unanimous votes could prove."""
        votes, drawn = self.votes, int(self.votes.samples.max(initial=1))
        pairs = votes.entries[:, None] if votes.ones is None else np.column_stack([votes.entries, votes.ones])
        caps = np.unique(pairs, axis=0)
        best = Votes.from_counts(
            [[drawn] + [0] * (votes.classes - 1)] * len(caps),
            votes.noise,
            caps[:, 0],
            ones=None if votes.ones is None else caps[:, 1],
        )
        label = 0 if self.fixed else None
        found = certify_top(best, self.k, label=label, alpha=self.level, bounds=self.bounds)
        return int(found.size.max(initial=0))

    @property
    def places(self) -> int:
        """k: the answer itself may change."""
        return self.k

    @property
    def lead(self) -> FloatArray:
        """The bound on the label's probability."""
        return self.p_label

    def proven(self, position: int, label: int) -> str:
        """The bound on this outcome's probability."""
        asked = int(self.asked[position])
        if label == asked:
            return f"at least {rounded_down(self.p_label[position])}"
        place = self.votes.classes if label < 0 else label
        return f"at most {rounded_up(self.p_others[position, place - (place > asked)])}"


@spelled()
def certify_top(
    votes: Votes,
    k: int,
    *,
    label: npt.ArrayLike | None = None,
    alpha: float = 0.001,
    bounds: str = "strict",
    family: bool = False,
) -> TopCertificates:
    """Sizes up to which no attack moves the label out of the k most probable outcomes, with confidence 1 − `alpha`.

    `label` is one label for each target (or one for all) that was fixed before the votes were drawn, such as the true one;
    without it the most voted label is taken, at a level that allows for that choice. "No answer" is an outcome too, so it
    may take one of the k places. `bounds` is "strict", or "anytime" for votes that were looked at while they were drawn.

    >>> from unswayed import Flip, Votes
    >>> votes = Votes.from_counts([[700, 200, 80, 20]], Flip(beta=0.7), entries=99)
    >>> [int(certify_top(votes, k, label=0).size[0]) for k in (1, 2, 3)]
    [0, 1, 2]
    """
    certifiable(votes, bounds, BOUNDS)
    check_level(alpha)
    warn_of_level(alpha)
    _check_places(votes, k)
    asked = _labels(votes, label)
    parts = max(votes.polled_together, 1) if family else 1
    p_label, p_others = _limits(votes, asked, label is None, float(alpha), bounds, parts)
    size = certified_topk_size(p_label, p_others, int(k), votes.noise, votes.entries, ones=votes.ones)
    return TopCertificates(
        label=np.where(size < 0, -1, asked).astype(np.int64),
        size=size.astype(np.int64),
        about=about_votes(votes),
        votes=votes,
        alpha=float(alpha),
        bounds=bounds,
        family=bool(family),
        asked=asked,
        p_label=p_label,
        p_others=p_others,
        k=int(k),
        fixed=label is not None,
    )


def _limits(
    votes: Votes, label: IntArray, chosen: bool, alpha: float, bounds: str, parts: int
) -> tuple[FloatArray, FloatArray]:
    """A lower limit for the label and upper limits for the C other outcomes, that hold together.

    Of C labels and "no answer", a fixed label needs one lower and C upper limits; a label chosen from the votes needs those
    of every label, C lower and C + 1 upper ones. Anytime limits are two-sided, so C + 1 of them hold for any label.
    """
    outcomes = np.column_stack([votes.counts, votes.no_answer])
    rows, width = np.arange(len(votes)), outcomes.shape[1]
    top = outcomes[rows, label]
    keep = np.arange(width)[None] != label[:, None]
    others, drawn = outcomes[keep], np.repeat(votes.samples, width - 1)
    if bounds == "anytime":
        low = limits(top, votes.samples, alpha, width * parts, upper=False)
        high = limits(others, drawn, alpha, width * parts, upper=True)
    else:
        share = (2 * width - 1 if chosen else width) * parts
        low = lower_limit(top, votes.samples, alpha, share)
        high = upper_limit(others, drawn, alpha, share)
    return np.array(low, np.float64), np.array(high, np.float64).reshape(len(votes), width - 1)


def _check_places(votes: Votes, k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < votes.classes:
        raise InputError(
            f"k must be a whole number from 1 to {votes.classes - 1}, one less than the labels, not {k!r}."
        )


def _labels(votes: Votes, label: npt.ArrayLike | None) -> IntArray:
    if label is None:
        return np.asarray(votes.counts.argmax(axis=1), np.int64)
    given = np.asarray(label)
    if given.shape not in ((), (len(votes),)) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"label must be one whole number for each of the {len(votes)} targets.")
    if given.size and not 0 <= given.min() <= given.max() < votes.classes:
        raise InputError(f"label must lie between 0 and {votes.classes - 1}.")
    return np.array(np.broadcast_to(given, (len(votes),)), np.int64)
