"""Bits: the attacker changes entries of a binary feature vector."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.threats.base import Threat, update_digest


class Bits(Threat):
    """The attacker may change any entry of a binary feature vector; `x` is bool[targets, n], one row a target.

    A DataFrame's index names the targets, and its columns must be those that the classifier was fitted on, in that order.

    >>> Bits([[0, 1, 1], [1, 0, 0]]).ones
    array([2, 1])
    """

    kind = "bits"
    style = "bits"
    words = Words(
        unit="input",
        one="flips one entry of the input",
        many="flips up to {k} entries of the input",
        adds="sets up to {k} of the input's zeros",
        deletes="clears up to {k} of the input's ones",
    )

    def __init__(self, x: Any) -> None:
        values = _values(x)
        if values.ndim != 2 or values.shape[0] == 0:
            raise InputError(f"Bits needs x of shape [targets, n], not {tuple(values.shape)}.")
        if not bool(((values == 0) | (values == 1)).all()):
            raise InputError("Bits needs zeros and ones only; binarise the features first.")
        self.x = values.bool()
        self.columns = tuple(map(str, getattr(x, "columns", ())))
        self.names = _row_names(x)
        self.targets = np.arange(len(values))
        self.entries = np.full(len(values), values.shape[1], dtype=np.int64)
        self.ones = self.x.sum(dim=1).numpy()

    def called(self) -> dict[int, str]:
        """The names of the rows of a DataFrame."""
        return self.names

    def clean(self, target: int) -> Tensor:
        """bool[n]: the row of the target."""
        return self.x[target]

    def _change(self, target: int, entries: Tensor) -> None:
        self.x = self.x[[target]].clone()
        self.x[0, entries] ^= True

    def digests(self) -> dict[str, str]:
        """The hash of the whole matrix."""
        return {"bits": update_digest("bits", self.x)}


def _values(x: Any) -> Tensor:
    """The rows as one tensor, whatever holds them."""
    held = x.todense() if hasattr(x, "todense") else x.to_numpy() if hasattr(x, "to_numpy") else x
    try:
        values: Tensor = torch.as_tensor(held if isinstance(held, Tensor) else _array(held))
    except (TypeError, ValueError) as error:
        raise InputError("Bits needs a table of zeros and ones; binarise the features first.") from error
    return values.detach().cpu()


def _array(held: Any) -> npt.NDArray[Any]:
    array = np.array(held)  # a copy: what pandas lends may be read-only
    return array.astype(np.float64) if array.dtype == object else array


def _row_names(x: Any) -> dict[int, str]:
    """What a DataFrame calls its rows, by number; {} where it numbers them from 0."""
    labels = list(x.index) if hasattr(x, "columns") and hasattr(x, "index") else []
    return {} if labels == list(range(len(labels))) else {i: str(label) for i, label in enumerate(labels)}
