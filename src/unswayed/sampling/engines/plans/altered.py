"""Layers that are not what their class says: methods set on the instance or put into the class, calls of their own.

A fast engine knows what `GCNConv` computes, not what this very object does once somebody has replaced its `message`.
"""

import inspect
from types import FunctionType
from typing import Any

from torch import nn

LIBRARIES = frozenset({"torch", "torch_geometric"})
HELPERS = frozenset({"contextlib", "functools", "typing_extensions", "warnings"})  # wrap the libraries' own


def is_library(kind: type) -> bool:
    """Whether the class is torch's or torch_geometric's own."""
    return kind.__module__.partition(".")[0] in LIBRARIES


def hooked(module: nn.Module) -> bool:
    """Whether anything is called before, after or inside the module besides its own methods; files of weights apart."""
    return any(
        held
        for name, held in vars(module).items()
        if name.startswith("_") and name.endswith("_hooks") and "state_dict" not in name
    )


def alteration(module: nn.Module) -> str | None:
    """What makes the module another one than its class says, in words; None where nothing does."""
    kind = type(module)
    call: Any = inspect.getattr_static(kind, "__call__")
    if not (isinstance(call, FunctionType) and _from_library(call)):
        return "has a __call__ of its own"
    for name in vars(module):
        if inspect.isroutine(inspect.getattr_static(kind, name, None)):
            return f"has a {name} of its own, set on the instance"
    replaced = _replaced(kind) if is_library(kind) else None
    return None if replaced is None else f"has a {replaced} of its own, put into its class"


def _replaced(kind: type) -> str | None:
    """The first method of a library's class that is not the library's."""
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, FunctionType) and not _from_library(value):
                return name
    return None


def _from_library(function: FunctionType) -> bool:
    """By the globals it runs in: a wrapper may carry the name of what it wraps."""
    return str(function.__globals__.get("__name__", "")).partition(".")[0] in LIBRARIES | HELPERS
