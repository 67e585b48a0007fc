"""Bits: the attacker changes entries of a binary feature vector."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.threats.base import Threat, update_digest


class Bits(Threat):
    """The attacker may change any entry of a binary feature vector; `x` is bool[targets, n], one row a target.

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
        values = torch.as_tensor(np.asarray(x.todense()) if hasattr(x, "todense") else x).detach().cpu()
        if values.ndim != 2 or values.shape[0] == 0:
            raise InputError(f"Bits needs x of shape [targets, n], not {tuple(values.shape)}.")
        if not bool(((values == 0) | (values == 1)).all()):
            raise InputError("Bits needs zeros and ones only; binarise the features first.")
        self.x = values.bool()
        self.targets = np.arange(len(values))
        self.entries = np.full(len(values), values.shape[1], dtype=np.int64)
        self.ones = self.x.sum(dim=1).numpy()

    def clean(self, target: int) -> Tensor:
        """bool[n]: the row of the target."""
        return self.x[target]

    def _change(self, target: int, entries: Tensor) -> None:
        self.x = self.x[[target]].clone()
        self.x[0, entries] ^= True

    def digests(self) -> dict[str, str]:
        """The hash of the whole matrix."""
        return {"bits": update_digest("bits", self.x)}
