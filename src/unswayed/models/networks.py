"""The networks of the benchmarks in their published sizes, written with plain PyG convolutions.

Every one is `forward(x, edge_index)` for nodes or `forward(x, edge_index, batch)` for graphs and, once in eval mode,
answers each graph by itself: no dropout, no statistics shared between samples.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SimpleConv, global_add_pool

DROPOUT = 0.5
GRAPH_LAYERS = 5
DEGREE_BINS = 64


class GCN(nn.Module):
    """Two symmetrically normalised graph convolutions (Kipf and Welling 2017), 16 hidden channels."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 16) -> None:
        super().__init__()
        self.first = GCNConv(num_features, hidden)
        self.second = GCNConv(hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = self.first(x, edge_index).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.second(x, edge_index)
        return out


class MeanGCN(nn.Module):
    """Two layers, each a linear map and then the mean over a node and its neighbours, as in the authors' code."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(num_features, hidden)
        self.second = nn.Linear(hidden, num_classes)
        self.mean = SimpleConv("mean", combine_root="self_loop")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = self.mean(self.first(x), edge_index).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.mean(self.second(x), edge_index)
        return out


class GAT(nn.Module):
    """Two attention layers (Veličković et al. 2018), 8 heads of 8 channels, then one head; `drop` of attention in training.

    With `residual` a node's own state has a weight of its own in each layer, in place of a self-loop that would have to
    share the attention with all neighbours.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        hidden: int = 8,
        heads: int = 8,
        residual: bool = False,
        drop: float = 0.6,
    ) -> None:
        super().__init__()
        how = {"residual": residual, "add_self_loops": not residual, "dropout": drop}
        self.first = GATConv(num_features, hidden, heads=heads, **how)
        self.second = GATConv(hidden * heads, num_classes, heads=1, **how)
        self.drop = drop or DROPOUT

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = functional.elu(self.first(x, edge_index))
        x = functional.dropout(x, self.drop, self.training)
        out: Tensor = self.second(x, edge_index)
        return out


class SAGE(nn.Module):
    """Two mean-aggregating layers with a weight of their own for the node's state (Hamilton et al. 2017)."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, hidden, aggr="mean", root_weight=True)
        self.second = SAGEConv(hidden, num_classes, aggr="mean", root_weight=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = self.first(x, edge_index).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.second(x, edge_index)
        return out


class NodeGIN(nn.Module):
    """Two GIN layers for node classification."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first = GINConv(
            nn.Sequential(nn.Linear(num_features, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        )
        self.second = GINConv(
            nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = self.first(x, edge_index).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.second(x, edge_index)
        return out


class MLP(nn.Module):
    """Two linear layers on a node's own features: no edge can change what it says."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(num_features, hidden)
        self.second = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node; the edges are not looked at."""
        x = self.first(x).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.second(x)
        return out


class DegreeFeatures(nn.Module):
    """One-hot degrees, counted from the edges it is given: never from a clean graph that the noise has left behind."""

    steps: Tensor

    def __init__(self, bins: int = DEGREE_BINS) -> None:
        super().__init__()
        self.count = SimpleConv("sum")
        self.register_buffer("steps", torch.arange(bins, dtype=torch.float32), persistent=False)
        self.last = bins - 1

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """float[nodes, bins] from x [nodes, 1]: 1 in the column of the node's degree (beyond the last bin: the last)."""
        degree = self.count(torch.ones_like(x), edge_index).clamp(max=self.last)
        return torch.relu(1 - (degree - self.steps).abs())


class _GraphNetwork(nn.Module):
    """Node states of every layer, the input among them, are summed over the graph and classified (Xu et al. 2019)."""

    def __init__(self, num_features: int, num_classes: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.features: nn.Module | None = DegreeFeatures() if num_features == 0 else None
        width = num_features or DEGREE_BINS
        self.convolutions = nn.ModuleList(
            self.layer(width if i == 0 else hidden, hidden) for i in range(layers)
        )
        later = [nn.Linear(hidden, num_classes) for _ in range(layers)]
        self.readouts = nn.ModuleList([nn.Linear(width, num_classes), *later])

    def layer(self, wide: int, hidden: int) -> nn.Module:
        """One message-passing layer from `wide` to `hidden` channels."""
        raise NotImplementedError

    def norm(self, index: int, x: Tensor) -> Tensor:
        """What follows the convolution `index`."""
        return x.relu()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of every graph."""
        if self.features is not None:
            x = self.features(x, edge_index)
        out = self.readouts[0](global_add_pool(x, batch))
        for index in range(len(self.convolutions)):
            x = self.norm(index, self.convolutions[index](x, edge_index))
            pooled = functional.dropout(global_add_pool(x, batch), DROPOUT, self.training)
            out = out + self.readouts[index + 1](pooled)
        logits: Tensor = out
        return logits


class GIN(_GraphNetwork):
    """Five graph isomorphism layers with batch (or layer) norm and a readout of every layer (Xu et al. 2019)."""

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        hidden: int = 32,
        layers: int = GRAPH_LAYERS,
        norm: str = "batch",
    ) -> None:
        self._norm = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[norm]
        super().__init__(num_features, num_classes, hidden, layers)
        self.norms = nn.ModuleList(self._norm(hidden) for _ in range(layers))

    def layer(self, wide: int, hidden: int) -> nn.Module:
        """A GIN convolution with a two-layer perceptron."""
        steps = nn.Linear(wide, hidden), self._norm(hidden), nn.ReLU(), nn.Linear(hidden, hidden)
        layer: nn.Module = GINConv(nn.Sequential(*steps))
        return layer

    def norm(self, index: int, x: Tensor) -> Tensor:
        """Normalise, then rectify."""
        out: Tensor = self.norms[index](x).relu()
        return out


class GraphGCN(_GraphNetwork):
    """Graph convolutions with a readout of every layer."""

    def layer(self, wide: int, hidden: int) -> nn.Module:
        """A symmetrically normalised convolution."""
        layer: nn.Module = GCNConv(wide, hidden)
        return layer


class DeepSets(nn.Module):
    """A perceptron on each node, summed, then a perceptron: a graph is the multiset of its nodes, edges unseen."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 32) -> None:
        super().__init__()
        self.node = nn.Sequential(nn.Linear(max(num_features, 1), hidden), nn.ReLU())
        self.graph = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of every graph; the edges are not looked at."""
        out: Tensor = self.graph(global_add_pool(self.node(x), batch))
        return out
