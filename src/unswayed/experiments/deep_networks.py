"""Networks deeper than the benchmarks', 16 wide unless said, to time and compare the engines on."""

from collections.abc import Callable

import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data


class Rectified(nn.Module):
    """Layers with a rectifier between them; a linear map may come before and after, and layers may ask for its result."""

    def __init__(
        self, *layers: nn.Module, first: nn.Module | None = None, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.layers, self.first, self.last = nn.ModuleList(layers), first, last

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        if self.first is not None:
            x = self.first(x).relu()
        start = x
        for i, layer in enumerate(self.layers):
            x = layer(x, start, edge_index) if isinstance(layer, gnn.GCN2Conv) else layer(x, edge_index)
            x = x if i == len(self.layers) - 1 and self.last is None else x.relu()
        out: Tensor = x if self.last is None else self.last(x)
        return out


def _three(layer: Callable[[int, int], nn.Module]) -> Callable[[int, int], nn.Module]:
    return lambda f, c: Rectified(layer(f, 16), layer(16, 16), layer(16, c))


class Propagated(nn.Module):
    """A perceptron whose answers are spread (Gasteiger et al. 2019)."""

    def __init__(self, f: int, c: int) -> None:
        super().__init__()
        self.first, self.second, self.spread = nn.Linear(f, 16), nn.Linear(16, c), gnn.APPNP(10, 0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        out: Tensor = self.spread(self.second(self.first(x).relu()), edge_index)
        return out


def _gcn2(f: int, c: int) -> nn.Module:
    layers = [gnn.GCN2Conv(64, 0.1, 0.5, i + 1) for i in range(8)]
    return Rectified(*layers, first=nn.Linear(f, 64), last=nn.Linear(64, c))


DEEP: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn-3": lambda f, c: gnn.GCN(f, 16, 3, c),
    "gat-3": lambda f, c: gnn.GAT(f, 16, 3, c),
    "sage-3": lambda f, c: gnn.GraphSAGE(f, 16, 3, c),
    "gin-3": lambda f, c: gnn.GIN(f, 16, 3, c),
    "jk-sage-3": lambda f, c: gnn.GraphSAGE(f, 16, 3, c, jk="cat"),
    "appnp-10": Propagated,
    "sgc-2": lambda f, c: Rectified(gnn.SGConv(f, c, K=2)),
    "gcn2-8": _gcn2,
    "transformer-3": _three(gnn.TransformerConv),
    "sage-max-3": _three(lambda i, o: gnn.SAGEConv(i, o, aggr="max")),
    "tag-2": lambda f, c: Rectified(gnn.TAGConv(f, 16), gnn.TAGConv(16, c)),
    "cheb-2": lambda f, c: Rectified(gnn.ChebConv(f, 16, 3), gnn.ChebConv(16, c, 3)),
    "gated-3": _three(gnn.ResGatedGraphConv),
    "arma-2": lambda f, c: Rectified(gnn.ARMAConv(f, 16, 2, 2), gnn.ARMAConv(16, c, 2, 2)),
    "feast-2": lambda f, c: Rectified(gnn.FeaStConv(f, 16), gnn.FeaStConv(16, c)),  # not recognised
}


def trained(name: str, data: Data, nodes: Tensor, classes: int, steps: int = 30) -> nn.Module:
    """One of these, a little trained on the clean graph, so that its answers are not all alike."""
    torch.manual_seed(0)
    model = DEEP[name](data.x.shape[1], classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(data.x, data.edge_index)[nodes], data.y[nodes])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return model.eval()
