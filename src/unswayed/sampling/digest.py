"""Content hashes of classifiers, so that a stored run is never continued with another one."""

import hashlib
import inspect
from typing import Any

import numpy as np
from torch import Tensor, nn

from unswayed.sampling.inputs import update_hash

SIMPLE = (bool, int, float, str, type(None))


def describe_model(model: Any) -> dict[str, str]:
    """JSON-ready: the classifier's name, a sha256 of its content, and in words what that covers.

    A module: its printed form, the plain settings of every submodule, the source of every class that is not torch's or
    torch_geometric's own, all parameters and buffers. A fitted estimator: its settings and fitted attributes. A function: its
    source, defaults and what it closes over. Nothing can see what a function reads from globals.
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


def _hash_module(hashed: Any, model: nn.Module) -> None:
    for name, module in model.named_modules():
        kind = type(module)
        own = not kind.__module__.startswith(("torch.", "torch_geometric."))
        hashed.update(f"{name} {_name(kind)} {_source(kind) if own else ''}".encode())
        settings = {
            k: v for k, v in vars(module).items() if isinstance(v, SIMPLE) and k != "training" and k[0] != "_"
        }
        hashed.update(f"{module.extra_repr()} {sorted(settings.items())}".encode())
    for name, value in sorted(model.state_dict(keep_vars=True).items()):
        if isinstance(value, Tensor):
            update_hash(hashed, name, value)


def _hash_value(hashed: Any, name: str, value: Any, depth: int) -> None:
    """Feed a value and what it holds, down to a depth, in an order that does not depend on the process."""
    if isinstance(value, SIMPLE):
        hashed.update(f"{name}={value!r}".encode())
    elif isinstance(value, nn.Module):
        _hash_module(hashed, value)
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
