"""An attack that is known to succeed, drawn into the surroundings of its target."""

import numpy as np
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.report.neighbourhood import pictures, with_attacks

PAIRS = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)]


def data():
    edges = torch.tensor([*PAIRS, *((j, i) for i, j in PAIRS)]).T
    return Data(edge_index=edges, num_nodes=6, y=torch.tensor([0, 0, 0, 1, 1, 1]))


def proofs(threat):
    return us.prove(us.LabelBallots(2).freeze(data(), known=data().y), threat)


def test_the_witness_of_every_node_is_drawn_by_its_other_ends():
    found = proofs(us.Row(data(), [0, 5]))
    order = np.array([1, 0])
    picture = with_attacks(pictures(data(), found.targets[order]), data(), found, order)
    assert picture["attack"] == [found.witness(1).tolist(), found.witness(0).tolist()]
    drawn = {end for ends in picture["attack"] for end in ends}
    assert all(picture["label"][str(end)] == int(data().y[end]) for end in drawn)


def test_pairs_of_graphs_are_drawn_by_both_ends():
    graphs = [data(), data()]
    torch.manual_seed(0)
    net = us.PairBallots(0, 2, hidden=4)
    found = us.prove(net, us.AllPairs(graphs))
    picture = with_attacks(pictures(graphs, found.targets), graphs, found, np.arange(2))
    attack = found.witness(0)
    assert picture["attack"][0] == (None if attack is None else [e for entry in attack for e in found.about.ends(0, int(entry))])  # fmt: skip


def test_where_no_attack_is_known_none_is_drawn():
    votes = us.Votes.from_counts([[990, 10]], us.Flip(beta=0.7), 5)
    found = us.certify(votes)
    picture = with_attacks(pictures(data(), np.array([0])), data(), found, np.arange(1))
    assert picture["attack"] == [None]
    assert with_attacks(None, None, found, np.arange(1)) is None


def test_nodes_that_arrive_have_no_picture_yet_and_do_not_break_the_page(tmp_path):
    found = proofs(us.Row.new(data(), None, [[0, 1]]))
    page = us.write_report(tmp_path / "r.html", found, data=data())
    assert page.exists()
