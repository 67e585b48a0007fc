"""An engine that was checked once may be moved to other targets and seeds: it then counts what a new one would."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, global_add_pool
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.question import Question

SAMPLES = 24


def graph(seed, n=14):
    torch.manual_seed(seed)
    return Data(x=torch.randn(n, 4), edge_index=erdos_renyi_graph(n, 0.25))


def network(kind):
    torch.manual_seed(1)
    return kind(4, 8, 2, 3).eval()


def deep():
    torch.manual_seed(2)
    return GraphSAGE(4, 8, 3, 3).eval()


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = network(GIN)

    def forward(self, x, edge_index, batch=None):
        return global_add_pool(self.net(x, edge_index), batch)


def asked_alone(question):
    alone = Alone(question)
    targets = tuple(range(len(question.threat)))
    return alone.classifier.votes(alone.answers(range(SAMPLES), targets)).tolist()


DATA = graph(0)
NEW = us.Row.new(DATA, torch.randn(3, 4, generator=torch.Generator().manual_seed(3)), [[0, 5], [], [1, 2, 7]])
ONE = us.Row.new(DATA, NEW.x[:1], [[0, 5]])
CASES = [
    ("row", network(GraphSAGE), us.Flip(0.7), us.Row(DATA, range(14)), us.Row(DATA, [3, 9])),
    ("row", network(GAT), us.AddDelete(0.1, 0.4), us.Row(DATA, range(14)), us.Row(DATA, [3])),
    ("row", network(GCN), us.Keep(2, 6), us.Row(DATA, range(14)), us.Row(DATA, [0, 13])),
    ("row", network(GraphSAGE), us.Flip(0.7), NEW, us.Row.new(DATA, NEW.x[:2] + 1, [[3], [0, 1]])),
    ("plan", deep(), us.Flip(0.7), us.Row(DATA, range(14)), us.Row(DATA, [3, 9])),
    ("plan", deep(), us.Flip(0.7), ONE, us.Row.new(DATA, NEW.x[1:2] + 1, [[3, 4]])),
    ("generic", network(GCN), us.Flip(0.7), us.Row(DATA, range(14)), us.Row(DATA, [3, 9])),
    (
        "whole-graph",
        network(GraphSAGE),
        us.AddDelete(0.01, 0.4),
        us.AllPairs(DATA, range(14)),
        us.AllPairs(DATA, [2, 5]),
    ),
    (
        "dense",
        Pooled(),
        us.Flip(0.8),
        us.AllPairs([graph(1, 5), graph(2, 6)]),
        us.AllPairs([graph(3, 7), graph(4, 5)]),
    ),
]


@pytest.mark.parametrize(("name", "model", "noise", "first", "then"), CASES)
def test_a_moved_engine_counts_what_the_classifier_says_alone(name, model, noise, first, then):
    question = Question(model, first, noise, seed=1, engine="generic" if name == "generic" else "auto")
    engine = choose(question)
    assert engine.name == name
    before = engine.labels(0, SAMPLES)
    other = replace(question, threat=then, seed=7)
    assert engine.moved(other).labels(0, SAMPLES).tolist() == asked_alone(other)
    assert torch.equal(engine.labels(0, SAMPLES), before)
