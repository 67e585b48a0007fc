"""torch.fx traces of modules with message-passing layers, norms and readouts as leaves.

A trace is one way through forward, so it must be the only one. A module that asks whether it was handed a tensor, or wants to decide by
a tensor's value, is not traced at all, even if it catches the refusal: what stands for a tensor is none, and must not call itself one
either, because torch's compiled functions would believe it and read its memory. Two names of torch.fx that a release could change are
used: `Tracer._autowrap_search` and `create_proxy`. A test pins both.
"""

import inspect
import operator
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, partialmethod
from typing import Any

import torch_geometric.nn as gnn
from torch import Tensor, fx, nn
from torch_geometric.data import Data

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans import rowwise

POOLS: dict[Any, str] = {
    gnn.global_add_pool: "sum",
    gnn.global_mean_pool: "mean",
    gnn.global_max_pool: "max",
}
DECIDES = "it decides by the values of tensors which way it takes"
# whose questions about types decide nothing: the tracer's own machinery, and layers that are known by their class
TRUSTED = ("torch.fx", "torch.nn", "torch.overrides", "torch.utils", "torch_geometric", "unswayed")
OWN = ("tracer", "node", "root", "attr", "_node")  # what torch.fx keeps in what stands for a tensor
TRACING = threading.RLock()  # what torch.fx takes over must be given back in order


class _Stands:
    """What a module sees of a tensor that stands for any; `tracer` notes what cannot be told of it."""

    tracer: Any

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        asker = sys._getframe(1).f_globals.get("__name__", "")
        if not any(asker == name or asker.startswith(f"{name}.") for name in TRUSTED):
            self.tracer.stumbled = True  # `isinstance` looks here
        return type(self)

    def __getattr__(self, name: str) -> Any:
        return _Attribute(self, name)  # type: ignore[arg-type]

    def _untold(self, *about: Any) -> Any:
        return self.tracer.stumble()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in OWN:  # such as `h.data = …`, after which h is another
            self.tracer.stumbled = True
        super().__setattr__(name, value)

    def _in_place(self, operation: Any, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", operation, (self, other), {})

    # without these `h += g` would be recorded as `h = h + g`, which leaves what else is called h as it was
    __iadd__ = partialmethod(_in_place, operator.iadd)
    __isub__ = partialmethod(_in_place, operator.isub)
    __imul__ = partialmethod(_in_place, operator.imul)
    __itruediv__ = partialmethod(_in_place, operator.itruediv)

    __len__ = __int__ = __float__ = __index__ = __contains__ = _untold


class _Value(_Stands, fx.Proxy):
    """A tensor."""


class _Attribute(_Stands, fx.proxy.Attribute):
    """A field of the data, or what a tensor has."""


class _Data(_Value):
    """The data of `forward(data)`, whose fields may be set anew."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Data


class _Tracer(fx.Tracer):
    """Stops at message passing, at readouts and at every module whose meaning `rowwise` knows."""

    def __init__(self, data: str = "") -> None:
        """`data` is the name of the one argument of `forward(data)`."""
        super().__init__(autowrap_functions=tuple(POOLS))
        self._autowrap_search += [gnn, gnn.pool]
        self.thread = threading.get_ident()
        self.data, self.stumbled = data, False

    def proxy(self, node: fx.Node) -> fx.Proxy:
        """What stands for a value."""
        return (_Data if node.op == "placeholder" and node.target == self.data else _Value)(node, self)

    def create_arg(self, a: Any) -> Any:
        """The node of what stands for a value, also where it stands for the data and calls itself so."""
        return a.node if issubclass(type(a), fx.Proxy) else super().create_arg(a)

    def stumble(self, *about: Any) -> Any:
        """The way that forward takes would depend on a value."""
        self.stumbled = True
        raise fx.proxy.TraceError(DECIDES)

    to_bool = iter = keys = stumble  # type: ignore[assignment]

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What stands for the call; torch.fx takes over the calls of all modules, and those of other threads are none of ours."""
        if threading.get_ident() != self.thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What stands for the attribute; to other threads it is itself."""
        if threading.get_ident() != self.thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether the module is one step of the plan, or several that are known by its class."""
        kinds = (gnn.MessagePassing, gnn.aggr.Aggregation, gnn.JumpingKnowledge)
        if isinstance(m, kinds) or rowwise.known_module(m):
            return True
        return m.__module__.startswith("torch.nn") and not isinstance(m, nn.Sequential)


def fixed_arguments(forward: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of forward beyond the graph, at their defaults."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError) as error:  # compiled by torch.jit
        raise Unsupported("The signature of forward cannot be read.") from error
    required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    graph = set(required if len(required) == 1 else [p.name for p in parameters[:2]]) | {"batch"}
    strange = [p.name for p in parameters if p.name in required and p.name not in graph]
    if strange or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise Unsupported(
            f"forward takes the argument {(strange or ['*args'])[0]!r}, which no engine can fill in."
        )
    return {p.name: p.default for p in parameters if p.name not in graph}


def trace(module: nn.Module, fixed: dict[str, Any], data: str = "") -> fx.Graph:
    """The module's forward as an fx graph; what fx cannot follow raises Unsupported. `data` names the argument of `forward(data)`."""
    tracer = _Tracer(data)
    try:
        with TRACING, _readouts_recorded(module):
            found = tracer.trace(module, concrete_args=fixed)
        if tracer.stumbled:
            raise Unsupported(f"torch.fx cannot trace {type(module).__name__}: {DECIDES}")
        return found
    except Unsupported:
        raise
    except Exception as error:  # fx raises whatever the module's own code raises when it meets a proxy
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unsupported(f"torch.fx cannot trace {type(module).__name__}: {reason}") from error


@contextmanager
def as_it_was(module: nn.Module) -> Iterator[None]:
    """Afterwards the module is without the tensors that fx leaves in it: with them its hash would be another."""
    before = set(vars(module))
    try:
        yield
    finally:
        for name in set(vars(module)) - before:
            if name.startswith("_tensor_constant"):
                delattr(module, name)


@contextmanager
def _readouts_recorded(module: nn.Module) -> Iterator[None]:
    """While it lasts, readout functions that are attributes of a module are recorded; fx sees those in globals only."""
    held = [(m, k, f) for m in module.modules() for k, f in vars(m).items() if _is_pool_function(f)]
    try:
        for owner, name, function in held:
            object.__setattr__(owner, name, partial(_record, function))
        yield
    finally:
        for owner, name, function in held:
            object.__setattr__(owner, name, function)


def _is_pool_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value in POOLS


def _record(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Any:
    proxy = next(a for a in args if isinstance(a, fx.Proxy))
    return proxy.tracer.create_proxy("call_function", function, args, kwargs)
