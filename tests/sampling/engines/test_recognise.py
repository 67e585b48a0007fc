"""What the recogniser refuses, and that it names the obstacle."""

from typing import Any

import pytest
import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.recognise import recognise

from .zoo import ZOO, Two


@pytest.mark.parametrize("name", ZOO)
def test_common_styles_are_understood(name: str) -> None:
    plan = recognise(ZOO[name](6, 3).eval())
    assert plan.depth == (1 if name == "one-layer" else 2)
    assert plan.steps[0].kind == "input"


class Odd(nn.Module):
    """A module that does one odd thing between two layers."""

    def __init__(self, odd: Any) -> None:
        super().__init__()
        self.first, self.second, self.odd = gnn.GCNConv(6, 8), gnn.GCNConv(8, 3), odd

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.odd(self.first(x, edge_index)), edge_index)


class Scaled(gnn.GCNConv):
    """A subclass may do anything, so its class is not trusted."""


ODD = {
    "softmax over nodes": (lambda h: fn.softmax(h, dim=0), "dim=-1"),
    "mean over nodes": (lambda h: h - h.mean(dim=0), "not known to act on each node alone"),
    "sorting": (lambda h: torch.sort(h, dim=0)[0], "not known to act on each node alone"),
    "indexing": (lambda h: h[:1], "not known to act on each node alone"),
    "transposing": (lambda h: h.t(), "not known to act on each node alone"),
    "branching": (lambda h: h if h.sum() > 0 else -h, "torch.fx cannot trace"),
    "concatenating nodes": (lambda h: torch.cat([h, h], dim=0), "along dimension 0"),
    "graph norm": (gnn.GraphNorm(8), "GraphNorm|not known|trace"),
    "instance norm": (nn.InstanceNorm1d(8), "InstanceNorm1d"),
    "batch statistics": (nn.BatchNorm1d(8, track_running_stats=False), "BatchNorm1d"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_may_mix_nodes_is_refused(name: str) -> None:
    odd, message = ODD[name]
    with pytest.raises(Unsupported, match=message):
        recognise(Odd(odd).eval())


LAYERS = {
    "unknown class": (lambda: gnn.TAGConv(6, 8), "first.*TAGConv"),
    "subclass": (lambda: Scaled(6, 8), "first.*Scaled"),
    "cached": (lambda: gnn.GCNConv(6, 8, cached=True), "cached"),
    "improved": (lambda: gnn.GCNConv(6, 8, improved=True), "improved"),
    "max": (lambda: gnn.SAGEConv(6, 8, aggr="max"), "aggregates with MaxAggregation"),
    "edge features": (lambda: gnn.GATConv(6, 8, edge_dim=2), "edge features"),
    "other direction": (lambda: gnn.GCNConv(6, 8, flow="target_to_source"), "flow"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_are_not_known_exactly_are_refused_by_name(name: str) -> None:
    make, message = LAYERS[name]
    with pytest.raises(Unsupported, match=message):
        recognise(Two(make(), gnn.GCNConv(8, 3)).eval())


def test_hooks_are_refused() -> None:
    model = ZOO["gcn"](6, 3).eval()
    model.first.register_forward_hook(lambda module, args, out: out * 2)
    with pytest.raises(Unsupported, match=r"first.*hook"):
        recognise(model)
    other = ZOO["gcn"](6, 3).eval()
    other.second.register_message_forward_hook(lambda module, args, out: out * 2)
    with pytest.raises(Unsupported, match=r"second.*hook"):
        recognise(other)


def test_writing_into_a_state_that_is_used_again_is_refused() -> None:
    class Again(Odd):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = self.first(x, edge_index)
            return self.second(fn.relu(h, inplace=True) + h, edge_index)

    with pytest.raises(Unsupported, match="used again"):
        recognise(Again(None).eval())


def test_a_state_of_the_nodes_by_index_is_refused() -> None:
    class Embedded(Odd):
        def __init__(self) -> None:
            super().__init__(None)
            self.table = nn.Parameter(torch.zeros(20, 8))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.second(self.first(x, edge_index) + self.table, edge_index)

    with pytest.raises(Unsupported, match="table"):
        recognise(Embedded().eval())


def test_the_readout_attribute_is_put_back() -> None:
    class Pooled(Odd):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            return self.odd(self.second(self.first(x, edge_index), edge_index), batch)

    model = Pooled(gnn.global_add_pool)
    assert recognise(model).steps[-1].pool == "sum"
    assert model.odd is gnn.global_add_pool
