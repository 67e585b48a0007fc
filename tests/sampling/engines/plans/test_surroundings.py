"""Sums over neighbours: by the library's product, and entry by entry where one order of sums is asked for."""

import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph, to_dense_adj

from unswayed.sampling.engines.plans import surroundings
from unswayed.sampling.engines.plans.surroundings import Surroundings


@pytest.mark.parametrize("way", ["product", "by_entries"])
@pytest.mark.parametrize("density", [0.0, 0.2])
def test_spreading_is_a_product_with_the_adjacency_matrix(monkeypatch, way, density):
    torch.manual_seed(0)
    edges = erdos_renyi_graph(20, density)
    dense = to_dense_adj(edges, max_num_nodes=20)[0].double()
    monkeypatch.setattr(surroundings, "product", getattr(surroundings, way))
    z = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    found = Surroundings.of(edges, 20, torch.float64).spread(z)
    assert torch.allclose(found, dense @ z)
    pulled = torch.randn(20, 3, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(found, z, pulled)
    assert torch.allclose(gradient, dense.T @ pulled)
