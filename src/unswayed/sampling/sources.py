"""What the classes and functions that a classifier is made of consist of: their source, and what was put into them since."""

import dis
import inspect
import sys
import threading
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn

LIBRARIES = frozenset({"torch", "torch_geometric", *sys.stdlib_module_names} - {"__main__"})
LENIENT = "if possible, "  # what a library keeps to itself, and descriptors of a class whose source is hashed anyway

# what a function may read from its file's globals, beside estimators, graphs, and code of the user's own and what that made
HELD = (
    bool,
    int,
    float,
    complex,
    str,
    list,
    tuple,
    dict,
    set,
    frozenset,
    partial,
    np.ndarray,
    Tensor,
    nn.Module,
)

GLOBALS, PARTS = (
    ("LOAD_GLOBAL", "LOAD_NAME"),
    ("LOAD_ATTR", "LOAD_METHOD"),
)  # what reads a name, and what reads a part of it

READING = threading.Lock()  # finding a class in its file fails in two threads at once, up to Python 3.12

Parts = list[tuple[str, Any]]


def name_of(thing: Any) -> str:
    """Where a class or function, or the class of anything else, is defined."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def by_name(named: dict[Any, Any]) -> Parts:
    """The items in an order that does not depend on which was put in first."""
    return sorted(((str(key), item) for key, item in named.items()), key=lambda part: part[0])


def of_class(kind: type) -> Parts:
    """The source of the class and of its bases as far as they are the user's, and what was put into them since."""
    bases = [base for base in kind.__mro__ if not is_library(base)]
    return [(name_of(base), _own_class(base)) for base in bases]


def _own_class(kind: type) -> Parts:
    members = [] if _is_installed(kind) else by_name(dict(vars(kind)))
    kept = [(LENIENT + name, item) for name, item in members if not name.startswith("__") or callable(item)]
    return [("source", _source(kind) or ""), *kept]


def is_library(kind: type) -> bool:
    """Whether a library has this class; a class may claim any module."""
    home = sys.modules.get(kind.__module__)
    there = hasattr(home, kind.__qualname__.partition(".")[0])
    return there and kind.__module__.partition(".")[0] in LIBRARIES


def _is_installed(kind: Any) -> bool:
    return _is_packed(sys.modules.get(kind.__module__))


def _is_packed(module: Any) -> bool:
    """Whether a module came with a package, whose version decides what it does."""
    file = str(getattr(module, "__file__", ""))
    return "site-packages" in file or "dist-packages" in file


def _is_own(name: str | None, module: Any) -> bool:
    """Whether a module of this name is neither of a library nor of a package: what it does may change from one run to the next."""
    return str(name).partition(".")[0] not in LIBRARIES | {"unswayed"} and not _is_packed(module)


def _source(thing: Any) -> str | None:
    try:
        with READING:
            return inspect.getsource(thing)
    except (OSError, TypeError):
        return None


def of_function(function: FunctionType) -> Parts:
    """Its source (its code too where a line may hold several functions, or none is found), and what it closes over."""
    source = _source(function)
    exact = None if source is not None and function.__name__ != "<lambda>" else _of_code(function.__code__)
    return [
        ("source", source),
        ("code", exact),
        ("defaults", function.__defaults__),
        ("keyword defaults", function.__kwdefaults__ and dict(function.__kwdefaults__)),
        *((f"closed over {i}", _cell(cell)) for i, cell in enumerate(function.__closure__ or ())),
        *((f"{LENIENT}global {name}", value) for name, value in by_name(_read(function))),
    ]


def _read(function: FunctionType) -> dict[str, Any]:
    """What a function names and its file holds, or a file of the user's own that it names: it decides the answer too."""
    if not _is_own(function.__module__, sys.modules.get(function.__module__)):
        return {}
    found, held, parts = dict[str, Any](), function.__globals__, _names(function.__code__, PARTS)
    for name in _names(function.__code__, GLOBALS) & held.keys():
        found |= _reached(name, held[name], parts)
    return {name: value for name, value in found.items() if _decides(value)}


def _reached(name: str, value: Any, parts: set[str]) -> dict[str, Any]:
    """The value itself; of a file, or a package, of the user's own all parts that are named so, each on the way once."""
    if not isinstance(value, ModuleType):
        return {name: value}
    found = dict[str, Any]()
    for part in parts & vars(value).keys() if _is_own(value.__name__, value) else ():
        found |= _reached(f"{name}.{part}", vars(value)[part], parts - {part})
    return found


def _decides(value: Any) -> bool:
    """Whether it may differ from one run to the next, and has content to compare."""
    kind = value if isinstance(value, type | FunctionType) else type(value)
    if _is_own(kind.__module__, sys.modules.get(kind.__module__)):
        return True
    return kind is not value and (isinstance(value, HELD) or _is_estimator(value) or hasattr(value, "stores"))


def _names(code: CodeType, kinds: tuple[str, ...]) -> set[str]:
    """The names that such instructions read, functions within functions included."""
    inner = [_names(item, kinds) for item in code.co_consts if isinstance(item, CodeType)]
    own = {step.argval for step in dis.get_instructions(code) if step.opname in kinds}
    return own.union(*inner)


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "predict") and not isinstance(value, ModuleType)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"


def _of_code(code: CodeType) -> Any:
    constants = [_of_code(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants]


def of_builtin(function: Any) -> Parts:
    """What a method of a C type is bound to; a plain function of a module is known by its name."""
    owner = getattr(function, "__self__", None)
    return [] if owner is None or isinstance(owner, ModuleType) else [("self", owner)]
