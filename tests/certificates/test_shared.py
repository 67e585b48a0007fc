"""Many targets, one attacker: said only where it may be said, and never fewer than an attack can flip."""

import copy
from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.errors import InputError, Unsupported

NOISE = us.AddDelete(p_add=0, p_delete=0.5)


def votes(kind, noise=NOISE, counts=((9_990, 10), (9_900, 100), (5_000, 5_000)), unit="node"):
    found = us.Votes.from_counts(np.array(counts), noise, entries=50)
    threat = {"kind": kind, "words": {"unit": unit}}
    object.__setattr__(found, "provenance", {**found.provenance, "threat": threat})
    return found


def certs(kind, family=True, **more):
    return us.certify(votes(kind, **more), family=family)


def test_one_row_says_nothing_of_others():
    with pytest.raises(Unsupported, match="covers that row alone"):
        certs("row").shared(5)


def test_certificates_must_hold_together():
    with pytest.raises(Unsupported, match="family=True"):
        certs("all-pairs", family=False).shared(5)
    drawn = votes("all-pairs")
    object.__setattr__(drawn, "provenance", {**drawn.provenance, "purpose": "select"})
    with pytest.raises(Unsupported, match="family=True"):
        us.certify(drawn, family=True).shared(5)


def test_a_threat_that_nobody_named_is_refused():
    with pytest.raises(Unsupported, match="Nothing is known"):
        us.certify(us.Votes.from_counts([[999, 1]], NOISE, entries=5), family=True).shared(1)


@pytest.mark.parametrize("kind", ["all-pairs", "pairs", "inject"])
def test_where_every_change_counts_for_all_those_within_reach_are_counted(kind):
    found = certs(kind, noise=us.Flip(0.7))
    sizes = found.size[~found.abstained]
    assert len(sizes) == 2
    assert [found.shared(b) for b in range(20)] == [int((sizes < b).sum()) for b in range(20)]


@pytest.mark.parametrize(("kind", "unit"), [("bits", "input"), ("all-pairs", "graph")])
def test_separate_targets_share_the_budget(kind, unit):
    found = certs(kind, noise=us.Flip(0.7), unit=unit)
    small, large = sorted(found.size[~found.abstained] + 1)
    assert found.shared(int(small + large) - 1) == 1
    assert found.shared(int(small + large)) == 2


def test_words_count_abstainers_apart_and_give_reasons():
    told = certs("all-pairs", noise=us.Flip(0.7)).shared_in_words(25)
    assert "25 changes in total can flip at most 2 of the 2 nodes" in told
    assert "1 that abstained nothing is promised" in told
    assert "family=True" in certs("all-pairs", family=False).shared_in_words(25)


def test_fields_are_for_deletions_under_noise_that_adds_nothing():
    found, fields = certs("all-pairs"), [[0, 1], [1, 2], [3]]
    assert found.shared(1, change="deletes", fields=fields) <= found.shared(1, change="deletes")
    for other, change in (
        (found, "any"),
        (found, "adds"),
        (certs("all-pairs", noise=us.Flip(0.7)), "deletes"),
    ):
        with pytest.raises(Unsupported, match="deletions"):
            other.shared(1, change=change, fields=fields)
    with pytest.raises(Unsupported, match="deletions"):
        certs("pairs").shared(1, change="deletes", fields=fields)
    with pytest.raises(InputError, match="fields"):
        found.shared(1, change="deletes", fields=fields[:2])


def test_fields_see_that_far_edges_do_not_matter():
    sure = [[9_999, 1]] * 30
    found = us.certify(votes("all-pairs", us.AddDelete(0, 0.7), sure), family=True)
    assert (found.sizes("deletes") >= 1).all()
    fields = [np.arange(20) + 20 * i for i in range(30)]
    budget = int(found.sizes("deletes")[0]) + 1
    assert found.shared(budget, change="deletes", fields=fields) == 1
    assert found.shared(budget, change="deletes") == 30


def small_graph(seed):
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(6), 2) if rng.random() < 0.5]
    edges = torch.tensor([*pairs, *((b, a) for a, b in pairs)]).T
    return Data(x=torch.tensor(rng.normal(size=(6, 3)), dtype=torch.float32), edge_index=edges, num_nodes=6)


@pytest.mark.parametrize("seed", range(4))
def test_no_attack_on_a_ballot_network_flips_more_nodes_than_said(seed):
    """Every set of up to three edges of a whole graph, judged by the network itself."""
    data = small_graph(seed)
    net = us.BallotNetwork(3, 2, hidden=4, voters="features", tau=0.5)
    for weight in net.parameters():
        torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(seed + 10))
    net.freeze(data)
    proofs = us.prove(net, us.Row(data, range(6)))
    assert proofs.reach == "rows"
    clean, reached = net(data.x, data.edge_index).argmax(1), 0
    now = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
    for budget in (1, 2, 3):
        most = 0
        for changed in combinations(combinations(range(6), 2), budget):
            left = now ^ set(changed)
            edges = torch.tensor([*left, *((b, a) for a, b in left)], dtype=torch.int64).reshape(-1, 2).T
            most = max(most, int((net(data.x, edges).argmax(1) != clean).sum()))
        assert most <= proofs.shared(budget)
        reached += most
    assert reached > 0 or (proofs.size >= 3).all()


def test_proofs_that_read_more_than_the_row_are_refused():
    data = small_graph(1)
    labels = us.LabelBallots(2).freeze(data, known=torch.tensor([0, 1, -1, 0, 1, -1]))
    with pytest.raises(Unsupported, match="neighbours"):
        us.prove(labels, us.Row(data, range(6))).shared(3)


def test_a_node_named_twice_is_refused():
    data = small_graph(2)
    net = us.BallotNetwork(3, 2, hidden=4, voters="features").freeze(data)
    with pytest.raises(Unsupported, match="twice"):
        us.prove(net, us.Row(data, [0, 0, 1])).shared(3)


def test_a_graph_picked_twice_is_refused():
    """One change flips it wherever it is named."""
    found = certs("all-pairs", noise=us.Flip(0.7), unit="graph")
    with pytest.raises(Unsupported, match="A graph is named twice"):
        found[[1, 1]].shared(int(found.size[1]) + 1)


def test_fake_nodes_are_called_what_they_are():
    """Where a size counts nodes, no sentence speaks of entries."""
    threat = us.Inject(Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1], [1, 0]])), [0, 1, 2]).describe()
    votes = us.Votes.from_counts(
        [[3000, 0], [2100, 900], [1510, 1490]],
        us.Hide(0.5, 0.2),
        5,
        ones=[0, 0, 0],
        provenance={"threat": threat},
    )
    found = us.certify(votes, alpha=0.01, family=True)
    assert found.size.tolist() == [0, 0, -1]
    assert "somebody who adds one fake node might already move it" in found.statement(1)
    far = us.certify(
        us.Votes.from_counts([[3000, 0]], us.Hide(0.9, 0.2), 5, ones=[0], provenance={"threat": threat}),
        alpha=0.01,
        family=True,
    )
    assert far.size.tolist() == [5]
    told = far.statement(0)
    assert "nobody who adds up to 5 fake nodes" in told
    assert "entries" not in told
    assert far.shared_in_words(3).startswith(
        "One attacker with 3 nodes in total can flip at most 0 of the 1 nodes"
    )


def test_a_graph_that_is_listed_twice_is_one_graph():
    """One change counts for both places at once, so two graphs of size K do not take 2(K + 1) changes."""
    graph, other = small_graph(0), small_graph(1)
    for graphs, separate in (([graph, other, graph], False), ([graph, other, copy.copy(graph)], True)):
        threat = us.AllPairs(graphs)
        assert (len(np.unique(threat.targets)) == len(threat)) == separate
        proofs = us.prove(us.PairBallots(3, 2), threat)
        if separate:
            assert proofs.shared(1) <= 1
        else:
            with pytest.raises(Unsupported, match="named twice"):
                proofs.shared(1)
