"""Models that answer one number, a logit or a probability: flagged above a threshold, as two classes."""

import math
from typing import Any

import torch
from torch import Tensor, fx, nn

from unswayed.errors import InputError
from unswayed.sampling.beforehand import check_instance
from unswayed.sampling.signatures import DENSE_NAMES, EDGE_NAMES, forward_names

SEVERAL_COLUMNS = "A threshold is for a model that answers one number; this one answers several, so leave the threshold out."


class Flagged(nn.Module):
    """The class `label` where the model's one number is above the threshold, the other where it is below; at a tie, class 0.

    The answer has two columns, the threshold and the number itself, so that nothing is rounded on the way.
    """

    def __init__(self, model: nn.Module, threshold: float, label: int = 1) -> None:
        super().__init__()
        self.model, self.threshold, self.label = model, threshold, label
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        self.columns = nn.Linear(1, 2, dtype=like.dtype, device=like.device).requires_grad_(False)
        number = torch.tensor([label == 0, label == 1])
        self.columns.weight.copy_(number[:, None])
        least = torch.tensor(threshold, dtype=like.dtype)
        if label == 0:  # ties go to the lower class, and a number at the threshold is not above it
            least = torch.nextafter(least, torch.full_like(least, torch.inf))
        self.columns.bias.copy_(torch.where(number, 0.0, least))

    @property
    def called_like(self) -> nn.Module:
        """Whose parameters decide how this is asked: what the model needs or reads is never lost on the way to it."""
        return self.model

    def two(self, out: Any) -> Any:
        """[..., 2] from one number a row, [..., 1] or [...]."""
        traced = issubclass(type(out), fx.Proxy)  # as [..., 1] alone
        if not traced and isinstance(out, Tensor) and (out.ndim == 0 or out.shape[-1] != 1):
            out = out.unsqueeze(-1)
        return self.columns(out)


class _Edges(Flagged):
    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.two(self.model(x, edge_index))


class _Batched(Flagged):
    def forward(self, x: Any, edge_index: Any, batch: Any = None) -> Any:
        return self.two(self.model(x, edge_index, batch=batch))


class _Weighted(Flagged):
    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        return self.two(self.model(x, edge_index, edge_weight=edge_weight))


class _Attributed(Flagged):
    def forward(self, x: Any, edge_index: Any, edge_attr: Any = None) -> Any:
        return self.two(self.model(x, edge_index, edge_attr=edge_attr))


class _Several(Flagged):
    def forward(
        self, x: Any, edge_index: Any, edge_weight: Any = None, edge_attr: Any = None, batch: Any = None
    ) -> Any:
        given = {"edge_weight": edge_weight, "edge_attr": edge_attr, "batch": batch}
        told = {name: value for name, value in given.items() if value is not None}
        return self.two(self.model(x, edge_index, **told))


class _Dense(Flagged):
    def forward(self, x: Any, adj: Any) -> Any:
        return self.two(self.model(x, adj))


class _Data(Flagged):
    def forward(self, data: Any) -> Any:
        return self.two(self.model(data))


OPTIONAL = ("batch", *EDGE_NAMES)
KINDS: dict[tuple[str, ...], type[Flagged]] = {  # by which of these the model takes
    (): _Edges,
    ("batch",): _Batched,
    ("edge_weight",): _Weighted,
    ("edge_attr",): _Attributed,
}


def flagged(model: Any, threshold: float, *, label: int = 1) -> Flagged:
    """A model of one output as a classifier of two classes: 1 (flagged) where the output is above the threshold, else 0.

    Give 0 where the model answers a logit, 0.5 where it ends in a sigmoid; another threshold trades recall for precision, and
    is part of what is certified. With `label=0` the flag is class 0. The result is asked, certified, served and stored like any
    other module.
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
    if isinstance(label, bool) or label not in (0, 1):
        raise InputError(f"label must be 0 or 1, the class that is flagged, not {label!r}.")
    names = forward_names(model)
    kind: type[Flagged] = _Data
    if "edge_index" in names or (len(names) > 1 and names[1] not in DENSE_NAMES):
        kind = KINDS.get(tuple(name for name in OPTIONAL if name in names), _Several)
    elif len(names) > 1:
        kind = _Dense
    return kind(model, float(threshold), label)
