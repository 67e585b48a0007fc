"""Listed pairs: what can never be joined to a target is left out, and only where that is exact."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphNorm

from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Pairs, Row
from unswayed.theory.noise import AddDelete, Flip

EDGES = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 4), (8, 9)]
PAIRS = [(0, 4), (7, 8), (1, 2), (2, 6), (8, 9)]  # the second and the last lie apart from nodes 0 to 6


class Net(nn.Module):
    def __init__(self, last=None):
        super().__init__()
        torch.manual_seed(3)
        self.one, self.two = GCNConv(5, 8), GCNConv(8, 3)
        self.last = last

    def forward(self, x, edge_index):
        out = self.two(self.one(x, edge_index).relu(), edge_index)
        return out if self.last is None else self.last(out)


class NetWithBatch(Net):
    def __init__(self):
        super().__init__()
        self.norm = GraphNorm(8)

    def forward(self, x, edge_index, batch=None):
        return self.two(self.norm(self.one(x, edge_index), batch).relu(), edge_index)


def engine(model, nodes=(0, 5), noise=None, **more):
    torch.manual_seed(0)
    edge_index = torch.tensor(EDGES).T
    data = Data(x=torch.randn(11, 5), edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))
    threat = Pairs(data, PAIRS, list(nodes))
    return GenericEngine(Question(model, threat, noise or Flip(beta=0.7), engine="generic", **more))


@pytest.mark.parametrize("noise", [Flip(beta=0.7), AddDelete(p_add=0.2, p_delete=0.6)])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("nodes", [(0, 5), (8,), (10,), (3, 9)])
def test_votes_are_those_of_the_whole_graph(noise, shared, nodes):
    cut = engine(Net(), nodes, noise, shared=shared)
    assert cut.restricts
    votes = cut.count(0, 300)
    cut._restricts = False
    assert np.array_equal(votes, cut.count(0, 300))


@pytest.mark.parametrize(("nodes", "left"), [((0, 5), 7), ((8,), 3), ((10,), 1), ((3, 9), 10)])
def test_the_graph_is_cut_to_what_some_noise_can_join(nodes, left):
    layout, places = engine(Net(), nodes)._place(tuple(range(len(nodes))))
    assert layout.graph.num_nodes == left
    assert torch.equal(layout.graph.x[places], engine(Net(), nodes).question.threat.graph.x[list(nodes)])


def mean_of_all(out):
    return out - out.mean(dim=0)


@pytest.mark.filterwarnings("ignore:.*asked one noisy graph at a time")
@pytest.mark.parametrize("model", [Net(mean_of_all), NetWithBatch(), lambda x, edge_index: x[:, :3]])
def test_nothing_is_left_out_where_the_rest_could_matter(model):
    assert not engine(model).restricts


@pytest.mark.filterwarnings("ignore:.*asked one noisy graph at a time")
def test_targets_that_are_asked_about_apart_are_tried_apart():
    """Nothing is left out of the graph around all of them, and most of it around each: labels were those of another network."""
    model, nodes = Net(mean_of_all), (0, 8, 10)
    asked = engine(model, nodes, shared=False)
    assert not asked.restricts
    said = asked.alone.answers(range(60), (0, 1, 2)).argmax(dim=-1)
    assert torch.equal(asked.labels(0, 60), said)


class Hub(nn.Module):
    """Reads whether node 9, which is never joined to a target, has the most links of all."""

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[1], minlength=len(x))
        return torch.stack([torch.zeros(len(x)), (degree.max() > 2).float() - 0.5 + 0 * x[:, 0]], dim=1)


def test_graphs_as_the_noise_makes_them_are_tried_too():
    """Where half of all entries differ, some node of a target's own part nearly always has as many links."""
    star = torch.tensor([(8, v) for v in (7, 9, 10)] + [(0, 1), (1, 2)]).T
    data = Data(x=torch.randn(11, 5), edge_index=torch.cat([star, star.flip(0)], dim=1))
    listed = [(i, j) for i in range(7) for j in range(i)]
    question = Question(
        Hub(), Pairs(data, listed, [0, 5]), AddDelete(p_add=0.001, p_delete=0.001), engine="generic"
    )
    assert not GenericEngine(question).restricts


def test_a_row_reaches_every_node_so_nothing_is_left_out():
    threat = Row(Data(x=torch.randn(6, 5), edge_index=torch.tensor([[0, 1], [1, 0]])), [0])
    assert not GenericEngine(Question(Net(), threat, Flip(beta=0.7), engine="generic")).restricts
