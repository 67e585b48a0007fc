"""What the classes and functions that a classifier is made of consist of: their source, and what was put into them since."""

import dis
import importlib.util
import inspect
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

LIBRARIES = frozenset({"torch", "torch_geometric", *sys.stdlib_module_names} - {"__main__"})
LENIENT = "if possible, "  # what a library keeps to itself, and descriptors of a class whose source is hashed anyway

# what reads a name, what reads a part of it, and what reads a file
GLOBALS, PARTS, FILES = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_ATTR", "LOAD_METHOD"), ("IMPORT_NAME",)

READING = threading.Lock()  # finding a class in its file fails in two threads at once, up to Python 3.12

Parts = list[tuple[str, Any]]
MISSING = object()


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
    makers = [] if is_library(type(kind)) else [("metaclass", type(kind))]
    return [*((name_of(base), _own_class(base)) for base in bases), *makers]


@dataclass(frozen=True, eq=False)
class Bound:
    """Names in a class or a file, and what each is bound to; others may bind it to something else."""

    place: Mapping[str, Any]
    names: dict[str, Any]
    whole: bool = False  # no further name may appear either

    def holds(self) -> bool:
        """Whether they still are."""
        if (
            self.whole
            and {name for name in self.place if _counts(name, self.place[name])} != self.names.keys()
        ):
            return False
        return all(self.place.get(name, MISSING) is value for name, value in self.names.items())


def bound_by(thing: Any) -> list[Bound]:
    """What the user's own code in a class or function depends on by name."""
    if isinstance(thing, type):
        own = [vars(base) for base in thing.__mro__ if not is_library(base) and not _is_installed(base)]
        return [Bound(held, {n: v for n, v in held.items() if _counts(n, v)}, whole=True) for held in own]
    if not isinstance(thing, FunctionType) or not _is_own(thing.__module__):
        return []
    held, parts = thing.__globals__, _names(thing.__code__, PARTS)
    read = {name: held.get(name, MISSING) for name in _names(thing.__code__, GLOBALS)}
    files = [value for value in read.values() if isinstance(value, ModuleType) and _is_own(value.__name__)]
    inside = [Bound(vars(file), {n: vars(file)[n] for n in parts & vars(file).keys()}) for file in files]
    return [Bound(held, read), *inside]


def _counts(name: str, value: Any) -> bool:
    """Whether a name in a class is the user's: not what Python keeps there for itself."""
    return not name.startswith(("__", "_abc_")) or callable(value)


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
    return _is_packed(getattr(sys.modules.get(kind.__module__), "__file__", ""))


def _is_packed(file: Any) -> bool:
    """Whether a file came with a package, whose version decides what it does."""
    return "site-packages" in str(file) or "dist-packages" in str(file)


def _is_own(name: Any, file: Any = None) -> bool:
    """Whether a module of this name is neither of a library nor of a package: what it does may change from one run to the next."""
    place = getattr(sys.modules.get(str(name)), "__file__", "") if file is None else file
    return str(name).partition(".")[0] not in LIBRARIES | {"unswayed"} and not _is_packed(place)


def _source(thing: Any) -> str | None:
    """The text of a class, or of a function itself: what wraps another seems to have the text of that one."""
    try:
        with READING:
            if not isinstance(thing, FunctionType):
                return inspect.getsource(thing)
            lines, start = inspect.findsource(thing)
            return "".join(inspect.getblock(lines[start:]))
    except (OSError, TypeError, SyntaxError):
        return None


def of_function(function: FunctionType) -> Parts:
    """Its source (its code too where a line may hold several functions, or none is found), and what it closes over.

    Of a library's wrappers, which may keep a cache as well, as much as there is content to compare.
    """
    source, home = _source(function), function.__globals__.get("__name__")
    exact = None if source is not None and function.__name__ != "<lambda>" else _of_code(function.__code__)
    closed = f"{'' if _is_own(home) else LENIENT}closed over"
    return [
        ("source", source),
        ("code", exact),
        ("defaults", function.__defaults__),
        ("keyword defaults", function.__kwdefaults__ and dict(function.__kwdefaults__)),
        *((f"{closed} {i}", _cell(cell)) for i, cell in enumerate(function.__closure__ or ())),
        *((f"{LENIENT}global {name}", value) for name, value in by_name(_read(function))),
    ]


def _read(function: FunctionType) -> dict[str, Any]:
    """What a function names and its file holds, or a file of the user's own that it names: it decides the answer too."""
    if not _is_own(function.__module__):
        return {}
    found, held, parts = dict[str, Any](), function.__globals__, _names(function.__code__, PARTS)
    for name in _names(function.__code__, GLOBALS) & held.keys():
        found |= _reached(name, held[name], parts)
    files = {f"file {name}": _file(name, held) for name in _names(function.__code__, FILES)}
    return {name: value for name, value in (found | files).items() if _decides(value)}


def _file(name: str, held: dict[str, Any]) -> str | None:
    """The text of a file of the user's own that a function imports when it is called; whether it has been yet does not matter."""
    for full in (name, f"{held.get('__package__')}.{name}"):
        try:
            spec = importlib.util.find_spec(full)
        except (ImportError, ValueError):  # of a package that is not there
            continue
        if spec is not None and str(spec.origin).endswith(".py") and _is_own(full, spec.origin):
            return Path(str(spec.origin)).read_text(encoding="utf-8", errors="replace")
    return None


def _reached(name: str, value: Any, parts: set[str]) -> dict[str, Any]:
    """The value itself; of a file, or a package, of the user's own all parts that are named so, each on the way once."""
    if not isinstance(value, ModuleType):
        return {name: value}
    found = dict[str, Any]()
    for part in parts & vars(value).keys() if _is_own(value.__name__) else ():
        found |= _reached(f"{name}.{part}", vars(value)[part], parts - {part})
    return found


def _decides(value: Any) -> bool:
    """Whether it may differ from one run to the next: all but what a library or a package defines, whose version decides."""
    if isinstance(value, type | FunctionType):
        return _is_own(value.__module__)
    return value is not None


def _names(code: CodeType, kinds: tuple[str, ...]) -> set[str]:
    """The names that such instructions read, functions within functions included."""
    inner = [_names(item, kinds) for item in code.co_consts if isinstance(item, CodeType)]
    own = {step.argval for step in dis.get_instructions(code) if step.opname in kinds}
    return own.union(*inner)


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
