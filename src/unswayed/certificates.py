"""Certificates: what the votes prove about each target, and at which confidence.

`certify` is pure: the same votes and settings give the same certificates, on any machine.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.theory.bounds import METHODS, bound_votes
from unswayed.theory.noise import Flip, Noise
from unswayed.theory.size import certified_size, is_certified
from unswayed.votes import Votes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Certificates:
    """For each target a label and a size K: no change of at most K entries changes the smoothed classifier's label.

    This holds for each target separately with confidence 1 − `alpha`, or for all targets together when `family` is
    true. Where the votes prove no top label, `label` and `size` are −1.
    """

    label: IntArray
    size: IntArray
    p_top: FloatArray
    p_rest: FloatArray
    votes: Votes
    alpha: float
    bounds: str
    family: bool

    def __post_init__(self) -> None:
        for name in ("label", "size", "p_top", "p_rest"):
            getattr(self, name).flags.writeable = False

    @property
    def abstained(self) -> BoolArray:
        """Where the bounds prove no top label, so nothing is promised."""
        return self.label < 0

    @property
    def noise(self) -> Noise:
        """The noise the votes were drawn with."""
        return self.votes.noise

    @property
    def targets(self) -> IntArray:
        """The node or graph number of each target."""
        return self.votes.targets

    def __len__(self) -> int:
        return len(self.votes)

    def __repr__(self) -> str:
        sure = ~self.abstained
        median = f", median size {int(np.median(self.size[sure]))}" if sure.any() else ""
        return f"Certificates({len(self)} targets, {int(sure.sum())} certified{median}, alpha={self.alpha})"

    def accuracy(self, truth: npt.ArrayLike, at: npt.ArrayLike) -> FloatArray:
        """Certified accuracy: the share of targets with the right label and a size of at least each k in `at`.

        An abstention is never right, at any k.
        """
        right = np.asarray(truth)
        if right.shape != self.label.shape:
            raise InputError(f"There are {len(self)} targets but truth has shape {right.shape}.")
        if not len(self):
            raise InputError("There are no targets, so no certified accuracy.")
        sizes = np.asarray(at)
        good = np.where((self.label == right) & ~self.abstained, self.size, -1)
        shares: FloatArray = (good >= np.maximum(sizes, 0)[..., None]).mean(axis=-1)
        return shares

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: is the label proven against a added and r deleted entries?"""
        if adds < 0 or deletes < 0:
            raise InputError("The grid needs adds and deletes of 0 or more.")
        cells = is_certified(
            self.p_top[:, None, None],
            self.p_rest[:, None, None],
            self.noise,
            adds=np.arange(adds + 1)[None, :, None],
            deletes=np.arange(deletes + 1)[None, None, :],
        )
        return np.asarray(cells & ~self.abstained[:, None, None], bool)

    def statement(self, target: int) -> str:
        """The guarantee for one target (by position), in one plain paragraph."""
        votes, name = self.votes, int(self.targets[target])
        drawn, counts = int(votes.samples[target]), votes.counts[target]
        scope = "all targets of this run together" if self.family else "this target taken by itself"
        confidence = confidence_in_words(self.alpha)
        how = f"{drawn:,} noisy copies ({_noise_in_words(self.noise)})"
        if self.abstained[target]:
            return (
                f"Target {name}: no guarantee. Among {how}, label {int(counts.argmax())} came first with "
                f"{int(counts.max()):,} votes, but that does not prove it the most probable one with confidence "
                f"{confidence}. More samples or a noise closer to the identity may settle it."
            )
        label, size, entries = int(self.label[target]), int(self.size[target]), int(votes.entries[target])
        return (
            f"Target {name}: with confidence {confidence}, for {scope}, {_promise(label, size, entries)}. Among {how}, label {label} won {int(counts[label]):,}; so its probability is at least "
            f"{rounded_down(self.p_top[target])} and no other label's exceeds {rounded_up(self.p_rest[target])}. The promise is about the "
            "smoothed classifier with these weights and these attackable entries; everything else is taken as fixed."
        )

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame with one row per target."""
        import pandas as pd  # pandas costs half a second, and only tables need it

        columns: dict[str, Any] = {
            "target": self.targets,
            "label": self.label,
            "size": self.size,
            "abstained": self.abstained,
            "p_top": self.p_top,
            "p_rest": self.p_rest,
            "samples": self.votes.samples,
            "no_answer": self.votes.no_answer,
            "entries": self.votes.entries,
        }
        return pd.DataFrame(columns)

    def plot(
        self, truth: npt.ArrayLike | None = None, *, floor: float | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw the certified-accuracy curve (or, without `truth`, the share of targets certified at each size)."""
        from unswayed.report.plots import plot_certificates  # matplotlib only when asked for

        return plot_certificates(self, truth, floor=floor, ax=ax)


def confidence_in_words(alpha: float) -> str:
    """1 − alpha in per cent, never rounded up to certainty.

    >>> confidence_in_words(0.001), confidence_in_words(1e-12)
    ('99.9%', '1 − 1e-12')
    """
    return f"{100 * (1 - alpha):.10g}%" if alpha >= 1e-9 else f"1 − {alpha:g}"


def rounded_down(probability: float) -> str:
    """Nine decimals, none too large: what is at least `probability` is at least this.

    >>> rounded_down(1 - 1e-10), rounded_up(1e-10)
    ('0.999999999', '1e-09')
    """
    return f"{math.floor(probability * 1e9) / 1e9:.9g}"


def rounded_up(probability: float) -> str:
    """Nine decimals, none too small."""
    return f"{math.ceil(probability * 1e9) / 1e9:.9g}"


def _promise(label: int, size: int, entries: int) -> str:
    if size == 0:
        return f"the smoothed classifier answers {label}, but a single changed entry might already move it"
    of = f"{entries:,} attackable entries"
    change = (
        f"change of its {of}, however large," if size >= entries else f"change of at most {size} of its {of}"
    )
    return f"no {change} moves the smoothed classifier off label {label}"


def _noise_in_words(noise: Noise) -> str:
    if isinstance(noise, Flip):
        return f"each entry kept with probability {noise.beta:.6g}"
    return (
        f"entries added with probability {noise.p_add:.6g} and deleted with probability {noise.p_delete:.6g}"
    )


def certify(
    votes: Votes, *, alpha: float = 0.001, bounds: str = "strict", family: bool = False
) -> Certificates:
    """Certificates that hold with confidence 1 − `alpha`: for each target, or with `family` for all of them together.

    `bounds="strict"` holds for the label chosen from these same votes; `"paper"` is the published rule, whose level is
    proved for a label fixed beforehand; `"anytime"` holds however often one looks and whenever sampling stops.

    >>> votes = Votes.from_counts([[9_990, 10], [5_100, 4_900]], Flip(beta=0.7), entries=2_707)
    >>> certs = certify(votes, alpha=0.001)
    >>> certs.label, certs.size
    (array([ 0, -1]), array([11, -1]))
    """
    if bounds not in METHODS:
        raise InputError(f"bounds must be one of {', '.join(METHODS)}, not {bounds!r}.")
    if votes.adaptive and bounds != "anytime":
        raise InputError(
            "Sampling of these votes was stopped by looking at them, which voids fixed-sample bounds; "
            'use bounds="anytime".'
        )
    if votes.provenance.get("purpose") == "train":
        raise InputError("Noise of purpose 'train' may have trained the model; poll with purpose='certify'.")
    found = bound_votes(
        votes.counts, votes.samples, alpha, method=bounds, family_size=max(len(votes), 1) if family else 1
    )
    size = certified_size(found.p_top, found.p_rest, votes.noise, votes.entries, ones=votes.ones)
    label = np.where(size < 0, -1, found.label)
    return Certificates(
        label=label.astype(np.int64),
        size=size.astype(np.int64),
        p_top=np.array(found.p_top, np.float64),
        p_rest=np.array(found.p_rest, np.float64),
        votes=votes,
        alpha=float(alpha),
        bounds=bounds,
        family=bool(family),
    )
