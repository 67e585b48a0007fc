"""What odd modules are made of: layers, networks and what they do with a graph."""

import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.utils import (
    degree,
    k_hop_subgraph,
    scatter,
    to_dense_adj,
)

NODES, FEATURES, CLASSES, HIDDEN = 14, 4, 3, 6


class Two(nn.Module):
    """Two layers; `odd` may change features, edges, states or the answer."""

    def __init__(self, first: Any = None, second: Any = None, **odd: Any) -> None:
        super().__init__()
        self.first = first or gnn.SAGEConv(FEATURES, HIDDEN)
        self.second = second or gnn.SAGEConv(HIDDEN, CLASSES)
        self.odd = odd

    def change(self, place: str, value: Tensor, edges: Tensor) -> Tensor:
        return self.odd[place](value, edges) if place in self.odd else value

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edges = self.change("edges", edge_index, x)
        h = self.first(self.change("x", x, edges), edges).relu()
        out = self.second(self.change("h", h, edges), edges)
        return self.change("out", out, edges)


class Plain(nn.Module):
    """Two layers and nothing else, so that every fast engine knows it."""

    def __init__(self, first: Any = None, second: Any = None) -> None:
        super().__init__()
        self.first = first or gnn.SAGEConv(FEATURES, HIDDEN)
        self.second = second or gnn.SAGEConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def rank(edges: Tensor) -> Tensor:
    """The how-many-eth edge of its destination each edge is, as listed."""
    return torch.stack([(edges[1, :i] == edges[1, i]).sum() for i in range(edges.shape[1])] or [edges.sum()])


def listed(edges: Tensor, keep: Callable[[Tensor], Tensor]) -> Tensor:
    return edges[:, keep(rank(edges))] if edges.shape[1] else edges


def weighted(x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
    return x + scatter(x[edges[0]] * weight[:, None].to(x), edges[1], 0, len(x), "sum")


def global_attention(h: Tensor, edges: Tensor) -> Tensor:
    score = (h[edges[0]] * h[edges[1]]).sum(1)
    return weighted(h, edges, torch.softmax(score, 0) * 20)


def triangles(x: Tensor, edges: Tensor) -> Tensor:
    a = to_dense_adj(edges, max_num_nodes=len(x))[0].to(x)
    return torch.cat([x[:, :-1], (a @ a @ a).diagonal()[:, None] / 50], dim=1)


def spectral(x: Tensor, edges: Tensor) -> Tensor:
    a = to_dense_adj(edges, max_num_nodes=len(x))[0].to(x)
    return x * torch.linalg.eigvalsh(a).amax()


def ranked_pages(x: Tensor, edges: Tensor) -> Tensor:
    share = torch.full((len(x),), 1 / len(x)).to(x)
    out = degree(edges[0], len(x)).clamp_min(1).to(x)
    for _ in range(5):
        share = 0.15 / len(x) + 0.85 * scatter((share / out)[edges[0]], edges[1], 0, len(x), "sum")
    return x * share[:, None] * 10


def components(x: Tensor, edges: Tensor) -> Tensor:
    label = torch.arange(len(x))
    for _ in range(len(x)):
        label = torch.minimum(label, scatter(label[edges[0]], edges[1], 0, len(x), "min"))
    return x * (1 + label[:, None] % 3)


def around_three(x: Tensor, edges: Tensor) -> Tensor:
    near = k_hop_subgraph(3, 1, edges, num_nodes=len(x))[0]
    return x.index_add(0, near, torch.ones(len(near), x.shape[1]).to(x))


def capped(edges: Tensor, most: int) -> Tensor:
    crowded = degree(edges[1]) > most if edges.numel() else torch.zeros(1).bool()
    return edges[:, ~crowded[edges[1]]] if edges.numel() else edges


class Loud(gnn.SAGEConv):
    """A subclass of a known layer."""

    def message(self, x_j: Tensor) -> Tensor:
        return x_j.abs()


class OwnCall(Plain):
    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().__call__(x, edge_index).flip(1)


class InnerCall(nn.Linear):
    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) - x.mean(0)[:HIDDEN].sum()


class Centring(nn.Module):
    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        self.linear = nn.Linear(wide, narrow)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x - x.mean(0))


def altered(name: str, change: Callable[..., Any], part: str = "first") -> Plain:
    """A plain model with one method of one part replaced on the instance."""
    model = Plain()
    owner = model.get_submodule(part)
    old = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: change(old, *args, **kwargs))
    return model


def minus(old: Any, *args: Any, **kwargs: Any) -> Tensor:
    return -old(*args, **kwargs)


def per_node_bias() -> Plain:
    model = Plain(gnn.GCNConv(FEATURES, HIDDEN))
    model.first.bias = nn.Parameter(torch.randn(NODES, HIDDEN))
    return model


def replaced_part() -> Plain:
    model = Plain(gnn.GCNConv(FEATURES, HIDDEN))
    model.first.lin = Centring(FEATURES, HIDDEN)
    return model


def other_aggregation() -> Plain:
    model = Plain()
    model.first.aggr_module = gnn.MaxAggregation()
    return model


def hooked() -> Plain:
    model = Plain()
    model.second.register_forward_hook(lambda module, args, out: out.flip(1))
    return model


def message_hooked() -> Plain:
    model = Plain()
    model.first.register_message_forward_hook(lambda module, args, out: -out)
    return model


def root_altered() -> Plain:
    model = Plain()
    model.forward = types.MethodType(lambda self, x, e: Plain.forward(self, x, e).flip(1), model)  # type: ignore
    return model


def parametrised() -> Plain:
    model = Plain()
    nn.utils.parametrizations.weight_norm(model.first.lin_l)
    return model


class OnData(Plain):
    """forward(data), reading something more by some road."""

    def __init__(self, read: Callable[[Any], Any] = lambda data: None, layer: Any = None) -> None:
        super().__init__(layer)
        self.read = read

    def forward(self, data: Any) -> Tensor:  # type: ignore[override]
        more = self.read(data)
        factor = 1.0 if more is None else more
        return super().forward(data.x * factor, data.edge_index)


class WeightedData(Plain):
    def __init__(self, road: Callable[[Any], Any]) -> None:
        super().__init__(gnn.GraphConv(FEATURES, HIDDEN))
        self.road = road

    def forward(self, data: Any) -> Tensor:  # type: ignore[override]
        h = self.first(data.x, data.edge_index, self.road(data)).relu()
        return self.second(h, data.edge_index)


def helper(data: Any) -> Any:
    return data["edge" + "_weight"]


class TakesWeight(Plain):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Any = None) -> Tensor:
        return super().forward(x, edge_index)


class MadeWeight(Plain):
    """Edge weights made in forward, given to the layers by position."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        weight = (x[edge_index[0], 0] * x[edge_index[1], 0]).sigmoid()
        return self.second(self.first(x, edge_index, weight).relu(), edge_index)


class SecondWeight(Plain):
    """Edge weights made in forward for a layer that aggregates before it transforms."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        return self.second(h, edge_index, (h[edge_index[0]] * h[edge_index[1]]).sum(1).tanh())


class Cache(Plain):
    kept: Any = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.kept = edge_index if self.kept is None else self.kept
        return super().forward(x, self.kept)


class ShapeCache(Plain):
    """Remembers its answer for every number of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Any, Tensor] = {}

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.kept.setdefault((len(x), edge_index.shape), super().forward(x, edge_index))


class Counter(Plain):
    """Answers otherwise after some calls."""

    calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x, edge_index) * (1 if self.calls < 9 else -1)


class Running(Plain):
    """A buffer that follows what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = super().forward(x, edge_index)
        self.mean = 0.5 * self.mean + 0.5 * out.mean(0)
        return out - self.mean


class Noting(Plain):
    """Keeps its last states for whoever wants to look: harmless."""

    last: Any = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.last = super().forward(x, edge_index)
        return self.last


class Random(Plain):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return fn.dropout(super().forward(x, edge_index), 0.5)


class Seeded(Plain):
    """Random numbers of its own, the same for every call; which node gets which depends on the batch."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        return super().forward(x, edge_index) + torch.randn(len(x), CLASSES, generator=generator)


class Embedded(Plain):
    """A table with one row for each node number."""

    def __init__(self, wraps: bool) -> None:
        super().__init__()
        self.table, self.wraps = nn.Parameter(torch.randn(NODES, FEATURES)), wraps

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        number = torch.arange(len(x)) % NODES if self.wraps else torch.arange(len(x))
        return super().forward(x + self.table[number], edge_index)


class Labels(Plain):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index).argmax(1)


class Between(nn.Module):
    """A module between two layers."""

    def __init__(self, between: nn.Module) -> None:
        super().__init__()
        self.first, self.second = gnn.SAGEConv(FEATURES, HIDDEN), gnn.SAGEConv(HIDDEN, CLASSES)
        self.between = between

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.between(self.first(x, edge_index)), edge_index)


class MessageNormed(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.norm = gnn.MessageNorm()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index)
        return self.second(self.norm(h, h.roll(1, 1)), edge_index)


class Traceable(nn.Module):
    """Plain torch, so that torch.jit takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.one(x).relu()
        h = h.index_add(0, edge_index[1], h[edge_index[0]])
        out = self.two(h)
        return out.index_add(0, edge_index[1], out[edge_index[0]])


def traced() -> nn.Module:
    example = torch.randn(NODES, FEATURES).double(), torch.randint(0, NODES, (2, 20))
    return torch.jit.trace(Traceable().double(), example, check_trace=False)
