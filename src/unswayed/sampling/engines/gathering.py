"""Gathering one row of node states for every edge, on a card the quick way.

PyG gathers by `index_select`. For narrow rows torch's CUDA kernel for it gives every row a block of threads of its own and
reaches a few per cent of the card's bandwidth; plain indexing reads the same rows, so the same bits, many times faster.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

NAME = "_index_select"  # PyG's own method for it


@contextmanager
def indexing(model: Any, device: torch.device) -> Iterator[None]:
    """While this lasts, the message-passing layers of a module on a card gather rows by plain indexing."""
    modules = model.modules() if isinstance(model, nn.Module) and device.type == "cuda" else ()
    layers: list[Any] = [module for module in modules if _gathers_rows(module)]
    try:
        for layer in layers:
            layer.__dict__[NAME] = partial(_rows, layer.node_dim)
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop(NAME, None)


def _gathers_rows(module: nn.Module) -> bool:
    """Whether the layer gathers by the method it inherits from PyG, which must be there."""
    inherited = getattr(MessagePassing, NAME, None)
    same = isinstance(module, MessagePassing) and getattr(type(module), NAME, None) is inherited is not None
    return same and NAME not in module.__dict__


def _rows(dim: int, states: Tensor, index: Tensor) -> Tensor:
    first = dim in (0, -states.dim())
    return states[index] if first else states.index_select(dim, index)
