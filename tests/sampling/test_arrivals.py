"""Nodes that arrive are polled, each in the graph that it alone has joined."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import unswayed as us
from unswayed.attack import attack
from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.question import Question

N, FEATURES, CLASSES, SAMPLES = 7, 3, 3, 60
LINKED = ([0, 3], [], [6, 1, 2, 5])


@pytest.fixture
def data():
    torch.manual_seed(5)
    pairs = [(0, 1), (1, 2), (2, 5), (3, 6), (4, 6)]
    both = torch.tensor([*pairs, *((b, a) for a, b in pairs), (4, 4)]).T
    return Data(x=torch.randn(N, FEATURES).double(), edge_index=both, mask=torch.ones(N).bool())


@pytest.fixture
def arrivals():
    return torch.randn(len(LINKED), FEATURES, generator=torch.Generator().manual_seed(8)).double()


def model():
    torch.manual_seed(6)
    return GCN(FEATURES, 8, 2, CLASSES).double().eval()


def by_hand(net, data, x, linked, flips):
    """The label of an arrival in the graph of the old nodes and itself, with its links flipped."""
    friends = [v for v in range(N) if (v in linked) ^ bool(flips[v])]
    old = [tuple(edge) for edge in data.edge_index.T.tolist()]
    edges = torch.tensor([*old, *((N, v) for v in friends), *((v, N) for v in friends)]).T
    with torch.no_grad():
        return int(net(torch.cat([data.x, x[None]]), edges)[N].argmax())


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("engine", ["auto", "generic"])
def test_votes_are_those_of_the_graph_that_each_alone_has_joined(data, arrivals, shared, engine):
    threat, noise, net = us.Row.new(data, arrivals, LINKED), us.Flip(0.7), model()
    votes = us.poll(net, threat, noise, samples=SAMPLES, seed=3, shared=shared, engine=engine)
    question = Question(net, threat, noise, seed=3, shared=shared)
    for place, linked in enumerate(LINKED):
        key = question.key_of(place)
        flips = question.stream.flips(0, SAMPLES, N, noise, target=key)[0]
        said = [by_hand(net, data, arrivals[place], linked, row) for row in flips]
        assert votes.counts[place].tolist() == np.bincount(said, minlength=CLASSES).tolist()
    certs = us.certify(votes)
    assert certs.about.entries.tolist() == [N] * 3
    assert certs.about.ones.tolist() == [2, 0, 4]
    assert certs.statement(0).startswith("Node 7")


def test_an_arrival_is_certified_like_the_node_that_it_would_be(data, arrivals):
    """Once it is there, it is a node of the graph like any other: the same sizes, but for chance."""
    old = [tuple(edge) for edge in data.edge_index.T.tolist()]
    there = torch.tensor([*old, *((N, v) for v in LINKED[0]), *((v, N) for v in LINKED[0])]).T
    grown = Data(x=torch.cat([data.x, arrivals[:1]]), edge_index=there)
    noise = us.Flip(0.8)
    new = us.poll(model(), us.Row.new(data, arrivals[:1], LINKED[:1]), noise, samples=4000, seed=1)
    node = us.poll(model(), us.Row(grown, [N]), noise, samples=4000, seed=2)
    share = new.counts / 4000 - node.counts / 4000
    assert np.abs(share).max() < 0.05
    assert abs(int(us.certify(new).size[0]) - int(us.certify(node).size[0])) <= 1


def test_arrivals_can_be_attacked(data, arrivals):
    threat = us.Row.new(data, arrivals, LINKED)
    certs = us.certify(us.poll(model(), threat, us.Flip(0.8), samples=1000))
    assert attack(model(), threat, certs, kinds=["greedy", "random"], samples=300, beyond=False).sound


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = model()

    def forward(self, data):
        return self.net(data.x * data.mask[:, None], data.edge_index)


def test_what_is_not_known_of_an_arrival_cannot_be_read(data, arrivals):
    with pytest.raises(UnsoundModel, match="mask"):
        us.poll(Masked(), us.Row.new(data, arrivals, LINKED), us.Flip(0.7), samples=5)


def test_bad_arrivals_are_refused(data, arrivals):
    for x, linked, message in (
        (arrivals, [], "at least one"),
        (arrivals[:1], [[9]], "between 0 and 6"),
        (arrivals, [[0]], "shape"),
        (None, [[0]], "need theirs"),
    ):
        with pytest.raises(InputError, match=message):
            us.Row.new(data, x, linked)


def test_neighbours_given_as_zeros_and_ones_are_refused(data, arrivals):
    """They named the nodes 0 and 1 again and again, and another node was proved than the one that arrives."""
    row = torch.zeros(N, dtype=torch.int64)
    row[[3, 5]] = 1
    for mask in (row, row.tolist(), row.numpy().astype(np.uint8), torch.ones(N, dtype=torch.uint8)):
        with pytest.raises(InputError, match="a mask, it seems"):
            us.Row.new(data, arrivals[:1], [mask])
    assert us.Row.new(data, arrivals[:1], [[0, 1]]).neighbours[0].tolist() == [0, 1]


def test_features_of_arrivals_are_not_cut_to_whole_numbers(data, arrivals):
    """Those of the graph may be counts; 0.9 beside them was taken for 0, and the proof was about another node."""
    data.x = (data.x > 0).long()
    with pytest.raises(InputError, match="whole numbers"):
        us.Row.new(data, arrivals, LINKED)
    assert us.Row.new(data, arrivals.round(), LINKED).x.tolist() == arrivals.round().tolist()


def test_a_few_links_of_an_arrival_are_kept(data, arrivals):
    threat, noise = us.Row.new(data, arrivals, LINKED), us.Keep(2, 4)
    fast, slow = (
        us.poll(model(), threat, noise, samples=400, engine=engine) for engine in ("fast", "generic")
    )
    assert np.array_equal(fast.counts, slow.counts)
    question = Question(model(), threat, noise)
    for place, linked in enumerate(LINKED):
        key = question.key_of(place)
        gone = question.stream.flips(0, 300, N, noise, target=key)[1]
        rows = threat.clean(place) & ~gone
        assert rows.sum(dim=1).max() == min(2, len(linked))
        assert not bool((rows & ~threat.clean(place)).any())
