"""Proofs about a vote of groups: a lower bound on what any model withstands, without noise and without a confidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates.protocol import About, Bar, Certified, Column, Explanation, check_change
from unswayed.errors import InputError, StoreError
from unswayed.theory.checks import check_count
from unswayed.theory.hashed import hashed_grid, hashed_size

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HashedProofs(Certified):
    """For each target a label and a size K: no change of at most K entries changes what the vote of groups says.

    Certain, not with a confidence. `counts` int64[targets, classes] says how many of the `groups` answered each class.
    Larger attacks may fail as well: K is a lower bound, and no attack of K + 1 changes is claimed to exist.
    """

    counts: IntArray
    groups: int
    by: str

    kind = "hashed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts.shape != (len(self), self.about.classes) or np.any(
            self.counts.sum(axis=1) > self.groups
        ):
            raise InputError(f"counts must share {self.groups} groups among {self.about.classes} classes.")

    @classmethod
    def of_counts(cls, counts: npt.ArrayLike, groups: int, by: str, about: About) -> "HashedProofs":
        """What these counts prove."""
        said = np.array(counts, np.int64)
        label, size = hashed_size(said)
        return cls(
            label=label,
            size=np.minimum(size, about.entries),
            about=about,
            counts=said,
            groups=groups,
            by=by,
        )

    @classmethod
    def restore(cls, about: About, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The counts must prove the labels and sizes that are stated."""
        made = super().restore(about, arrays, header)
        proven = cls.of_counts(made.counts, made.groups, made.by, about)
        if not (np.array_equal(made.size, proven.size) and np.array_equal(made.label, proven.label)):
            raise StoreError("states other labels or sizes than its own counts prove; prove them again.")
        return made

    @property
    def method(self) -> str:
        """A vote of groups."""
        return "hashed"

    @property
    def confidence(self) -> float | None:
        """None: this is a proof."""
        return None

    def sizes(self, change: str = "any") -> IntArray:
        """As many as of any kind; where that is all there is to add or to delete, nothing of that kind hurts."""
        room = {"any": self.about.entries, "adds": self.about.zeros, "deletes": self.about.ones}[
            check_change(change)
        ]
        return self.size if room is None else np.minimum(self.size, room)

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: is the label proven against a added and r deleted entries?"""
        adds, deletes = check_count(adds, "adds"), check_count(deletes, "deletes")
        about = self.about
        if about.ones is None or about.zeros is None:
            return hashed_grid(self.size, about.entries, about.entries, adds, deletes)
        return hashed_grid(self.size, about.zeros, about.ones, adds, deletes)

    def outcome(self, label: str) -> str:
        """No attack moves the vote."""
        return f"moves the vote of groups off label {label}"

    def grounds(self, position: int) -> str:
        """How the groups voted."""
        votes = self.counts[position]
        if self.abstained[position]:
            return f"None of the {self.groups} groups gave an answer."
        order = np.argsort(-votes, kind="stable")
        first, second = (self.about.label_name(int(label)) for label in order[:2])
        what = "edge" if self.by == "edges" else "node"
        return (
            f"Of {self.groups} groups, {int(votes[order[0]])} say {first} and {int(votes[order[1]])} say {second}; one changed "
            f"{what} moves one group."
        )

    def terms(self) -> str:
        """Weights and features are fixed; only structure is attacked."""
        if self.by == "nodes":
            return "The model's weights and the other nodes are taken as fixed, and the target as honest."
        return "The model's weights and everything but edges are taken as fixed."

    def evidence(self) -> tuple[Column, ...]:
        """How many groups stand behind the label and its closest rival, and all counts."""
        ordered = -np.sort(-self.counts, axis=1)
        return (
            Column("groups_for", ordered[:, 0], "groups for", "groups that say the label"),
            Column("groups_next", ordered[:, 1], "next", "groups that say the closest rival"),
            Column("votes", self.counts),
        )

    def reading(self) -> list[tuple[str, str]]:
        """K and the groups."""
        return [
            (
                "K, the certified size",
                f"No attacker who {self.about.words.attack('K')} can change what the vote says: a proof, not an estimate. It is "
                "a lower bound; larger attacks may fail too.",
            ),
            (
                "groups",
                f"The edges are dealt into {self.groups} groups by the numbers of their ends, and the model answers on each "
                "group alone. One change reaches one group.",
            ),
        ]

    def settings(self) -> dict[str, str]:
        """The groups."""
        return {"Groups": str(self.groups), "Grouped by": self.by}

    def facts(self) -> dict[str, Any]:
        """The groups, JSON-ready."""
        return {"groups": self.groups, "by": self.by}

    def explanation(self, position: int) -> Explanation:
        """How many groups say what."""
        votes = self.counts[position]
        order = np.argsort(-votes, kind="stable")
        silent = self.groups - int(votes.sum())
        bars = [
            Bar(self.about.label_name(int(c)), f"{int(votes[c]):,}", float(votes[c]) / self.groups)
            for c in order
            if votes[c]
        ]
        told = [Bar("no answer", f"{silent:,}", silent / self.groups)] if silent else []
        common = super().explanation(position)
        return Explanation(
            name=common.name,
            label=common.label,
            size=common.size,
            statement=common.statement,
            bars=(*bars, *told),
            titles=("label", "groups", ""),
            sentences=(
                f"With {self.groups} groups no K can exceed {self.groups // 2}; more groups allow more, but each sees fewer edges.",
            ),
            facts={**common.facts, "groups": self.groups, "votes": votes.tolist()},
        )

    @property
    def ceiling(self) -> int | None:
        """What unanimous groups would prove."""
        return self.groups // 2

    @property
    def lead(self) -> FloatArray:
        """How many groups the label is ahead by."""
        ordered = -np.sort(-self.counts, axis=1)
        return (ordered[:, 0] - ordered[:, 1]).astype(np.float64)

    @property
    def reach(self) -> str:
        """A changed edge moves one group, and with it every target's vote."""
        return "anywhere"
