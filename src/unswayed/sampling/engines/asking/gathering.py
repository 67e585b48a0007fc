"""Gathering one row of node states for every edge, on a card the quick way.

PyG gathers by `index_select`. For rows of a few numbers torch's CUDA kernel for it, and for plain indexing too, gives every
row a block of threads of its own and reaches a few per cent of the card's bandwidth. A kernel of ours, or indexing by numbers
instead of rows, reads the same bits more than ten times faster.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from unswayed.sampling.engines.cards import fused

NAME = "_index_select"  # PyG's own method for it
INHERITED: Any = getattr(MessagePassing, NAME, None)
# a release of PyG that changes what it takes is left alone
KNOWN = INHERITED is not None and list(inspect.signature(INHERITED).parameters) == ["self", "src", "index"]
NARROW = 512  # bytes of a row up to which its numbers are better read one by one


@contextmanager
def indexing(model: Any, device: torch.device) -> Iterator[None]:
    """While this lasts, the message-passing layers of a module on a card gather narrow rows number by number."""
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
    """Whether the layer gathers by the method it inherits from PyG, which must be the one that is known here."""
    same = isinstance(module, MessagePassing) and getattr(type(module), NAME, None) is INHERITED
    return same and KNOWN and NAME not in module.__dict__


def _rows(dim: int, states: Tensor, index: Tensor) -> Tensor:
    whole = states.dim() < 2 or states.numel() == 0 or dim not in (0, -states.dim())
    if whole or states.element_size() * states[0].numel() > NARROW:
        return states.index_select(dim, index)
    return _picked(states.flatten(1), index).view(-1, *states.shape[1:])


def _picked(states: Tensor, index: Tensor) -> Tensor:
    """[rows, F] of narrow states [n, F]."""
    return fused.rows(states, index) if fused.copies(states) else _by_sixteen(states, index)


def _by_sixteen(states: Tensor, index: Tensor) -> Tensor:
    """The same by torch alone, sixteen bytes at a time where rows are made of these."""
    whole = states.is_contiguous() and states.data_ptr() % 16 == 0
    wide = whole and states.shape[1] * states.element_size() % 16 == 0
    units = states.view(torch.complex128) if wide else states
    place = index[:, None] * units.shape[1] + torch.arange(units.shape[1], device=index.device)
    return units.flatten()[place].view(states.dtype)
