"""Spread against PyG's own convolutions."""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GCNConv
from torch_geometric.utils import erdos_renyi_graph

from unswayed.models.training.spreading import Spread
from unswayed.models.training.teacher import HOPS, RETURN, Convolutions, Propagation


def graph() -> Data:
    torch.manual_seed(0)
    return Data(x=torch.randn(40, 7), edge_index=erdos_renyi_graph(40, 0.1), num_nodes=40)


def test_spreads_as_a_convolution_does_and_goes_back_the_same_way() -> None:
    data, conv = graph(), GCNConv(7, 7, bias=False)
    conv.lin.weight.data.copy_(torch.eye(7))
    one, two = data.x.clone().requires_grad_(), data.x.clone().requires_grad_()
    here, there = Spread(data)(one), conv(two, data.edge_index)
    torch.testing.assert_close(here, there)
    (here**2).sum().backward()
    (there**2).sum().backward()
    torch.testing.assert_close(one.grad, two.grad)


def test_sums_over_edges_are_the_same_where_rows_are_not_compressed() -> None:
    data = graph()
    spread = Spread(data)
    here = spread(data.x)
    spread.rows = None
    torch.testing.assert_close(spread(data.x), here)


def test_teachers_are_the_published_networks() -> None:
    data = graph()
    made = Convolutions(Spread(data), 7, 3).eval()
    first, second = GCNConv(7, 64), GCNConv(64, 3)
    for theirs, ours, shift in ((first, made.first, 0), (second, made.second, 1)):
        theirs.lin.weight.data.copy_(ours.weight)
        theirs.bias.data.copy_(made.shifts[shift].data.normal_())
    wanted = second(first(data.x, data.edge_index).relu(), data.edge_index)
    torch.testing.assert_close(made(data.x, data.edge_index), wanted)
    ranked = Propagation(Spread(data), 7, 3).eval()
    said = ranked.second(ranked.first(data.x).relu())
    wanted = APPNP(K=HOPS, alpha=RETURN)(said, data.edge_index)
    torch.testing.assert_close(ranked(data.x, data.edge_index), wanted)
