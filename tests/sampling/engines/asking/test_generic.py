"""The generic engine against a slow path of its own: networkx graphs from the same words, the module asked alone."""

import itertools
import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, global_max_pool

from unswayed.errors import InputError, WorldError
from unswayed.sampling.engines.asking import generic
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.machine import batching
from unswayed.sampling.question import Question
from unswayed.sampling.stream import Stream
from unswayed.sampling.threats import AllPairs, Bits, Pairs, Row
from unswayed.theory.noise import AddDelete, Flip

FEATURES, CLASSES = 4, 3
NOISES = [Flip(0.7), Flip(0.4), AddDelete(0.05, 0.4)]


class Pooling(nn.Module):
    """A graph classifier with max pooling on any node network."""

    def __init__(self, body):
        super().__init__()
        self.body, self.head = body, nn.Linear(8, CLASSES)

    def forward(self, x, edge_index, batch):
        return self.head(global_max_pool(self.body(x, edge_index), batch))


def bodies(out):
    """The networks of this test in double precision, so that no two logits tie within rounding."""
    torch.manual_seed(0)
    return {
        "gcn": GCN(FEATURES, 8, 2, out),
        "gat": GAT(FEATURES, 8, 2, out, heads=2),
        "gin": GIN(FEATURES, 8, 2, out),
        "sage": GraphSAGE(FEATURES, 8, 2, out),
        "three layers": GCN(FEATURES, 8, 3, out),
        "max": GraphSAGE(FEATURES, 8, 2, out, aggr="max"),
    }


NODE = {name: body.double().eval() for name, body in bodies(CLASSES).items()}
GRAPH = {name: Pooling(body).double().eval() for name, body in bodies(8).items()}


@st.composite
def graphs(draw, smallest=1, largest=7):
    """A networkx graph (perhaps with self-loops, isolated nodes, several components) with features."""
    n = draw(st.integers(smallest, largest))
    pairs = list(itertools.combinations_with_replacement(range(n), 2))
    graph = nx.empty_graph(n)
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=2 * n)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return graph, torch.tensor(rng.normal(size=(n, FEATURES)))


def as_data(graph, x):
    ends = [(u, v) for u, v in graph.edges()] + [(v, u) for u, v in graph.edges() if u != v]
    return Data(x=x, edge_index=torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T, num_nodes=len(graph))


def noisy_graph(graph, entries, words, noise):
    """A copy of the graph with entry (u, v) flipped iff its word lies below the noise's threshold."""
    result = graph.copy()
    for (u, v), word in zip(entries, words, strict=True):
        there = graph.has_edge(u, v)
        if word < noise.thresholds[there]:
            (result.remove_edge if there else result.add_edge)(u, v)
    return result


def ask_alone(model, graph, x, node):
    adjacency = torch.tensor(nx.to_numpy_array(graph, nodelist=range(len(graph))))
    with torch.no_grad():
        edges = adjacency.nonzero().T
        if node is not None:
            return int(model(x, edges)[node].argmax())
        return int(model(x, edges, torch.zeros(len(graph), dtype=torch.long)).argmax())


def all_pairs(n):
    return [(i, j) for j in range(n) for i in range(j)]


def slow_counts(model, graph, x, entries, node, noise, samples, *, row=None, target=None):
    counts = np.zeros(CLASSES, dtype=int)
    width = len(graph) if row is not None else len(entries)
    for words in Stream(5).words(0, samples, width, target=target).tolist():
        used = words if row is None else words[:row] + words[row + 1 :]
        counts[ask_alone(model, noisy_graph(graph, entries, used, noise), x, node)] += 1
    return counts


def engine(model, threat, noise, **rest):
    return GenericEngine(Question(model, threat, noise, seed=5, engine="generic", draws="dense", **rest))


quick = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", sorted(NODE))
@quick
@given(drawn=graphs(), noise=st.sampled_from(NOISES), shared=st.booleans())
def test_rows_vote_as_the_slow_path(name, drawn, noise, shared):
    graph, x = drawn
    nodes = sorted({0, len(graph) - 1})
    counts = engine(NODE[name], Row(as_data(graph, x), nodes), noise, shared=shared).count(0, 9)
    for position, node in enumerate(nodes):
        entries = [(node, v) for v in range(len(graph)) if v != node]
        target = None if shared else node
        slow = slow_counts(NODE[name], graph, x, entries, node, noise, 9, row=node, target=target)
        assert counts[position].tolist() == slow.tolist()


@pytest.mark.parametrize("name", sorted(NODE))
@quick
@given(drawn=graphs(), noise=st.sampled_from(NOISES), shared=st.booleans())
def test_all_pairs_vote_for_nodes_as_the_slow_path(name, drawn, noise, shared):
    graph, x = drawn
    nodes = sorted({0, len(graph) - 1})
    counts = engine(NODE[name], AllPairs(as_data(graph, x), nodes), noise, shared=shared).count(0, 9)
    for position, node in enumerate(nodes):
        target = None if shared else node
        slow = slow_counts(NODE[name], graph, x, all_pairs(len(graph)), node, noise, 9, target=target)
        assert counts[position].tolist() == slow.tolist()


@pytest.mark.parametrize("name", sorted(GRAPH))
@quick
@given(one=graphs(), other=graphs(), noise=st.sampled_from(NOISES))
def test_all_pairs_vote_for_graphs_as_the_slow_path(name, one, other, noise):
    counts = engine(GRAPH[name], AllPairs([as_data(*one), as_data(*other)]), noise).count(0, 9)
    for position, (graph, x) in enumerate((one, other)):
        slow = slow_counts(GRAPH[name], graph, x, all_pairs(len(graph)), None, noise, 9)
        assert counts[position].tolist() == slow.tolist()


@quick
@given(drawn=graphs(smallest=3), noise=st.sampled_from(NOISES), seed=st.integers(0, 99))
def test_listed_pairs_vote_as_the_slow_path(drawn, noise, seed):
    graph, x = drawn
    rng = np.random.default_rng(seed)
    pairs = [tuple(pair) for pair in rng.permutation(all_pairs(len(graph)))[: len(graph)].tolist()]
    data = as_data(graph, x)
    counts = engine(NODE["gat"], Pairs(data, pairs, [1]), noise).count(0, 9)
    assert counts[0].tolist() == slow_counts(NODE["gat"], graph, x, pairs, 1, noise, 9).tolist()
    counts = engine(GRAPH["gin"], Pairs(data, pairs), noise).count(0, 9)
    assert counts[0].tolist() == slow_counts(GRAPH["gin"], graph, x, pairs, None, noise, 9).tolist()


@pytest.fixture(scope="module")
def medium():
    torch.manual_seed(3)
    graph = nx.gnp_random_graph(30, 0.15, seed=4)
    return as_data(graph, torch.randn(30, FEATURES))


def questions(data):
    torch.manual_seed(6)
    node, graph = GCN(FEATURES, 8, 2, CLASSES), Pooling(GIN(FEATURES, 8, 2))
    small = data.subgraph(torch.arange(11))
    return {
        "row": (node, Row(data, [0, 7, 29])),
        "nodes": (node, AllPairs(data, [0, 7, 29])),
        "graphs": (graph, AllPairs([data, small])),
        "bits": (lambda rows: rows[:, :6].sum(axis=1) % 3, Bits(data.x > 0)),
    }


@pytest.mark.parametrize("kind", ["row", "nodes", "graphs", "bits"])
@pytest.mark.parametrize("shared", [True, False])
def test_batch_sizes_block_orders_and_subsets_of_targets_change_nothing(medium, kind, shared):
    model, threat = questions(medium)[kind]
    whole = engine(model, threat, Flip(0.7), classes=3, batch_size=64, shared=shared)
    expected = whole.count(0, 130)
    for size in (1, 7, 1000, None):
        asked = engine(model, threat, Flip(0.7), classes=3, batch_size=size, shared=shared)
        assert np.array_equal(asked.count(0, 130), expected)
    parts = [whole.count(start, stop) for start, stop in ((97, 130), (0, 5), (5, 97))]
    assert np.array_equal(sum(parts), expected)
    for position in range(len(threat)):
        assert np.array_equal(whole.count(0, 130, (position,)), expected[[position]])
    assert np.array_equal(whole.count(0, 130, (1, 0)), expected[[1, 0]])


def test_a_target_votes_alike_whatever_the_other_targets_are(medium):
    model, threat = questions(medium)["row"]
    for shared in (True, False):
        both = engine(model, threat, Flip(0.7), shared=shared).count(0, 60)
        alone = engine(model, Row(medium, [7]), Flip(0.7), shared=shared).count(0, 60)
        assert np.array_equal(both[[1]], alone)


def test_equal_probabilities_of_adding_and_deleting_reproduce_the_votes_of_flip(medium):
    p = Flip(0.7).p_add
    for model, threat in (questions(medium)[kind] for kind in ("row", "nodes", "graphs")):
        flip = engine(model, threat, Flip(0.7)).count(0, 60)
        assert np.array_equal(engine(model, threat, AddDelete(p, p)).count(0, 60), flip)


def test_spans_of_noise_change_nothing(medium, monkeypatch):
    model, threat = questions(medium)["nodes"]
    expected = engine(model, threat, Flip(0.7)).count(3, 60)
    monkeypatch.setattr(generic, "SPAN", 2000)
    assert np.array_equal(engine(model, threat, Flip(0.7)).count(3, 60), expected)


class Counting(nn.Module):
    """Fails like a full memory whenever it is asked about more than `limit` graphs."""

    def __init__(self, limit, nodes, note=lambda size: None):
        super().__init__()
        self.limit, self.nodes, self.note = limit, nodes, note

    def forward(self, x, edge_index):
        size = len(x) // self.nodes
        if size > self.limit:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes.")
        self.note(size)
        degree = torch.bincount(edge_index[0], minlength=len(x))
        return torch.stack([degree % 2, degree % 3], dim=1).float()


def test_out_of_memory_halves_the_batch(medium):
    threat = Row(medium, [0])
    sizes = []
    free, tight = Counting(10**9, 30), Counting(5, 30, sizes.append)
    expected = engine(free, threat, Flip(0.7), batch_size=64).count(0, 100)
    asked = engine(tight, threat, Flip(0.7), batch_size=64)
    assert np.array_equal(asked.count(0, 100), expected)
    assert max(sizes) == 4
    assert np.array_equal(engine(tight, threat, Flip(0.7)).count(0, 100), expected)
    tight.limit = 0
    with pytest.raises(WorldError, match="single noisy graph"):
        asked.count(0, 5)


def test_the_batch_grows_again_when_there_is_room_again(medium):
    sizes = []
    tight = Counting(5, 30, sizes.append)
    asked = engine(tight, Row(medium, [0]), Flip(0.7), batch_size=64)
    expected = asked.count(0, 300)
    tight.limit = 10**9
    sizes.clear()
    for _ in range(20):
        assert np.array_equal(asked.count(0, 300), expected)
    assert max(sizes) == 64


def test_other_errors_of_the_classifier_come_through_in_one_sentence(medium):
    class Broken(nn.Module):
        def forward(self, x, edge_index):
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(InputError, match=r"failed when it was first asked .*: mat1 and mat2") as refused:
        engine(Broken(), Row(medium, [0]), Flip(0.7))
    assert isinstance(refused.value.__cause__, RuntimeError)


def test_a_batch_size_found_among_few_samples_is_looked_for_again_among_many(medium, monkeypatch):
    looked = []
    monkeypatch.setattr(
        generic, "fastest", lambda ask, device, largest: looked.append(largest) or largest // 2
    )
    asked = engine(Counting(10**9, 30), Row(medium, [0]), Flip(0.7))
    for samples in (10, 64, 100, 400, 500, 5000):
        asked.count(0, samples)
    assert looked == [64, 400, 5000]
    monkeypatch.setattr(generic, "fastest", lambda ask, device, largest: looked.append(largest) or 4)
    asked = engine(Counting(10**9, 30), Row(medium, [0]), Flip(0.7))
    for samples in (64, 5000):
        asked.count(0, samples)
    assert looked[3:] == [64]  # small batches were fastest: more samples change nothing


def test_the_fastest_batch_is_found_within_the_limits():
    def ask(size):
        until = batching.time.process_time() + (0.004 + 0.0001 * size if size <= 8 else 0.002 * size)
        while batching.time.process_time() < until:
            pass

    assert batching.fastest(ask, torch.device("cpu")) in (4, 8, 16)
    assert batching.fastest(ask, torch.device("cpu"), largest=2) in (1, 2)


class InPlace(nn.Module):
    """Changes its input and its first layer's output in place: nothing remembered may be touched by that."""

    def __init__(self, change):
        super().__init__()
        torch.manual_seed(8)
        self.change = change
        self.first, self.second = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x, edge_index):
        if self.change:
            x.mul_(2)
        hidden = self.first(x)
        hidden.relu_()
        mixed = torch.zeros_like(hidden).index_add_(0, edge_index[1], hidden[edge_index[0]])
        return self.second(mixed)


def test_the_remembered_first_layer_is_exact_and_safe_from_changes_in_place(medium):
    medium = medium.clone()
    medium.x = medium.x.double()
    threat = Row(medium, [0, 7])
    plain = engine(InPlace(False).double(), threat, Flip(0.7))
    votes = plain.count(0, 40)
    assert plain.first_layer.products
    plain.first_layer.layers = []
    assert np.array_equal(plain.count(0, 40), votes)
    doubled = medium.clone()
    doubled.x = medium.x * 2
    expected = engine(InPlace(False).double(), Row(doubled, [0, 7]), Flip(0.7)).count(0, 40)
    assert np.array_equal(engine(InPlace(True).double(), threat, Flip(0.7)).count(0, 40), expected)


class Stacked(nn.Module):
    """Takes features with two dimensions a node."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.first, self.second = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x, edge_index):
        hidden = self.first(x).relu().sum(dim=1)
        return self.second(torch.zeros_like(hidden).index_add_(0, edge_index[1], hidden[edge_index[0]]))


def test_features_may_have_several_dimensions_a_node(medium):
    stacked = medium.clone()
    stacked.x = torch.stack([medium.x, -medium.x], dim=1).double()
    asked = engine(Stacked().double(), Row(stacked, [0, 7]), Flip(0.7))
    votes = asked.count(0, 40)
    asked.first_layer.layers = []
    assert np.array_equal(asked.count(0, 40), votes)


def test_one_at_a_time_votes_are_those_of_the_module_alone(medium):
    class Mixing(nn.Module):
        def forward(self, x, edge_index):
            degree = torch.bincount(edge_index[0], minlength=len(x)).double()
            return torch.stack([degree, degree.mean().expand(len(x))], dim=1)

    asked = engine(Mixing(), Row(medium, [0, 7]), Flip(0.7), batch_size=50)
    with pytest.warns(UserWarning, match="one noisy graph at a time"):
        asked.count(0, 20)
    graph = nx.Graph(medium.edge_index.T.tolist())
    graph.add_nodes_from(range(30))
    for position, node in enumerate((0, 7)):
        entries = [(node, v) for v in range(30) if v != node]
        slow = slow_counts(Mixing(), graph, medium.x, entries, node, Flip(0.7), 20, row=node)
        assert asked.count(0, 20)[position].tolist() == slow[:2].tolist()


def test_questions_travel_to_workers(medium):
    import pickle

    model, threat = questions(medium)["graphs"]
    question = Question(model, threat, Flip(0.7), engine="generic")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickle.dumps(question))
    assert np.array_equal(GenericEngine(copy).count(0, 20), GenericEngine(question).count(0, 20))
