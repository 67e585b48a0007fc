"""From vote counts to bounds on the two probabilities a certificate needs, rounded against the certificate.

`strict` holds with confidence 1 − alpha for a label chosen from the same votes. `paper` is the published bound, proved for
a label fixed beforehand. The votes missing from a row are a reserved outcome, "no answer": never the label, always part
of the rest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.binomial import Floats, Ints, lower_limit, upper_limit
from unswayed.theory.noise import Noise
from unswayed.theory.size import certified_size

METHODS = ("strict", "paper")


@dataclass(frozen=True)
class Bounds:
    """Per target: the most voted label, a lower bound on its probability, an upper bound on any other outcome's."""

    label: Ints
    p_top: Floats
    p_rest: Floats


def _integers(value: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} must be whole numbers.")
    return array.astype(np.int64)


def _checked(counts: ArrayLike, samples: ArrayLike) -> tuple[Ints, Ints]:
    votes, d = _integers(counts, "Vote counts"), _integers(samples, "The numbers of samples")
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise InputError(
            f"Vote counts must have one row a target and at least two classes, not shape {votes.shape}."
        )
    if d.ndim > 1 or (d.ndim == 1 and d.shape[0] != votes.shape[0]):
        raise InputError(
            f"Give one number of samples, or one a target ({votes.shape[0]}), not shape {d.shape}."
        )
    d = np.broadcast_to(d, votes.shape[:1])
    if np.any(votes < 0) or np.any(d < 1):
        raise InputError("Vote counts must not be negative, and every target needs at least one sample.")
    if np.any(votes.sum(axis=1) > d):
        raise InputError("A target has more votes than samples.")
    return votes, d


def _level(alpha: float, family_size: int) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating) or not 1e-300 <= alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1 (and not below 1e-300), not {alpha!r}.")
    if isinstance(family_size, bool) or not isinstance(family_size, int | np.integer) or family_size < 1:
        raise InputError(f"family_size must be a whole number, 1 or more, not {family_size!r}.")


def divisor(classes: int, method: str) -> int:
    """Among how many events `method` splits alpha: each single limit is computed at alpha over this number."""
    if method == "strict":
        return 2 if classes == 2 else classes + 2
    if method == "paper":
        return classes
    raise InputError(f"Unknown bounds {method!r}; choose one of {', '.join(METHODS)}.")


def bound_votes(
    counts: ArrayLike, samples: ArrayLike, alpha: float, method: str = "strict", family_size: int = 1
) -> Bounds:
    """With confidence 1 − alpha/family_size for each target: p_top ≤ Pr(label) and p_rest ≥ Pr(any other outcome).

    >>> bound_votes([[900, 60, 40]], 1000, alpha=0.001).p_top.round(4)
    array([0.8624])
    """
    votes, d = _checked(counts, samples)
    _level(alpha, family_size)
    share = divisor(votes.shape[1], method) * int(family_size)
    label = votes.argmax(axis=1)
    rows = np.arange(len(votes))
    p_top = lower_limit(votes[rows, label], d, float(alpha), share)
    complement = np.where(p_top >= 0.5, 1 - p_top, np.nextafter(1 - p_top, 2.0)).clip(max=1.0)
    if method == "strict" and votes.shape[1] == 2:
        return Bounds(label, p_top, complement)
    others = np.column_stack([votes, d - votes.sum(axis=1)])
    others[rows, label] = -1
    p_rest = upper_limit(others.max(axis=1), d, float(alpha), share)
    return Bounds(label, p_top, np.minimum(p_rest, complement))


def ceiling(
    noise: Noise, samples: int, alpha: float, classes: int, method: str = "strict", cap: int = 10**6
) -> int:
    """The largest certified size that even unanimous votes could reach.

    >>> from unswayed.theory import Flip
    >>> ceiling(Flip(beta=0.7), samples=50_000, alpha=0.002, classes=2)
    19
    """
    counts = np.zeros((1, classes), dtype=np.int64)
    counts[0, 0] = samples
    best = bound_votes(counts, samples, alpha, method)
    return int(certified_size(best.p_top, best.p_rest, noise, cap)[0])
