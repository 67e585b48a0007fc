"""From vote counts to bounds on the two probabilities a certificate needs, rounded against the certificate.

`strict` and `tight` hold with confidence 1 − alpha for a label chosen from the same votes; `tight` first tests that this
label is the most probable one. `anytime` also holds at every number of samples. `paper` is the published bound, proved
for a label fixed beforehand. The votes missing from a row are a reserved outcome, "no answer": never the label, and part of
the rest unless `rivals="labels"`, where the smoothed label is defined as the most probable one among the labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.anytime import limits
from unswayed.theory.binomial import Floats, Ints, lower_limit, upper_limit
from unswayed.theory.noise import Noise
from unswayed.theory.ranking import leads
from unswayed.theory.size import certified_size

LEAST_ALPHA = 1e-300  # below it, limits would be lost to underflow
MOST_ALPHA = 0.5  # from here on "the most voted label wins" would be a coin toss
METHODS = ("strict", "paper", "tight", "anytime")
RIVALS = ("all", "labels")


@dataclass(frozen=True)
class Bounds:
    """Per target: the most voted label, a lower bound on its probability, an upper bound on any rival's."""

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


def check_level(alpha: float, family_size: int = 1) -> None:
    """Refuse levels that no limit can be computed at."""
    number = isinstance(alpha, int | float | np.floating) and not isinstance(alpha, bool)
    if not number or not LEAST_ALPHA <= alpha < MOST_ALPHA:
        raise InputError(
            f"alpha must be a number above 0 (at least {LEAST_ALPHA:g}) and below {MOST_ALPHA:g}, not {alpha!r}"
            f"{_meant(alpha) if number else ''}."
        )
    if isinstance(family_size, bool) or not isinstance(family_size, int | np.integer) or family_size < 1:
        raise InputError(f"family_size must be a whole number, 1 or more, not {family_size!r}.")


def _meant(alpha: float) -> str:
    """Why a level is refused, and which was probably meant, as the end of a sentence."""
    if not alpha >= MOST_ALPHA:
        return ""
    confidence = next((c for c in (alpha, alpha / 100) if MOST_ALPHA < c < 1), None)
    meant = (
        ""
        if confidence is None
        else f"; for confidence {alpha:g}{'%' * (alpha > 1)} give alpha={1 - confidence:.6g}"
    )
    return f": a certificate that is as likely wrong as right says nothing{meant}"


def divisor(classes: int, method: str, rivals: str = "all") -> float:
    """alpha over this is the level of each single limit (`tight` spends what is left on its test)."""
    if rivals not in RIVALS:
        raise InputError(f"rivals must be one of {', '.join(RIVALS)}, not {rivals!r}.")
    one_limit = classes < 3 and rivals == "all"  # what the label leaves bounds everything else
    parts = {
        "strict": 2 if one_limit else classes + 2,
        "paper": classes,
        "tight": 10 / 9 if one_limit else 20 / 9,
        "anytime": 2 if one_limit else classes + (rivals == "all"),
    }
    if method not in parts:
        raise InputError(f"Unknown bounds {method!r}; choose one of {', '.join(METHODS)}.")
    return float(parts[method])


def _leaders(votes: Ints, d: Ints, rivals: str) -> tuple[Ints, Ints, Ints]:
    """The most voted label, its votes, and the votes of its strongest rival."""
    rows, label = np.arange(len(votes)), votes.argmax(axis=1)
    silent = d - votes.sum(axis=1) if rivals == "all" else np.zeros_like(d)
    others = np.column_stack([votes, silent])
    others[rows, label] = -1
    return label, votes[rows, label], others.max(axis=1)


def bound_votes(
    counts: ArrayLike,
    samples: ArrayLike,
    alpha: float,
    method: str = "strict",
    family_size: int = 1,
    rivals: str = "all",
) -> Bounds:
    """With confidence 1 − alpha/family_size for each target: p_top ≤ Pr(label) and p_rest ≥ Pr(any rival).

    Rivals are all other outcomes, or with `rivals="labels"` the other labels alone. `strict` and `tight` hold for the most
    voted label, `paper` for a label fixed beforehand, `anytime` for any label at any number of samples, however it was
    decided to stop.

    >>> bound_votes([[900, 60, 40]], 1000, alpha=0.001).p_top.round(4)
    array([0.8624])
    """
    votes, d = _checked(counts, samples)
    check_level(alpha, family_size)
    classes, alpha = votes.shape[1], float(alpha)
    share = divisor(classes, method, rivals) * family_size
    label, top, runner_up = _leaders(votes, d, rivals)
    if method == "anytime":
        p_top, p_rest = (limits(n, d, alpha, share, upper) for n, upper in ((top, False), (runner_up, True)))
    else:
        p_top, p_rest = lower_limit(top, d, alpha, share), upper_limit(runner_up, d, alpha, share)
    if classes < 3 and method != "paper" and rivals == "all":
        p_rest = np.ones_like(p_top)
    complement = np.where(p_top >= 0.5, 1 - p_top, np.nextafter(1 - p_top, np.inf)).clip(max=1.0)
    p_rest = np.minimum(p_rest, complement)
    if method == "tight":
        sure = leads(top, runner_up, alpha, 10 * family_size)
        p_top, p_rest = np.where(sure, p_top, 0.0), np.where(sure, p_rest, 1.0)
    return Bounds(label, p_top, p_rest)


def ceiling(
    noise: Noise,
    samples: int,
    alpha: float,
    classes: int,
    method: str = "strict",
    cap: ArrayLike = 10**6,
    *,
    ones: ArrayLike | None = None,
    rivals: str = "all",
) -> int:
    """The largest certified size that even unanimous votes could reach, on any of the targets that `cap` and `ones` tell of.

    `ones=0` asks about additions alone, `ones=cap` about deletions alone.

    >>> from unswayed.theory import Flip
    >>> ceiling(Flip(beta=0.7), samples=50_000, alpha=0.002, classes=2)
    19
    """
    best = bound_votes([[samples] + [0] * (classes - 1)], samples, alpha, method, rivals=rivals)
    if ones is None:
        return int(certified_size(best.p_top, best.p_rest, noise, np.max(cap))[0])
    caps, known = np.unique(np.stack(np.broadcast_arrays(cap, ones)).reshape(2, -1), axis=1)
    return int(certified_size(best.p_top, best.p_rest, noise, caps, ones=known).max())
