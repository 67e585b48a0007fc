"""Models that answer one number, a logit or a probability: flagged above a threshold, as two classes."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.errors import InputError
from unswayed.sampling.beforehand import check_instance
from unswayed.sampling.calling import DENSE_NAMES
from unswayed.sampling.signatures import forward_names


class Flagged(nn.Module):
    """Class 1, flagged, where the model's one number is above the threshold; class 0 where it is not, and at a tie.

    The answer has two columns, the threshold and the number itself, so that nothing is rounded on the way.
    """

    def __init__(self, model: nn.Module, threshold: float) -> None:
        super().__init__()
        self.model, self.threshold = model, threshold
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        self.columns = nn.Linear(1, 2, dtype=like.dtype, device=like.device).requires_grad_(False)
        self.columns.weight.copy_(torch.tensor([[0.0], [1.0]]))
        self.columns.bias.copy_(torch.tensor([threshold, 0.0], dtype=torch.float64))

    def two(self, out: Any) -> Any:
        """[..., 2] from one number a row, [..., 1] or [...]."""
        if isinstance(out, Tensor) and (out.ndim == 0 or out.shape[-1] != 1):  # tracers see [..., 1] alone
            out = out.unsqueeze(-1)
        return self.columns(out)


class _Edges(Flagged):
    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.two(self.model(x, edge_index))


class _Batched(Flagged):
    def forward(self, x: Any, edge_index: Any, batch: Any = None) -> Any:
        return self.two(self.model(x, edge_index, batch=batch))


class _Dense(Flagged):
    def forward(self, x: Any, adj: Any) -> Any:
        return self.two(self.model(x, adj))


class _Data(Flagged):
    def forward(self, data: Any) -> Any:
        return self.two(self.model(data))


def flagged(model: Any, threshold: float) -> Flagged:
    """A model of one output as a classifier of two classes: 1 (flagged) where the output is above the threshold, else 0.

    Give 0 where the model answers a logit, 0.5 where it ends in a sigmoid; another threshold trades recall for precision, and
    is part of what is certified. The result is asked, certified, served and stored like any other module.
    """
    check_instance(model)
    if not isinstance(model, nn.Module):
        raise InputError(
            f"A threshold is for torch modules that answer one number; let {type(model).__name__} answer labels instead."
        )
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        raise InputError(
            f"threshold must be a number, such as 0 for a logit or 0.5 for a probability, not {threshold!r}."
        )
    names = forward_names(model)
    kind: type[Flagged] = _Data
    if "edge_index" in names:
        kind = _Batched if "batch" in names else _Edges
    elif len(names) > 1:
        kind = _Dense if names[1] in DENSE_NAMES else _Edges
    return kind(model, float(threshold))
