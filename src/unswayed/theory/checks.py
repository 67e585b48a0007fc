"""What the theory's functions refuse, in one sentence each."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def check_probability(value: ArrayLike, name: str) -> Floats:
    """The value as float64, all of it in [0, 1]."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers between 0 and 1.") from error
    if not np.all((array >= 0) & (array <= 1)):  # NaN fails both
        raise InputError(f"{name} must lie between 0 and 1, without NaN.")
    return array


def check_counts(value: ArrayLike, name: str) -> Ints:
    """The value as int64, all of it 0 or more."""
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.integer) or np.any(array < 0):
        raise InputError(f"{name} must be whole numbers, 0 or more.")
    return array.astype(np.int64)


def check_count(value: object, name: str) -> int:
    """One whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} must be a whole number, 0 or more, not {value!r}.")
    return int(value)


def fit(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The arrays broadcast against each other."""
    try:
        return tuple(np.broadcast_arrays(*arrays))
    except ValueError as error:
        raise InputError(
            f"The shapes {', '.join(str(array.shape) for array in arrays)} do not fit together."
        ) from error


def check_ones(ones: ArrayLike | None, shape: tuple[int, ...], cap: Ints) -> Ints | None:
    """The numbers of 1-entries in the shape of the probabilities, or None where they are unknown."""
    if ones is None:
        return None
    try:
        array = np.broadcast_to(np.asarray(ones), shape)
    except ValueError as error:
        raise InputError(f"`ones` does not fit the shape {shape} of the probabilities.") from error
    if not np.issubdtype(array.dtype, np.integer) or np.any((array < 0) | (array > cap)):
        raise InputError("`ones` must be whole numbers between 0 and the number of entries.")
    return array.astype(np.int64)


def whole_numbers(values: ArrayLike, name: str, ndim: int) -> Ints:
    """A read-only int64 copy with `ndim` dimensions and no negative value."""
    array = np.asarray(values)
    if array.ndim != ndim:
        raise InputError(f"{name} must have {ndim} dimension(s), not {array.ndim}.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        whole = np.issubdtype(array.dtype, np.floating) and bool(np.all(array == np.floor(array)))
        if not whole or bool(np.any(np.abs(array) >= 2.0**53)):  # also refuses NaN and infinities
            raise InputError(f"{name} must hold whole numbers.")
    if array.size and (array.min() < 0 or array.max() >= 2**62):
        raise InputError(f"{name} must hold counts from 0 up, none negative.")
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array


def per_target(values: ArrayLike, name: str, targets: int) -> Ints:
    """One count for each target; a single number stands for all of them."""
    array = np.asarray(values)
    if array.shape not in ((), (1,), (targets,)):
        raise InputError(f"{name} must be one number or one for each of the {targets} targets.")
    return whole_numbers(np.broadcast_to(array, (targets,)), name, 1)


def whole_sizes(at: ArrayLike) -> Ints:
    """The numbers of changes that are asked about: whole, 0 or more."""
    given = np.asarray(at)
    if given.dtype.kind not in "iuf" or not np.all((given >= 0) & (given == np.floor(given))):
        raise InputError(f"at must be whole numbers of changes, 0 or more, not {at!r}.")
    return given.astype(np.int64)
