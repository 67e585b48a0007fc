"""Content hashes of classifiers, so that a stored run is never continued with another one.

Whatever a classifier holds is either hashed, in the same way in every process, or refused: nothing is passed over.
"""

import hashlib
import logging
import re
from collections.abc import Callable
from enum import Enum
from functools import _lru_cache_wrapper, partial
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from unswayed.errors import UnsoundModel
from unswayed.sampling.inputs import update_hash
from unswayed.sampling.sources import (
    LENIENT,
    Bound,
    Parts,
    bound_by,
    by_name,
    is_library,
    name_of,
    of_builtin,
    of_class,
    of_function,
)

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)
TORCH = (torch.dtype, torch.device, torch.layout, torch.Size, torch.memory_format)
PRINTED: frozenset[type] = frozenset({*PLAIN, *TORCH})  # their printed form says all
# among them `training`, which a poll sets and restores
INTERNAL = frozenset(vars(nn.Module())) | {"inspector"}
HOOKS = ("_forward_pre_hooks", "_forward_hooks")
STATE = (Tensor, nn.Module, np.ndarray, list, dict, set)
NO_SETTING = (Tensor, nn.Module, type(None))


def describe_model(model: Any) -> dict[str, str]:
    """JSON-ready: the classifier's name, a sha256 of its content, and in words what that covers.

    A module: the source of every class that is not torch's or torch_geometric's own, with its bases; the settings, tensors,
    functions and hooks that every submodule holds, all parameters and buffers. A fitted estimator: its
    settings and fitted attributes. A function, or a method of a class: its source, defaults, what it closes over, and what it names
    among globals or imports when it is called, but for what a library or a package defines; functions and classes of the user's own with
    all this again. Nothing can see what else it reads.
    """
    if isinstance(model, nn.Module):
        covers = "source, settings and state of every module"
    elif hasattr(model, "predict"):
        covers = "source, settings and fitted attributes of the estimator"
    else:
        covers = "source, defaults and closure of the callable"
    try:
        content = _Fingerprint().of(model, "the classifier").hex()
    except RecursionError as error:
        raise UnsoundModel("The classifier's settings are nested too deeply to be hashed.") from error
    return {"name": name_of(model), "sha256": content, "covers": covers}


def share_state(one: Any, other: Any) -> bool:
    """Whether two classifiers hold something in common that may change: a network, numbers, a list."""
    mine, theirs = _Fingerprint(), _Fingerprint()
    mine.of(one, "the classifier")
    theirs.of(other, "the classifier")
    return any(isinstance(mine.known[each][0], STATE) for each in mine.known.keys() & theirs.known.keys())


def bindings(model: Any) -> list[Bound]:
    """Every name of the user's own that the classifier's code goes by, with what it is bound to now."""
    seen = _Fingerprint()
    seen.of(model, "the classifier")
    return [bound for value, _ in seen.known.values() for bound in bound_by(value)]


def settings_of(model: nn.Module) -> dict[str, bytes]:
    """Digests of what every module holds beside tensors and functions, by name."""
    return {
        f"{place}.{name}".lstrip("."): _Fingerprint()._part(LENIENT, value, name)
        for place, module in model.named_modules()
        for name, value in vars(module).items()
        if name not in INTERNAL and not isinstance(value, NO_SETTING) and not callable(value)
    }


class _Fingerprint:
    """Digests of values by their content; a value that is met again inside itself is known by how far up it is."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, bytes]] = {}  # the value too, so that its id stays its own
        self.open: dict[int, int] = {}

    def of(self, value: Any, path: str) -> bytes:
        """sha256 of the value, or a refusal that names where it is held."""
        if type(value) in PRINTED or isinstance(value, Enum | PurePath | np.dtype):
            return _sha(f"{name_of(type(value))} {value!r}")
        if id(value) in self.open:
            return _sha(f"again, {len(self.open) - self.open[id(value)]} up")
        if id(value) not in self.known:
            self.open[id(value)] = len(self.open)
            try:
                self.known[id(value)] = value, self._digest(value, path)
            finally:
                del self.open[id(value)]
        return self.known[id(value)][1]

    def _digest(self, value: Any, path: str) -> bytes:
        if isinstance(value, Tensor):
            return _tensor(value, path)
        if isinstance(value, np.generic | np.ndarray) and not value.dtype.hasobject:
            return _sha(f"{value.dtype} {value.shape}", np.ascontiguousarray(value).tobytes())
        if isinstance(value, set | frozenset):
            return _sha(name_of(type(value)), *sorted(self.of(item, f"{path} (a set)") for item in value))
        head = f"{name_of(type(value))} {name_of(value) if isinstance(value, NAMED) else ''}"
        parts = [_sha(name) + self._part(name, item, path) for name, item in _parts(value, path)]
        return _sha(head, *parts)

    def _part(self, name: str, item: Any, path: str) -> bytes:
        """A part; lenient ones are passed over where they have no content to compare."""
        if not name.startswith(LENIENT):
            return self.of(item, f"{path}.{name}")
        try:
            return self.of(item, path)
        except UnsoundModel:
            return b""


def _sha(*content: str | bytes) -> bytes:
    """One digest of several pieces, each with its length, so that none can pass for two."""
    hashed = hashlib.sha256()
    for item in content:
        piece = item.encode() if isinstance(item, str) else item
        hashed.update(len(piece).to_bytes(8, "little") + piece)
    return hashed.digest()


def _tensor(value: Tensor, path: str) -> bytes:
    hashed = hashlib.sha256(name_of(type(value)).encode())
    try:
        update_hash(hashed, "tensor", value)
    except Exception as error:  # meta, lazy, quantised: whatever has no plain numbers
        raise _refusal(path, value) from error
    return hashed.digest()


def _refusal(path: str, value: Any) -> UnsoundModel:
    return UnsoundModel(
        f"What {path} holds (a {type(value).__name__}) has no content that two runs could compare, so another model could be "
        "taken for this one; hold plain settings there (numbers, text, tensors, lists, dataclasses), or leave it out."
    )


def _parts(value: Any, path: str) -> Parts:
    """What a value consists of, by name and in an order that does not depend on the process."""
    for kind, split in SPLIT.items():
        if isinstance(value, kind):
            return split(value)
    if type(value) is dict:
        return [(f"item {i}", pair) for i, pair in enumerate(value.items())]
    if type(value) in (list, tuple):
        return [(str(i), item) for i, item in enumerate(value)]
    if isinstance(value, np.ndarray):
        return [("shape", value.shape), ("items", value.ravel().tolist())]
    if hasattr(value, "stores") and hasattr(value, "to_dict"):  # torch_geometric's Data
        return [("class", type(value)), ("stores", [by_name(store.to_dict()) for store in value.stores])]
    return _reduced(value, path)


def _reduced(value: Any, path: str) -> Parts:
    """An object as it would be pickled: its class, what it is built from, and its state."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception as error:  # locks, files, generators: whatever cannot leave its process
        raise _refusal(path, value) from error
    if isinstance(reduced, str):
        return [("global", reduced)]
    build, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    return [
        ("class", type(value)),
        ("build", build),
        ("arguments", arguments),
        *_state(state),
        ("items", None if items is None else list(items)),
        ("pairs", None if pairs is None else list(pairs)),
    ]


def _state(state: Any) -> Parts:
    """Attributes by name; in which order they were set does not matter."""
    return by_name(state) if isinstance(state, dict) else [("state", state)]


def _of_module(module: nn.Module) -> Parts:
    parts: Parts = [("class", type(module)), ("repr", module.extra_repr()), ("code", _code_of(module))]
    parts += [] if isinstance(module, torch.jit.ScriptModule) else _held(module)
    parts += module.named_children()
    return [*parts, *module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]


def _held(module: nn.Module) -> Parts:
    """What a module holds as attributes, and the hooks of its calls by their functions (their keys only count)."""
    attributes = {key: value for key, value in vars(module).items() if key not in INTERNAL}
    hooked = [*HOOKS, *(k for k, v in attributes.items() if k.endswith("_hooks") and isinstance(v, dict))]
    hooks = [(key, list(getattr(module, key).values())) for key in hooked]
    private = LENIENT if is_library(type(module)) else ""
    held = {
        (private if key[0] == "_" else "") + key: value
        for key, value in attributes.items()
        if key not in hooked
    }
    return [*by_name(held), *hooks]


def _code_of(module: nn.Module) -> Any:
    """The program of a module that carries one instead of a class: scripted, traced, or made by torch.fx."""
    if isinstance(module, torch.jit.ScriptModule):
        return _compiled(module)
    return module.code if isinstance(module, fx.GraphModule) else None


def _compiled(module: Any) -> Parts:
    """Its code, the constants in it, and its attributes; numbers that only tell compilations apart are left out."""
    text, constants = module.code_with_constants if hasattr(module, "forward") else ("", None)
    program = _unmangled(text) + (_graph(module) if text else "")
    own = module._c.dump_to_str(False, True, False).partition("\n  submodules {")[0]
    held = {name: getattr(module, name) for name in re.findall(r"^    (\w+) = ", own, re.MULTILINE)}
    plain = {k: v for k, v in held.items() if k not in INTERNAL and not isinstance(v, nn.Module)}
    return [("program", program), ("attributes", by_name(plain)), ("constants", _constants(constants))]


def _graph(compiled: Any) -> str:
    """Every step of what torch.jit has made, without remarks about the place it comes from."""
    return _unmangled(re.sub(r" *#.*", "", str(compiled.inlined_graph)))


def _unmangled(text: str) -> str:
    return re.sub(r"___torch_mangle_\d+\.", "", text)


def _constants(mapping: Any) -> Parts:
    return [] if mapping is None else by_name(mapping.const_mapping)


NAMED = (type, ModuleType, FunctionType, BuiltinFunctionType)
SPLIT: dict[Any, Callable[[Any], Parts]] = {
    nn.Module: _of_module,
    type: of_class,
    ModuleType: lambda module: [("name", module.__name__)],
    FunctionType: of_function,
    MethodType: lambda method: [("self", method.__self__), ("function", method.__func__)],
    BuiltinFunctionType: of_builtin,
    partial: lambda part: [("function", part.func), ("arguments", part.args), ("keywords", part.keywords)],
    staticmethod: lambda method: [("function", method.__func__)],
    classmethod: lambda method: [("function", method.__func__)],
    property: lambda item: [("get", item.fget), ("set", item.fset), ("delete", item.fdel)],
    logging.Logger: lambda logger: [("name", logger.name)],
    torch.Generator: lambda generator: [("state", generator.get_state())],
    torch.jit.ScriptFunction: lambda function: [("program", _graph(function))],
    MappingProxyType: lambda view: [("items", dict(view))],
    _lru_cache_wrapper: lambda kept: [("function", kept.__wrapped__)],  # what it remembers is what that says
}
