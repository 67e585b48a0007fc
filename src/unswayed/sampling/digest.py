"""Content hashes of classifiers, so that a stored run is never continued with another one."""

import hashlib
import inspect
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from unswayed.sampling.inputs import update_hash

SIMPLE = (bool, int, float, str, type(None))
HELD = (*SIMPLE, Tensor, np.ndarray, list, tuple, dict, partial)
INTERNAL = frozenset(vars(nn.Module()))  # among them `training`, which a poll sets and restores


def describe_model(model: Any) -> dict[str, str]:
    """JSON-ready: the classifier's name, a sha256 of its content, and in words what that covers.

    A module: its printed form, the settings, tensors and functions that every submodule holds, its forward hooks, the
    source of every class that is not torch's or torch_geometric's own, all parameters and buffers. A fitted estimator: its
    settings and fitted attributes. A function: its source, defaults and what it closes over. Nothing can see what a
    function reads from globals.
    """
    hashed = hashlib.sha256()
    if isinstance(model, nn.Module):
        covers = "source, settings and state of every module"
        _hash_module(hashed, model)
    elif hasattr(model, "predict"):
        covers = "source, settings and fitted attributes of the estimator"
        _hash_value(hashed, "estimator", model, depth=8)
    else:
        covers = "source, defaults and closure of the callable"
        _hash_value(hashed, "callable", model, depth=4)
    return {"name": _name(model), "sha256": hashed.hexdigest(), "covers": covers}


def _name(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return _name(thing)


def _hash_module(hashed: Any, model: nn.Module, depth: int = 4) -> None:
    for name, module in model.named_modules():
        kind = type(module)
        own = not kind.__module__.startswith(("torch.", "torch_geometric."))
        hashed.update(f"{name} {_name(kind)} {_source(kind) if own else ''}".encode())
        hashed.update(module.extra_repr().encode())
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        for key, value in [*_held(module, own), ("hooks", hooks)] if depth > 0 else []:
            _hash_value(hashed, key, value, depth - 1)
    for name, value in sorted([*model.named_parameters(), *model.named_buffers()], key=lambda item: item[0]):
        update_hash(hashed, name, value)


def _held(module: nn.Module, own: bool) -> list[tuple[str, Any]]:
    """What a module holds as plain attributes and may answer by; of library classes, their public settings."""
    held = {
        key: value for key, value in vars(module).items() if key not in INTERNAL and (own or key[0] != "_")
    }
    plain = {k: v for k, v in held.items() if isinstance(v, HELD) or inspect.isroutine(v)}
    return sorted(plain.items(), key=lambda item: item[0])


def _hash_value(hashed: Any, name: str, value: Any, depth: int) -> None:
    """Feed a value and what it holds, down to a depth, in an order that does not depend on the process."""
    if isinstance(value, SIMPLE):
        hashed.update(f"{name}={value!r}".encode())
    elif isinstance(value, nn.Module):
        _hash_module(hashed, value, depth - 1)
    elif isinstance(value, Tensor):
        update_hash(hashed, name, value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        hashed.update(f"{name} {value.dtype} {value.shape}".encode())
        hashed.update(np.ascontiguousarray(value).tobytes())
    else:
        hashed.update(f"{name}:{_name(value)}".encode())
        if inspect.isroutine(value) or inspect.isclass(value):
            hashed.update(_source(value).encode())
        if depth > 0:
            for key, item in _parts(value):
                _hash_value(hashed, key, item, depth - 1)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return sorted(((str(key), item) for key, item in value.items()), key=lambda part: part[0])
    if isinstance(value, list | tuple):
        return [(str(i), item) for i, item in enumerate(value)]
    if isinstance(value, np.ndarray):
        return [(str(i), item) for i, item in enumerate(value.ravel())]
    if inspect.isfunction(value):
        cells = value.__closure__ or ()
        return [
            ("defaults", value.__defaults__),
            *((f"cell{i}", c.cell_contents) for i, c in enumerate(cells)),
        ]
    if inspect.ismethod(value):
        return [("self", value.__self__), ("function", value.__func__)]
    if hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if inspect.isclass(value) or inspect.isbuiltin(value) or inspect.ismodule(value):
        return []
    state = value.__getstate__() if hasattr(value, "__getstate__") else vars(value)
    return [("class", type(value)), ("state", state)] if state is not None else [("class", type(value))]
