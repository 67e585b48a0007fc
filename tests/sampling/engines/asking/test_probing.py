"""A batch is trusted only as far as its graphs get the answers that each gets alone, and an engine likewise."""

import itertools
import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphConv, GraphSAGE
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import UnsoundModel
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.asking.probing import shown, unlike
from unswayed.sampling.question import Question
from unswayed.theory.noise import AddDelete, Flip

N, F, C = 40, 5, 3


def graph() -> Data:
    torch.manual_seed(0)
    return Data(x=torch.randn(N, F), edge_index=erdos_renyi_graph(N, 0.1))


def by_hand(model: nn.Module, threat: us.Row, noise: Flip, samples: int) -> np.ndarray:
    """Votes of the module asked about one graph at a time, from lists of edges made here."""
    counts = np.zeros((len(threat), C), np.int64)
    stream = Question(model, threat, noise).stream
    data = threat.data
    for position, node in enumerate(threat.nodes.tolist()):
        others = [(a, b) for a, b in data.edge_index.T.tolist() if node not in (a, b)]
        flips = stream.flips(0, samples, N, noise)[0]
        for sample in range(samples):
            row = threat.clean(position) ^ flips[sample]
            ends = [v for v in row.nonzero().flatten().tolist() if v != node]
            edges = others + [(node, v) for v in ends] + [(v, node) for v in ends]
            label = model(data.x, torch.tensor(edges).T)[node].argmax()
            counts[position, int(label)] += 1
    return counts


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = GCNConv(F, 8), GCNConv(8, C)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index)


class AtMost(Net):
    """Reads so many edges and no more: enough for every graph alone, too few for a batch."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(x, edge_index[:, :1000])


class Anchored(Net):
    """What one fixed node says, all others say too: in a batch, the first graph would speak for all."""

    def __init__(self, anchor: int) -> None:
        super().__init__()
        self.anchor = anchor

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out = super().forward(x, edge_index)
        return 0.01 * out + out[self.anchor]


@pytest.mark.parametrize("size", [None, 50])
def test_a_cap_on_edges_is_found_at_the_size_of_batch_in_use(size: int | None) -> None:
    threat, model = us.Row(graph(), [3, 8]), AtMost()
    engine = GenericEngine(Question(model, threat, Flip(0.7), batch_size=size))
    with pytest.warns(UserWarning, match="one noisy graph at a time"):
        votes = engine.count(0, 120)
    assert np.array_equal(votes, by_hand(model, threat, Flip(0.7), 120))


@pytest.mark.parametrize("threat", ["row", "pairs"])
def test_every_anchor_is_found(threat: str) -> None:
    data = graph()
    for anchor in range(N):
        model = Anchored(anchor)
        asked = us.Row(data, [3]) if threat == "row" else us.AllPairs(data, [3, 4])
        engine = GenericEngine(Question(model, asked, Flip(0.7), batch_size=16))
        alone = Alone(Question(model, asked, Flip(0.7)))
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            labels = engine.labels(0, 24)[:, 0]
        single = torch.stack([alone.answer(i, 0) for i in range(24)]).argmax(dim=1)
        assert torch.equal(labels, single), anchor


@pytest.mark.parametrize("noise", [Flip(0.7), Flip(0.4), AddDelete(0.001, 0.4)])
def test_trial_graphs_differ_in_half_of_all_entries_and_have_no_fewer_edges(noise: us.Flip) -> None:
    question = Question(Net(), us.Row(graph(), [3]), noise)
    layout = Alone(question).layout(0)
    sizes, sets = [], []
    for i in range(8):
        own = layout.trial(noise, i, i + 1)
        sets.append({(a, b) for a, b in own.T.tolist() if 3 in (a, b)})
        sizes.append(own.shape[1])
    for one, other in itertools.pairwise(sets):
        assert len(one ^ other) >= 0.5 * N  # of 2 N directed entries
    drawn = question.stream.flips(0, 8, N, noise)
    assert 1.05 * sum(sizes) >= layout.edges(drawn).shape[1]
    together = layout.trial(noise, 0, 8)
    assert together.shape[1] == sum(sizes)


def test_sparse_trial_graphs_differ_in_nearly_all_entries() -> None:
    noise = AddDelete(0.01, 0.4)
    question = Question(Net(), us.AllPairs(graph(), [3]), noise)
    layout = Alone(question).layout(0)
    own = [layout.trial(noise, i, i + 1) for i in range(4)]
    sets = [{tuple(edge) for edge in edges.T.tolist()} for edges in own]
    for i in range(3):
        assert len(sets[i] & sets[i + 1]) < 0.6 * min(len(sets[i]), len(sets[i + 1]))
    together = layout.trial(noise, 0, 4)
    for i in range(4):
        assert torch.equal(together[:, together[0] // N == i] - i * N, own[i])


def test_the_graphs_compared_are_the_first_the_last_and_some_between() -> None:
    assert shown(2, 1) == [0, 1]
    assert {0, 99} < set(shown(100, 1))
    assert len(shown(100, 1)) == 16
    assert len(shown(100, 5)) == 4


def test_the_target_with_the_largest_feature_among_its_neighbours_is_tried() -> None:
    data = graph()
    far = int(data.edge_index[1][data.edge_index[0] == 20][0])
    data.x[far] = 1e6
    nodes = torch.arange(10, 30)
    chosen = [int(nodes[i]) for i in unlike(us.Row(data, nodes))]
    near = data.edge_index[1][data.edge_index[0] == far].tolist()
    assert set(chosen) & set(near)


DRAWS = {"torch": lambda: torch.rand(()), "numpy": np.random.rand, "python": random.random}


@pytest.mark.parametrize("draw", sorted(DRAWS))
def test_what_draws_random_numbers_is_refused_though_two_calls_may_agree(draw: str) -> None:
    class Drawing(Net):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return super().forward(x, edge_index) + float(DRAWS[draw]() > 0.999999)

    with pytest.raises(UnsoundModel, match="draws random numbers"):
        GenericEngine(Question(Drawing(), us.Row(graph(), [3]), Flip(0.7)))


class Weighing(nn.Module):
    """Makes an edge weight of its own, which a rewritten layer does not take."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.one, self.two = GraphConv(F, 4), GraphConv(4, C)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        weight = 1 / (1 + (x[edge_index[0], 0] - x[edge_index[1], 0]).abs())
        return self.two(self.one(x, edge_index, weight).relu(), edge_index, weight)


def test_auto_falls_back_where_an_engine_fails_and_says_why() -> None:
    noise = AddDelete(0.02, 0.4)
    with pytest.warns(UserWarning, match="whole-graph engine is not used: it failed"):
        engine = choose(Question(Weighing(), us.AllPairs(graph(), [0, 1]), noise))
    assert engine.name == "generic"
    assert "positional arguments" in engine.why


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", [us.Row, us.AllPairs])
def test_auto_takes_traced_modules(kind: type) -> None:
    data = graph()

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(F, C)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            out = self.lin(x)
            return out + torch.zeros_like(out).index_add(0, edge_index[1], out[edge_index[0]])

    model = Plain().eval()
    traced = torch.jit.trace(model, (data.x, data.edge_index))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = us.poll(traced, kind(data, [0, 1, 2]), Flip(0.7), samples=40)
        expected = us.poll(model, kind(data, [0, 1, 2]), Flip(0.7), samples=40)
    assert np.array_equal(votes.counts, expected.counts)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("arrives", [False, True])
def test_features_that_are_no_numbers_are_heard_only_where_they_are_linked(value, arrives):
    """A sum over all nodes, those that are not there times nothing, would be no number in every sample."""
    torch.manual_seed(0)
    data = Data(x=torch.randn(8, 3), edge_index=torch.tensor([[0, 1, 2], [1, 0, 2]]))
    data.x[5, 0] = value
    threat = us.Row.new(data, torch.randn(1, 3), [[0, 2]]) if arrives else us.Row(data, [0])
    question = Question(GraphSAGE(3, 4, 2, 2).eval(), threat, us.Flip(beta=0.6), seed=3)
    engine = choose(question)
    alone = [int(Alone(question).answer(sample, 0).isnan().any()) for sample in range(20)]
    assert 0 < sum(alone) < 20
    assert (engine.ask(0, 20)[:, 0] < 0).long().tolist() == alone
    assert "no finite numbers" in engine.why
