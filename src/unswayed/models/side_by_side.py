"""Several small networks as one wider network that says the mean of what they say, so that it is asked as fast as one."""

from collections.abc import Sequence

import torch
from torch import Tensor

Weights = dict[str, Tensor]


def side_by_side(members: Sequence[Weights], *, first: str = "first", last: str = "second") -> Weights:
    """The weights of a two-layer network whose logits are the mean of those of these members, but for rounding.

    Their hidden channels lie side by side: layer `first` gives all of them, layer `last` adds up its part of each. Right
    wherever each hidden channel depends on its own row of `first` alone, as in perceptrons, GCN, GraphSAGE; not in attention.
    """
    parts = {name: [member[name] for member in members] for name in members[0]}
    return {name: _joined(own, name.split(".")[0], name, first, last) for name, own in parts.items()}


def _joined(parts: Sequence[Tensor], layer: str, name: str, first: str, last: str) -> Tensor:
    if layer not in (first, last):
        raise ValueError(f"{name} belongs to neither {first} nor {last}.")
    if layer == first:
        return torch.cat(list(parts))
    if name.endswith("bias"):
        return torch.stack(list(parts)).mean(dim=0)
    return torch.cat(list(parts), dim=1) / len(parts)
