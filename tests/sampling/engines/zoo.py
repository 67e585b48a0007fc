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
