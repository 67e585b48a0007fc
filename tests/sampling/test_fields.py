"""Receptive fields: deleting an edge outside of one never changes what a network says."""

import operator

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphNorm, SAGEConv, TAGConv

import unswayed as us
from unswayed.errors import InputError, Unsupported
from unswayed.models import build
from unswayed.sampling.fields import sight
from unswayed.sampling.question import Question

from .small import FEATURES


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("layer", "degrees"), [(SAGEConv, False), (GCNConv, True)])
def test_an_edge_matters_only_within_the_field(data, layer, degrees, layers):
    torch.manual_seed(1)
    parts = [layer(FEATURES, FEATURES).double() for _ in range(layers)]

    def said(pairs):
        h, edges = data.x.double(), torch.cat([pairs, pairs.flip(0)], dim=1)
        for part in parts:
            h = part(h, edges).tanh()
        return h

    pairs = us.Row(data, [0]).graph.pairs
    fields, clean = us.receptive_fields(data, range(data.num_nodes), layers, degrees=degrees), said(pairs)
    hit = 0
    for edge in range(pairs.shape[1]):
        keep = torch.arange(pairs.shape[1]) != edge
        moved = (said(pairs[:, keep]) != clean).any(dim=1).nonzero()[:, 0].tolist()
        assert all(edge in fields[node] for node in moved)
        hit += len(moved)
    assert hit > 0.5 * sum(map(len, fields))


@pytest.mark.parametrize("bad", [-1, 1.5, True])
def test_layers_are_a_count(data, bad):
    with pytest.raises(InputError, match="layers"):
        us.receptive_fields(data, [0], bad)


class Stack(nn.Module):
    """Layers one after the other, and beside them one that skips to the end."""

    def __init__(self, *layers, beside=None):
        super().__init__()
        self.layers, self.beside = nn.ModuleList(layers), beside

    def forward(self, x, edge_index):
        h = x
        for layer in self.layers:
            h = layer(h, edge_index).relu()
        return h if self.beside is None else h + self.beside(x, edge_index)


def tags():
    return [TAGConv(FEATURES, FEATURES, K=2), SAGEConv(FEATURES, FEATURES)]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (lambda: [SAGEConv(FEATURES, FEATURES)], (1, False)),
        (lambda: [GATConv(FEATURES, FEATURES) for _ in range(3)], (3, False)),
        (lambda: [GINConv(nn.Linear(FEATURES, FEATURES)), GCNConv(FEATURES, FEATURES)], (2, True)),
        (tags, (3, True)),
    ],
)
def test_sight_is_never_shorter_than_what_a_network_sees(data, layers, expected):
    """Deleting any edge outside of the fields that follow from it leaves every answer as it is, to the last bit or nearly."""
    torch.manual_seed(2)
    model = Stack(*layers(), beside=SAGEConv(FEATURES, FEATURES)).double().eval()
    assert sight(model) == expected
    pairs, x = us.Row(data, [0]).graph.pairs, data.x.double()
    fields = us.receptive_fields(data, range(data.num_nodes), expected[0], degrees=expected[1])
    clean = model(x, torch.cat([pairs, pairs.flip(0)], dim=1))
    for edge in range(pairs.shape[1]):
        left = pairs[:, torch.arange(pairs.shape[1]) != edge]
        moved = (model(x, torch.cat([left, left.flip(0)], dim=1)) - clean).abs().amax(dim=1) > 1e-12
        assert all(edge in fields[node] for node in moved.nonzero()[:, 0].tolist())


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = SAGEConv(FEATURES, FEATURES), GraphNorm(FEATURES)

    def forward(self, x, edge_index):
        return self.norm(self.layer(x, edge_index))


def test_what_sees_everything_or_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="every edge counts"):
        sight(Normed().eval())
    with pytest.raises(Unsupported):
        sight(lambda x, edge_index: x)


def test_a_network_without_layers_sees_no_edge(data):
    assert sight(build("mlp", FEATURES, 2)) == (0, False)
    assert [len(field) for field in us.receptive_fields(data, [0, 1], 0)] == [0, 0]


class Farther(nn.Module):
    """Three rounds when it is asked, two when it is trained or, if it looks, when it is handed no tensor."""

    def __init__(self, looks):
        super().__init__()
        self.layers = nn.ModuleList(SAGEConv(FEATURES, FEATURES) for _ in range(3))
        self.looks = looks

    def forward(self, x, edge_index):
        h = self.layers[1](self.layers[0](x, edge_index).relu(), edge_index)
        asked = type(x) is torch.Tensor if self.looks else not self.training
        return self.layers[2](h.relu(), edge_index) if asked else h


def test_sight_is_that_of_evaluation_and_the_mode_stays():
    model = Farther(looks=False).train()
    assert sight(model) == (3, False)
    assert model.training


def test_a_module_that_takes_another_way_than_its_trace_has_no_sight(data):
    threat, noise = us.AllPairs(data, range(4)), us.AddDelete(0, 0.5)
    plain, looking = (Question(Farther(looks=looks), threat, noise) for looks in (False, True))
    assert sight(plain.model, plain) == (3, False)
    with pytest.raises(Unsupported, match="another way"):
        sight(looking.model, looking)


@pytest.mark.parametrize("nodes", [[0, 2], [1, 0], "places"])
def test_fields_of_other_nodes_are_refused(nodes):
    """Where nodes are called by numbers, their places in the graph are other nodes' names."""
    graph = nx.Graph([(2, 1), (1, 0), (0, 3), (3, 4)])  # its own order is 2, 1, 0, 3, 4
    nx.set_node_attributes(graph, {node: [1.0, float(node)] for node in graph}, "x")
    torch.manual_seed(0)
    net = build("sage", 2, 2)
    threat = us.AllPairs(graph, [0, 1])
    votes = us.poll(net, threat, us.AddDelete(p_add=0, p_delete=0.3), samples=2_000)
    certs = us.certify(votes, alpha=0.01, family=True)
    right = us.receptive_fields(graph, [0, 1], 2)
    assert certs.shared(1, change="deletes", fields=right) <= 2
    assert certs.shared(1, change="deletes", fields=list(right)) <= 2  # of one's own making
    other = us.receptive_fields(graph, certs.targets if nodes == "places" else nodes, 2)
    with pytest.raises(InputError, match="of other nodes"):
        certs.shared(1, change="deletes", fields=other)


class Written(nn.Module):
    """The second state is written into the first, under whatever other name that has; so it sees two rounds far."""

    def __init__(self, other):
        super().__init__()
        self.start, self.drop = nn.Linear(FEATURES, FEATURES), nn.Dropout(0.5)
        self.first, self.last = SAGEConv(FEATURES, FEATURES), SAGEConv(FEATURES, 3)
        self.write = {
            "itself": lambda h, g: operator.iadd(h, g),
            "dropout": lambda h, g: operator.iadd(self.drop(h), g),
            "function": lambda h, g: operator.isub(torch.dropout(h, 0.5, False), g),
            "contiguous": lambda h, g: operator.itruediv(h.contiguous(), g),
            "float": lambda h, g: operator.imul(h.float(), g),
            "data": lambda h, g: setattr(h, "data", g),
        }[other]

    def forward(self, x, edge_index):
        h = self.start(x)
        self.write(h, self.first(h, edge_index))
        return self.last(h, edge_index)


@pytest.mark.parametrize("other", ["itself", "dropout", "function", "contiguous", "float", "data"])
def test_what_is_written_into_a_state_under_another_name_is_seen(data, other):
    torch.manual_seed(3)
    model = Written(other).eval()
    clean = model(data.x, data.edge_index)
    away = (data.edge_index != 0).all(dim=0)  # what one round at node 0 cannot see
    assert not torch.equal(model(data.x, data.edge_index[:, ~away])[0], clean[0])
    with pytest.raises(Unsupported):
        sight(model)


class Residual(nn.Module):
    """What is written into is not used again, but by its new name."""

    def __init__(self):
        super().__init__()
        self.start, self.first, self.last = nn.Linear(FEATURES, 4), SAGEConv(4, 4), SAGEConv(4, 3)

    def forward(self, x, edge_index):
        h = self.start(x)
        h += self.first(h, edge_index)
        h /= 2
        return self.last(h, edge_index)


def test_a_residual_that_is_added_in_place_is_known(data):
    assert sight(Residual().eval()) == (2, False)
    votes = us.poll(Residual(), us.Row(data, [0, 3]), us.Flip(beta=0.7), samples=50)
    assert votes.notes["engine"] == "row"


def test_fields_of_another_graph_are_refused(data):
    noise = us.AddDelete(p_add=0, p_delete=0.3)
    certs = us.certify(
        us.poll(build("sage", data.num_features, 2), us.AllPairs(data, [0, 1]), noise, samples=50),
        family=True,
    )
    fewer = Data(edge_index=data.edge_index[:, :0], num_nodes=data.num_nodes)
    for other in (fewer, Data(edge_index=data.edge_index, num_nodes=data.num_nodes + 1)):
        with pytest.raises(InputError, match="other nodes or edges"):
            certs.shared(1, change="deletes", fields=us.receptive_fields(other, [0, 1], 2))
