"""What a classifier is handed depends on the noisy entry set alone: not on which entries were there before the noise."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.inputs import pair_entries
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout, sample_numbers
from unswayed.sampling.structures import layout_of
from unswayed.theory.noise import AddDelete

N = 30
NOISE = AddDelete(p_add=0.02, p_delete=0.4)


def graph(seed: int = 0, share: float = 0.15) -> Data:
    torch.manual_seed(seed)
    return Data(x=torch.randn(N, 4), edge_index=erdos_renyi_graph(N, share))


class FirstListed(nn.Module):
    """Reads the first listed edges only; anything that lists the clean ones first would tell it the clean graph."""

    def __init__(self, edges: int) -> None:
        super().__init__()
        self.edges = edges

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        sizes = torch.bincount(edge_index[0] // N, minlength=len(x) // N).tolist()
        own = [edge_index[:, edge_index[0] // N == b][:, : self.edges] % N for b in range(len(sizes))]
        score = torch.stack([(part[0] * 7 + part[1] * 3).float().sum() % 11 - 5 for part in own])
        return torch.stack([score, -score], dim=1).repeat_interleave(N, dim=0)


def handed(data: Data, sample: int) -> torch.Tensor:
    """The edge list of one noisy version of the whole graph, drawn sparsely."""
    question = Question(FirstListed(3), us.AllPairs(data, [0]), NOISE)
    layout = layout_of(question, 0)
    assert isinstance(layout, SparseLayout)
    return layout.edges(sample_numbers(sample, sample + 1))


@pytest.mark.parametrize("sample", range(6))
def test_sparse_draws_list_entries_as_dense_ones_do(sample: int) -> None:
    edges = handed(graph(), sample)
    pairs = edges[:, : edges.shape[1] // 2]
    present = torch.zeros(N * (N - 1) // 2, dtype=torch.bool)
    present[pair_entries(pairs)] = True
    layout = layout_of(Question(FirstListed(3), us.AllPairs(graph(), [0]), NOISE, draws="dense"), 0)
    flips = (layout.clean ^ present)[None]
    assert torch.equal(layout.edges((flips, flips)), edges)


def test_batches_list_each_graph_as_it_is_listed_alone() -> None:
    data = graph()
    layout = layout_of(Question(FirstListed(3), us.AllPairs(data, [0]), NOISE), 0)
    together = layout.edges(sample_numbers(0, 5))
    for sample in range(5):
        own = together[:, together[0] // N == sample] - sample * N
        assert torch.equal(own, handed(data, sample))


def test_a_reader_of_the_first_edges_votes_alike_for_both_streams() -> None:
    """It counted on seeing kept edges first: then its votes tell the clean graph, and no certificate holds."""
    data, alike = graph(), []
    for draws in ("dense", "sparse"):
        votes = us.poll(
            FirstListed(2), us.AllPairs(data, [0]), NOISE, samples=4000, draws=draws, batch_size=1
        )
        alike.append(votes.counts[0] / 4000)
    assert np.abs(alike[0] - alike[1]).max() < 0.04
