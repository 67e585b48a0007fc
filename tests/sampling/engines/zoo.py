"""Models in the styles that people write, for the engines' tests: name -> a function of (features, classes)."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.data import Data

from unswayed.models import build


class Two(nn.Module):
    """Two convolutions with a functional activation, dropout, and if wanted a residual and a head on both states."""

    def __init__(
        self, first: Any, second: Any, act: Any = fn.relu, skip: Any = None, head: Any = None
    ) -> None:
        super().__init__()
        self.first, self.second, self.act, self.skip, self.head = first, second, act, skip, head

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.act(self.first(x, edge_index))
        if self.skip is not None:
            h = h + self.skip(x)
        h = fn.dropout(h, 0.5, training=self.training)
        out = self.second(h, edge_index)
        if self.head is not None:
            out = self.head(torch.cat([out, h], dim=-1))
        return fn.log_softmax(out, dim=1)


class Listed(nn.Module):
    """forward(data), a ModuleList, a method as activation."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList([gnn.GCNConv(features, 8), gnn.GCNConv(8, classes)])

    def forward(self, data: Data) -> Tensor:
        x, edge_index = data.x, data.edge_index
        for conv in self.convs[:-1]:
            x = conv(x, edge_index).relu()
        return self.convs[-1](x, edge_index)


class MeanGCN(nn.Module):
    """Linear, then the mean over neighbours and the node itself, twice."""

    def __init__(self, features: int, classes: int, hidden: int = 8) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.mean = gnn.SimpleConv("mean", combine_root="self_loop")
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.mean(self.two(self.act(self.mean(self.one(x), edge_index))), edge_index)


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))


class Stack(nn.Module):
    """Any number of layers with a rectifier between them, and if wanted a norm after each; x_0 goes to those that take it."""

    def __init__(self, *convs: Any, norm: Any = None, first: Any = None, last: Any = None) -> None:
        super().__init__()
        self.convs, self.norm = nn.ModuleList(convs), norm
        self.first, self.last = first or nn.Identity(), last or nn.Identity()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = start = self.first(x)
        for i, conv in enumerate(self.convs):
            x = conv(x, start, edge_index) if isinstance(conv, gnn.GCN2Conv) else conv(x, edge_index)
            if i < len(self.convs) - 1:
                x = (x if self.norm is None else self.norm(x)).relu()
        return self.last(x)


class Jumping(nn.Module):
    """Three layers whose states are joined."""

    def __init__(self, f: int, c: int, mode: str) -> None:
        super().__init__()
        self.convs = nn.ModuleList([gnn.SAGEConv(f, 8), gnn.SAGEConv(8, 8), gnn.SAGEConv(8, 8)])
        self.jump = gnn.JumpingKnowledge(mode, 8, 3)
        self.last = nn.Linear(24 if mode == "cat" else 8, c)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        states = []
        for conv in self.convs:
            x = conv(x, edge_index).tanh()
            states.append(x)
        return self.last(self.jump(states))


# deeper, or with layers that are no sums over a row
DEEP: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn-3": lambda f, c: gnn.GCN(f, 8, 3, c),
    "gcn-4-norm": lambda f, c: gnn.GCN(f, 8, 4, c, norm="batch_norm"),
    "gat-3": lambda f, c: gnn.GAT(f, 8, 3, c, heads=2),
    "gat-3-no-loops": lambda f, c: Stack(
        *(gnn.GATConv(i, o, heads=1, add_self_loops=False) for i, o in ((f, 8), (8, 8), (8, c)))
    ),
    "gatv2-3": lambda f, c: gnn.GAT(f, 8, 3, c, v2=True, heads=2),
    "sage-3": lambda f, c: gnn.GraphSAGE(f, 8, 3, c),
    "gin-3": lambda f, c: gnn.GIN(f, 8, 3, c),
    "jk-cat": lambda f, c: gnn.GraphSAGE(f, 8, 3, c, jk="cat", norm="batch_norm"),
    "jk-max": lambda f, c: Jumping(f, c, "max"),
    "jk-lstm": lambda f, c: Jumping(f, c, "lstm"),
    "max": lambda f, c: Stack(
        gnn.SAGEConv(f, 8, aggr="max"), gnn.GraphConv(8, 8, aggr="max"), gnn.SAGEConv(8, c)
    ),
    "appnp": lambda f, c: Stack(gnn.APPNP(5, 0.1), first=nn.Linear(f, c)),
    "appnp-then-gcn": lambda f, c: Stack(gnn.APPNP(3, 0.2, add_self_loops=False), gnn.GCNConv(f, c)),
    "sgc": lambda f, c: Stack(gnn.SGConv(f, c, K=3)),
    "tag": lambda f, c: Stack(gnn.TAGConv(f, 8, K=2), gnn.TAGConv(8, c, K=3, normalize=False)),
    "cheb": lambda f, c: Stack(gnn.ChebConv(f, 8, 2), gnn.ChebConv(8, c, 4)),
    "gcn2": lambda f, c: Stack(
        *(gnn.GCN2Conv(8, 0.2, 0.5, i + 1, shared_weights=i != 1) for i in range(4)),
        first=nn.Linear(f, 8),
        last=nn.Linear(8, c),
    ),
    "transformer": lambda f, c: Stack(
        gnn.TransformerConv(f, 4, heads=2),
        gnn.TransformerConv(8, 8, beta=True),
        gnn.TransformerConv(8, c, heads=2, concat=False, root_weight=False),
    ),
    "transformer-2": lambda f, c: Stack(gnn.TransformerConv(f, 4, heads=2), gnn.TransformerConv(8, c)),
    "gated": lambda f, c: Stack(gnn.ResGatedGraphConv(f, 8), gnn.ResGatedGraphConv(8, c, root_weight=False)),
    "arma": lambda f, c: Stack(
        gnn.ARMAConv(f, 8, num_stacks=2, num_layers=2), gnn.ARMAConv(8, c, num_layers=2, shared_weights=True)
    ),
    "graph-norm": lambda f, c: Stack(gnn.GCNConv(f, 8), gnn.SAGEConv(8, c), norm=gnn.GraphNorm(8)),
    "layer-norm": lambda f, c: Stack(gnn.GCNConv(f, 8), gnn.SAGEConv(8, c), norm=gnn.LayerNorm(8)),
    "pyg-layer-norm": lambda f, c: gnn.GraphSAGE(f, 8, 3, c, norm="layer_norm"),
    "lazy": lambda f, c: gnn.GraphSAGE(-1, 8, 3, c),
}


ZOO: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn-mean": MeanGCN,
    "forward-data": Listed,
    "gcn": lambda f, c: Two(gnn.GCNConv(f, 8), gnn.GCNConv(8, c)),
    "gcn-elu": lambda f, c: Two(
        gnn.GCNConv(f, 8), gnn.GCNConv(8, c), fn.elu, nn.Linear(f, 8), nn.Linear(c + 8, c)
    ),
    "gcn-no-loops": lambda f, c: Two(gnn.GCNConv(f, 8, bias=False), gnn.GCNConv(8, c, add_self_loops=False)),
    "gcn-unnormalised": lambda f, c: Two(gnn.GCNConv(f, 8, normalize=False), gnn.GCNConv(8, c)),
    "sage": lambda f, c: Two(
        gnn.SAGEConv(f, 8, normalize=True), gnn.SAGEConv(8, c, project=True), skip=nn.Linear(f, 8)
    ),
    "sage-sum": lambda f, c: Two(gnn.SAGEConv(f, 8, aggr="sum", root_weight=False), gnn.GraphConv(8, c)),
    "gin": lambda f, c: Two(gnn.GINConv(mlp(f, 8), train_eps=True), gnn.GINConv(nn.Linear(8, c))),
    "gat": lambda f, c: Two(
        gnn.GATConv(f, 4, heads=2), gnn.GATConv(8, c, heads=2, concat=False, residual=True), fn.elu
    ),
    "gat-no-loops": lambda f, c: Two(
        gnn.GATConv(f, 4, heads=2, add_self_loops=False), gnn.GATConv(8, c, add_self_loops=False), fn.elu
    ),
    "gat-residual": lambda f, c: build("gat", f, c, hidden=4, heads=3, residual=True),
    "gatv2": lambda f, c: Two(gnn.GATv2Conv(f, 4, heads=2), gnn.GATv2Conv(8, c, share_weights=True)),
    "gcn-then-gat": lambda f, c: Two(gnn.GCNConv(f, 8), gnn.GATConv(8, c)),
    "gat-then-gcn": lambda f, c: Two(gnn.GATConv(f, 8), gnn.GCNConv(8, c)),
    "pyg-gcn": lambda f, c: gnn.GCN(f, 8, 2, c, norm="batch_norm"),
    "pyg-gat": lambda f, c: gnn.GAT(f, 8, 2, c, heads=2),
    "pyg-gatv2": lambda f, c: gnn.GAT(f, 8, 2, c, v2=True),
    "pyg-gin": lambda f, c: gnn.GIN(f, 8, 2, c),
    "pyg-sage": lambda f, c: gnn.GraphSAGE(
        f, 8, 2, c, jk="cat", norm="layer_norm", norm_kwargs={"mode": "node"}
    ),
    "one-layer": lambda f, c: gnn.GCN(f, 8, 1, c),
}
