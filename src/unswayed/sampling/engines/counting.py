"""What every engine has in common: it says which label each sample gave each target, and votes are counts of those."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from unswayed.sampling.structures import count_labels

IntArray = npt.NDArray[np.int64]


class Counting:
    """Counts exactly the labels that the engine hands out, so that what is audited is what was counted."""

    name: ClassVar[str]
    classes: int
    why: str = ""  # what keeps a faster engine from this question, in words

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the label of each sample for the targets at these positions; -1 is no answer."""
        raise NotImplementedError

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of samples start .. stop - 1 for the targets at these positions."""
        counts: Any = count_labels(self.labels(start, stop, targets), self.classes)
        return counts  # type: ignore[no-any-return]
