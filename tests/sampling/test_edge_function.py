"""Edges with attributes: a function of the two ends, the same for every structure, or refused."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, NNConv

import unswayed as us
from unswayed.errors import InputError, Unsupported

N = 5
X = torch.tensor([[0.3, 1.0], [1.2, -0.4], [-0.7, 0.2], [0.9, 0.8], [-1.1, -0.6]])
NOISE = us.Flip(0.8)


def far(i, j):
    """A weight that differs between i → j and j → i, and is far from one."""
    return (X[i, 0] - 2 * X[j, 1]).abs() + 0.1


def both(i, j):
    """Two attributes a pair."""
    return torch.stack([X[i, 0] * X[j, 0], X[i, 1] - X[j, 0]], dim=1)


def graph(pairs=((0, 1), (1, 2), (3, 4)), **more):
    edges = torch.tensor([*pairs, *[(j, i) for i, j in pairs]]).T.reshape(2, -1)
    return Data(x=X, edge_index=edges, num_nodes=N, **more)


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = GCNConv(2, 4), GCNConv(4, 2)

    def forward(self, x, edge_index, edge_weight=None):
        return self.two(self.one(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.one = GATConv(2, 2, edge_dim=2)

    def forward(self, x, edge_index, edge_attr):  # required
        return self.one(x, edge_index, edge_attr)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.one = NNConv(2, 2, nn.Linear(2, 4), aggr="mean")

    def forward(self, data):
        return self.one(data.x, data.edge_index, data.edge_attr)


MODELS = [(Weighted(), far), (Attentive(), both), (Gated(), both)]


def asked(model, pairs, function):
    """The model itself on one graph with these pairs, its attributes made here."""
    data = graph(pairs) if pairs else Data(x=X, edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=N)
    values = function(*data.edge_index)
    with torch.no_grad():
        if isinstance(model, Gated):
            data.edge_attr = values
            return model.eval()(data)
        return model.eval()(data.x, data.edge_index, values)


@pytest.mark.parametrize(("model", "function"), MODELS)
def test_votes_are_those_of_the_model_asked_one_graph_at_a_time(model, function):
    threat = us.Row(graph(), [1, 4], edge_attr=function)
    votes = us.poll(model, threat, NOISE, samples=60)
    counts = np.zeros((2, 2), int)
    rest = {1: [(3, 4)], 4: [(0, 1), (1, 2)]}
    from unswayed.sampling.question import Question

    stream = Question(model, threat, NOISE).stream
    for place, node in enumerate((1, 4)):
        clean = threat.clean(place)
        for sample in range(60):
            zero, _ = stream.flips(sample, sample + 1, N, NOISE)
            row = clean ^ zero[0]
            pairs = rest[node] + [(min(node, v), max(node, v)) for v in range(N) if v != node and row[v]]
            counts[place, int(asked(model, pairs, function)[node].argmax())] += 1
    assert votes.counts.tolist() == counts.tolist()
    assert votes.notes["engine"] == "generic"


def exact(model, function, node, row, others):
    """The exact probability of each class for this clean row, over all noisy rows."""
    share = np.zeros(2)
    for noisy in product((0, 1), repeat=N - 1):
        weight = np.prod([0.8 if a == b else 0.2 for a, b in zip(row, noisy, strict=True)])
        ends = [v for v, there in zip([v for v in range(N) if v != node], noisy, strict=True) if there]
        pairs = others + [(min(node, v), max(node, v)) for v in ends]
        share[int(asked(model, pairs, function)[node].argmax())] += weight
    return share


@pytest.mark.parametrize(("model", "function"), MODELS)
def test_no_covered_attack_changes_the_smoothed_label(model, function):
    node, others = 1, [(3, 4)]
    certs = us.certify(
        us.poll(model, us.Row(graph(), [node], edge_attr=function), NOISE, samples=20_000), alpha=0.01
    )
    row = [1, 1, 0, 0]  # node 1 is linked to 0 and 2; its entries are nodes 0, 2, 3, 4
    assert not certs.abstained[0]
    for size in range(int(certs.size[0]) + 1):
        for where in combinations(range(4), size):
            attacked = [bit ^ (place in where) for place, bit in enumerate(row)]
            assert exact(model, function, node, attacked, others).argmax() == certs.label[0]


class Keeping(nn.Module):
    """Keeps what it is handed."""

    seen: list

    def forward(self, x, edge_index, edge_attr):
        self.seen.append((edge_index.clone(), edge_attr.clone()))
        out = torch.zeros(len(x), 2)
        return out.index_add(0, edge_index[1], edge_attr[:, :2])


@pytest.mark.parametrize("threat", [
    lambda data: us.Row(data, [1], edge_attr=both),
    lambda data: us.AllPairs(data, [0, 1], edge_attr=both),
    lambda data: us.Pairs(data, [(0, 1), (2, 4)], [1], edge_attr=both),
    lambda data: us.Directed(data, [1], "all", edge_attr=both),
])  # fmt: skip
def test_every_edge_has_the_attributes_of_its_ends(threat):
    Keeping.seen = []
    us.poll(Keeping(), threat(graph(edge_attr=both(*graph().edge_index))), NOISE, samples=20)
    assert Keeping.seen
    for edges, values in Keeping.seen:
        assert torch.equal(values, both(*(edges % N)))


def test_the_function_is_part_of_what_is_asked(tmp_path):
    us.poll(Weighted(), us.Row(graph(), [1], edge_attr=far), NOISE, samples=20, store=tmp_path)
    with pytest.raises(InputError, match="graph"):
        us.poll(
            Weighted(),
            us.Row(graph(), [1], edge_attr=lambda i, j: far(i, j) + 1),
            NOISE,
            samples=20,
            store=tmp_path,
        )


def test_a_large_graph_asks_the_function_each_time():
    from unswayed.sampling import edge_function

    small = edge_function.EdgeFunction(far, N)
    try:
        edge_function.TABLE, kept = 1, edge_function.TABLE
        large = edge_function.EdgeFunction(far, N)
    finally:
        edge_function.TABLE = kept
    edges = torch.tensor([[0, 1, 7], [1, 2, 9]])  # the last in the second graph of a batch
    assert large.table is None
    assert torch.equal(small(edges, N), large(edges, N))
    assert torch.equal(small(edges, N), far(*(edges % N)))
    keep = torch.tensor([False, True, True, False, True])
    assert torch.equal(
        small.part(keep)(torch.tensor([[0], [2]]), 3), far(torch.tensor([1]), torch.tensor([4]))
    )


def count_up(i, j, calls=[0]):  # noqa: B006
    calls[0] += 1
    return i.float() + calls[0]


BAD = {
    "random": (lambda i, j: torch.rand(len(i)), "asked again"),
    "counting": (count_up, "asked again"),
    "of the whole list": (lambda i, j: i.float() - i.float().mean(), "other pairs"),
    "by its place": (lambda i, j: torch.arange(len(i)).float(), "other pairs"),
    "NaN": (lambda i, j: torch.where(i == j, 1.0, float("nan")), "NaN"),
    "of single numbers": (lambda i, j: {(0, 1): 2.0}[int(i), int(j)], "two tensors"),
    "one for all": (lambda i, j: torch.tensor(1.0), "shape"),
    "no function": (torch.ones(3), "function"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_function_of_two_ends_is_refused(case):
    function, word = BAD[case]
    with pytest.raises(InputError, match=word):
        us.Row(graph(), [1], edge_attr=function)


def test_data_that_says_otherwise_is_refused():
    told = far(*graph().edge_index)
    assert us.Row(graph(edge_weight=told), [1], edge_attr=far).graph.edge_data == ()
    told[2] += 1
    with pytest.raises(InputError, match="edge 3 → 4"):
        us.Row(graph(edge_weight=told), [1], edge_attr=far)
    with pytest.raises(InputError, match="shape"):
        us.Row(graph(edge_attr=torch.ones(6, 3)), [1], edge_attr=both)


def test_without_the_function_attributes_stay_refused():
    with pytest.raises(InputError, match="edge_attr"):
        us.poll(Attentive(), us.Row(graph(edge_attr=both(*graph().edge_index)), [1]), NOISE, samples=20)


def test_a_model_that_takes_none_is_told_so():
    class Plain(nn.Module):
        def forward(self, x, edge_index):
            return x

    with pytest.raises(InputError, match="neither edge_attr nor edge_weight"):
        us.poll(Plain(), us.Row(graph(), [1], edge_attr=far), NOISE, samples=20)


def test_fast_engines_and_proofs_leave_them_alone():
    with pytest.raises(Unsupported, match="attributes"):
        us.poll(Weighted(), us.Row(graph(), [1], edge_attr=far), NOISE, samples=20, engine="fast")
    with pytest.raises(Unsupported, match="attributes"):
        us.prove(us.LabelBallots(2), us.Row(graph(), [1], edge_attr=far))
    with pytest.raises(InputError, match="one by one"):
        us.AllPairs([graph(), graph()], edge_attr=far)


def test_weights_of_a_networkx_graph_may_be_a_function():
    names = nx.relabel_nodes(nx.path_graph(N), dict(enumerate("abcde")))
    nx.set_edge_attributes(names, 2.0, "weight")
    nx.set_node_attributes(names, {name: {"x": X[i].tolist()} for i, name in enumerate("abcde")})
    votes = us.poll(Weighted(), us.Row(names, ["b"], edge_attr=far), NOISE, samples=30)
    assert votes.counts.sum() == 30


def test_a_graph_without_edges_may_carry_their_attributes():
    for shape in ((0,), (0, 2)):
        name = "edge_weight" if len(shape) == 1 else "edge_attr"
        bare = Data(
            x=torch.ones(4, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64), **{name: torch.zeros(shape)}
        )
        row = us.Row(bare, [0], edge_attr=lambda i, j, shape=shape: torch.ones(len(i), *shape[1:]))
        assert row.graph.edge_attr.name == name
