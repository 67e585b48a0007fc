"""A threat that the package has never heard of: one class here, and everything from polling to the report serves it."""

import copy
import itertools
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import unswayed as us
from unswayed.attack import attack
from unswayed.certificates.about import Words
from unswayed.cli.main import main
from unswayed.errors import InputError
from unswayed.sampling.inputs import read_graph
from unswayed.sampling.layout import pairs_layout
from unswayed.sampling.threats import Threat
from unswayed.theory.noise import Flip

NODES = 9


class Ring(Threat):
    """The attacker switches segments of a ring: entry i is the edge between node i and the next one."""

    kind = "ring"
    words = Words(
        unit="station",
        one="opens or closes one segment of the ring",
        many="opens or closes up to {k} segments of the ring",
        adds="opens up to {k} closed segments",
        deletes="closes up to {k} open segments",
    )

    def __init__(self, data, nodes):
        self.graph, self.nodes = read_graph(data), torch.as_tensor(nodes)
        after = torch.arange(1, self.graph.num_nodes + 1) % self.graph.num_nodes
        ends = torch.stack([torch.arange(self.graph.num_nodes), after])
        self.segments = torch.stack([ends.amin(0), ends.amax(0)])
        self.targets = self.nodes.numpy()
        self.entries = np.full(len(self.nodes), self.graph.num_nodes)
        self.ones = np.full(len(self.nodes), int(self.clean(0).sum()))

    def _open(self, graph):
        return {tuple(pair) for pair in graph.pairs.T.tolist()}

    def clean(self, target):
        there = self._open(self.graph)
        return torch.tensor([tuple(pair) in there for pair in self.segments.T.tolist()])

    def layout(self, target):
        ring = {tuple(pair) for pair in self.segments.T.tolist()}
        other = [pair not in ring for pair in map(tuple, self.graph.pairs.T.tolist())]
        return pairs_layout(self.graph, self.segments, self.clean(target), self.graph.pairs[:, other])

    def _change(self, target, entries):
        self.graph = self.graph.toggled(self.segments[:, entries])

    def digests(self):
        return {"graph": self.graph.digest()}


def graph():
    """Six segments of the ring are open, and two chords."""
    pairs = [(i, i + 1) for i in range(6)] + [(0, 4), (2, 7)]
    both = [*pairs, *((b, a) for a, b in pairs)]
    x = torch.randn(NODES, 3, generator=torch.Generator().manual_seed(1))
    return Data(x=x, edge_index=torch.tensor(both).T)


def model():
    torch.manual_seed(2)
    return GCN(3, 8, 2, 2).eval()


NOISE = Flip(0.8)


def smoothed(net, data, node):
    """The exact probability of label 1 at the node, over all 512 states of the ring, built by hand."""
    fixed = [(0, 4), (2, 7)]
    ring = [(i, (i + 1) % NODES) for i in range(NODES)]
    there = {tuple(edge) for edge in data.edge_index.T.tolist()}
    beta, total = NOISE.beta, 0.0
    for state in itertools.product((False, True), repeat=NODES):
        kept = sum(on == (pair in there) for on, pair in zip(state, ring, strict=True))
        pairs = fixed + [pair for on, pair in zip(state, ring, strict=True) if on]
        edges = torch.tensor([*pairs, *((b, a) for a, b in pairs)]).T
        with torch.no_grad():
            said = int(net(data.x, edges)[node].argmax())
        total += said * beta**kept * (1 - beta) ** (NODES - kept)
    return total


@pytest.fixture
def store(tmp_path):
    us.poll(model(), Ring(graph(), [0, 3, 8]), NOISE, samples=3_000, seed=1, store=tmp_path / "run")
    return tmp_path / "run"


def test_its_noisy_graphs_are_asked(store):
    votes, net, data = us.load(store), model(), graph()
    for place, node in enumerate((0, 3, 8)):
        assert votes.counts[place, 1] / 3_000 == pytest.approx(smoothed(net, data, node), abs=0.03)


def test_its_votes_are_certified_and_attacked_in_vain(store):
    certs = us.certify(us.load(store))
    assert certs.size.max() >= 1
    assert certs.statement(0).startswith("Station 0:")
    found = attack(model(), Ring(graph(), [0, 3, 8]), certs, kinds=["random", "greedy"], samples=500)
    assert found.sound
    assert found.rebuilt >= 1


def test_report_json_and_explain_serve_it(store, tmp_path, capsys):
    assert main(["report", str(store), "--out", str(tmp_path / "r.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [target["target"] for target in found["targets"]] == ["0", "3", "8"]
    page = (tmp_path / "r.html").read_text()
    assert "segments of the ring" in page
    assert "station" in page
    assert main(["explain", "3", "--store", str(store)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Station 3:" in told
    assert main(["explain", "3", "--store", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == found["targets"][1]["size"]


def test_a_store_knows_it_from_others(store):
    other = graph()
    other.edge_index = other.edge_index[:, 1:-1][:, :0]
    with pytest.raises(InputError):
        us.poll(model(), Ring(other, [0, 3, 8]), NOISE, samples=3_000, seed=1, store=store)


def test_what_it_leaves_out_is_said():
    class Speechless(Ring):
        kind = "speechless"
        words = Words()
        layout = Threat.layout

    with pytest.raises(InputError, match="Speechless has no noisy graphs"):
        us.poll(model(), Speechless(graph(), [0]), NOISE, samples=10)
    assert copy.copy(Ring(graph(), [0])).describe()["words"]["unit"] == "station"
