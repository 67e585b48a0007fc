"""What each known message-passing layer computes, in three arrangements that all give the module's own numbers.

For a target u whose row is replaced (the Row threat):
  near   the state of every node v given that v is attached to u, [B, n, F]: one value a pair (u, v) unless the layer is
         `coupled`, that is unless a neighbour's state depends on which other nodes are attached;
  payload and own   the state of u itself, from a sum of payloads over the attached nodes.
For small graphs with every pair noisy: `dense`, from a batch of adjacency matrices.

`layer_for` trusts exact classes and settings only; anything else raises Unsupported.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.surroundings import Surroundings


class Payload(NamedTuple):
    """What each attached node adds to the target's sum; `close` replaces `far` for the clean neighbours of the target.

    far is [n, k], the same for all targets, or [B, n, k] with `close` None.
    """

    far: Tensor
    close: Tensor | None = None


class Layer:
    """One message-passing layer."""

    coupled = False
    attends = False  # the weights of the sum depend on the target's own state

    def __init__(self, module: Any) -> None:
        self.module = module

    def near(self, around: Surroundings, h: Tensor, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F] from structure-free states h [n, F]; `rows` bool[B, n] matters to coupled layers only."""
        raise NotImplementedError

    def payload(self, around: Surroundings, h: Tensor, nodes: Tensor) -> Payload:
        """From the states of all nodes: h [n, F], or [B, n, F] where they depend on the target."""
        raise NotImplementedError

    def own(self, around: Surroundings, sums: Tensor, count: Tensor, h: Tensor, nodes: Tensor) -> Tensor:
        """The new state of the targets from the sum over the `count` attached nodes and their own states h."""
        raise NotImplementedError

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """[B, N, F] from states [B, N, F], symmetric adjacency [B, N, N] without loops, and loops [B or 1, N]."""
        raise NotImplementedError


class SumLayer(Layer):
    """Sums or means of linear messages: SimpleConv, SAGEConv, GraphConv, GINConv, GCNConv(normalize=False)."""

    def __init__(
        self,
        module: Any,
        lift: Callable[[Tensor], Tensor],
        finish: Callable[[Tensor, Tensor], Tensor],
        mean: bool = False,
        loop: float = 0.0,
    ) -> None:
        super().__init__(module)
        self.lift, self.finish, self.mean, self.loop = lift, finish, mean, loop

    def near(self, around: Surroundings, h: Tensor, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F]: v's neighbours, and the target if it is not one of them."""
        z = self.lift(h)
        far = ~around.adjacent(nodes)
        weight = around.loops + self.loop
        total = (around.spread(z) + weight[:, None] * z) + far[..., None] * z[nodes][:, None]
        if self.mean:
            total = total / (around.degree + weight + far).clamp_min(1)[..., None]
        return self.finish(total, h)

    def payload(self, around: Surroundings, h: Tensor, nodes: Tensor) -> Payload:
        """The message itself."""
        return Payload(self.lift(h))

    def own(self, around: Surroundings, sums: Tensor, count: Tensor, h: Tensor, nodes: Tensor) -> Tensor:
        """The sum or mean over attached nodes and loops, and what the layer does with it."""
        weight = (around.loops[nodes] + self.loop)[:, None]
        total = sums + weight * self.lift(h)
        if self.mean:
            total = total / (count[..., None] + weight).clamp_min(1)
        return self.finish(total, h)

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """One batched product."""
        z = self.lift(h)
        weight = (loops + self.loop)[..., None]
        total = adjacency @ z + weight * z
        if self.mean:
            total = total / (adjacency.sum(-1, keepdim=True) + weight).clamp_min(1)
        return self.finish(total, h)


class SymmetricGCN(Layer):
    """GCNConv with symmetric normalisation: coupled, because an attached node's degree scales what it sends on."""

    coupled = True

    def _loop(self, loops: Tensor) -> Tensor:
        """The weight of each self-loop: an existing one is kept, a missing one may be added."""
        return torch.ones_like(loops) if self.module.add_self_loops else loops

    def finish(self, total: Tensor) -> Tensor:
        """Adds the bias."""
        return total if self.module.bias is None else total + self.module.bias

    def attached_scale(self, around: Surroundings, nodes: Tensor) -> Tensor:
        """[B, n]: 1/sqrt(degree) of each node given that it is attached to the target."""
        return (around.degree + self._loop(around.loops) + ~around.adjacent(nodes)).rsqrt()

    def near(self, around: Surroundings, h: Tensor, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F], from the degrees that the whole row implies."""
        assert rows is not None
        z, loop, b = (
            self.module.lin(h),
            self._loop(around.loops),
            torch.arange(nodes.numel(), device=nodes.device),
        )
        without = around.degree + loop - around.adjacent(nodes).to(h.dtype)
        scale = _inverse_root(without + rows)
        scale = scale.index_put((b, nodes), scale.new_zeros(()))  # the target's own message is added below
        kappa = (without + 1).rsqrt()
        root = _inverse_root(rows.sum(1) + loop[nodes]).to(h.dtype)
        sent = around.spread(scale.T[..., None] * z[:, None]).transpose(0, 1)
        total = sent + (loop * kappa)[..., None] * z + (root[:, None] * z[nodes])[:, None]
        return self.finish(kappa[..., None] * total)

    def payload(self, around: Surroundings, h: Tensor, nodes: Tensor) -> Payload:
        """The message scaled by the sender's degree, which counts the target once."""
        z, degree = self.module.lin(h), around.degree + self._loop(around.loops)
        if h.dim() == 3:
            return Payload(self.attached_scale(around, nodes)[..., None] * z)
        return Payload((degree + 1).rsqrt()[:, None] * z, _inverse_root(degree)[:, None] * z)

    def own(self, around: Surroundings, sums: Tensor, count: Tensor, h: Tensor, nodes: Tensor) -> Tensor:
        """The sum scaled by the target's noisy degree."""
        loop = self._loop(around.loops)[nodes]
        root = _inverse_root(count + loop)[..., None]
        return self.finish(root * (sums + loop[:, None] * root * self.module.lin(h)))

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """One batched product between two scalings."""
        z, loop = self.module.lin(h), self._loop(loops)
        root = _inverse_root(adjacency.sum(-1) + loop)[..., None]
        return self.finish(root * (adjacency @ (root * z) + loop[..., None] * root * z))


def _inverse_root(degree: Tensor) -> Tensor:
    """1/sqrt(degree), and 0 for a node without any edge, as gcn_norm has it."""
    return torch.where(degree > 0, degree.clamp_min(1e-30).rsqrt(), 0.0)


def _plain(module: gnn.MessagePassing, name: str, aggregators: dict[type, str]) -> str:
    """The aggregation of a layer whose inherited settings are all the usual ones."""
    hooks = [
        h
        for k, h in vars(module).items()
        if k.endswith("_hooks") and k.startswith("_") and "state_dict" not in k
    ]
    if any(len(h) for h in hooks if h is not None):
        raise Unsupported(f"The layer '{name}' has hooks.")
    if module.flow != "source_to_target" or getattr(module, "decomposed_layers", 1) != 1 or module.explain:
        raise Unsupported(f"The layer '{name}' has an unusual flow, decomposition or explanation mode.")
    kind = aggregators.get(type(module.aggr_module))
    if kind is None:
        raise Unsupported(
            f"The layer '{name}' aggregates with {module.aggr_module}, which no fast engine knows."
        )
    return kind


SUM, MEAN = gnn.SumAggregation, gnn.MeanAggregation


def _simple(module: gnn.SimpleConv, name: str, trace: Any) -> Layer:
    kind = _plain(module, name, {SUM: "sum", MEAN: "mean"})
    root = module.combine_root
    finish: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
        None: lambda total, h: total,
        "self_loop": lambda total, h: total,
        "sum": lambda total, h: total + h,
    }
    if root not in finish:
        raise Unsupported(f"The layer '{name}' has combine_root={root!r}, which no fast engine knows.")
    return SumLayer(module, lambda h: h, finish[root], kind == "mean", float(root == "self_loop"))


def _gcn(module: gnn.GCNConv, name: str, trace: Any) -> Layer:
    _plain(module, name, {SUM: "sum"})
    if module.cached:
        raise Unsupported(f"The layer '{name}' is cached, so it ignores the noise.")
    if module.improved:  # releases of torch_geometric differ in what it does to a graph without edge weights
        raise Unsupported(f"The layer '{name}' has improved=True, which no fast engine knows.")
    if module.normalize:
        return SymmetricGCN(module)
    return SumLayer(
        module, module.lin, lambda total, h: total if module.bias is None else total + module.bias
    )


def _sage(module: gnn.SAGEConv, name: str, trace: Any) -> Layer:
    kind = _plain(module, name, {SUM: "sum", MEAN: "mean"})
    if not isinstance(module.in_channels, int):
        raise Unsupported(f"The layer '{name}' is bipartite.")

    def lift(h: Tensor) -> Tensor:
        sent = module.lin(h).relu() if module.project else h
        return fn.linear(sent, module.lin_l.weight)

    def finish(total: Tensor, h: Tensor) -> Tensor:
        out = total if module.lin_l.bias is None else total + module.lin_l.bias
        out = out + module.lin_r(h) if module.root_weight else out
        return fn.normalize(out, p=2.0, dim=-1) if module.normalize else out

    return SumLayer(module, lift, finish, kind == "mean")


def _graph(module: gnn.GraphConv, name: str, trace: Any) -> Layer:
    kind = _plain(module, name, {SUM: "sum", MEAN: "mean"})
    if not isinstance(module.in_channels, int):
        raise Unsupported(f"The layer '{name}' is bipartite.")
    bias = module.lin_rel.bias

    def finish(total: Tensor, h: Tensor) -> Tensor:
        root: Tensor = module.lin_root(h)
        return (total if bias is None else total + bias) + root

    return SumLayer(module, lambda h: fn.linear(h, module.lin_rel.weight), finish, kind == "mean")


def _gin(module: gnn.GINConv, name: str, trace: Any) -> Layer:
    _plain(module, name, {SUM: "sum"})
    plan: Any = trace(module.nn, f"{name}.nn")
    first: Any = module.nn[0] if isinstance(module.nn, nn.Sequential) else None
    if isinstance(module.nn, gnn.MLP):
        first = module.nn.lins[0]
    if type(first) not in (nn.Linear, gnn.Linear) or not plan.starts_with(first):
        return SumLayer(
            module, lambda h: h, lambda total, h: plan.evaluate(total + (1 + module.eps) * h, _no, _no)
        )
    inner = plan.after(1)  # a linear map commutes with sums, and its output is narrower than the features

    def finish(total: Tensor, h: Tensor) -> Tensor:
        root = (1 + module.eps) * fn.linear(h, first.weight)
        out: Tensor = inner.evaluate(
            total + root if first.bias is None else total + root + first.bias, _no, _no
        )
        return out

    return SumLayer(module, lambda h: fn.linear(h, first.weight), finish)


def _no(*_: Any) -> Tensor:
    raise AssertionError("a row-wise plan has no message passing")


def layer_for(module: gnn.MessagePassing, name: str, trace: Any) -> Layer:
    """The row and dense forms of a layer whose class and settings are known exactly."""
    from unswayed.sampling.engines.attention import ATTENTION, attention_layer

    makers: dict[type, Any] = {
        gnn.SimpleConv: _simple,
        gnn.GCNConv: _gcn,
        gnn.SAGEConv: _sage,
        gnn.GraphConv: _graph,
        gnn.GINConv: _gin,
    }
    if type(module) in ATTENTION:
        _plain(module, name, {SUM: "sum"})
        return attention_layer(module, name)
    if type(module) not in makers:
        raise Unsupported(
            f"The layer '{name}' ({type(module).__name__}) is not one that a fast engine knows."
        )
    layer: Layer = makers[type(module)](module, name, trace)
    return layer
