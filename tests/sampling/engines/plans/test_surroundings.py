"""Sums over neighbours: by the library's product, and entry by entry where one order of sums is asked for."""

import subprocess
import sys
import warnings

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


def test_no_filter_of_warnings_is_touched_while_threads_work(monkeypatch):
    """Two threads that set and restore them at a time can leave all warnings off."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    with monkeypatch.context() as patched:
        patched.setattr(warnings, "catch_warnings", None)
        found = Surroundings.of(path, 3, torch.float32).spread(torch.ones(3, 1))
    assert found[:, 0].tolist() == [1, 2, 1]


def test_a_process_hears_nothing_of_betas():
    code = (
        "import torch, unswayed.sampling.engines.plans.surroundings as s;"
        "i = torch.tensor([0, 1]); print((s.csr(torch.tensor([0, 1, 2]), i, torch.ones(2), (2, 2)) @ torch.eye(2)).sum())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "tensor(2.)", done.stderr
