"""Directed graphs: an edge and its reverse are two entries; votes and certificates are those of ordered pairs."""

from functools import cache
from itertools import combinations, product
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import unswayed as us
from unswayed.attack import attack
from unswayed.errors import InputError, Unsupported
from unswayed.sampling.question import Question

N = 4
X = torch.tensor([[0.5, 1.0], [1.2, -0.4], [-0.7, 0.2], [0.9, 0.8]])
ARCS = [(0, 1), (1, 2), (2, 1), (3, 0)]
NOISE = us.AddDelete(p_add=0.1, p_delete=0.3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.one, self.two = SAGEConv(2, 4), SAGEConv(4, 2)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def graph(arcs=ARCS):
    return Data(x=X, edge_index=torch.tensor(arcs).T.reshape(2, -1), num_nodes=N)


def asked(arcs):
    return answer(tuple(arcs))


@cache
def answer(arcs):
    """What the model says of each of these graphs alone, asked once however many attacks lead to it."""
    with torch.no_grad():
        return Net().eval()(X, torch.tensor(arcs, dtype=torch.int64).reshape(-1, 2).T)


def entries_of(links, node):
    """The ordered pairs that may change, in the order in which entries are drawn."""
    into, out = [(v, node) for v in range(N)], [(node, v) for v in range(N)]
    return {"in": into, "out": out, "own": into + out, "all": list(product(range(N), repeat=2))}[links]


@pytest.mark.parametrize("links", ["in", "out", "own", "all"])
def test_entries_are_ordered_pairs(links):
    threat = us.Directed(graph(), [1, 0], links)
    for place, node in enumerate((1, 0)):
        pairs = [pair for pair in entries_of(links, node) if pair[0] != pair[1]]
        assert threat.entries[place] == len(pairs)
        assert threat.ones[place] == len(set(pairs) & set(ARCS))


@pytest.mark.parametrize("links", ["in", "out", "own", "all"])
@pytest.mark.parametrize("engine", ["auto", "generic"])
def test_votes_are_those_of_the_model_asked_one_graph_at_a_time(links, engine):
    threat = us.Directed(graph(), [1, 0], links)
    votes = us.poll(Net(), threat, NOISE, samples=80, engine=engine)
    stream, counts = Question(Net(), threat, NOISE).stream, np.zeros((2, 2), int)
    for place, node in enumerate((1, 0)):
        pairs = entries_of(links, node)
        for sample in range(80):
            zero, one = stream.flips(sample, sample + 1, len(pairs), NOISE)
            there = [(one if pair in ARCS else zero)[0, e] ^ (pair in ARCS) for e, pair in enumerate(pairs)]
            arcs = [arc for arc in ARCS if arc not in pairs]
            arcs += [pair for pair, on in zip(pairs, there, strict=True) if on and pair[0] != pair[1]]
            counts[place, int(asked(arcs)[node].argmax())] += 1
    assert votes.counts.tolist() == counts.tolist()


def exact(node, pairs, present):
    share = np.zeros(2)
    rest = [arc for arc in ARCS if arc not in pairs]
    for noisy in product((False, True), repeat=len(pairs)):
        weight = np.prod(
            [
                (0.3 if not z else 0.7) if s else (0.1 if z else 0.9)
                for s, z in zip(present, noisy, strict=True)
            ]
        )
        arcs = rest + [pair for pair, on in zip(pairs, noisy, strict=True) if on]
        share[int(asked(arcs)[node].argmax())] += weight
    return share


@pytest.mark.parametrize("links", ["in", "out", "own"])
def test_no_covered_attack_changes_the_smoothed_label(links):
    for node in range(N):
        certs = us.certify(
            us.poll(Net(), us.Directed(graph(), [node], links), NOISE, samples=20_000), alpha=0.01
        )
        pairs = [pair for pair in entries_of(links, node) if pair[0] != pair[1]]
        present = [pair in ARCS for pair in pairs]
        if certs.abstained[0]:
            continue
        grid = certs.grid(3, 3)[0]
        for size in range(min(int(certs.sizes("adds").max() + certs.sizes("deletes").max()), 3) + 1):
            for where in combinations(range(len(pairs)), size):
                adds = sum(not present[e] for e in where)
                if size <= certs.size[0] or grid[adds, size - adds]:
                    attacked = [bit ^ (e in where) for e, bit in enumerate(present)]
                    assert exact(node, pairs, attacked).argmax() == certs.label[0]


def test_an_attacked_threat_has_the_changed_edges():
    threat = us.Directed(graph(), [0, 1], "own")
    entries = torch.tensor([0, 6])  # 0 → 1 goes, 1 → 2 goes
    changed = threat.attacked(1, entries)
    assert sorted(map(tuple, changed.arcs.T.tolist())) == [(2, 1), (3, 0)]
    assert changed.ones.tolist() == [1]


def test_edges_are_handed_over_as_they_are():
    class Keeping(nn.Module):
        seen: ClassVar[list] = []

        def forward(self, x, edge_index):
            self.seen.append(edge_index)
            return torch.zeros(len(x), 2).index_add(0, edge_index[1], x[edge_index[0]])

    us.poll(Keeping(), us.Directed(graph([(0, 1), (0, 1), (2, 2), (1, 3)]), [1]), us.Flip(0.999), samples=5)
    arcs = sorted(map(tuple, Keeping.seen[-1].T.tolist()))
    assert (2, 2) in arcs  # a self-loop is constant
    assert arcs.count((0, 1)) <= 1  # merged
    assert (1, 3) in arcs


@pytest.mark.parametrize("make", [
    lambda: us.Directed(nx.DiGraph([("a", "b"), ("c", "b")]), ["b"]),
    lambda: us.Directed(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]), [1]),
    lambda: us.Directed((np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]), np.eye(3)), [1]),
    lambda: us.Directed(nx.to_scipy_sparse_array(nx.DiGraph([(0, 1), (2, 1)]), nodelist=[0, 1, 2]), [1]),
])  # fmt: skip
def test_every_source_of_graphs_may_be_directed(make):
    assert make().ones.tolist() == [2]


@pytest.mark.parametrize("source", [graph(), nx.DiGraph([(0, 1)])])
def test_undirected_threats_say_where_to_go(source):
    with pytest.raises(InputError, match="Directed"):
        us.Row(source, [0])


def test_what_does_not_know_direction_refuses():
    with pytest.raises(InputError, match="links"):
        us.Directed(graph(), [0], "sideways")
    with pytest.raises(InputError, match="Keep"):
        us.poll(Net(), us.Directed(graph(), [0]), us.Keep(2, 4), samples=10)
    with pytest.raises(Unsupported, match="undirected"):
        us.prove(us.LabelBallots(2), us.Directed(graph(), [0]))
    with pytest.raises(Unsupported, match="undirected"):
        us.prove(us.Hashed(Net(), 3), us.Directed(graph(), [0]))
    votes = us.poll(Net(), us.Directed(graph(), [0]), NOISE, samples=100)
    with pytest.raises(Unsupported, match="undirected"):
        attack(Net(), us.Directed(graph(), [0]), us.certify(votes))
    with pytest.raises(Unsupported):
        us.poll(Net(), us.Directed(graph(), [0]), NOISE, samples=10, engine="fast")
    certs = us.certify(us.poll(Net(), us.Directed(graph(), [0, 1]), NOISE, samples=100), family=True)
    with pytest.raises(Unsupported):
        certs.shared(2)


def test_words_and_files(tmp_path):
    votes = us.poll(Net(), us.Directed(graph(), [1], "in"), NOISE, samples=500, store=tmp_path)
    certs = us.certify(us.load(tmp_path))
    assert certs.votes == votes
    assert "edges into the node" in certs.about.words.attack(2)
    us.write_report(tmp_path / "r.html", certs, data=graph())
