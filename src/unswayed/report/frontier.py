"""Accuracy against robustness over a sweep of noises: who is on the frontier, and which one to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified
from unswayed.naming import in_words
from unswayed.theory.noise import Noise


@dataclass(frozen=True)
class Point:
    """One noise of a sweep: its certified accuracy at every size up to the last that is not zero.

    `sides` is the same against changes of each kind alone, where there is more than one kind; `split` is its certified accuracy
    against the wanted additions and deletions, where those are told apart. `recall` (and `split_recall`) are the shares that stay flagged
    of the label that was named, if one was. `beware` says that under this noise the model hardly tells targets apart, where it does not.
    """

    noise: Noise
    accuracy: tuple[float, ...]
    ceiling: int
    split: float | None = None
    sides: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    recall: tuple[float, ...] | None = None
    split_recall: float | None = None
    beware: str = ""

    @classmethod
    def of(
        cls,
        noise: Noise,
        certs: Certified,
        truth: npt.NDArray[np.int64],
        ceiling: int,
        split: tuple[int, int] | None = None,
        positive: int | None = None,
    ) -> "Point":
        """The point of these certificates; `split` is the wanted (additions, deletions), `positive` a label that some targets bear."""
        sides = {change: _curve(certs, truth, change) for change in certs.about.sides}
        told = cls(noise, _curve(certs, truth, "any"), ceiling, _held(certs, truth, split), sides)
        if positive is None:
            return told
        bearers = truth == positive
        return replace(
            told,
            recall=_curve(certs[bearers], truth[bearers], "any"),
            split_recall=_held(certs[bearers], truth[bearers], split),
        )

    def wanted(self, size: int) -> float:
        """Certified accuracy against what is wanted: the split of additions and deletions, or this size."""
        return self.at(size) if self.split is None else self.split

    def at(self, size: int, change: str = "any") -> float:
        """Certified accuracy at this size, against changes of any kind or of one kind alone."""
        curve = self.accuracy if change == "any" else self.sides[change]
        return curve[size] if size < len(curve) else 0.0

    def stays(self, size: int) -> float | None:
        """The share that stays flagged under what is wanted; None where no label was named."""
        if self.recall is None or self.split_recall is not None:
            return self.split_recall
        return self.recalled(size)

    def recalled(self, size: int) -> float:
        """The share that stays flagged under this many changes."""
        curve = self.recall or ()
        return curve[size] if size < len(curve) else 0.0

    def __str__(self) -> str:
        return self.noise.brief

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        named = {"": self.accuracy, **{f"_{change}": curve for change, curve in self.sides.items()}}
        curves = {f"certified_accuracy{name}": dict(enumerate_sizes(curve)) for name, curve in named.items()}
        wanted = {} if self.split is None else {"certified_accuracy_wanted": self.split}
        if self.recall is not None:
            curves["certified_recall"] = dict(enumerate_sizes(self.recall))
        if self.split_recall is not None:
            wanted["certified_recall_wanted"] = self.split_recall
        beware = {"beware": self.beware} if self.beware else {}
        return {**self.noise.to_dict(), "ceiling": self.ceiling, **curves, **wanted, **beware}


def enumerate_sizes(curve: Sequence[float]) -> list[tuple[str, float]]:
    """Each size, as JSON names it, with its share."""
    return [(str(size), share) for size, share in enumerate(curve)]


def _curve(certs: Certified, truth: npt.NDArray[np.int64], change: str) -> tuple[float, ...]:
    """Certified accuracy from size 0 to the largest proven one, or 1,000."""
    sizes = np.arange(min(int(certs.sizes(change).max(initial=0)), 1000) + 1)
    named = in_words(truth, certs.about.class_names)  # a number may be another class's name
    return tuple(certs.accuracy(named, at=sizes, change=change).tolist())


def _held(certs: Certified, truth: npt.NDArray[np.int64], split: tuple[int, int] | None) -> float | None:
    """Certified accuracy against so many additions and deletions; None where they are not told apart."""
    if split is None:
        return None
    return float((certs.grid(*split)[:, -1, -1] & (certs.label == truth)).mean())


def frontier(points: Sequence[Point], want: int) -> set[int]:
    """Positions that no other point beats both without attack and at the wanted size."""

    def beaten(mine: Point, other: Point) -> bool:
        ours, theirs = (mine.at(0), mine.wanted(want)), (other.at(0), other.wanted(want))
        return theirs != ours and theirs[0] >= ours[0] and theirs[1] >= ours[1]

    return {place for place, point in enumerate(points) if not any(beaten(point, other) for other in points)}


def recommend(points: Sequence[Point], want: int) -> int | None:
    """The position of the best certified accuracy at the wanted size; ties go to accuracy without attack.

    None where no point certifies that size for a single target, or only points that tell nothing apart or keep nobody flagged.
    """
    useful = [
        place
        for place, point in enumerate(points)
        if point.wanted(want) > 0 and not point.beware and point.stays(want) != 0
    ]
    return max(useful, key=lambda place: (points[place].wanted(want), points[place].at(0)), default=None)
