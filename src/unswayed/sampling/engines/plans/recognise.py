"""A module's forward as a plan, or `Unsupported` naming the first obstacle.

torch.fx traces the module with message-passing layers as leaves. Every other step must act on each node alone
(`rowwise`), so the states of the nodes may be computed in any arrangement, or be one that reads whole graphs and is known.
"""

import inspect
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, fx, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans import known, rowwise, wholes
from unswayed.sampling.engines.plans.altered import alteration
from unswayed.sampling.engines.plans.plan import Builder, Steps
from unswayed.sampling.engines.plans.rewriting import folded
from unswayed.sampling.engines.plans.tracing import POOLS, as_it_was, fixed_arguments, trace


class _Reader:
    """Turns an fx graph into steps; knows which fx values are nodes' states, constants, or the structure."""

    def __init__(self, root: nn.Module, graph: fx.Graph, fixed: Collection[str]) -> None:
        self.root = root
        names = inspect.signature(root.forward).parameters
        self.free = {name for name in names if name not in fixed}  # fx renames the fixed ones
        self.modules = dict(root.named_modules(remove_duplicate=False))
        self.build = Builder()
        self.place: dict[fx.Node, int] = {}
        self.symbol: dict[Any, str] = {}  # 'data', 'edges', 'batch', 'fixed'
        self.constant: dict[fx.Node, Tensor] = {}
        self.nodes = list(graph.nodes)

    def read(self) -> Steps:
        placeholders = [n for n in self.nodes if n.op == "placeholder" and n.target in self.free]
        only_data = len([n for n in placeholders if n.target != "batch"]) == 1 and all(
            user.target is getattr for user in placeholders[0].users
        )
        for node in self.nodes:
            if node.op == "placeholder":
                self._placeholder(node, node is placeholders[0], only_data)
            elif node.op == "output":
                self._output(node.args[0])
            else:
                self._operation(node)
        return folded(self.build.steps)

    def _placeholder(self, node: fx.Node, first: bool, only_data: bool) -> None:
        if only_data:
            self.symbol[node] = "data"
        elif node.target not in self.free:
            self.symbol[node] = "fixed"
        elif node.target == "batch":
            self.symbol[node] = "batch"
        elif first:
            self._add(node, "input")
        else:
            self.symbol[node] = "edges"

    def _output(self, value: Any) -> None:
        if not isinstance(value, fx.Node) or value not in self.place:
            raise Unsupported("The module's output is not one tensor computed from the nodes' features.")
        if self.place[value] != len(self.build.steps) - 1:
            self.build.name = "output"
            self.build.rowwise(lambda x: x, self.place[value])

    def _add(self, node: fx.Node, kind: str, inputs: Sequence[fx.Node] = (), **more: Any) -> None:
        self.place[node] = self.build.add(kind, *(self.place[i] for i in inputs), **more)

    def _operation(self, node: fx.Node) -> None:
        self.build.name = node.name
        if node.all_input_nodes and all(self.symbol.get(i) == "fixed" for i in node.all_input_nodes):
            self.symbol[node] = "fixed"  # fx asserts that arguments left at their defaults are not given
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.target is getattr and self.symbol.get(node.args[0]) == "data":
            self._field(node, str(node.args[1]))
        elif node.op == "call_module":
            self._module(node, self.modules[str(node.target)])
        elif node.target in POOLS:
            self._add(node, "pool", self._read_out(node, node.name), pool=POOLS[node.target])
        else:
            self._function(node)

    def _field(self, node: fx.Node, name: str) -> None:
        if name == "x":
            self._add(node, "input")
        elif name in ("edge_index", "batch"):
            self.symbol[node] = {"edge_index": "edges", "batch": "batch"}[name]
        else:
            self.symbol[node] = f"data.{name}"  # an obstacle only if something uses it

    def _attribute(self, node: fx.Node) -> None:
        value = operator.attrgetter(str(node.target))(self.root)
        if not isinstance(value, Tensor) or (value.dim() > 1 and value.numel() != value.shape[-1]):
            raise Unsupported(
                f"'{node.target}' is not a vector over features, so it may differ from node to node."
            )
        self.constant[node] = value

    def _states(self, node: fx.Node, values: Sequence[Any]) -> list[fx.Node]:
        for value in values:
            if value not in self.place:
                what = self.symbol.get(value, "structure") if isinstance(value, fx.Node) else repr(value)
                raise Unsupported(f"The step '{node.name}' uses {what}, which is not a state of the nodes.")
        return list(values)

    def _module(self, node: fx.Node, module: nn.Module) -> None:
        name = str(node.target)
        if isinstance(module, gnn.MessagePassing):
            return self._conv(node, module, name)
        if isinstance(module, gnn.aggr.Aggregation):
            return self._readout(node, module, name)
        given = [*node.args[1:], *node.kwargs.values()]
        told = any(self.symbol.get(value) == "batch" for value in given)
        if isinstance(module, gnn.JumpingKnowledge) and isinstance(node.args[0], list | tuple):
            return self._add(node, "rowwise", self._states(node, node.args[0]), run=rowwise.jumping(module))
        states = self._states(node, node.args[:1])
        if any(value is not None and self.symbol.get(value) not in ("batch", "fixed") for value in given):
            raise Unsupported(f"The layer '{name}' is called with more than the nodes' states.")
        if getattr(module, "inplace", False):
            self._written(node, states[0])
        _refuse_odd_shapes(module, name)
        if wholes.reads_all(module):
            return self._add(node, "whole", states, run=wholes.norm(module, told))
        return self._add(node, "rowwise", states, run=rowwise.module_program(module, name))

    def _conv(self, node: fx.Node, module: gnn.MessagePassing, name: str) -> None:
        given = [value for value in (*node.args, *node.kwargs.values()) if value is not None]
        edges = [value for value in given if isinstance(value, fx.Node) and self.symbol.get(value) == "edges"]
        states = [value for value in given if value not in edges]
        if len(edges) != 1 or not states or len(states) > 2 or any(v not in self.place for v in states):
            raise Unsupported(f"The layer '{name}' gets more than node states and edge_index.")
        if len(states) == 2 and set(node.kwargs) - {"edge_index"}:
            raise Unsupported(f"The layer '{name}' takes its states by keyword.")
        _refuse_odd_parts(module, name)
        self.place[node] = known.write(module, name, self.build, [self.place[value] for value in states])  # type: ignore[index]

    def _readout(self, node: fx.Node, module: Any, name: str) -> None:
        (state,) = self._read_out(node, name)
        self.place[node] = wholes.readout(module, name, self.build, self.place[state], trace_rowwise)

    def _read_out(self, node: fx.Node, name: str) -> list[fx.Node]:
        """The states that a readout takes, besides which it may be told of `batch` alone."""
        arguments = [a for a in [*node.args[1:], *node.kwargs.values()] if a is not None]
        if len(arguments) > 1 or any(self.symbol.get(a) != "batch" for a in arguments):
            raise Unsupported(f"The readout '{name}' gets more than node states and batch.")
        return self._states(node, node.args[:1])

    def _written(self, node: fx.Node, state: fx.Node) -> None:
        """Refuse a step that writes into a state which is used again, by its own name or as what may be the same tensor."""
        while (same := self._handed_on(state)) is not None:
            state = same
        later, alike = set(self.nodes[self.nodes.index(node) + 1 :]), [state]
        for one in alike:  # which grows
            if self.build.steps[self.place[one]].kind == "input" or not later.isdisjoint(one.users):
                raise Unsupported(f"The step '{node.name}' writes into a state that is used again.")
            alike += [user for user in one.users if self._handed_on(user) is one]

    def _handed_on(self, node: fx.Node) -> fx.Node | None:
        """The state that a step may give back as it is, so that whoever writes into one writes into both."""
        what = type(self.modules.get(str(node.target))) if node.op == "call_module" else node.target
        given = node.args[0] if what in rowwise.HANDING_ON and node.args else None
        return given if isinstance(given, fx.Node) and given in self.place else None

    def _function(self, node: fx.Node) -> None:
        target = node.target
        if target in rowwise.IN_PLACE and isinstance(node.args[0], fx.Node):
            self._written(node, self._states(node, node.args[:1])[0])
        if target in (fn.dropout, torch.dropout):
            self._dropout(node)
        elif target in (torch.cat, torch.concat, torch.concatenate):
            self._cat(node)
        elif target is fn.linear or target in rowwise.ALONG_FEATURES:
            self._along(node)
        elif target in rowwise.POINTWISE or (node.op == "call_method" and target in rowwise.METHODS):
            known: dict[Any, Any] = rowwise.METHODS if node.op == "call_method" else rowwise.POINTWISE
            kwargs = {k: v for k, v in node.kwargs.items() if k != "inplace"}
            if node.kwargs.get("inplace") is True:
                self._written(node, self._states(node, node.args[:1])[0])
            self._bound(node, known[target], node.args, kwargs)
        else:
            name = target if isinstance(target, str) else getattr(target, "__name__", target)
            raise Unsupported(f"The step '{node.name}' ({name}) is not known to act on each node alone.")

    def _dropout(self, node: fx.Node) -> None:
        bound = inspect.signature(fn.dropout).bind(*node.args, **node.kwargs)
        bound.apply_defaults()
        rate, training = bound.arguments["p"], bound.arguments["training"]
        run = (lambda x: fn.dropout(x, rate, True)) if training else rowwise.unchanged
        self._add(node, "rowwise", self._states(node, node.args[:1]), run=run)

    def _cat(self, node: fx.Node) -> None:
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        if dim not in (1, -1) or not isinstance(node.args[0], list | tuple):
            raise Unsupported(
                f"The step '{node.name}' concatenates along dimension {dim}, not along features."
            )
        states = self._states(node, node.args[0])
        self._add(node, "rowwise", states, run=lambda *tensors: rowwise.concatenate(list(tensors)))

    def _along(self, node: fx.Node) -> None:
        if node.target is fn.linear:
            return self._bound(node, fn.linear, node.args, node.kwargs)
        function = rowwise.ALONG_FEATURES[node.target]
        bound = inspect.signature(function).bind(*node.args, **node.kwargs).arguments
        if bound.get("dim", 1 if function is fn.normalize else None) not in (1, -1):
            raise Unsupported(f"The step '{node.name}' does not run along the features (dim=-1).")
        kept = {k: v for k, v in bound.items() if k in ("p", "eps")}
        run = lambda x: function(x, dim=-1, **kept)  # noqa: E731
        return self._add(node, "rowwise", self._states(node, node.args[:1]), run=run)

    def _bound(
        self, node: fx.Node, function: Callable[..., Tensor], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        """A step that calls `function` with states in their places and everything else fixed."""
        states = [a for a in args if isinstance(a, fx.Node) and a not in self.constant]
        if any(isinstance(v, fx.Node) for v in kwargs.values()):
            raise Unsupported(f"The step '{node.name}' takes tensors by keyword.")
        if not states:
            raise Unsupported(f"The step '{node.name}' does not depend on the nodes.")
        if len(args) == 1 and not kwargs:
            return self._add(node, "rowwise", self._states(node, states), run=function)
        spots = [self.constant.get(a, a) if isinstance(a, fx.Node) else a for a in args]

        def run(*tensors: Tensor) -> Tensor:
            given = iter(tensors)
            return function(*(next(given) if isinstance(s, fx.Node) else s for s in spots), **kwargs)

        return self._add(node, "rowwise", self._states(node, states), run=run)


def _refuse_altered(module: nn.Module, name: str) -> None:
    """Only what a module's class says is known: no hooks, no methods of its own."""
    for part, inner in module.named_modules():
        hooked = inner._forward_hooks or inner._forward_pre_hooks
        if (obstacle := "has a forward hook" if hooked else alteration(inner)) is not None:
            raise Unsupported(f"The layer '{'.'.join(filter(None, (name, part)))}' {obstacle}.")


def _refuse_odd_parts(conv: gnn.MessagePassing, name: str) -> None:
    """A known layer's own parts must be the linear layers that its class builds, with one bias for all nodes."""
    if type(conv) is not gnn.ARMAConv:  # one bias for each of its rounds
        _refuse_odd_shapes(conv, name)
    for part, child in conv.named_children():
        inner = list(child) if isinstance(child, nn.ModuleList) else [child]
        if part not in ("nn", "aggr_module", "act") and any(type(c) not in rowwise.LINEARS for c in inner):
            raise Unsupported(f"The layer '{name}' holds a {type(inner[0]).__name__} as its {part}.")
        for one in inner:
            _refuse_odd_shapes(one, f"{name}.{part}")


def _refuse_odd_shapes(module: nn.Module, name: str) -> None:
    if isinstance(bias := getattr(module, "bias", None), Tensor) and bias.dim() > 1:
        raise Unsupported(f"The layer '{name}' has a bias that may differ from node to node.")


def trace_rowwise(module: nn.Module, name: str) -> Steps:
    """The plan of a module that must act on each node alone, such as the network inside a GINConv."""
    if rowwise.known_module(module):
        module = nn.Sequential(module)
    parameters = list(inspect.signature(module.forward).parameters.values())
    fixed = {p.name: p.default for p in parameters[1:]}
    with as_it_was(module):
        plan = _Reader(module, trace(module, fixed), fixed).read()
    if any(step.kind not in ("input", "rowwise") for step in plan.steps):
        raise Unsupported(f"The network inside '{name}' does not act on each node alone.")
    return plan


def recognise(model: nn.Module) -> Steps:
    """The plan of a module; what it leaves unsaid about the module is nothing: an unknown step raises Unsupported."""
    if not isinstance(model, nn.Module):
        raise Unsupported("Only a torch module can be recognised, not a plain callable.")
    if isinstance(model, torch.jit.ScriptModule):
        raise Unsupported("A scripted or traced module cannot be looked into.")
    _refuse_altered(model, type(model).__name__)
    if isinstance(model, gnn.MessagePassing) or rowwise.known_module(model):
        raise Unsupported(f"A bare {type(model).__name__} is not recognised; wrap it in a module.")
    fixed = fixed_arguments(model.forward)
    free = [name for name in inspect.signature(model.forward).parameters if name not in (*fixed, "batch")]
    data = free[0] if len(free) == 1 and free != ["x"] else ""
    with as_it_was(model):
        return _Reader(model, trace(model, fixed, data), fixed).read()
