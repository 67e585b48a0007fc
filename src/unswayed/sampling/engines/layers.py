"""What each known message-passing layer computes, in three arrangements that all give the module's own numbers.

For a target u whose row is replaced (the Row threat):
  send   what each node's own state amounts to (row-wise: messages, root terms, attention keys);
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

    far is [n, k], the same for all targets, or [B, n, k] with `close` None. `shift` [B, H] is what attention weights were
    scaled by.
    """

    far: Tensor
    close: Tensor | None = None
    shift: Tensor | None = None


Sent = tuple[Tensor, ...]


class Layer:
    """One message-passing layer.

    `network`, where there is one, is a row-wise plan: the layer is that network applied to the sum over neighbours and
    `loop` times the node itself.
    """

    coupled = False
    network: Any = None

    def __init__(self, module: Any) -> None:
        self.module = module

    def send(self, h: Tensor) -> Sent:
        """All the layer needs of each node's state, computed from that state alone; the message comes first."""
        raise NotImplementedError

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """What `near` needs of the clean graph, whatever the target."""
        raise NotImplementedError

    def near(
        self, around: Surroundings, sent: Sent, clean: Sent, nodes: Tensor, rows: Tensor | None
    ) -> Tensor:
        """[B, n, F]: states of attached nodes; `rows` bool[B, n] matters to coupled layers only."""
        raise NotImplementedError

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """From what all nodes send: [n, ...], or [B, n, ...] where their states depend on the target."""
        raise NotImplementedError

    def own(
        self,
        around: Surroundings,
        sums: Tensor,
        count: Tensor,
        sent: Sent,
        nodes: Tensor,
        shift: Tensor | None,
    ) -> Tensor:
        """The new state of the targets, from the sum over the `count` attached nodes and what the targets send."""
        raise NotImplementedError

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """[B, N, F] from states [B, N, F], symmetric adjacency [B, N, N] without loops, and loops [B or 1, N]."""
        raise NotImplementedError


class SumLayer(Layer):
    """Sums or means of linear messages: SimpleConv, SAGEConv, GraphConv, GINConv, GCNConv(normalize=False).

    The new state is finish(sum or mean of lift(h) + root(h)), where a self-loop of weight `loop` counts as a neighbour.
    """

    def __init__(
        self,
        module: Any,
        lift: Callable[[Tensor], Tensor],
        root: Callable[[Tensor], Tensor | None] = lambda h: None,
        finish: Callable[[Tensor], Tensor] = lambda total: total,
        mean: bool = False,
        loop: Callable[[], Tensor | float] = lambda: 0.0,
        bias: Callable[[], Tensor | None] = lambda: None,
    ) -> None:
        super().__init__(module)
        self.lift, self.root, self.finish, self.mean, self._loop, self.bias = (
            lift,
            root,
            finish,
            mean,
            loop,
            bias,
        )

    @property
    def loop(self) -> Tensor | float:
        """The weight of the self-loop that the layer adds."""
        return self._loop()

    def send(self, h: Tensor) -> Sent:
        """The message and, where the layer has one, the root term."""
        root = self.root(h)
        return (self.lift(h),) if root is None else (self.lift(h), root)

    def _join(self, total: Tensor, sent: Sent) -> Tensor:
        return _plus(total if len(sent) == 1 else total + sent[1], self.bias())

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """The aggregate of each node that gains the target (without its message), its scale, and of one that has it."""
        weight = around.loops + self.loop
        total = around.spread(sent[0]) + weight[:, None] * sent[0]
        count = around.degree + weight
        scale = (1 / (count + 1) if self.mean else torch.ones_like(count))[:, None]
        kept = (1 / count.clamp_min(1) if self.mean else torch.ones_like(count))[:, None]
        return self._join(scale * total, sent), scale, self._join(kept * total, sent)

    def near(
        self, around: Surroundings, sent: Sent, clean: Sent, nodes: Tensor, rows: Tensor | None
    ) -> Tensor:
        """[B, n, F]: v's neighbours, and the target if it is not one of them."""
        gained, scale, kept = clean
        total = torch.addcmul(gained, sent[0][nodes][:, None], scale)
        targets, neighbours = around.edges_of(nodes)
        return self.finish(total.index_put_((targets, neighbours), kept[neighbours]))

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """The message itself."""
        return Payload(sent[0])

    def own(
        self,
        around: Surroundings,
        sums: Tensor,
        count: Tensor,
        sent: Sent,
        nodes: Tensor,
        shift: Tensor | None,
    ) -> Tensor:
        """The sum or mean over attached nodes and loops, and what the layer does with it."""
        weight = (around.loops[nodes] + self.loop)[:, None]
        total = sums + weight * sent[0]
        if self.mean:
            total = total / (count[..., None] + weight).clamp_min(1)
        return self.finish(self._join(total, sent))

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """One batched product."""
        sent = self.send(h)
        weight = (loops + self.loop)[..., None]
        if not self.mean and len(sent) == 1:
            bias = self.bias()
            start = weight * sent[0] if bias is None else torch.addcmul(bias, weight, sent[0])
            return self.finish(_gather(adjacency, sent[0], start))
        total = _gather(adjacency, sent[0], weight * sent[0])
        if self.mean:
            total = total / (adjacency.sum(-1, keepdim=True) + weight).clamp_min(1)
        return self.finish(self._join(total, sent))


class SymmetricGCN(Layer):
    """GCNConv with symmetric normalisation: coupled, because an attached node's degree scales what it sends on."""

    coupled = True

    def loop(self, loops: Tensor) -> Tensor:
        """The weight of each self-loop: an existing one is kept, a missing one may be added."""
        return torch.ones_like(loops) if self.module.add_self_loops else loops

    def finish(self, total: Tensor) -> Tensor:
        """Adds the bias."""
        return total if self.module.bias is None else total + self.module.bias

    def send(self, h: Tensor) -> Sent:
        """The linear message."""
        return (self.module.lin(h),)

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """Nothing: the rows decide all degrees."""
        return ()

    def near(
        self, around: Surroundings, sent: Sent, clean: Sent, nodes: Tensor, rows: Tensor | None
    ) -> Tensor:
        """[B, n, F], from the degrees that the whole row implies."""
        assert rows is not None
        z, loop = sent[0], self.loop(around.loops)
        without = around.degree + loop - around.adjacent(nodes).to(z.dtype)
        scale = inverse_root(without + rows)
        scale[torch.arange(nodes.numel(), device=nodes.device), nodes] = (
            0  # the target's message is added below
        )
        kappa = (without + 1).rsqrt()
        root = inverse_root(rows.sum(1) + loop[nodes]).to(z.dtype)
        arrived = around.spread(scale.T[..., None] * z[:, None]).transpose(0, 1)
        total = arrived + (loop * kappa)[..., None] * z + (root[:, None] * z[nodes])[:, None]
        return self.finish(kappa[..., None] * total)

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """The message scaled by the sender's degree, which counts the target once."""
        z, degree = sent[0], around.degree + self.loop(around.loops)
        if z.dim() == 3:
            return Payload((degree + ~around.adjacent(nodes)).rsqrt()[..., None] * z)
        return Payload((degree + 1).rsqrt()[:, None] * z, inverse_root(degree)[:, None] * z)

    def own(
        self,
        around: Surroundings,
        sums: Tensor,
        count: Tensor,
        sent: Sent,
        nodes: Tensor,
        shift: Tensor | None,
    ) -> Tensor:
        """The sum scaled by the target's noisy degree."""
        loop = self.loop(around.loops)[nodes]
        root = inverse_root(count + loop)[..., None]
        return self.finish(root * (sums + loop[:, None] * root * sent[0]))

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """One batched product between two scalings."""
        z, loop = self.module.lin(h), self.loop(loops)
        root = inverse_root(adjacency.sum(-1) + loop)[..., None]
        return self.finish(root * _gather(adjacency, root * z, loop[..., None] * root * z))


def _gather(adjacency: Tensor, z: Tensor, start: Tensor) -> Tensor:
    """start + adjacency @ z, [B, N, M]; states [1, N, M] that are the same in all samples need one product only."""
    return start + adjacency @ z[0] if len(z) == 1 else torch.baddbmm(start, adjacency, z)


def inverse_root(degree: Tensor) -> Tensor:
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


def _plus(value: Tensor, bias: Tensor | None) -> Tensor:
    return value if bias is None else value + bias


def _simple(module: gnn.SimpleConv, name: str, trace: Any) -> Layer:
    mean = _plain(module, name, {SUM: "sum", MEAN: "mean"}) == "mean"
    if module.combine_root not in (None, "self_loop", "sum"):
        raise Unsupported(
            f"The layer '{name}' has combine_root={module.combine_root!r}, which no fast engine knows."
        )
    if module.combine_root == "sum":
        return SumLayer(module, lambda h: h, root=lambda h: h, mean=mean)
    layer = SumLayer(module, lambda h: h, mean=mean, loop=lambda: float(module.combine_root == "self_loop"))
    layer.network = None if mean else trace(nn.Identity(), name)
    return layer


def _gcn(module: gnn.GCNConv, name: str, trace: Any) -> Layer:
    _plain(module, name, {SUM: "sum"})
    if module.cached:
        raise Unsupported(f"The layer '{name}' is cached, so it ignores the noise.")
    if module.improved:  # releases of torch_geometric differ in what it does to a graph without edge weights
        raise Unsupported(f"The layer '{name}' has improved=True, which no fast engine knows.")
    if module.normalize:
        return SymmetricGCN(module)
    return SumLayer(module, module.lin, finish=lambda total: _plus(total, module.bias))


def _sage(module: gnn.SAGEConv, name: str, trace: Any) -> Layer:
    kind = _plain(module, name, {SUM: "sum", MEAN: "mean"})
    _refuse_bipartite(module, name)

    def lift(h: Tensor) -> Tensor:
        return fn.linear(module.lin(h).relu() if module.project else h, module.lin_l.weight)

    def root(h: Tensor) -> Tensor | None:
        bias: Tensor | None = module.lin_l.bias
        return _plus(module.lin_r(h), bias) if module.root_weight else None

    def finish(total: Tensor) -> Tensor:
        out = total if module.root_weight else _plus(total, module.lin_l.bias)
        return fn.normalize(out, p=2.0, dim=-1) if module.normalize else out

    return SumLayer(module, lift, root, finish, kind == "mean")


def _graph(module: gnn.GraphConv, name: str, trace: Any) -> Layer:
    kind = _plain(module, name, {SUM: "sum", MEAN: "mean"})
    _refuse_bipartite(module, name)
    relation = module.lin_rel
    return SumLayer(
        module,
        lambda h: fn.linear(h, relation.weight),
        root=lambda h: _plus(module.lin_root(h), relation.bias),
        mean=kind == "mean",
    )


def _gin(module: gnn.GINConv, name: str, trace: Any) -> Layer:
    _plain(module, name, {SUM: "sum"})
    plan: Any = trace(module.nn, f"{name}.nn")
    first: Any = plan.first_linear
    if first is None:
        layer = SumLayer(
            module, lambda h: h, finish=lambda t: plan.evaluate(t, _no, _no), loop=lambda: 1 + module.eps
        )
    else:
        inner = plan.after(1)  # a linear map commutes with sums, and its output is narrower than the features
        layer = SumLayer(
            module,
            lambda h: fn.linear(h, first.weight),
            finish=lambda total: inner.evaluate(total, _no, _no),
            loop=lambda: 1 + module.eps,
            bias=lambda: first.bias,
        )
    layer.network = plan
    return layer


def _refuse_bipartite(module: Any, name: str) -> None:
    if not isinstance(module.in_channels, int):
        raise Unsupported(f"The layer '{name}' is bipartite.")


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
