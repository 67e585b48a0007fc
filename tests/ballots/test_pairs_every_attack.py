"""Pair ballots against every edge set that there is: the network itself is asked about each, one graph at a time."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import unswayed as us

KINDS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 2.0]])


def edges(pairs):
    return torch.tensor([*pairs, *((j, i) for i, j in pairs)], dtype=torch.int64).reshape(-1, 2).T


def network(seed, features, classes=3, members=2, readout="mlp"):
    """One whose nodes speak about as loudly as a few links."""
    torch.manual_seed(seed)
    net = us.PairBallots(features, classes, hidden=6, cap=0.4, members=members, readout=readout)
    with torch.no_grad():
        for voice in net.voice:
            voice.weight.mul_(4)
    return net


def graphs(seed, features, many=3):
    """Graphs of 3 to 5 nodes, so that every edge set can be asked about."""
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(many):
        nodes = int(chance.integers(3, 6))
        pairs = [pair for pair in combinations(range(nodes), 2) if chance.random() < 0.5]
        x = KINDS[torch.from_numpy(chance.integers(0, 3, nodes))] if features else None
        found.append(Data(x=x, edge_index=edges(pairs), num_nodes=nodes))
    return found


def answer(net, data, pairs):
    """The label of one graph with these links, asked alone."""
    batch = torch.zeros(data.num_nodes, dtype=torch.int64)
    return int(net(data.x, edges(sorted(pairs)), batch=batch).argmax(dim=1))


def costs(net, data):
    """For each edge set that changes the answer: how many links are added, and how many cut."""
    every = list(combinations(range(data.num_nodes), 2))
    have = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
    label = answer(net, data, have)
    sets = [set(kept) for size in range(len(every) + 1) for kept in combinations(every, size)]
    return [(len(kept - have), len(have - kept)) for kept in sets if answer(net, data, kept) != label]


@pytest.mark.parametrize("features", [2, 0])
@pytest.mark.parametrize(
    ("seed", "members", "readout"), [(0, 2, "mlp"), (1, 1, "linear"), (2, 3, "mlp"), (3, 1, "mlp")]
)
def test_sizes_hold_and_one_change_more_does_not(features, seed, members, readout):
    asked = graphs(seed, features)
    net = network(seed, features, members=members, readout=readout).standardise(asked)
    proofs = us.prove(net, us.AllPairs(asked))
    sizes = {change: proofs.sizes(change) for change in ("any", "adds", "deletes")}
    for place, data in enumerate(asked):
        entries, flips = data.num_nodes * (data.num_nodes - 1) // 2, costs(net, data)
        assert sizes["any"][place] == min((a + r for a, r in flips), default=entries + 1) - 1
        links = data.edge_index.shape[1] // 2
        adds = min((a for a, r in flips if r == 0), default=entries - links + 1)
        deletes = min((r for a, r in flips if a == 0), default=links + 1)
        assert (sizes["adds"][place], sizes["deletes"][place]) == (adds - 1, deletes - 1)
        attack = proofs.witness(place)
        assert (attack is None) == (not flips)
        if attack is not None:
            assert len(attack) == proofs.size[place] + 1
            pairs = [(i, j) for j in range(data.num_nodes) for i in range(j)]
            have = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
            changed = have ^ {pairs[entry] for entry in attack}
            assert answer(net, data, changed) != proofs.label[place]


def test_some_of_these_graphs_can_be_flipped_and_some_withstand_a_change():
    """Or the test above would say nothing."""
    sizes = np.concatenate(
        [
            us.prove(network(seed, 2).standardise(graphs(seed, 2)), us.AllPairs(graphs(seed, 2))).size
            for seed in range(4)
        ]
    )
    assert len(np.unique(sizes)) > 2


def test_what_a_link_says_depends_on_the_nodes_of_its_graph_and_on_no_other_link():
    two, three = (Data(x=KINDS[[0, 1, *[2] * n]], edge_index=edges([(0, 1)])) for n in (0, 3))
    net = network(0, 2).freeze([two, three])

    def says(data, others=()):
        return net(data.x, edges([(0, 1), *others])) - net(data.x, edges(others))

    assert not torch.equal(says(two), says(three))
    assert torch.equal(says(three), says(three, [(0, 2), (1, 3)]))


def test_what_nodes_say_is_no_sum_over_them():
    """Three sizes of graphs without features, of which the one between is told apart: no sum over nodes can."""
    sized = [Data(edge_index=edges([]), num_nodes=n) for n in (4, 12, 40)]
    net = us.PairBallots(0, 2).standardise(sized)
    optimiser, truth = torch.optim.Adam(net.parameters(), lr=0.05), torch.tensor([0, 1, 0])
    batch = torch.repeat_interleave(torch.arange(3), torch.tensor([4, 12, 40]))
    for _ in range(100):
        loss = torch.nn.functional.cross_entropy(net(None, edges([]), batch=batch), truth)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    proofs = us.prove(net, us.AllPairs(sized))
    assert proofs.label.tolist() == [0, 1, 0]


@pytest.mark.parametrize("features", [2, 0])
def test_neither_the_order_of_nodes_nor_of_links_nor_the_batch_changes_an_answer(features):
    asked = graphs(5, features, many=6)
    net = network(5, features).freeze(asked)
    alone = torch.cat([net(d.x, d.edge_index, batch=torch.zeros(d.num_nodes).long()) for d in asked])
    turned = []
    for data in asked:
        order = torch.randperm(data.num_nodes)
        links = order.argsort()[data.edge_index]
        x = None if data.x is None else data.x[order]
        turned.append(
            Data(x=x, edge_index=links[:, torch.randperm(links.shape[1])], num_nodes=data.num_nodes)
        )
    batch = Batch.from_data_list(turned)
    assert torch.equal(net(batch.x, batch.edge_index, batch=batch.batch), alone)
    mixed = Batch.from_data_list(turned[::-1])
    assert torch.equal(net(mixed.x, mixed.edge_index, batch=mixed.batch), alone.flip(0))
    again = us.prove(net, us.AllPairs(turned))
    assert again.size.tolist() == us.prove(net, us.AllPairs(asked)).size.tolist()


def test_tables_do_not_change_with_the_order_of_graphs_and_nodes():
    asked = graphs(6, 2, many=5)
    turned = [Data(x=d.x.flip(0), edge_index=d.num_nodes - 1 - d.edge_index) for d in asked[::-1]]
    one, other = network(6, 2).freeze(asked), network(6, 2).freeze(turned)
    assert one.table_hash == other.table_hash


def test_graphs_of_one_node_and_doubled_graphs_are_answered():
    lonely = Data(x=KINDS[:1], edge_index=edges([]))
    net = network(1, 2).freeze([lonely, lonely])
    assert len(net.own_table) == 1
    assert us.prove(net, us.AllPairs([lonely])).size.tolist() == [0]


def test_tables_of_other_graphs_come_with_a_state_of_theirs(tmp_path):
    asked = graphs(7, 2)
    net, other = network(7, 2).standardise(asked).freeze(asked), network(8, 2).freeze(graphs(8, 2))
    torch.save(net.state_dict(), tmp_path / "net.pt")
    other.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    assert other.eval().table_hash == net.table_hash
    assert torch.equal(other(asked[0].x, asked[0].edge_index), net(asked[0].x, asked[0].edge_index))
    before = net.table_hash
    assert net.thaw().freeze(asked[:2]).table_hash != before
