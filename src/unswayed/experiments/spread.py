"""What "±" means on every page: the sample standard deviation over splits or seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

PLUS_MINUS = "\u00a0±\u00a0"  # with spaces that no line breaks at


def deviation(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The sample standard deviation along the first axis; 0 where there is only one value.

    >>> float(deviation([1.0, 2.0, 3.0])), float(deviation([0.5]))
    (1.0, 0.0)
    """
    array = np.asarray(values, np.float64)
    return np.asarray(array.std(axis=0, ddof=1) if len(array) > 1 else np.zeros(array.shape[1:]))


def plus_minus(values: Sequence[float] | npt.NDArray[Any], form: str = ".3f") -> str:
    """The mean, and behind ± the deviation where there are several values.

    >>> plus_minus([0.5, 0.7], "+.2f").replace(PLUS_MINUS, " ± ")
    '+0.60 ± 0.14'
    """
    mean = format(float(np.mean(values)), form)
    spread = format(float(deviation(values)), form.lstrip("+"))
    return f"{mean}{PLUS_MINUS}{spread}" if len(values) > 1 else mean


def standard_error(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The standard error of the mean along the first axis: the deviation over the root of the number of values.

    >>> float(standard_error([1.0, 2.0, 3.0, 2.0]).round(3))
    0.408
    """
    return np.asarray(deviation(values) / np.sqrt(len(np.asarray(values))))
