"""Every layer in every arrangement against the module of torch_geometric that it stands for, in double precision."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.utils import coalesce, dense_to_sparse, erdos_renyi_graph, to_dense_adj

from unswayed.sampling.engines.graphs.edges import Edges, Listed
from unswayed.sampling.engines.graphs.matrices import Matrices
from unswayed.sampling.engines.graphs.star import Spokeless, Star
from unswayed.sampling.engines.plans.attention import Attention, Gated
from unswayed.sampling.engines.plans.layers import Largest, Layer, Sums, Symmetric
from unswayed.sampling.engines.plans.surroundings import Surroundings

N, WIDTH, CENTRE = 9, 3, 4


def gcn(**options: Any) -> nn.Module:
    layer = gnn.GCNConv(WIDTH, WIDTH, bias=False, **options)
    layer.lin.weight.data = torch.eye(WIDTH)
    return layer


LAYERS: dict[str, tuple[Callable[[Any], Layer], nn.Module]] = {
    "sum": (lambda _: Sums(), gnn.SimpleConv("sum")),
    "mean": (lambda _: Sums(True), gnn.SimpleConv("mean")),
    "mean with itself": (lambda _: Sums(True, 1.0), gnn.SimpleConv("mean", combine_root="self_loop")),
    "symmetric": (lambda _: Symmetric("all"), gcn()),
    "symmetric as given": (lambda _: Symmetric("given"), gcn(add_self_loops=False)),
    "largest": (lambda _: Largest(), gnn.SimpleConv("max")),
    "gat": (Attention, gnn.GATConv(WIDTH, 4, heads=2, residual=True)),
    "gat without loops": (Attention, gnn.GATConv(WIDTH, 4, concat=False, heads=3, add_self_loops=False)),
    "gatv2": (Attention, gnn.GATv2Conv(WIDTH, 4, heads=2)),
    "transformer": (Attention, gnn.TransformerConv(WIDTH, 4, heads=2, root_weight=False)),
    "gated": (Gated, gnn.ResGatedGraphConv(WIDTH, 4, root_weight=False, bias=False)),
}


def graph(loops: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(edges with both directions and loops, adjacency without loops, loops); node 0 has no neighbour."""
    torch.manual_seed(3)
    edges = erdos_renyi_graph(N, 0.4)
    edges = edges[:, (edges != 0).all(0)]
    own = torch.zeros(N, dtype=torch.float64)
    if loops:
        own[[2, CENTRE]] = 1
        edges = coalesce(torch.cat([edges, torch.tensor([[2, CENTRE], [2, CENTRE]])], 1))
    dense = to_dense_adj(edges, max_num_nodes=N)[0].double()
    return edges, dense - torch.diag(own), own


def listed(adjacency: Tensor, loops: Tensor) -> Listed:
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), adjacency.sum(1).long().cumsum(0)])
    edges = Edges(starts, adjacency.nonzero()[:, 1], N)
    return Listed(edges, adjacency.sum(1)[None, :, None], loops[None, :, None])


def star(adjacency: Tensor, loops: Tensor) -> Star:
    rest = adjacency.clone()
    rest[CENTRE] = rest[:, CENTRE] = 0
    around = Surroundings.of(dense_to_sparse(rest + torch.diag(loops))[0], N, torch.float64)
    return Star(Spokeless(around, CENTRE), adjacency[None, CENTRE] > 0)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@torch.no_grad()
def test_all_arrangements_say_what_the_module_says(name: str, loops: bool) -> None:
    make, module = LAYERS[name]
    module = module.double().eval()
    edges, adjacency, own = graph(loops)
    x = torch.randn(N, WIDTH, dtype=torch.float64)
    layer, expected = make(module), module(x, edges)
    spokes = star(adjacency, own)
    for around in (Matrices(adjacency[None], own[None]), listed(adjacency, own), spokes):
        torch.testing.assert_close(layer.over(layer.send(x[None]), around)[0], expected)
    torch.testing.assert_close(layer.over(layer.send(x[None]), spokes.centre)[0, 0], expected[CENTRE])
    torch.testing.assert_close(layer.at_few(x[None], spokes.centre)[0, 0], expected[CENTRE])
    assert layer.coupled == name.startswith("symmetric")


@pytest.mark.parametrize("name", ["gat", "gat without loops", "gatv2", "transformer"])
@pytest.mark.parametrize("slope", [0.2, -3.0, 4.0])
@torch.no_grad()
def test_no_score_is_beyond_its_bound_nor_farther_from_another_than_its_spread(
    name: str, slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    layer = Attention(LAYERS[name][1].double())
    monkeypatch.setattr(layer.module, "negative_slope", slope, raising=False)
    sent = layer.send(5 * torch.randn(40, WIDTH, dtype=torch.float64))
    score = layer.score(sent[1][None], sent[2][:, None])  # [receivers, senders, heads]
    assert float(score.abs().max()) <= layer.bound(sent) * (1 + 1e-12)
    assert float((score.amax(1) - score.amin(1)).max()) <= layer.spread(sent) * (1 + 1e-12)
