"""What a recognised module says of a node is said by the part of the graph that it hears; other modules get whole graphs."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphNorm, GraphSAGE, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.engines.asking import nearby
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.nearby import Nearby
from unswayed.sampling.question import Question

N, F, C = 300, 5, 3
NOISES = {"keep": us.Keep(2, 6), "add": us.AddDelete(p_add=0.01, p_delete=0.4), "flip": us.Flip(0.9)}


@pytest.fixture
def everywhere(monkeypatch):
    monkeypatch.setattr(nearby, "LARGE", 0)


def graph():
    torch.manual_seed(0)
    edges = erdos_renyi_graph(N, 0.01)
    return Data(x=torch.randn(N, F), edge_index=torch.cat([edges, torch.tensor([[7, 9], [7, 9]])], dim=1))


def built(kind, layers):
    torch.manual_seed(1)
    return kind(F, 8, layers, C).double().eval()


def asked(model, noise=NOISES["add"]):
    data = graph()
    data.x = data.x.double()
    return Question(model, us.Row(data, [0, 7, 9, 20]), noise, seed=3)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", [GraphSAGE, GIN, GAT])
@pytest.mark.parametrize("noise", NOISES)
def test_the_answer_is_that_of_the_whole_graph(kind, layers, noise, everywhere, monkeypatch):
    question = asked(built(kind, layers), NOISES[noise])
    near = Alone(question)
    assert near.nearby == Nearby(layers)
    monkeypatch.setattr(nearby, "LARGE", 2**40)
    whole = Alone(question)
    assert whole.nearby is None
    for target in range(4):
        for sample in range(3):
            assert torch.allclose(near.answer(sample, target), whole.answer(sample, target), atol=1e-12)


def test_most_of_the_graph_is_left_out(everywhere):
    question = asked(built(GraphSAGE, 2))
    layout = Alone(question).layout(0)
    edges = layout.sampled(question.noise, 0, 1)
    part, kept, node = Nearby(2).part(layout.graph, edges, torch.tensor(0))
    assert part.num_nodes < N / 2
    assert kept.shape[1] < edges.shape[1] / 2
    assert torch.equal(part.x[node], layout.graph.x[0])
    assert int(kept.max()) < part.num_nodes


class Normed(nn.Module):
    """Reads all nodes between two layers."""

    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = SAGEConv(F, 8), GraphNorm(8), SAGEConv(8, C)

    def forward(self, x, edge_index):
        return self.two(self.norm(self.one(x, edge_index)), edge_index)


class Guarded(GraphSAGE):
    """Reads how many nodes there are."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * (1 if len(x) > 100 else -1)


@pytest.mark.parametrize("model", [Normed().double(), built(GCN, 2), built(Guarded, 2)])
def test_modules_that_hear_more_get_whole_graphs(model, everywhere):
    """A norm over the graph; degrees of those who speak, which lie a hop further; code that may read anything."""
    assert Nearby.of(asked(model)) is None


def test_small_graphs_are_asked_about_as_a_whole():
    assert Nearby.of(asked(built(GraphSAGE, 2))) is None


@pytest.mark.parametrize("noise", NOISES)
def test_votes_are_the_same(noise, everywhere, monkeypatch):
    question = asked(built(GraphSAGE, 2), NOISES[noise])
    votes = us.poll(question.model, question.threat, question.noise, samples=40, progress=False)
    assert votes.notes["audit"]["agreed"] == votes.notes["audit"]["asked"] > 0
    monkeypatch.setattr(nearby, "LARGE", 2**40)
    slow = us.poll(
        question.model, question.threat, question.noise, samples=40, progress=False, engine="generic", batch_size=1
    )  # fmt: skip
    assert votes.counts.tolist() == slow.counts.tolist()


class Deeper(nn.Module):
    """Hears two hops when it is asked, and one while it is trained."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(F, F), SAGEConv(F, C)

    def forward(self, x, edge_index):
        return self.two(x if self.training else self.one(x, edge_index), edge_index)


def test_what_a_module_hears_is_what_it_hears_when_it_is_asked(everywhere):
    model = Deeper().double().train()
    assert Nearby.of(asked(model)) == Nearby(2)
    assert model.training
