"""Indexing in place of PyG's gathering: the same rows, for the time of a batch, on layers that gather by PyG's method."""

import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.sampling.engines.asking import gathering
from unswayed.sampling.engines.asking.gathering import NAME, indexing

EDGES = torch.tensor([[0, 1, 2, 2, 3], [1, 0, 3, 0, 2]])
LAYERS = [
    gnn.SimpleConv("mean"),
    gnn.SAGEConv(4, 3),
    gnn.GATConv(4, 3, heads=2),
    gnn.GINConv(nn.Linear(4, 3)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_answers_are_the_same_and_the_layer_is_left_as_it_was(layer: gnn.MessagePassing) -> None:
    x = torch.randn(4, 4)
    before = layer(x, EDGES)
    with indexing(nn.Sequential(layer), torch.device("cuda")):
        assert NAME in layer.__dict__
        assert torch.equal(layer(x, EDGES), before)
    assert NAME not in layer.__dict__


def test_a_layer_that_gathers_its_own_way_and_a_cpu_are_left_alone() -> None:
    class Own(gnn.SimpleConv):
        def _index_select(self, src: Tensor, index: Tensor) -> Tensor:
            return src.index_select(-2, index) * 2

    for layer, device in ((Own("mean"), "cuda"), (gnn.SimpleConv("mean"), "cpu")):
        with indexing(layer, torch.device(device)):
            assert NAME not in layer.__dict__


def test_a_release_whose_method_takes_something_else_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gathering.KNOWN  # of the release that is installed
    monkeypatch.setattr(gathering, "KNOWN", False)
    layer = gnn.SimpleConv("mean")
    with indexing(layer, torch.device("cuda")):
        assert NAME not in layer.__dict__


def test_wide_and_empty_rows_are_gathered_as_before() -> None:
    layer = gnn.SimpleConv("mean")
    for x in (torch.randn(4, 200), torch.randn(4, 0)):
        with indexing(layer, torch.device("cuda")):
            said = layer(x, EDGES)
        assert torch.equal(said, layer(x, EDGES))


def test_one_number_for_each_node() -> None:
    class Scaled(gnn.MessagePassing):
        def __init__(self) -> None:
            super().__init__("sum", node_dim=0)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.propagate(edge_index, x=x, norm=x[:, 0])

        def message(self, x_j: Tensor, norm_i: Tensor) -> Tensor:
            return x_j * norm_i[:, None]

    layer, x = Scaled(), torch.randn(4, 3)
    before = layer(x, EDGES)
    with indexing(layer, torch.device("cuda")):
        assert torch.equal(layer(x, EDGES), before)


def test_rows_along_another_dimension() -> None:
    layer = gnn.SimpleConv("mean")
    x = torch.randn(2, 4, 3)
    before = layer(x, EDGES)
    with indexing(layer, torch.device("cuda")):
        assert torch.equal(layer(x, EDGES), before)
