"""Stand-ins for what a noisy graph does not have, such as edge weights: to use one, by any road, is refused.

The data that `forward(data)` gets still says that it has an `edge_attr`, as the user's own data does, so a module takes the
same branches; but nothing can be done with it. A module that swallows the refusal is refused after its answer.
"""

from typing import Any

from unswayed.errors import UnsoundModel

CARRYING = (  # what PyG does to everything that a Data holds, without reading it
    *("to", "cpu", "cuda", "clone", "contiguous", "detach", "detach_"),
    *("pin_memory", "share_memory_", "record_stream", "requires_grad_"),
)
OPERATORS = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"),
    *("neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "len", "iter", "getitem", "setitem"),
    *("bool", "float", "int", "index", "complex", "array", "call", "contains"),
)


class Absent:
    """What a Data carried under this name; whatever uses it is refused, and remembered in `used`."""

    def __init__(self, name: str, used: list[str]) -> None:
        self.__dict__.update(_name=name, _used=used)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        self._used.append(self._name)
        raise refusal(self._name)

    def __getattr__(self, name: str) -> Any:
        """Nothing can be asked of it; moving and copying leave it as it is."""
        if name in CARRYING:
            return lambda *_, **__: self
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    __setattr__ = _refuse
    __hash__ = object.__hash__

    def __copy__(self) -> "Absent":
        return self

    def __deepcopy__(self, memo: Any) -> "Absent":
        return self

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any function of torch that is handed one."""
        given = [*args, *(kwargs or {}).values()]
        nested = [item for value in given for item in (value if isinstance(value, list | tuple) else [value])]
        return next(item for item in nested if isinstance(item, cls))._refuse()


for _operator in OPERATORS:
    setattr(Absent, f"__{_operator}__", Absent._refuse)


def refusal(name: str) -> UnsoundModel:
    """Why nothing may depend on it."""
    return UnsoundModel(
        f"The classifier reads {name} of the data, which a noisy graph does not have (an edge that noise adds has no "
        f"attributes); remove it from the data, or read node features alone."
    )
