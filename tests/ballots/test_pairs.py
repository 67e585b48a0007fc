"""Pair ballots: the proof against every attack, asked of the network itself."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import unswayed as us
from unswayed.ballots.fixed import SCALE
from unswayed.ballots.pairs import PairBallots
from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.inputs import read_graph

FEATURES, CLASSES = 3, 3


def graph(seed, nodes=5, share=0.5, kinds=4):
    chance = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(nodes), 2) if chance.random() < share]
    edges = torch.tensor([*pairs, *((j, i) for i, j in pairs)], dtype=torch.int64).reshape(-1, 2).T
    palette = np.random.default_rng(9).normal(size=(kinds, FEATURES))
    return Data(x=torch.from_numpy(palette[chance.integers(0, kinds, nodes)]).float(), edge_index=edges)


def net(seed=0, cap=0.5, in_channels=FEATURES):
    torch.manual_seed(seed)
    return PairBallots(in_channels, CLASSES, hidden=8, cap=cap)


def attacked(data, entries):
    pairs = [(i, j) for j in range(data.num_nodes) for i in range(j)]
    have = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
    kept = have ^ {pairs[e] for e in entries}
    return torch.tensor([*kept, *((j, i) for i, j in kept)], dtype=torch.int64).reshape(-1, 2).T


def test_sizes_grids_and_attacks_are_exact_for_the_network_itself():
    for seed in range(8):
        data, frozen = graph(seed, nodes=4), net(seed).freeze([graph(seed, nodes=4)])
        part = frozen.margins(read_graph(data))
        answer = frozen(data.x, data.edge_index).argmax(dim=1).item()
        assert part.label[0] == answer
        every = [c for k in range(7) for c in combinations(range(6), k)]
        flips = [c for c in every if frozen(data.x, attacked(data, c)).argmax(dim=1).item() != answer]
        assert part.sizes()[0] == min((len(c) for c in flips), default=7) - 1
        present, grid = part.present[0], part.grid(3, 3)[0]
        for a, r in np.ndindex(4, 4):
            hit = any((~present[list(c)]).sum() <= a and present[list(c)].sum() <= r for c in flips)
            assert grid[a, r] == (not hit)
        if (attack := part.witness(0)) is not None:
            assert frozen(data.x, attacked(data, attack)).argmax(dim=1).item() != answer


def test_frozen_answers_are_the_floats_rounded_and_equal_in_any_batch():
    graphs = [graph(seed, nodes=4 + seed % 3) for seed in range(6)]
    network = net(1)
    floats = [network(g.x, g.edge_index) for g in graphs]
    network.freeze(graphs)
    alone = torch.cat([network(g.x, g.edge_index) for g in graphs])
    batch = Batch.from_data_list(graphs)
    assert torch.equal(network(batch.x, batch.edge_index, batch=batch.batch), alone)
    assert torch.allclose(alone, torch.cat(floats).double(), atol=1e-4)
    assert torch.equal(alone * SCALE, (alone * SCALE).round())
    order = torch.randperm(batch.edge_index.shape[1])
    assert torch.equal(network(batch.x, batch.edge_index[:, order], batch=batch.batch), alone)


def test_links_named_twice_and_loops_count_once_and_never():
    data = graph(3)
    frozen = net().freeze([data])
    loops = torch.arange(5).expand(2, -1)
    more = torch.cat([data.edge_index, data.edge_index, loops], dim=1)
    assert torch.equal(frozen(data.x, more), frozen(data.x, data.edge_index))


def test_it_learns_and_training_forgets_the_tables():
    graphs = [graph(seed, nodes=6, share=0.2 + 0.3 * (seed % 3)) for seed in range(60)]
    truth = torch.arange(60) % 3
    batch = Batch.from_data_list(graphs)
    network = net(0, cap=3.0).freeze(graphs).train()
    assert not network.frozen
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(network(batch.x, batch.edge_index, batch=batch.batch), truth)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.freeze(graphs)
    said = network(batch.x, batch.edge_index, batch=batch.batch).argmax(dim=1)
    assert (said == truth).float().mean() > 0.7


def test_tables_travel_with_the_state():
    graphs = [graph(seed) for seed in range(3)]
    one, other = net(1).freeze(graphs), net(2)
    other.load_state_dict(one.state_dict())
    other.eval()
    assert other.table_hash == one.table_hash
    assert torch.equal(other(graphs[0].x, graphs[0].edge_index), one(graphs[0].x, graphs[0].edge_index))


def test_graphs_without_features_vote_by_their_edges():
    data = Data(edge_index=graph(1).edge_index, num_nodes=5)
    frozen = net(1, in_channels=0).freeze([data])
    part = frozen.margins(read_graph(data))
    assert len(np.unique(part.gains[0], axis=0)) == 1


def test_ballots_stay_within_the_cap():
    data = graph(2)
    data.x = 1000 * data.x
    frozen = net(1, cap=0.25).freeze([data])
    assert frozen.ballot_table.abs().max() <= 0.25 * SCALE


@pytest.mark.parametrize(("call", "words"), [
    (lambda: PairBallots(-1, 2), "in_channels must be"), (lambda: PairBallots(3, 1), "out_channels must be"),
    (lambda: PairBallots(3, 2, members=0), "members must be"), (lambda: PairBallots(3, 2, readout="sum"), "readout must be one of linear, mlp"),
    (lambda: PairBallots(3, 2, cap=0), "cap must be"), (lambda: net().freeze([Data(edge_index=graph(1).edge_index, num_nodes=5)]), "reads 3 features"),
    (lambda: net().freeze([graph(1)])(graph(1).x + 1, graph(1).edge_index), "not frozen with"),
])  # fmt: skip
def test_wrong_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_nodes_that_were_never_frozen_together_are_refused():
    one, other = graph(1, kinds=4), graph(2, kinds=4)
    one.x, other.x = torch.eye(5)[:, :3], 2 * torch.eye(5)[:, :3]
    frozen = net().freeze([one, other])
    mixed = torch.stack([one.x[0], other.x[1]])
    linked = torch.tensor([[0, 1], [1, 0]])
    for x in (mixed, one.x[:2], one.x[[0, 0, 1, 2, 3, 4]]):  # of two graphs, fewer, and one of them twice
        with pytest.raises(InputError, match="not frozen with a graph of these nodes"):
            frozen(x, linked)
    with pytest.raises(InputError, match="not frozen with a graph of these nodes"):
        us.prove(frozen, us.AllPairs([Data(x=mixed, edge_index=linked)]))


def test_a_link_between_two_graphs_is_refused():
    frozen, both = net().freeze([graph(1)]), Batch.from_data_list([graph(1), graph(1)])
    across = torch.tensor([[0, 5], [5, 0]])
    with pytest.raises(InputError, match="joins nodes of two graphs"):
        frozen(both.x, across, batch=both.batch)


def test_features_that_say_the_degree_may_not_vote():
    data = graph(4, nodes=30, share=0.3)
    degree = torch.bincount(data.edge_index[0], minlength=30).float()
    data.x = torch.stack([degree, torch.rand(30), torch.rand(30)], dim=1)
    with pytest.raises(UnsoundModel, match="degree"):
        net().freeze([data])


def test_prove_freezes_and_covers_graphs_and_listed_pairs():
    graphs = [graph(seed, nodes=4) for seed in range(3)]
    network = net(2)
    found = us.prove(network, us.AllPairs(graphs))
    assert network.frozen
    said = [network(g.x, g.edge_index).argmax(dim=1).item() for g in graphs]
    assert found.label.tolist() == said
    assert found.size.tolist() == [network.margins(read_graph(g)).sizes()[0] for g in graphs]
    listed = us.prove(network, us.Pairs(graphs[0], [(0, 1), (2, 3)]))
    flips = [
        len(c)
        for c in ((0,), (5,), (0, 5))
        if network(graphs[0].x, attacked(graphs[0], c)).argmax(dim=1).item() != said[0]
    ]
    assert listed.size[0] == min(flips, default=3) - 1
    assert listed.about.entries.tolist() == [2]


def test_after_a_proof_the_network_speaks_as_it_was_proved():
    first, data = net(), graph(1)
    state = first.freeze([data]).state_dict()
    second = net(seed=3).train()
    second.load_state_dict({**second.state_dict(), **state})
    proofs = us.prove(second, us.AllPairs([data]))
    assert not second.training
    assert int(second(data.x, data.edge_index).argmax()) == proofs.label[0]


def test_nodes_are_refused_with_what_to_do():
    with pytest.raises(InputError, match="BallotNetwork"):
        us.prove(net(), us.Row(graph(1), [0]))


def test_graphs_whose_scores_no_double_holds_are_refused():
    """Every link may be loud alone, and many of them too loud together."""
    network = PairBallots(1, 2, cap=1000)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.voice[0].bias[0] = 100.0
    small, large = (Data(x=torch.ones(n, 1), edge_index=torch.zeros(2, 0).long()) for n in (2, 4000))
    assert us.prove(network, us.AllPairs([small])).size.tolist() == [1]
    with pytest.raises(UnsoundModel, match="too large to be added exactly"):
        network.freeze([small, large])
