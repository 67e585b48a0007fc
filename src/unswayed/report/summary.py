"""The facts of a report, computed once: every number that a plot, a page or a terminal shows comes from here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified, Words, flags
from unswayed.certificates.presenting import plural
from unswayed.errors import InputError
from unswayed.naming import Name
from unswayed.report.degrees import degrees
from unswayed.rounding import at_least
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

WIDEST = 120  # the largest size a curve is drawn to; beyond it nothing more can be read off
FURTHEST = 20  # additions and deletions a grid goes to
ROUNDED = 1e-9  # shares of whole targets that differ by less are the same share


@dataclass(frozen=True)
class Curve:
    """Certified accuracy (or, without truth, the share certified) at each size, and the lower end of its band.

    With probability 95% every point of the exact curve lies on or above `low`, however dependent the targets are; with
    `family` certificates `low` equals `share` and the confidence is 1 − alpha.
    """

    sizes: IntArray
    share: FloatArray
    low: FloatArray


@dataclass(frozen=True)
class Summary:
    """Certificates together with what is known about their targets. All derived facts are properties."""

    certs: Certified
    title: str
    truth: IntArray | None = None
    floor: float | None = None
    floor_name: str = "structure-free model"
    attacked: IntArray | None = None
    degree: IntArray | None = None
    command: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    positive: int | None = None  # the class that should stay flagged
    base: float | None = None  # the accuracy of the model itself, without smoothing and without an attack

    @property
    def unit(self) -> str:
        """What one target is called."""
        return self.certs.unit

    @property
    def words(self) -> Words:
        """How people speak of the threat."""
        return self.certs.about.words

    @property
    def right(self) -> BoolArray:
        """Where the certified label is the true one (everywhere it did not abstain, when the truth is unknown)."""
        sure = ~self.certs.abstained
        return sure if self.truth is None else sure & (self.certs.label == self.truth)

    @property
    def order(self) -> IntArray:
        """Positions of the targets, the weakest first: abstentions, then the smallest sizes, then the narrowest lead."""
        return np.lexsort((self.certs.targets, self.certs.lead, self.certs.size))

    @cached_property
    def top(self) -> int:
        """The largest size worth drawing."""
        size, entries = self.certs.size, self.certs.about.entries
        bounded = size[size < entries]
        largest = int(bounded.max(initial=-1)) if bounded.size else int(size.max(initial=0))
        return min(max(largest + 1, 3), WIDEST)

    @property
    def doubtful(self) -> int:
        """At most this many certificates are wrong, with probability 95%."""
        return self.certs.doubtful

    @cached_property
    def curve(self) -> Curve:
        """The curve from size 0 to `top`."""
        sizes = np.arange(self.top + 1)
        share = self.share(sizes)
        return Curve(sizes, share, np.maximum(share - self.doubtful / self.total, 0.0))

    @property
    def known(self) -> BoolArray:
        """Whose true label is known, so that it can be right; everybody where no truth was given."""
        return np.ones(len(self.certs), bool) if self.truth is None else self.truth >= 0

    @property
    def total(self) -> int:
        """How many targets shares are of."""
        return int(self.known.sum())

    @property
    def everyone(self) -> str:
        """These targets in words."""
        told = plural(self.total, self.unit)
        return told if self.total == len(self.certs) else f"{told} whose true label is known"

    def share(self, at: npt.ArrayLike, change: str = "any") -> FloatArray:
        """Certified accuracy at each size in `at`, of targets whose truth is known; without truth, the share certified."""
        right = None if self.truth is None else self.truth == self.certs.label
        return self.certs.share(at, change, right, self.known)

    def recall(self, at: npt.ArrayLike) -> FloatArray:
        """Of the truly positive targets, the share that stays flagged under each number of changes."""
        assert self.truth is not None
        assert self.positive is not None
        return flags.recall(self.certs, self.truth, self.positive, at)

    def precision(self, at: npt.ArrayLike) -> FloatArray | None:
        """The least share of right flags under each number of changes; None where some true labels are unknown."""
        assert self.truth is not None
        assert self.positive is not None
        if np.any(self.truth < 0):
            return None
        return flags.precision(self.certs, self.truth, self.positive, at)

    def precision_told(self, at: npt.ArrayLike) -> list[float | None] | None:
        """The same, and None where nothing is flagged at all, so that there is nothing to be right about."""
        right = self.precision(at)
        if right is None:
            return None
        pairs = zip(right.tolist(), self.recall(at).tolist(), strict=True)
        return [share if kept > 0 or share < 1 else None for share, kept in pairs]

    def precision_shown(self, at: npt.ArrayLike, digits: int) -> list[str] | None:
        """That as text, with a dash for None."""
        told = self.precision_told(at)
        if told is None:
            return None
        return ["–" if share is None else at_least(share, digits) for share in told]

    @cached_property
    def attack_curve(self) -> FloatArray | None:
        """The share of targets right and not broken by a found attack of each size: no certificate can exceed it."""
        if self.attacked is None:
            return None
        good = np.where(self.right, np.where(self.attacked < 0, self.top + 1, self.attacked - 1), -1)
        return np.asarray((good >= self.curve.sizes[:, None])[:, self.known].mean(axis=1), np.float64)

    @cached_property
    def adds(self) -> IntArray:
        """How many additions alone each target withstands."""
        return self.certs.sizes("adds")

    @cached_property
    def deletes(self) -> IntArray:
        """How many deletions alone each target withstands."""
        return self.certs.sizes("deletes")

    @property
    def sides(self) -> dict[str, IntArray]:
        """How many changes of each kind alone, where there is more than one kind."""
        return {change: getattr(self, change) for change in self.certs.about.sides}

    @cached_property
    def apart(self) -> bool:
        """Whether additions or deletions alone are proven any further than changes of both kinds."""
        return any(bool((sizes > self.certs.size).any()) for sizes in self.sides.values())

    @cached_property
    def grid(self) -> BoolArray | None:
        """bool[targets, adds, deletes] up to `FURTHEST` each, where the two kinds of change differ; else None."""
        return self.certs.grid(FURTHEST, FURTHEST) if self.apart else None

    @cached_property
    def ceiling(self) -> int | None:
        """The largest size that these settings could have proven; None where there is no such limit."""
        return self.certs.ceiling

    @property
    def median(self) -> int:
        """Half of the targets, abstentions counted as −1, are certified at this size or more."""
        return median(self.certs.size)

    @property
    def beats_floor_to(self) -> int | None:
        """The largest size at which the curve is above the floor; −1 where it is at none, None without a floor.

        Whoever withstands all that can be changed withstands as much as there is to change in the largest.
        """
        if self.floor is None or self.truth is None:
            return None
        size, limit = self.certs.size, self.certs.about.limit("any")
        size = size if limit is None else np.where(size >= limit, limit.max(initial=0), size)
        good = np.sort(np.where(self.right, size, -1)[self.known])[::-1]
        needed = int(np.floor(self.floor * len(good) + ROUNDED)) + 1
        return int(good[needed - 1]) if needed <= len(good) else -1

    def below_floor(self, size: int, change: str = "any", *, ties: bool = False) -> bool:
        """Whether fewer (with `ties`, or as many) are right and proven at this size than a model that ignores the structure has right."""
        if self.floor is None or self.truth is None:
            return False
        return float(self.share(size, change)) < self.floor + (ROUNDED if ties else -ROUNDED)

    def label_name(self, label: int) -> str:
        """A label as people read it; "abstains" for −1."""
        return self.certs.about.label_name(label)

    def target_name(self, position: int) -> str:
        """A target as people read it."""
        return self.certs.about.target_name(position)


def summarise(
    certs: Certified,
    *,
    data: Any = None,
    truth: npt.ArrayLike | None = None,
    floor: Any = None,
    attacked: npt.ArrayLike | None = None,
    command: str | None = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    positive: Name | None = None,
    base: float | None = None,
) -> Summary:
    """All facts of a report; whatever does not fit the certificates is refused.

    `floor` is an accuracy or an object with `accuracy` and `name`; `attacked[t]` is the size of the smallest attack
    found on target t, −1 (or NaN) where none was found; `data` is the graph, or the list of graphs, that was certified;
    `positive` is the class, by name or number, of which it is said how much stays flagged; `base` the model's own accuracy, unsmoothed.
    """
    _check(certs)
    if not len(certs):
        raise InputError("There are no targets, so there is nothing to report.")
    if certs.places > 1 and not floor is base is positive is None:
        raise InputError(f"A floor, base or flag is about one answer, not the {certs.places} most probable.")
    accuracy = getattr(floor, "accuracy", floor)
    for name, share in (("floor", accuracy), ("base", base)):
        if share is not None and not (hasattr(share, "__float__") and 0 <= share <= 1):
            raise InputError(f"The {name} must be an accuracy between 0 and 1, not {share}.")
    accuracy = None if accuracy is None else float(accuracy)
    certs = certs.named(targets=names, classes=class_names)
    known = None if truth is None else certs.about.places(truth)
    return Summary(
        certs=certs,
        title=title or "Certified robustness",
        truth=_fitting(certs, None if known is None or not np.any(known >= 0) else known, "truth"),
        floor=accuracy,
        floor_name=str(getattr(floor, "name", "structure-free model")),
        attacked=_fitting(certs, attacked, "attacked"),
        degree=degrees(certs, data),
        command=command,
        settings={str(name): str(value) for name, value in (settings or {}).items()},
        positive=None if positive is None else _flag(certs, truth, positive),
        base=None if base is None else float(base),
    )


def _check(certs: Any) -> None:
    """Refuse what is no certificate yet."""
    if not isinstance(certs, Certified):
        hint = "; certify them first" if isinstance(certs, Votes) else ""
        raise InputError(f"A report is made of certificates, not of {type(certs).__name__}{hint}.")


def _flag(certs: Certified, truth: npt.ArrayLike | None, positive: Name) -> int:
    """The number of the class that should stay flagged."""
    if truth is None:
        raise InputError("What stays flagged can only be said with true labels; give truth= too.")
    place = int(certs.about.places([positive])[0])
    if place < 0 or not np.any(certs.about.places(truth) == place):
        raise InputError(
            f"None of the targets is known to be {positive}, so nothing can be said of how many stay flagged."
        )
    return place


def _fitting(certs: Certified, values: npt.ArrayLike | None, name: str) -> IntArray | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != certs.label.shape:
        raise InputError(f"There are {len(certs)} targets but {name} has shape {array.shape}.")
    if np.issubdtype(array.dtype, np.floating):
        array = np.where(np.isnan(array), -1, array)
    return array.astype(np.int64)


def median(sizes: IntArray) -> int:
    """Half of the targets reach this size."""
    return int(np.sort(sizes)[::-1][(len(sizes) - 1) // 2])
