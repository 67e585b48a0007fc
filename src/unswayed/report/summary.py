"""The facts of a report, computed once: every number that a plot, a page or a terminal shows comes from here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import cycle
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates
from unswayed.errors import InputError
from unswayed.report.neighbourhood import simple_edges
from unswayed.theory import ceiling
from unswayed.theory.noise import AddDelete, Flip, Noise

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

WIDEST = 120  # the largest size a curve is drawn to; beyond it nothing more can be read off
FURTHEST = 20  # additions and deletions a grid goes to
DOUBT = Fraction(1, 20)  # the band of a curve holds with probability 1 − this

# threat kind → (what a target is called, an attack of one change, an attack of up to k changes)
WORDS = {
    "row": (
        "node",
        "adds or deletes one of the node's links",
        "adds or deletes up to {k} of the node's links",
    ),
    "all-pairs": ("graph", "adds or deletes one edge", "adds or deletes up to {k} edges"),
    "pairs": ("node", "toggles one of the listed node pairs", "toggles up to {k} of the listed node pairs"),
    "bits": ("input", "flips one entry of the input", "flips up to {k} entries of the input"),
}


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

    certs: Certificates
    title: str
    truth: IntArray | None = None
    floor: float | None = None
    floor_name: str = "structure-free model"
    attacked: IntArray | None = None
    degree: IntArray | None = None
    names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    command: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    of_nodes: bool = False  # targets are nodes of one graph although the attacker may touch all of it

    @property
    def threat(self) -> str:
        """The kind of threat: row, all-pairs, pairs or bits."""
        about = self.certs.votes.provenance.get("threat")
        kind = about.get("kind") if isinstance(about, Mapping) else None
        return kind if kind in WORDS else "bits"

    @property
    def unit(self) -> str:
        """What one target is called."""
        if self.threat == "all-pairs" and self.of_nodes:
            return "node"
        return WORDS[self.threat][0]

    @property
    def right(self) -> BoolArray:
        """Where the certified label is the true one (everywhere it did not abstain, when the truth is unknown)."""
        sure = ~self.certs.abstained
        return sure if self.truth is None else sure & (self.certs.label == self.truth)

    @property
    def order(self) -> IntArray:
        """Positions of the targets, the weakest first: abstentions, then the smallest sizes, then the narrowest lead."""
        lead = self.certs.p_top - self.certs.p_rest
        return np.lexsort((self.certs.targets, lead, self.certs.size))

    @cached_property
    def top(self) -> int:
        """The largest size worth drawing."""
        size, entries = self.certs.size, self.certs.votes.entries
        bounded = size[size < entries]
        largest = int(bounded.max(initial=-1)) if bounded.size else int(size.max(initial=0))
        return min(max(largest + 1, 3), WIDEST)

    @cached_property
    def doubtful(self) -> int:
        """At most this many certificates are wrong, with probability 95% (0 for `family`, then with 1 − alpha).

        The expected number of wrong ones is at most alpha times the targets, and Markov's inequality needs nothing
        about how the targets depend on each other; noise shared by all targets makes them dependent.
        """
        if self.certs.family:
            return 0
        expected = Fraction(str(self.certs.alpha)) * len(self.certs)
        return min(max(ceil(expected / DOUBT) - 1, 0), len(self.certs))

    @cached_property
    def curve(self) -> Curve:
        """The curve from size 0 to `top`."""
        sizes = np.arange(self.top + 1)
        share = self.share(sizes)
        return Curve(sizes, share, np.maximum(share - self.doubtful / len(self.certs), 0.0))

    def share(self, at: npt.ArrayLike, of: IntArray | None = None) -> FloatArray:
        """The share of targets that are right (where truth is known) and certified at each size in `at`.

        `of` holds other sizes than K: `adds` or `deletes`.
        """
        good = np.where(self.right, self.certs.size if of is None else of, -1)
        return np.asarray((good >= np.asarray(at)[..., None]).mean(axis=-1), np.float64)

    @cached_property
    def attack_curve(self) -> FloatArray | None:
        """The share of targets right and not broken by a found attack of each size: no certificate can exceed it."""
        if self.attacked is None:
            return None
        good = np.where(self.right, np.where(self.attacked < 0, self.top + 1, self.attacked - 1), -1)
        return np.asarray((good >= self.curve.sizes[:, None]).mean(axis=1), np.float64)

    @cached_property
    def grid(self) -> BoolArray | None:
        """For asymmetric noise, bool[targets, adds, deletes] up to `FURTHEST` each; None for other noise."""
        return self.certs.grid(FURTHEST, FURTHEST) if isinstance(self.certs.noise, AddDelete) else None

    @property
    def adds(self) -> IntArray | None:
        """For asymmetric noise: how many additions alone each target withstands, up to `FURTHEST`."""
        return None if self.grid is None else self.grid[:, :, 0].sum(axis=1) - 1

    @property
    def deletes(self) -> IntArray | None:
        """For asymmetric noise: how many deletions alone each target withstands, up to `FURTHEST`."""
        return None if self.grid is None else self.grid[:, 0, :].sum(axis=1) - 1

    @cached_property
    def ceiling(self) -> int:
        """The largest size that unanimous votes could prove with these samples, noise and confidence."""
        votes, alpha = self.certs.votes, self.certs.alpha
        return ceiling(
            votes.noise,
            int(votes.samples.max()),
            alpha / len(votes) if self.certs.family else alpha,
            votes.classes,
            self.certs.bounds,
            cap=votes.entries,
            ones=votes.ones,
        )

    @property
    def median(self) -> int:
        """Half of the targets, abstentions counted as −1, are certified at this size or more."""
        return int(np.sort(self.certs.size)[::-1][(len(self.certs) - 1) // 2])

    @property
    def beats_floor_to(self) -> int | None:
        """The largest size at which the curve is above the floor; −1 where it is at none, None without a floor."""
        if self.floor is None or self.truth is None:
            return None
        good = np.sort(np.where(self.right, self.certs.size, -1))[::-1]
        needed = int(np.floor(self.floor * len(good) + 1e-9)) + 1
        return int(good[needed - 1]) if needed <= len(good) else -1

    def label_name(self, label: int) -> str:
        """A label as people read it; "abstains" for −1."""
        if label < 0:
            return "abstains"
        return self.class_names[label] if label < len(self.class_names) else str(label)

    def target_name(self, position: int) -> str:
        """A target as people read it."""
        return self.names[position] if self.names else str(self.certs.targets[position])


def summarise(
    certs: Certificates,
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
) -> Summary:
    """All facts of a report; whatever does not fit the certificates is refused.

    `floor` is an accuracy or an object with `accuracy` and `name`; `attacked[t]` is the size of the smallest attack
    found on target t, −1 (or NaN) where none was found; `data` is the graph, or the list of graphs, that was certified.
    """
    if not len(certs):
        raise InputError("There are no targets, so there is nothing to report.")
    accuracy = None if floor is None else float(getattr(floor, "accuracy", floor))
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise InputError(f"The floor must be an accuracy between 0 and 1, not {accuracy}.")
    return Summary(
        certs=certs,
        title=title or "Certified robustness",
        truth=_fitting(certs, truth, "truth"),
        floor=accuracy,
        floor_name=str(getattr(floor, "name", "structure-free model")),
        attacked=_fitting(certs, attacked, "attacked"),
        degree=_degrees(certs, data),
        names=tuple(map(str, names)) if names is not None else (),
        class_names=tuple(map(str, class_names)) if class_names is not None else (),
        command=command,
        settings={str(name): str(value) for name, value in (settings or {}).items()},
        of_nodes=data is not None and not isinstance(data, Sequence),
    )


def _fitting(certs: Certificates, values: npt.ArrayLike | None, name: str) -> IntArray | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != certs.label.shape:
        raise InputError(f"There are {len(certs)} targets but {name} has shape {array.shape}.")
    if np.issubdtype(array.dtype, np.floating):
        array = np.where(np.isnan(array), -1, array)
    return array.astype(np.int64)


def _degrees(certs: Certificates, data: Any) -> IntArray | None:
    """Neighbours of each target node; edges of each target graph; None where no graph is known."""
    if data is None or isinstance(data, Sequence):
        return certs.votes.ones
    count = max(int(data.num_nodes), int(certs.targets.max()) + 1)
    sources, _ = simple_edges(np.asarray(data.edge_index).reshape(2, -1), count)
    return np.bincount(sources, minlength=count)[certs.targets].astype(np.int64)


def noise_in_words(noise: Noise) -> str:
    """What the noise does, for people."""
    if isinstance(noise, Flip):
        return f"each entry keeps its value with probability {noise.beta:.6g}"
    return f"a missing entry appears with probability {noise.p_add:.6g}, an existing one vanishes with {noise.p_delete:.6g}"


def nice_sizes(top: int, most: int = 9) -> list[int]:
    """A few round sizes from 0 to about `top`, for the columns of a table.

    >>> nice_sizes(14)
    [0, 1, 2, 3, 5, 7, 10, 12, 14]
    """
    ladder = [0, 1, 2, 3, 5, 7, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120]
    inside = [size for size in ladder if size < top] + [top]
    picked = np.linspace(0, len(inside) - 1, min(most, len(inside))).round().astype(int)
    return [inside[place] for place in picked]


def round_step(last: int, most: int = 8) -> int:
    """The smallest of 1, 2, 5, 10, 20 … that cuts 0..last into at most `most` pieces."""
    step, factors = 1, cycle((2, 2.5, 2))
    while last > most * step:
        step = int(step * next(factors))
    return step
