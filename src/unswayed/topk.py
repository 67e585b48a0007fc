"""Top-k certificates: how large an attack leaves a label among the k most probable outcomes, from the same votes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.theory.anytime import limits
from unswayed.theory.binomial import lower_limit, upper_limit
from unswayed.theory.bounds import check_level
from unswayed.theory.topk import certified_topk_size
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TopCertificates:
    """For each target a label and a size: no change of at most so many entries moves it out of the k most probable.

    This holds for each target separately with confidence 1 − `alpha`, or for all together when `family` is true. `size` is
    −1 where the votes do not even prove that the label is there. `p_label` is the proven lower bound of its probability.
    """

    label: IntArray
    size: IntArray
    p_label: FloatArray
    votes: Votes
    k: int
    alpha: float
    bounds: str
    family: bool

    def __post_init__(self) -> None:
        for name in ("label", "size", "p_label"):
            getattr(self, name).flags.writeable = False

    @property
    def abstained(self) -> BoolArray:
        """Where the label is not proven to be among the k most probable, so nothing is promised."""
        return self.size < 0

    def __len__(self) -> int:
        return len(self.votes)

    def share(self, at: npt.ArrayLike) -> FloatArray:
        """The share of targets whose label stays among the k most probable at each size in `at`."""
        if not len(self):
            raise InputError("There are no targets, so no share of them.")
        shares: FloatArray = (self.size >= np.maximum(np.asarray(at), 0)[..., None]).mean(axis=-1)
        return shares


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
    _check(votes, k, alpha, bounds)
    chosen = _labels(votes, label)
    parts = len(votes) if family else 1
    p_label, p_others = _limits(votes, chosen, label is None, float(alpha), bounds, max(parts, 1))
    size = certified_topk_size(p_label, p_others, int(k), votes.noise, votes.entries, ones=votes.ones)
    return TopCertificates(
        chosen, size.astype(np.int64), p_label, votes, int(k), float(alpha), bounds, bool(family)
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


def _check(votes: Votes, k: int, alpha: float, bounds: str) -> None:
    check_level(alpha)
    if bounds not in ("strict", "anytime"):
        raise InputError(f'bounds must be "strict" or "anytime" for top-k certificates, not {bounds!r}.')
    if votes.adaptive and bounds != "anytime":
        raise InputError(
            "Sampling of these votes was stopped by looking at them, which voids fixed-sample bounds; "
            'use bounds="anytime".'
        )
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
