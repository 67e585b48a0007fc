"""Rows to which few entries are added: the votes are those of the classifier asked one graph at a time, by the noise's own law."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GCNConv, GraphSAGE, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError
from unswayed.sampling.drawing import FewStream
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.rows import few
from unswayed.sampling.question import Question
from unswayed.theory.noise import AddDelete, Flip

N, SAMPLES = 40, 60


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    loops = torch.tensor([[3, 9], [3, 9]])
    edges = torch.cat([erdos_renyi_graph(N, 0.12), loops], dim=1)
    x = torch.randn(N, 4, dtype=torch.float64)
    x[7] *= 1e6
    return Data(x=x, edge_index=edges)


class Mixed(nn.Module):
    """A residual network whose second layer divides by degrees."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.skip = SAGEConv(4, 8), GCNConv(8, 3), nn.Linear(4, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index) + self.skip(x)


def networks():
    torch.manual_seed(1)
    kinds = {
        "sage": GraphSAGE(4, 8, 2, 3),
        "gin": GIN(4, 8, 2, 3),
        "one": GraphSAGE(4, 3, 1),
        "mixed": Mixed(),
    }
    return {name: net.double().eval() for name, net in kinds.items()}


def asked_alone(question):
    alone = Alone(question)
    targets = tuple(range(len(question.threat)))
    return alone.classifier.votes(alone.answers(range(SAMPLES), targets)).tolist()


@pytest.mark.parametrize("name", ["sage", "gin", "one", "mixed"])
@pytest.mark.parametrize("noise", [AddDelete(0.1, 0.4), AddDelete(0.003, 0.5), AddDelete(0, 0.7), Flip(0.7)])
def test_votes_are_those_of_one_graph_at_a_time(data, name, noise):
    question = Question(networks()[name], us.Row(data, [0, 3, 7, 21, 39]), noise, seed=4, draws="sparse")
    engine = choose(question)
    assert engine.name == "few"
    assert engine.labels(0, SAMPLES).tolist() == asked_alone(question)
    assert engine.labels(7, 31, (2, 4)).tolist() == engine.labels(0, SAMPLES)[7:31, [2, 4]].tolist()
    generic = choose(replace(question, engine="generic"))
    assert generic.labels(0, SAMPLES).tolist() == engine.labels(0, SAMPLES).tolist()


@pytest.mark.parametrize("together", [1, 2, 3, 9])
def test_votes_do_not_depend_on_how_the_work_is_cut(monkeypatch, data, together):
    question = Question(
        networks()["mixed"], us.Row(data, [0, 3, 7, 21, 39]), AddDelete(0.1, 0.4), seed=4, draws="sparse"
    )
    monkeypatch.setattr(few, "TOGETHER", together)
    monkeypatch.setattr(few, "NODES", {"cpu": 6})
    monkeypatch.setattr(few, "WORDS", {"cpu": 7 * SAMPLES})
    assert choose(question).labels(0, SAMPLES).tolist() == asked_alone(question)


def test_arrivals_are_few_too(data):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2)).double()
    threat = us.Row.new(data, x, [[0, 7, 8], [], [39]])
    question = Question(networks()["sage"], threat, AddDelete(0.05, 0.4), seed=4, draws="sparse")
    engine = choose(question)
    assert type(engine.engine).__name__ == "FewEngine"
    assert engine.labels(0, SAMPLES).tolist() == asked_alone(question)


@pytest.mark.parametrize("kind", [GCN, GAT])
def test_networks_that_couple_or_attend_are_asked_by_the_row_engine(data, kind):
    torch.manual_seed(3)
    question = Question(
        kind(4, 8, 2, 3).double().eval(), us.Row(data, [1, 2]), AddDelete(0.05, 0.4), draws="sparse"
    )
    engine = choose(question)
    assert engine.name == "row"
    assert engine.labels(0, SAMPLES).tolist() == asked_alone(question)


def test_the_noise_has_its_law():
    noise, samples, entries = AddDelete(0.02, 0.3), 4000, 50
    zero, one = FewStream(5).flips(0, samples, entries, noise)
    for flips, p in ((zero, noise.p_add), (one, noise.p_delete)):
        share = flips.double().mean(0).numpy()
        assert np.abs(share - p).max() < 5 * np.sqrt(p * (1 - p) / samples)
        both = (flips[:, :-1] & flips[:, 1:]).double().mean()
        assert abs(float(both) - p * p) < 5 * np.sqrt(p * p / samples / (entries - 1))
    part = FewStream(5).flips(11, 30, entries, noise)
    assert torch.equal(part[0], zero[11:30])
    assert torch.equal(part[1], one[11:30])


def test_large_rows_with_few_additions_are_drawn_so_by_default(monkeypatch, data):
    monkeypatch.setattr("unswayed.sampling.question.FEW_ABOVE", N)
    asked = {"model": networks()["sage"], "threat": us.Row(data, [0])}
    assert Question(noise=AddDelete(0.001, 0.4), **asked).few
    assert not Question(noise=AddDelete(0.001, 0.4), draws="dense", **asked).few
    assert not Question(noise=AddDelete(0.1, 0.4), **asked).few
    assert not Question(noise=AddDelete(0.001, 0.4), shared=False, **asked).few
    with pytest.raises(InputError, match="shared noise"):
        Question(noise=AddDelete(0.001, 0.4), shared=False, draws="sparse", **asked)


def test_votes_of_the_two_streams_never_add(data):
    votes = [
        us.poll(networks()["sage"], us.Row(data, [0]), AddDelete(0.01, 0.4), samples=50, draws=draws)
        for draws in ("dense", "sparse")
    ]
    assert votes[0].provenance["stream"] != votes[1].provenance["stream"]
    with pytest.raises(InputError, match="stream"):
        votes[0] + votes[1]
