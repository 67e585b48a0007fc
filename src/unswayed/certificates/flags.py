"""What stays flagged: recall and precision of one class under every attack of a size, as numbers and in words."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unswayed.certificates.about import withstood
from unswayed.errors import InputError, Unsupported

if TYPE_CHECKING:
    from unswayed.certificates.protocol import Certified

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def recall(
    certs: "Certified", truth: IntArray, flag: int, at: npt.ArrayLike, change: str = "any"
) -> FloatArray:
    """Of the targets of class `flag`, the share given that label with a size of at least each k in `at`."""
    truly = truth == flag
    if not truly.any():
        raise InputError(f"No target has the label {certs.about.label_name(flag)}, so there is no recall.")
    return certs[truly].share(at, change, certs.label[truly] == flag)


def precision(
    certs: "Certified", truth: IntArray, flag: int, at: npt.ArrayLike, change: str = "any"
) -> FloatArray:
    """The least share of right flags when each target suffers any attack of each size k in `at`, by itself: a certificate takes
    all but its own target's entries as fixed.

    What keeps its right flag stays; whatever else is of another class counts as flagged, unless it is certified not to be.
    """
    if certs.places > 1:
        raise Unsupported(
            f"A label that stays among the {certs.places} most probable does not keep another from being the answer, so there is no "
            "precision; certify the answer itself."
        )
    if np.any(truth < 0):
        raise InputError("Precision needs every target's true label; pick those that are known.")
    strong = withstood(certs.sizes(change), at, certs.about.limit(change))
    kept = (strong & (truth == flag) & (certs.label == flag)).sum(axis=-1)
    alarms = ((truth != flag) & ~(strong & (certs.label != flag))).sum(axis=-1)
    shares: FloatArray = np.where(alarms == 0, 1.0, kept / np.maximum(kept + alarms, 1))
    return shares
