"""Graphs of several kinds of nodes and edges: the attacked relation is drawn, its reverse follows, the rest stays."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import unswayed as us
from unswayed.errors import InputError
from unswayed.sampling.question import Question

USES, USED, PAYS = ("user", "uses", "device"), ("device", "rev_uses", "user"), ("user", "pays", "user")
EDGES = [(0, 0), (1, 0), (1, 1), (2, 2), (3, 1), (4, 2)]
NOISE = us.AddDelete(p_add=0.2, p_delete=0.4)


def graph(edges=EDGES):
    generator = torch.Generator().manual_seed(3)
    data = HeteroData()
    data["user"].x = torch.randn(5, 3, generator=generator)
    data["device"].x = torch.randn(3, 2, generator=generator)
    pairs = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    data[USES].edge_index, data[USED].edge_index = pairs, pairs.flip(0)
    data[PAYS].edge_index = torch.tensor([[0, 2, 4, 1], [1, 1, 0, 3]])
    return data


class Net(nn.Module):
    """Two layers, so that what a device hears of other users comes back to the target."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        first = {USES: SAGEConv((3, 2), 4), USED: SAGEConv((2, 3), 4), PAYS: SAGEConv(3, 4)}
        second = {kind: SAGEConv(4, 2) for kind in (USES, USED, PAYS)}
        self.first, self.second = HeteroConv(first), HeteroConv(second)

    def forward(self, x_dict, edge_index_dict):
        hidden = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict).items()}
        return self.second(hidden, edge_index_dict)


def label(edges, user):
    data = graph(edges)
    with torch.no_grad():
        return int(Net().eval()(data.x_dict, data.edge_index_dict)["user"][user].argmax())


def edges_with(entries, user):
    """The edges when the user has exactly these devices; those of other users stay."""
    return [e for e in EDGES if e[0] != user] + [(user, d) for d in range(3) if entries[d]]


@pytest.mark.parametrize("engine", ["auto", "generic"])
def test_votes_are_those_of_the_module_asked_one_graph_at_a_time(engine):
    threat, samples = us.Relation(graph(), USES, [1, 4, 0], links="out", reverse=USED), 120
    assert threat.entries.tolist() == [3, 3, 3]
    assert threat.ones.tolist() == [2, 1, 1]
    asked = threat.asking(Net().eval())
    votes = us.poll(asked, threat, NOISE, samples=samples, seed=2, engine=engine, progress=False)
    stream = Question(asked, threat, NOISE, seed=2).stream
    for place, user in enumerate((1, 4, 0)):
        drawn = []
        for sample in range(samples):
            zero, one = stream.flips(sample, sample + 1, 3, NOISE)
            there = [(user, device) in EDGES for device in range(3)]
            drawn.append([(one if on else zero)[0, d] ^ on for d, on in enumerate(there)])
        wanted = np.bincount([label(edges_with(row, user), user) for row in drawn], minlength=2)
        assert votes.counts[place].tolist() == wanted.tolist()


def test_no_covered_attack_moves_the_exact_label():
    """All noisy structures of a row and all attacks on it, by hand."""
    user = 1
    answer = {bits: label(edges_with(bits, user), user) for bits in np.ndindex(2, 2, 2)}
    clean = tuple(int((user, d) in EDGES) for d in range(3))

    def share(row):
        chance = 0.0
        for bits, said in answer.items():
            p = [(0.6 if b else 0.4) if r else (0.2 if b else 0.8) for r, b in zip(row, bits, strict=True)]
            chance += float(np.prod(p)) * (said == 1)
        return chance

    top = int(share(clean) > 0.5)
    threat = us.Relation(graph(), USES, [user], links="out", reverse=USED)
    votes = us.poll(threat.asking(Net()), threat, NOISE, samples=4000, seed=1, progress=False)
    certs = us.certify(votes)
    assert certs.label[0] in (-1, top)
    for size in range(1, int(certs.size[0]) + 1):
        for changed in combinations(range(3), size):
            attacked = tuple(bit ^ (d in changed) for d, bit in enumerate(clean))
            assert int(share(attacked) > 0.5) == top
    assert "uses" in certs.about.words.attack(2)
    assert certs.about.target_name(0) == "user 1"


def test_edges_into_a_node_may_change_and_files_bring_votes_back(tmp_path):
    threat = us.Relation(graph(), PAYS, torch.tensor([False, True, False, False, True]))
    assert threat.entries.tolist() == [4, 4]
    assert threat.ones.tolist() == [2, 0]
    votes = us.poll(threat.asking(Net()), threat, us.Flip(0.8), samples=50, progress=False)
    votes.save(tmp_path / "votes.npz")
    assert us.load(tmp_path / "votes.npz").counts.tolist() == votes.counts.tolist()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: us.Relation(graph(), USES, [0], links="out"), "give reverse="),
        (lambda: us.Relation(graph(), USES, [0], links="out", reverse=PAYS), "the other way round"),
        (lambda: us.Relation(graph(), ("user", "likes", "user"), [0]), "none of this graph's relations"),
        (lambda: us.Relation(graph(), PAYS, [5]), "between 0 and 4"),
        (lambda: us.Relation(graph(), PAYS, [0], links="all"), "links must be one of in, out"),
        (lambda: us.Relation(us.Votes, PAYS, [0]), "takes a HeteroData"),
        (lambda: us.Relation(graph(), PAYS, [0]).asking(Net), "asking takes a module"),
        (lambda: us.poll(Net(), us.Relation(graph(), PAYS, [0]), NOISE, samples=5), "threat.asking"),
    ],
)
def test_what_is_wrong_is_said(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong()


def test_a_module_made_for_another_relation_or_graph_is_refused():
    """It would take the drawn edges for those of the relation, and in the graph, that it was made for."""
    threat, other = us.Relation(graph(), USES, [1], links="out", reverse=USED), graph()
    other["user"].x = other["user"].x + 1
    pays, moved, looser = (
        us.Relation(graph(), PAYS, [1]),
        us.Relation(other, USES, [1], links="out", reverse=USED),
        graph(),
    )
    looser[PAYS].edge_index = looser[PAYS].edge_index[:, 1:]
    fewer = us.Relation(looser, USES, [1], links="out", reverse=USED)
    devices = us.Relation(graph(), USES, [1], links="in", reverse=USED)
    us.poll(threat.asking(Net()), threat, NOISE, samples=10)
    for wrong in (pays, moved, fewer, devices):
        with pytest.raises(InputError, match="another relation, or another graph"):
            us.poll(wrong.asking(Net()), threat, NOISE, samples=10)


def test_edge_data_and_missing_features_are_refused():
    weighted = graph()
    weighted[PAYS].edge_attr = torch.ones(4, 1)
    with pytest.raises(InputError, match="cannot read"):
        us.Relation(weighted, PAYS, [0]).asking(Net())
    bare = graph()
    del bare["device"].x
    bare["device"].num_nodes = 3
    with pytest.raises(InputError, match="no features"):
        us.Relation(bare, PAYS, [0])


@pytest.mark.parametrize("links", ["in", "out"])
def test_a_relation_that_holds_every_edge_both_ways_is_its_own_reverse(links):
    friends = [(0, 1), (1, 2), (1, 4), (3, 4)]

    def told(pairs):
        data, ends = graph(), torch.tensor([*pairs, (2, 2)], dtype=torch.int64).T
        data[PAYS].edge_index = torch.cat([ends, ends[:, :-1].flip(0)], dim=1)
        return data

    with pytest.raises(InputError, match="so that it follows"):
        us.Relation(told(friends), PAYS, [1], links=links)
    threat, samples, model = us.Relation(told(friends), PAYS, [1, 2], links, reverse=PAYS), 80, Net().eval()
    assert threat.ones.tolist() == [3, 1]
    assert "both ways" in threat.words.one
    asked = threat.asking(model)
    votes = us.poll(asked, threat, NOISE, samples=samples, seed=4, progress=False)
    stream = Question(asked, threat, NOISE, seed=4).stream
    for place, user in enumerate((1, 2)):
        said = []
        for sample in range(samples):
            zero, one = stream.flips(sample, sample + 1, 5, NOISE)
            pairs = [pair for pair in friends if user not in pair]
            for other in set(range(5)) - {user}:
                there = (min(user, other), max(user, other)) in friends
                pairs += [(user, other)] if there ^ bool((one if there else zero)[0, other]) else []
            data = told(pairs)
            with torch.no_grad():
                said.append(int(model(data.x_dict, data.edge_index_dict)["user"][user].argmax()))
        assert votes.counts[place].tolist() == np.bincount(said, minlength=2).tolist()
