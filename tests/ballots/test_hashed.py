"""Hashed models: what an edge can reach, and that the vote is the same function before and after an attack."""

import itertools
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

import unswayed as us
from unswayed.ballots.hashed import Hashed, mixed
from unswayed.errors import InputError, UnsoundModel, Unsupported
from unswayed.theory.hashed import hashed_size

FEATURES, CLASSES, NODES = 4, 3, 6


class Net(nn.Module):
    def __init__(self, layer=GCNConv):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = layer(FEATURES, 8), layer(8, CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Pooled(Net):
    def forward(self, x, edge_index, batch):
        return global_mean_pool(super().forward(x, edge_index), batch)


class Moody(Net):
    """Says nothing where a node hears from nobody."""

    def forward(self, x, edge_index):
        heard = torch.zeros(len(x)).index_add(0, edge_index[1], torch.ones(edge_index.shape[1]))
        return super().forward(x, edge_index) + torch.where(heard > 0, 0.0, torch.nan)[:, None]


def graph(seed, nodes=NODES, share=0.5):
    chance = np.random.default_rng(seed)
    pairs = np.array([pair for pair in combinations(range(nodes), 2) if chance.random() < share]).reshape(
        -1, 2
    )
    edges = torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy()).long()
    return torch.from_numpy(chance.normal(size=(nodes, FEATURES))).float(), edges


def changed(edges, pairs):
    have = {tuple(edge) for edge in edges.T.tolist()}
    both = {pair for i, j in pairs for pair in ((i, j), (j, i))}
    return torch.tensor(sorted(have ^ both), dtype=torch.int64).reshape(-1, 2).T


def test_the_groups_of_edges_never_change():
    assert mixed(0, 1) == 10451216379200822465  # the published first word of splitmix64 at seed 1
    assert mixed(0x12345678, 0x87654321) == mixed(np.array([0x12345678]), np.array([0x87654321]))[0]
    edges = torch.tensor([[0, 1, 1, 7, 3], [1, 0, 2, 2_000_000, 3]])
    assert Hashed(Net(), 30).group_of(edges).tolist() == [5, 5, 24, 16, -1]
    assert Hashed(Net(), 30, by="nodes").group_of(edges).tolist() == [25, 16, 16, 19, -1]


def test_groups_are_filled_evenly():
    first, second = np.triu_indices(300, 1)
    sizes = np.bincount(Hashed(Net(), 30).group_of(np.stack([first, second])), minlength=30)
    assert sizes.min() > 0.85 * sizes.mean()
    assert sizes.max() < 1.15 * sizes.mean()


@pytest.mark.parametrize("net", [Net(), Net(GATConv), Moody()])
def test_each_changed_edge_moves_one_group_and_no_label_falls_within_its_size(net):
    for seed in range(4):
        x, edges = graph(seed)
        hashed = Hashed(net, 5).eval()
        before = hashed(x, edges)
        label, size = hashed_size(before.nan_to_num(0).long().numpy())
        for count in (1, 2):
            for pairs in combinations(combinations(range(NODES), 2), count):
                after = hashed(x, changed(edges, pairs))
                now = np.where(after.isnan().all(dim=1), -1, after.argmax(dim=1))
                assert (now == label)[size >= count].all()
                assert (after.nan_to_num(0) - before.nan_to_num(0)).abs().sum(dim=1).max() <= 2 * count


def test_a_group_without_a_changed_edge_is_handed_the_very_same_tensors():
    seen = []

    class Spy(Net):
        def forward(self, x, edge_index):
            seen.append(edge_index.clone())
            return super().forward(x, edge_index)

    x, edges = graph(1)
    hashed = Hashed(Spy(), 5).eval()
    hashed(x, edges)
    hashed(x, changed(edges, [(0, 3)])[:, torch.randperm(changed(edges, [(0, 3)]).shape[1])])
    before, after = seen[:5], seen[5:]
    touched = hashed.group_of(torch.tensor([[0], [3]]))[0]
    for group in range(5):
        assert torch.equal(before[group], after[group]) == (group != touched)


def test_the_vote_is_what_each_group_says_alone():
    x, edges = graph(2)
    hashed, net = Hashed(Net(), 4).eval(), Net().eval()
    said = [net(x, hashed.subgraph(edges, group)).argmax(dim=1) for group in range(4)]
    for node in range(NODES):
        votes = torch.bincount(torch.stack(said)[:, node], minlength=CLASSES)
        assert hashed(x, edges)[node].tolist() == votes.tolist()


def test_fake_nodes_reach_one_group_each():
    for seed in range(4):
        x, edges = graph(seed)
        hashed = Hashed(Net(), 7, by="nodes").eval()
        before = hashed(x, edges)
        _, size = hashed_size(before.long().numpy())
        chance = torch.Generator().manual_seed(seed)
        for fakes in (1, 2):
            more = torch.cat([x, 100 * torch.randn(fakes, FEATURES, generator=chance)])
            links = [(old, NODES + fake) for old in range(NODES) for fake in range(fakes)]
            after = hashed(more, changed(edges, links))[:NODES]
            assert (after - before).abs().sum(dim=1).max() <= 2 * fakes
            same = after.argmax(dim=1) == before.argmax(dim=1)
            assert same[torch.from_numpy(size >= fakes)].all()


def test_an_existing_node_with_any_features_and_edges_reaches_one_group_of_any_other_node():
    x, edges = graph(5, share=0.7)
    hashed = Hashed(Net(), 7, by="nodes").eval()
    before = hashed(x, edges)
    for bad in range(NODES):
        other = x.clone()
        other[bad] = 50
        links = [(node, bad) for node in range(NODES) if node != bad]
        after = hashed(other, changed(edges, links[::2]))
        honest = torch.arange(NODES) != bad
        assert (after - before)[honest].abs().sum(dim=1).max() <= 2


def test_several_graphs_in_a_batch_are_asked_one_at_a_time():
    (x, edges), (y, others) = graph(1), graph(2, nodes=4)
    hashed = Hashed(Pooled(), 5).eval()
    together = hashed(
        torch.cat([x, y]),
        torch.cat([edges, others + NODES], dim=1),
        batch=torch.tensor([0] * NODES + [1] * 4),
    )
    alone = [hashed(x, edges, batch=torch.zeros(NODES, dtype=torch.int64)), hashed(y, others)]
    assert torch.equal(together, torch.cat(alone))


def test_where_no_group_has_an_answer_the_vote_has_none():
    x, _ = graph(1)
    assert Hashed(Moody(), 3).eval()(x, torch.empty((2, 0), dtype=torch.int64)).isnan().all()


def test_training_mode_shows_the_model_one_group_with_gradients():
    x, edges = graph(3)
    hashed = Hashed(Net(), 4).train()
    torch.manual_seed(0)
    out = hashed(x, edges)
    allowed = [hashed.model(x, hashed.subgraph(edges, group)) for group in range(4)]
    assert out.requires_grad
    assert any(torch.equal(out, one) for one in allowed)


@pytest.mark.parametrize(("groups", "by", "words"), [
    (0, "edges", "groups must be"), (2.5, "edges", "groups must be"), (True, "edges", "groups must be"),
    (30, "degree", "by must be one of"),
])  # fmt: skip
def test_wrong_settings_are_refused(groups, by, words):
    with pytest.raises(InputError, match=words):
        Hashed(Net(), groups, by)


def test_a_thing_that_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="can be called"):
        Hashed("gcn")


class Virtual(Net):
    def forward(self, x, edge_index):
        return super().forward(x + x.mean(dim=0), edge_index)


@pytest.mark.parametrize("net", [Pooled(), Virtual(), lambda x, edge_index: x])
def test_grouping_by_nodes_refuses_models_that_read_more_than_incoming_edges(net):
    with pytest.raises(UnsoundModel, match='by="nodes" needs'):
        Hashed(net, 5, by="nodes")


def test_an_edge_between_two_graphs_of_a_batch_is_refused():
    x, _ = graph(1)
    batch = torch.tensor([0] * 3 + [1] * 3)
    with pytest.raises(InputError, match="joins two graphs"):
        Hashed(Pooled(), 5).eval()(x, torch.tensor([[0, 5], [5, 0]]), batch=batch)


def data(seed, nodes=NODES):
    x, edges = graph(seed, nodes)
    return Data(x=x, edge_index=edges)


@pytest.mark.parametrize("make", [
    lambda d: us.AllPairs(d, [0, 2, 5]), lambda d: us.Row(d, [0, 2, 5]), lambda d: us.Pairs(d, [(0, 1), (2, 4)], [0, 2, 5]),
])  # fmt: skip
def test_a_proof_is_what_the_vote_of_these_nodes_says(make):
    asked = data(4)
    hashed = Hashed(Net(), 9).eval()
    found = hashed.prove_under(make(asked))
    votes = hashed(asked.x, asked.edge_index)[[0, 2, 5]].long().numpy()
    label, size = hashed_size(votes)
    assert np.array_equal(found.label, label)
    assert np.array_equal(found.size, np.minimum(size, found.about.entries))
    assert np.array_equal(found.counts, votes)
    assert found.confidence is None
    assert found.doubtful == 0


def test_graphs_are_targets_of_their_own():
    graphs = [data(1), data(2, nodes=4)]
    hashed = Hashed(Pooled(), 5)
    found = hashed.prove_under(us.AllPairs(graphs))
    assert found.counts.tolist() == [hashed.eval()(g.x, g.edge_index)[0].tolist() for g in graphs]


class Cached(Net):
    def __init__(self):
        super().__init__(lambda a, b: GCNConv(a, b, cached=True))


class Random(Net):
    def forward(self, x, edge_index):
        return super().forward(nn.functional.dropout(x, 0.5, training=True), edge_index)


class Remembering(Net):
    def forward(self, x, edge_index):
        self.calls = getattr(self, "calls", 0) + 1
        return super().forward(x, edge_index) * (1 if self.calls < 3 else -1)


@pytest.mark.parametrize(
    ("net", "words"),
    [(Cached, "caches"), (Random, "two identical calls"), (Remembering, "before|two identical")],
)
def test_models_that_are_no_function_of_the_graph_are_refused(net, words):
    with pytest.raises(UnsoundModel, match=words):
        Hashed(net(), 5).prove_under(us.AllPairs(data(1), [0]))


@pytest.mark.parametrize("patience", [1, 10])
def test_a_model_whose_ties_fall_otherwise_from_time_to_time_is_refused(patience):
    """Its logits differ by less than rounding might explain, and its labels differ all the same."""
    asked = itertools.count()

    def tied(x, edge_index):
        said = torch.full((len(x), CLASSES), 5.0)
        said[:, next(asked) // patience % CLASSES] += 1e-5
        return said

    x, edges = graph(0)
    with pytest.raises(UnsoundModel, match="two labels for one and the same graph"):
        us.prove(Hashed(tied, 10), us.AllPairs(Data(x=x, edge_index=edges), range(NODES)))


def test_threats_that_one_change_carries_to_many_groups_are_refused():
    with pytest.raises(InputError, match="counts nodes"):
        Hashed(Net(), 5, by="nodes").prove_under(us.Row(data(1), [0]))
    with pytest.raises(InputError, match="not about a graph"):
        Hashed(Net(), 5).prove_under(us.Bits([[0, 1]]))


def test_groups_of_edges_say_nothing_of_features():
    with pytest.raises(Unsupported, match="nodes that lie"):
        us.prove(Hashed(Net(), 5), us.Intercept(data(1), [0, 1]))


def test_a_model_of_nodes_cannot_classify_graphs():
    with pytest.raises(UnsoundModel, match="one row for a graph"):
        Hashed(Net(), 5).prove_under(us.AllPairs([data(1)]))


def test_fakes_are_counted_by_nodes():
    asked = data(4)
    hashed = Hashed(Net(), 9, by="nodes")
    found = us.prove(hashed, us.Inject(asked, [0, 2]))
    assert found.counts.tolist() == hashed.eval()(asked.x, asked.edge_index)[[0, 2]].long().tolist()
    with pytest.raises(InputError, match='by="nodes"'):
        us.prove(Hashed(Net(), 9), us.Inject(asked, [0]))


def test_a_node_that_arrives_is_asked_in_a_graph_of_its_own():
    asked = data(4)
    hashed, x = Hashed(Net(), 9).eval(), torch.randn(2, FEATURES)
    found = us.prove(hashed, us.Row.new(asked, x, [[0, 3], [5]]))
    for i, linked in enumerate([[0, 3], [5]]):
        edges = changed(asked.edge_index, [(v, NODES) for v in linked])
        votes = hashed(torch.cat([asked.x, x[i : i + 1]]), edges)[NODES]
        assert found.counts[i].tolist() == votes.tolist()


class ReadsAll(torch.nn.Module):
    """Goes by a position if the data has one."""

    def forward(self, data):
        pos = getattr(data, "pos", None)
        return data.x if pos is None else data.x * pos[:, None]


@pytest.mark.parametrize("arrives", [False, True])
def test_what_the_vote_itself_is_never_given_is_not_proved_by(arrives):
    x, none = torch.rand(4, 3), torch.zeros((2, 0), dtype=torch.int64)
    data = Data(x=x, edge_index=none, pos=-torch.ones(4))
    threat = us.Row.new(data, x[:1], [[1]]) if arrives else us.AllPairs(data, range(4))
    with pytest.raises(UnsoundModel, match="reads pos of the data"):
        us.prove(us.Hashed(ReadsAll(), 3), threat)


def test_arrivals_are_refused_where_edges_carry_weights():
    edges = torch.tensor([[0, 1], [1, 0]])
    data = Data(x=torch.rand(3, 4), edge_index=edges, edge_weight=torch.rand(2))
    with pytest.raises(UnsoundModel, match="edge_weight"):
        us.prove(us.Hashed(Weighted(), 3), us.Row.new(data, data.x[:1], [[1]]))


class Weighted(torch.nn.Module):
    def forward(self, x, edge_index, edge_weight=None):
        return x


def test_how_many_nodes_there_are_is_never_guessed_from_edges():
    edges = torch.tensor([[0, 1], [1, 0]])
    for model in (us.Hashed(Weighted(), 3).eval(), us.PairBallots(0, 2).eval()):
        with pytest.raises(InputError, match="how many nodes"):
            model(None, edges)


def test_targets_whose_links_an_encoder_has_seen_are_refused_in_groups_too():
    """The stored embeddings tell every group of the target's links, those that an attack would change among them."""
    x, edges = graph(2)
    data, known = Data(x=x, edge_index=edges), torch.arange(NODES) % 2
    far = Data(x=x, edge_index=edges[:, (edges > 0).all(dim=0)])
    network = us.BallotNetwork(FEATURES, 2, voters=us.Snapshot(Net(), far)).freeze(data, known=known)
    us.prove(Hashed(network, 5), us.AllPairs(data, [0]))
    for threat in (us.AllPairs(data, [0, 1]), us.Row(data, [1])):
        with pytest.raises(UnsoundModel, match="shaped by links"):
            us.prove(Hashed(network, 5), threat)


@pytest.mark.parametrize("frozen", [True, False])
def test_targets_whose_links_an_encoder_has_seen_are_refused_under_noise_too(frozen):
    """Their votes would tell of a model whose ballots were made by links that the attacker changes."""
    x, edges = graph(2)
    data, known = Data(x=x, edge_index=edges), torch.arange(NODES) % 2
    far = Data(x=x, edge_index=edges[:, (edges > 0).all(dim=0)])
    network = us.BallotNetwork(FEATURES, 2, voters=us.Snapshot(Net(), far)).eval()
    if frozen:
        network.freeze(data, known=known)
    how = {"samples": 20, "batch_size": 1}
    service = us.Smoothed(network, us.Flip(0.9), data, **how, progress=False)
    assert len(service.predict([0])) == 1
    for ask in (
        lambda node: us.poll(network, us.Row(data, [node]), us.Flip(0.9), **how),
        lambda node: us.poll(Hashed(network, 5).eval(), us.AllPairs(data, [node]), us.Flip(0.9), **how),
        lambda node: service.certify([node]),
        lambda node: us.prove(Hashed(network, 5), us.AllPairs(data, [node])),
    ):
        ask(0)
        with pytest.raises(
            UnsoundModel, match="shaped by links of 1 of the targets, the first of them node 1"
        ):
            ask(1)
