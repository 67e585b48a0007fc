"""What every engine keeps: one class, run for the generic engine and for each fast one on questions it supports."""

import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, global_mean_pool
from torch_geometric.utils import erdos_renyi_graph

from unswayed.errors import Unsupported
from unswayed.sampling import engines
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.soundness import differs
from unswayed.sampling.structures import count_labels
from unswayed.sampling.threats import AllPairs, Bits, Pairs, Row
from unswayed.theory import AddDelete, Flip, Keep

NODES, FEATURES, CLASSES, SAMPLES = 24, 5, 3, 90


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = GIN(FEATURES, 8, 2, CLASSES)

    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.body(x, edge_index), batch)


def all_questions():
    """Questions of every kind in double precision, so that no two logits tie within rounding."""
    torch.manual_seed(0)
    data = Data(x=torch.randn(NODES, FEATURES).double(), edge_index=erdos_renyi_graph(NODES, 0.2))
    small = data.subgraph(torch.arange(9))
    result = {}
    for kind in (GCN, GAT, GIN, GraphSAGE):
        model = kind(FEATURES, 8, 2, CLASSES).double()
        result[f"row {kind.__name__}"] = Question(model, Row(data, [0, 5, 23]), Flip(0.7), seed=2)
        result[f"nodes {kind.__name__}"] = Question(
            model, AllPairs(data, [0, 5, 23]), AddDelete(0.02, 0.4), seed=2
        )
    own = Question(model, Row(data, [0, 5, 23]), AddDelete(0.1, 0.4), seed=2, shared=False)
    result["row, own noise"] = own
    result["row, few added"] = Question(
        model, Row(data, [0, 5, 23]), AddDelete(0.02, 0.4), seed=2, draws="sparse"
    )
    result["row, few kept"] = Question(model, Row(data, [0, 5, 23]), Keep(2, 6), seed=2)
    arrived = Row.new(data, torch.randn(2, FEATURES).double(), [[0, 7, 9], [3]])
    result["arrivals"] = Question(model, arrived, Flip(0.7), seed=2)
    result["graphs"] = Question(Pooled().double(), AllPairs([data, small]), Flip(0.7), seed=2)
    pairs = [(i, i + 1) for i in range(NODES - 1)]
    result["pairs"] = Question(model, Pairs(data, pairs, [0, 5]), Flip(0.7), seed=2)
    bits = Bits(data.x[:3] > 0)
    result["bits"] = Question(lambda rows: rows.sum(axis=1) % 3, bits, Flip(0.7), seed=2, classes=3)
    return result


QUESTIONS = all_questions()
FAST = engines._fast_engines()
# by name: whoever no longer supports what it did would otherwise drop out of these tests in silence
ROWS = [
    f"row{how}" for how in (" GCN", " GAT", " GIN", " GraphSAGE", ", own noise", ", few added", ", few kept")
]
SUPPORTED = {
    "GenericEngine": list(QUESTIONS),
    "RowsApartEngine": ["arrivals"],
    "FewEngine": ["row, few added"],
    "KeptEngine": ["row, few kept"],
    "RowEngine": ROWS,
    "PlanEngine": [*ROWS, "pairs"],
    "DenseEngine": ["graphs"],
    "WholeGraphEngine": ["nodes GraphSAGE"],
}
CASES = [(engine, name) for engine in (GenericEngine, *FAST) for name in SUPPORTED[engine.__name__]]


@functools.cache
def said_alone(name):
    """[samples, targets, classes], or labels: what the classifier says of each sample, one graph at a time."""
    question = QUESTIONS[name]
    return Alone(question).answers(range(SAMPLES), tuple(range(len(question.threat))))


@pytest.fixture(params=CASES, ids=[f"{engine.__name__}-{name}" for engine, name in CASES])
def case(request):
    engine, name = request.param
    return engine, QUESTIONS[name]


@pytest.fixture
def alone(case):
    return said_alone(next(name for name, question in QUESTIONS.items() if question is case[1]))


def test_every_engine_supports_what_it_is_known_to_support():
    for engine in FAST:
        found = [name for name, question in QUESTIONS.items() if engine.supports(question) is None]
        assert found == SUPPORTED[engine.__name__], engine.__name__


class TestEngine:
    def test_counts_have_one_row_a_target_and_no_more_votes_than_samples(self, case):
        kind, question = case
        engine = kind(question)
        counts = engine.count(0, SAMPLES)
        assert counts.dtype == np.int64
        assert counts.shape == (len(question.threat), engine.classes)
        assert counts.min() >= 0
        assert np.all(counts.sum(axis=1) == SAMPLES)

    def test_votes_are_those_of_the_classifier_asked_one_graph_at_a_time(self, case, alone):
        kind, question = case
        engine = kind(question)
        labels = alone if alone.ndim == 2 else alone.argmax(dim=-1)
        assert np.array_equal(engine.count(3, SAMPLES), count_labels(labels[3:], engine.classes))

    def test_answers_are_what_the_votes_are_read_from(self, case, alone):
        kind, question = case
        engine, targets = kind(question), tuple(range(len(question.threat)))
        if alone.ndim == 2:  # a function that answers labels has no logits
            assert torch.equal(engine.labels(3, 40), alone[3:40])
            return
        answers = engine.answers(3, 40, targets)
        assert answers.shape == (37, len(targets), engine.classes)
        assert not differs(alone[3:40], answers)
        votes = count_labels(answers.argmax(dim=-1), engine.classes)
        assert np.array_equal(votes, engine.count(3, 40))

    def test_parts_add_up_in_any_order_and_repeat(self, case):
        kind, question = case
        engine = kind(question)
        whole = engine.count(0, SAMPLES)
        parts = [engine.count(start, stop) for start, stop in ((41, SAMPLES), (0, 1), (1, 41))]
        assert np.array_equal(sum(parts), whole)
        assert np.array_equal(engine.count(0, SAMPLES), whole)

    def test_targets_may_be_asked_apart_and_in_any_order(self, case):
        kind, question = case
        engine = kind(question)
        whole = engine.count(0, SAMPLES)
        order = tuple(reversed(range(len(question.threat))))
        assert np.array_equal(engine.count(0, SAMPLES, order), whole[list(order)])
        assert np.array_equal(engine.count(0, SAMPLES, (1 % len(order),)), whole[[1 % len(order)]])

    def test_no_samples_and_no_targets_give_no_votes(self, case):
        kind, question = case
        engine = kind(question)
        assert engine.count(5, 5).sum() == 0
        assert engine.count(0, 9, ()).shape == (0, engine.classes)


class Wrong(GenericEngine):
    """An engine that supports everything and answers nonsense."""

    name = "wrong"

    @classmethod
    def supports(cls, question):
        return None

    def labels(self, start, stop, targets=None):
        return (super().labels(start, stop, targets) + 1) % self.classes


class Never(Wrong):
    name = "never"

    @classmethod
    def supports(cls, question):
        return "it supports nothing"


def test_an_engine_that_disagrees_is_not_used_and_said_so(monkeypatch):
    question = QUESTIONS["row GCN"]
    monkeypatch.setattr(engines, "_fast_engines", lambda: [Wrong])
    with pytest.warns(UserWarning, match="wrong engine is not used"):
        chosen = engines.choose(question)
    assert chosen.name == "generic"


class Nearly(Wrong):
    """Votes right wherever it is looked at, from logits that are a little wrong for one target."""

    name = "nearly"

    def labels(self, start, stop, targets=None):
        return GenericEngine.labels(self, start, stop, targets)

    def answers(self, start, stop, targets, noise=None):
        logits = super().answers(start, stop, targets, noise)
        logits[0, targets.index(self.astray)] += 1e-3
        return logits


def test_an_engine_with_the_right_votes_from_wrong_logits_is_not_used(monkeypatch):
    question = QUESTIONS["row GCN"]
    ones = question.threat.ones
    for astray in {0, len(ones) - 1, int(ones.argmin()), int(ones.argmax())}:
        monkeypatch.setattr(Nearly, "astray", astray, raising=False)
        monkeypatch.setattr(engines, "_fast_engines", lambda: [Nearly])
        with pytest.warns(UserWarning, match="nearly engine is not used"):
            assert engines.choose(question).name == "generic"


def test_fast_names_every_obstacle(monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(engines, "_fast_engines", lambda: [Never])
    with pytest.raises(Unsupported, match="it supports nothing"):
        engines.choose(replace(QUESTIONS["row GCN"], engine="fast"))
    assert engines.choose(QUESTIONS["row GCN"]).name == "generic"
