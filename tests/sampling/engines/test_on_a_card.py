"""What only a card can show: the votes that it counts are those of the CPU, but for logits that tie within rounding."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card on this machine"),
]


class Sage(torch.nn.Module):
    """Two layers that the row engine knows."""

    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(5, 16), SAGEConv(16, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.fixture
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(30, 5), edge_index=erdos_renyi_graph(30, 0.15))


@pytest.mark.parametrize("build", [Sage, lambda: GCN(5, 16, 2, 3)], ids=["sage", "gcn"])
@pytest.mark.parametrize("threat", [us.Row, us.AllPairs])
@pytest.mark.parametrize(
    "noise", [us.Flip(beta=0.7), us.AddDelete(p_add=0.01, p_delete=0.4)], ids=["flip", "add"]
)
def test_the_votes_are_those_of_the_cpu(data, build, threat, noise):
    torch.manual_seed(1)
    model = build()
    asked = {"samples": 2_000, "seed": 4, "progress": False}
    here = us.poll(model, threat(data, [0, 7, 29]), noise, device="cpu", **asked)
    there = us.poll(model, threat(data, [0, 7, 29]), noise, device="cuda", **asked)
    assert here.samples.tolist() == there.samples.tolist()
    assert abs(here.counts - there.counts).sum() <= 0.002 * here.counts.sum()
