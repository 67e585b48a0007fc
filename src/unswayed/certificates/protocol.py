"""One protocol for every kind of certificate: what a family must say of itself, and all that follows from it.

A family is one file with one frozen dataclass that subclasses `Certified`. Reports, the command line, JSON, explanations
and plots ask nothing but what stands here.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unswayed.certificates import flags, presenting
from unswayed.certificates.about import (
    About,
    Bar,
    Column,
    Explanation,
    IntArray,
    Words,
    check_change,
    withstood,
)
from unswayed.certificates.labelled import BoolArray, Labelled
from unswayed.certificates.levels import confidence_in_words, most_wrong
from unswayed.certificates.shared import flipped
from unswayed.certificates.shared import in_words as shared_in_words
from unswayed.errors import InputError, Unsupported
from unswayed.naming import Name

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["About", "Bar", "Certified", "Column", "Explanation", "Words", "check_change"]

FloatArray = npt.NDArray[np.float64]
FAMILIES: dict[str, type["Certified"]] = {}  # kind → family, for `load`


@dataclass(frozen=True, eq=False)
class Certified(Labelled, ABC):
    """For each target a label and a size K: no change of at most K of its entries changes that label.

    `label` and `size` are −1 where nothing is promised. What "changes the label" means, and how sure it is, each family
    says for itself.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Certified.__repr__  # type: ignore[method-assign]  # not the one dataclasses would write
        if "kind" in cls.__dict__:
            FAMILIES[cls.kind] = cls

    # what a family supplies

    @property
    @abstractmethod
    def method(self) -> str:
        """How it was proven: "smoothed", "exact", …"""

    @property
    @abstractmethod
    def confidence(self) -> float | None:
        """The probability that a certificate holds at least with; None for proofs, which need none."""

    @abstractmethod
    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: is the label proven against a added and r deleted entries?"""

    @abstractmethod
    def sizes(self, change: str = "any") -> IntArray:
        """int64[targets]: the largest proven number of changes of this kind alone; "any" is `size`."""

    def assurance(self) -> str:
        """How sure one certificate is, as the start of a sentence."""
        if self.confidence is None:
            return "Proven"
        return f"With confidence {confidence_in_words(1 - self.confidence)}"

    def outcome(self, label: str) -> str:
        """What no covered attack does, as the end of a sentence."""
        return f"moves the answer off label {label}"

    def grounds(self, position: int) -> str:
        """What this target's certificate (or its absence) rests on, in a sentence or two; may be empty."""
        return ""

    def undone(self) -> str:
        """What no covered attacker can do to an answer, as the end of a sentence."""
        return "can change it"

    def at_once(self) -> str:
        """What a single change does to an answer with K = 0, as the end of a sentence."""
        return "might already move it"

    def tally(self, position: int) -> str:
        """What it rests on in a few words, for a page of many targets."""
        return self.grounds(position)

    def overall(self) -> str:
        """How sure one may be of all certificates together, not of one."""
        return presenting.overall(self)

    def terms(self) -> str:
        """What the promise takes as fixed, in a sentence."""
        return "Everything but the attackable entries is taken as fixed."

    def evidence(self) -> tuple[Column, ...]:
        """Further columns of frames, JSON and tables."""
        return ()

    def reading(self) -> list[tuple[str, str]]:
        """(term, meaning) of the words that are this family's own, for readers of a report."""
        return []

    def settings(self) -> dict[str, str]:
        """Everything that decided the result, by name, for people."""
        return {}

    def explanation(self, position: int) -> Explanation:
        """One target in detail."""
        return Explanation(
            name=self.about.target_name(position),
            label=self.about.label_name(int(self.label[position])),
            size=int(self.size[position]),
            statement=presenting.statement(self, position),
            facts={change: int(self.sizes(change)[position]) for change in self.about.sides},
        )

    def known_attack(self, position: int) -> IntArray | None:
        """The entries of an attack that does change this label, one more than the size; None where none is known."""
        return None

    def known_attack_in_words(self, position: int) -> str:
        """What that attack adds and deletes; empty where none is known."""
        return ""

    @property
    def doubtful(self) -> int:
        """At most so many of these certificates are wrong, with probability 95%; 0 for proofs."""
        if self.confidence is None:
            return 0
        return most_wrong(1 - self.confidence, len(self), len(self))

    @property
    def ceiling(self) -> int | None:
        """The largest size that these settings could have proven; None where there is no such limit."""
        return None

    @property
    def places(self) -> int:
        """Among how many of the most probable labels its own stays: 1 where a certificate is about the answer itself."""
        return 1

    @property
    def lead(self) -> FloatArray:
        """Orders targets of equal size, the weakest first."""
        return np.zeros(len(self))

    @property
    def reach(self) -> str:
        """For whom one change counts: "anywhere" (every target), "apart" (one), "rows" (the ends of an edge); or refused."""
        raise Unsupported(f"{type(self).__name__} say nothing about one attacker and many targets.")

    def check_fields(self, change: str) -> None:
        """Refuse to count changes by what each target can see, unless it can be said what that is."""
        raise Unsupported(f"{type(self).__name__} do not know what each target can see.")

    def shared(
        self, budget: int, *, change: str = "any", fields: "Sequence[npt.ArrayLike] | None" = None
    ) -> int:
        """At most how many certified targets one attacker with this many changes in total can flip; or refused, with the reason.

        `change` confines the attacker to additions or deletions. `fields` says which edges each target can see
        (`receptive_fields`): for deletions under noise that adds nothing, fewer targets are then within reach.
        """
        return flipped(self, budget, change, fields)

    def shared_in_words(self, budget: int, *, change: str = "any", fields: Any = None) -> str:
        """The same as a sentence, or why it cannot be said."""
        return shared_in_words(self, budget, change, fields)

    # what follows for every family

    def __repr__(self) -> str:
        return presenting.line(self)

    def share(
        self,
        at: npt.ArrayLike,
        change: str = "any",
        of: npt.ArrayLike | None = None,
        among: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """The share of targets certified at each size in `at`; with the mask `of`, of those that it marks too; `among` these targets alone.

        Every certified accuracy anywhere is this number. Who withstands the deletion of every link it has withstands any
        number of deletions; likewise of additions, and of changes.
        """
        if not len(self):
            raise InputError("There are no targets, so no share of them.")
        good = self.sizes(check_change(change))
        for mask in (of, among):
            if mask is not None and np.shape(mask) != good.shape:
                raise InputError(f"There are {len(self)} targets but the mask has shape {np.shape(mask)}.")
        good = good if of is None else np.where(np.asarray(of, bool), good, -1)
        held = withstood(good, at, self.about.limit(change))
        shares: FloatArray = (held if among is None else held[..., np.asarray(among, bool)]).mean(axis=-1)
        return shares

    def accuracy(self, y: npt.ArrayLike, at: npt.ArrayLike = 0, change: str = "any") -> FloatArray:
        """Certified accuracy: the share of targets with the right label and a size of at least each k in `at`.

        An abstention is never right, at any k. Labels are given as the classifier names them: by name where classes have names. Targets
        whose label is unknown (−1, None or "") are left out: nobody can say whether they are right.
        """
        truth = self._labels(y)
        known = truth >= 0
        if len(self) and not known.any():
            raise InputError("Of no target is the true label known, so there is no accuracy; see share().")
        return self.share(at, change, truth == self.label, known)

    def recall(
        self, y: npt.ArrayLike, positive: Name = 1, at: npt.ArrayLike = 0, change: str = "any"
    ) -> FloatArray:
        """Of the truly positive targets, the share answered positive with a size of at least each k: it stays flagged."""
        return flags.recall(self, self._labels(y), self._place(positive), at, check_change(change))

    def precision(
        self, y: npt.ArrayLike, positive: Name = 1, at: npt.ArrayLike = 0, change: str = "any"
    ) -> FloatArray:
        """Of all that may be flagged after k changes of each target, each attacked by itself, the least share that is truly positive.

        Kept are the truly positive ones that stay flagged. Every other target whose true label is another counts as flagged,
        unless it is certified not to be: an attacker may have it flagged. It is 1 where none of those is left.
        """
        return flags.precision(self, self._labels(y), self._place(positive), at, check_change(change))

    def _place(self, positive: Name) -> int:
        """The number of the class that should stay flagged, given by name or number."""
        place = int(self.about.places([positive])[0])
        if place < 0:
            raise InputError(f"positive must name a class, not {positive!r}.")
        return place

    def _labels(self, y: npt.ArrayLike) -> npt.NDArray[Any]:
        truth = self.about.places(y)
        if truth.shape != self.label.shape:
            raise InputError(f"There are {len(self)} targets but the labels have shape {truth.shape}.")
        return truth

    def statement(self, target: int | str) -> str:
        """The guarantee for one target, by its position or its name, in one plain paragraph."""
        return presenting.statement(self, self.about.position(target))

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame with one row per target."""
        return presenting.frame(self)

    def to_json(self) -> dict[str, Any]:
        """The whole result, JSON-ready: what was proven for each target, how, and how sure it is."""
        return presenting.document(self)

    def facts(self) -> dict[str, Any]:
        """What the JSON says of all targets together, beside what every family says."""
        return {}

    def _repr_html_(self) -> str:
        return presenting.page(self)

    def plot(
        self, truth: npt.ArrayLike | None = None, *, floor: float | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw the certified-accuracy curve (or, without `truth`, the share of targets certified at each size)."""
        from unswayed.report.plots import plot_certificates  # matplotlib only when asked for

        return plot_certificates(self, truth, floor=floor, ax=ax)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write everything to one npz file, atomically; `unswayed.load` reads it back. Nothing is pickled."""
        from unswayed.certificates.files import save  # which knows the families

        save(self, path)
