"""Row-wise steps that rewritings look into: linear maps, biases, and blends of two states."""

from typing import Any

import torch
import torch.nn.functional as fn
from torch import Tensor


class Linear:
    """A linear map of each node's state, by a weight and if there is one a bias."""

    weight: Any
    bias: Any = None

    def __call__(self, h: Tensor) -> Tensor:
        """In new memory."""
        return fn.linear(h, self.weight, self.bias)


class Weight(Linear):
    """The weight of a linear layer, without its bias: what commutes with any sum over neighbours."""

    def __init__(self, linear: Any) -> None:
        self.linear = linear

    @property
    def weight(self) -> Tensor:
        """The layer's own, so that gradients reach it."""
        weight: Tensor = self.linear.weight
        return weight


class Shrunk(Weight):
    """GCN2Conv's map: `share` times a blend of the state itself and a linear map of it, as one linear map."""

    def __init__(self, owner: Any, name: str, share: float) -> None:
        self.owner, self.name, self.share = owner, name, share

    @property
    def weight(self) -> Tensor:
        """Of the layer's weight as it is now."""
        own: Tensor = getattr(self.owner, self.name)
        eye = torch.eye(len(own), dtype=own.dtype, device=own.device)
        mixed: Tensor = self.share * ((1 - self.owner.beta) * eye + self.owner.beta * own).T
        return mixed


class Plus:
    """Adds a bias that is the same for all nodes; `into` the state itself, where nothing else reads it."""

    def __init__(self, owner: Any, into: bool = False) -> None:
        self.owner, self.into = owner, into

    def __call__(self, h: Tensor) -> Tensor:
        """With the bias as it is now."""
        out: Tensor = h.add_(self.owner.bias) if self.into else h + self.owner.bias
        return out


class Blend:
    """a times one state plus b times another: linear, and the same for all features."""

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b = a, b

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """a x + b y."""
        return self.a * x + self.b * y
