"""Ways to be told a size that is not true, each tried through the public calls alone: what is polled is the model itself.

The other side of each comparison is the module asked about one graph at a time (`engine="generic", batch_size=1`).
"""

import argparse
import dataclasses
import types
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError

N, F, C = 40, 5, 3
FLIP = us.Flip(beta=0.7)


def graph(share=0.1):
    torch.manual_seed(0)
    return Data(x=torch.randn(N, F), edge_index=erdos_renyi_graph(N, share))


class Net(nn.Module):
    def __init__(self, layer=GCNConv):
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = layer(F, 8), layer(8, C)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def ask(model, threat, noise=FLIP, samples=100, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a slower way was taken is said, and is no matter here
        return us.poll(model, threat, noise, samples=samples, progress=False, **how).counts.tolist()


def alone(model, threat, noise=FLIP, samples=100):
    return ask(model, threat, noise, samples, engine="generic", batch_size=1)


class FirstNeighbour(nn.Module):
    """Answers with the class of node 0's neighbour that is listed first: below 20 it is 1, else 0."""

    def forward(self, x, edge_index):
        of_zero = edge_index[1, edge_index[0] == 0][:1]
        return torch.nn.functional.one_hot((of_zero < 20).long().sum().expand(len(x)), 2).float()


def test_the_order_of_edges_does_not_tell_the_clean_graph():
    """Node 0 has links to 20 .. 29; the attacker adds three to 1, 2 and 3, which every proven size allows."""
    clean = [(0, v) for v in range(20, 30)]
    sizes, labels = [], []
    for links in (clean, [*clean, (0, 1), (0, 2), (0, 3)]):
        edges = torch.tensor([*links, *[(b, a) for a, b in links]]).T
        threat = us.AllPairs(Data(x=torch.zeros(30, 1), edge_index=edges), [0])
        noise = us.AddDelete(p_add=0.3, p_delete=0.4)
        votes = us.poll(FirstNeighbour(), threat, noise, samples=500, draws="sparse", batch_size=1)
        certs = us.certify(votes)
        sizes.append(int(certs.size[0]))
        labels.append(int(certs.label[0]))
    assert sizes[0] >= 3
    assert labels[0] == labels[1]


class AtMost(Net):
    """Reads so many edges and no more: enough for every graph alone, too few for a batch."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index[:, :1000])


class Anchored(Net):
    """What one fixed node says, all others say too: in a batch, the first graph would speak for all."""

    def __init__(self, anchor):
        super().__init__()
        self.anchor = anchor

    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return 0.01 * out + out[self.anchor]


def test_a_cap_on_edges_does_not_cut_the_batch():
    threat = us.Row(graph(), [3, 8])
    assert ask(AtMost(), threat, batch_size=50) == alone(AtMost(), threat)


class Capped(nn.Module):
    """Of the first 30,000 edges it counts those at each node, and answers 1 where there are any."""

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[:, :30_000][1], minlength=len(x)).float()
        return torch.stack([torch.full_like(degree, 0.5), degree], dim=1)


def test_a_cap_far_above_one_graph_does_not_change_the_label():
    """A graph has 6,000 edges and two have 12,000, but thirty have too many: with the settings that nobody touched."""
    torch.manual_seed(0)
    threat = us.Row(Data(x=torch.zeros(1000, 1), edge_index=erdos_renyi_graph(1000, 0.006)), [3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that graphs are asked one at a time is said
        votes = us.poll(Capped(), threat, FLIP, samples=60, progress=False)
    assert votes.counts[0].tolist()[:2] == [0, 60]
    assert us.certify(votes).label.tolist() == [1]


def test_no_graph_speaks_for_its_batch():
    """The target says much; whether an anchor is linked to it differs from one noisy graph to the next."""
    torch.manual_seed(0)
    links = [(0, v) for v in range(70, 78)]
    edges = torch.tensor([*links, *[(b, a) for a, b in links]]).T
    threat = us.Row(Data(x=torch.randn(100, F), edge_index=edges), [0])
    threat.data.x[0] *= 30
    for _, anchor in links:
        model = Anchored(anchor)
        assert ask(model, threat, RARE, 24, batch_size=12) == alone(model, threat, RARE, 24)


WIDE, HUB = 100, 99
TARGETS = list(range(9))
RARE = us.AddDelete(p_add=0.01, p_delete=0.6)


def large(scale=1.0):
    """The hub's features have this scale, the others lie within ±2; five targets have a link to it, and three more.

    The first, the middle and the last target, and those with the fewest and the most links, are none of the five: a look
    at these alone would find nothing.
    """
    torch.manual_seed(0)
    random = erdos_renyi_graph(WIDE, 0.1)
    random = random[:, ((random >= 60) & (random != HUB)).all(dim=0)]
    links = [(t, v) for t in (0, 4, 8) for v in range(60 + t, 72 + t)] + [(1, 90)]
    links += [(t, v) for t in (2, 3, 5, 6, 7) for v in (HUB, 60 + 3 * t, 61 + 4 * t, 62 + 5 * t)]
    both = torch.tensor([*links, *[(b, a) for a, b in links]]).T
    x = torch.randn(WIDE, F).clamp(-2, 2)
    x[HUB] *= scale
    return Data(x=x, edge_index=torch.cat([random, both], dim=1))


@pytest.mark.parametrize("layer", [SAGEConv, GraphConv])
def test_a_huge_feature_leaves_nothing_behind_once_its_link_is_gone(layer):
    threat = us.Row(large(1e9), TARGETS)
    assert ask(Net(layer), threat, RARE, 60) == alone(Net(layer), threat, RARE, 60)


def test_rows_that_lose_every_link_are_empty():
    """Without biases an empty row ties, so whatever the links left behind would decide."""

    def bare(inside, outside):
        return SAGEConv(inside, outside, root_weight=False, bias=False)

    threat, noise = us.Row(large(), TARGETS), us.AddDelete(p_add=1e-4, p_delete=0.6)
    assert ask(Net(bare), threat, noise, 60) == alone(Net(bare), threat, noise, 60)


def altered(name):
    """Plain SAGE but for one method of its first layer, which is bounded: it matters where features are large."""
    model = Net(SAGEConv)
    plain = getattr(model.one, name)
    setattr(model.one, name, lambda *args, **kwargs: plain(*args, **kwargs).clamp(-5, 5))
    return model


class Calling(Net):
    def __call__(self, x, edge_index):
        return super().__call__(x.clamp(-5, 5), edge_index)


@pytest.mark.parametrize("name", ["message", "forward", "update", "propagate", "__call__"])
def test_a_layer_that_was_altered_is_not_taken_for_the_plain_one(name):
    threat = us.Row(large(1000.0), TARGETS)
    model = Calling(SAGEConv) if name == "__call__" else altered(name)
    assert ask(model, threat, RARE, 60) == alone(model, threat, RARE, 60)


@dataclasses.dataclass
class Settings:
    sign: float


class Signed(nn.Module):
    """Its whole sense hangs on a setting."""

    def __init__(self, read, settings):
        super().__init__()
        self.read, self.settings = read, settings

    def forward(self, x, edge_index):
        return x[:, :C] * self.read(self.settings)


SETTINGS = {
    "namespace": (lambda s: s.sign, lambda sign: argparse.Namespace(sign=sign)),
    "simple namespace": (lambda s: s.sign, lambda sign: types.SimpleNamespace(sign=sign)),
    "dataclass": (lambda s: s.sign, Settings),
    "set": (lambda s: 1.0 if "up" in s else -1.0, lambda sign: {"up"} if sign > 0 else {"down"}),
    "numpy scalar": (float, np.float32),
    "data": (lambda s: s.sign, lambda sign: Data(sign=sign)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_one_store_never_mixes_two_models(name, tmp_path):
    read, make = SETTINGS[name]
    threat = us.Row(graph(), [3, 8])
    ask(Signed(read, make(1.0)), threat, samples=20, store=tmp_path / "run")
    with pytest.raises(us.errors.StoreError):
        ask(Signed(read, make(-1.0)), threat, samples=40, store=tmp_path / "run")


class Weighted(nn.Module):
    """Takes the edge weights out of the graph by one road or another."""

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(1)
        self.read, self.one = read, GraphConv(F, C)

    def forward(self, data):
        return self.one(data.x, data.edge_index, self.read(data))


def _helper(data):
    return data.get("edge" + "_weight")


ROADS = {
    "getattr": lambda data: getattr(data, "edge_weight", None),
    "item": lambda data: [*(data[name] for name in data.to_dict() if name == "edge_weight"), None][0],
    "helper": _helper,
}


@pytest.mark.parametrize("road", ROADS)
def test_edge_weights_are_not_dropped_in_silence(road):
    data = graph()
    data.edge_weight = torch.rand(data.edge_index.shape[1])
    with pytest.raises(InputError, match="edge_weight"):
        ask(Weighted(ROADS[road]), us.Row(data, [3]), samples=20)


def test_votes_that_trained_the_model_certify_nothing_of_it():
    votes = us.poll(Net(), us.Row(graph(), [3, 8]), FLIP, samples=20, purpose="train", progress=False)
    for certify in (us.certify, lambda votes: us.certify_top(votes, 2)):
        with pytest.raises(InputError, match="train"):
            certify(votes)


class Weighing(Net):
    """Makes an edge weight of its own."""

    def __init__(self):
        super().__init__(GraphConv)

    def forward(self, x, edge_index):
        weight = 1 / (1 + (x[edge_index[0], 0] - x[edge_index[1], 0]).abs())
        return self.two(self.one(x, edge_index, weight).relu(), edge_index, weight)


def test_a_weight_made_in_forward_is_asked_the_slow_way():
    threat, noise = us.AllPairs(graph(), [0, 1]), us.AddDelete(p_add=0.02, p_delete=0.4)
    assert ask(Weighing(), threat, noise, 30) == alone(Weighing(), threat, noise, 30)


@pytest.mark.parametrize("threat", [us.Row, us.AllPairs])
def test_a_traced_module_is_asked_the_slow_way(threat):
    data = graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather export than trace
        traced = torch.jit.trace(Net().eval(), (data.x, data.edge_index), check_trace=False)
    asked = threat(data, [0, 1])
    assert ask(traced, asked, samples=30) == alone(traced, asked, samples=30)
