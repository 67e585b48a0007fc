"""prove against brute force: every attack on small graphs, judged by the network itself."""

from itertools import chain, combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us

from .ballots.cases import awakened, random_graph, some_known

CHANGES = ("any", "adds", "deletes")


class Sums(torch.nn.Module):
    """An encoder: what a node's neighbours have, added up."""

    def forward(self, x, edge_index):
        return x + torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])


def model_of(voters, data, rng, classes, target):
    known = some_known(rng, data.num_nodes, classes)
    if voters == "labels":
        return us.LabelBallots(classes).freeze(data, known=known)
    if voters == "snapshot":
        keep = (data.edge_index != target).all(dim=0)
        voters = us.Snapshot(Sums(), Data(x=data.x, edge_index=data.edge_index[:, keep]))
    channels = 0 if data.x is None else data.x.shape[1]
    net = us.BallotNetwork(channels, classes, hidden=4, voters=voters, tau=float(rng.choice([0.5, 2.0])))
    return awakened(net, seed=int(rng.integers(1000))).freeze(data, known=known)


def subsets(items):
    return chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))


def toggled(data, pairs):
    """The edges with these node pairs added where they are missing and deleted where they are there."""
    now = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()} ^ {
        tuple(sorted(pair)) for pair in pairs
    }
    both = [*now, *((b, a) for a, b in now)]
    return torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T


def truth(model, data, target, pairs):
    """(adds, deletes) of every set of pairs whose change moves the network's own answer, by asking it."""
    there = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
    clean = int(model(data.x, data.edge_index)[target].argmax())
    moved = []
    for chosen in subsets(pairs):
        adds = sum(tuple(sorted(pair)) not in there for pair in chosen)
        if int(model(data.x, toggled(data, chosen))[target].argmax()) != clean:
            moved.append((adds, len(chosen) - adds))
    return clean, moved


def size_of(moved, change, most):
    allowed = {"any": lambda a, r: True, "adds": lambda a, r: not r, "deletes": lambda a, r: not a}[change]
    return min((a + r for a, r in moved if allowed(a, r)), default=most + 1) - 1


def agree(proofs, i, clean, moved):
    """Label, sizes of every change and every cell of the grid are those that brute force found."""
    about = proofs.about
    most = {"any": about.entries[i], "adds": about.zeros[i], "deletes": about.ones[i]}
    assert proofs.label[i] == clean
    for change in CHANGES:
        assert proofs.sizes(change)[i] == size_of(moved, change, int(most[change])), change
    cells = proofs.grid(3, 2)[i]
    for a in range(4):
        for r in range(3):
            assert cells[a, r] == (not any(x <= a and y <= r for x, y in moved))


def witnessed(proofs, i, model, data, target, pair_of):
    """Every witness moves the network itself, with one change more than the size."""
    for change in CHANGES:
        found = proofs.witness(i, change)
        if found is None:
            about = proofs.about
            most = {"any": about.entries[i], "adds": about.zeros[i], "deletes": about.ones[i]}
            assert proofs.sizes(change)[i] == most[change]
            continue
        assert len(found) == proofs.sizes(change)[i] + 1
        edges = toggled(data, [pair_of(int(entry)) for entry in found])
        assert int(model(data.x, edges)[target].argmax()) != proofs.label[i]


VOTERS = ("labels", "features", "two-hop", "snapshot")


@pytest.mark.parametrize("voters", VOTERS)
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_exact_both_ways(voters, seed):
    rng = np.random.default_rng([seed, VOTERS.index(voters)])
    data, classes, target = random_graph(rng, n=7), int(rng.integers(2, 5)), int(rng.integers(7))
    model = model_of(voters, data, rng, classes, target)
    proofs = us.prove(model, us.Row(data, [target]))
    clean, moved = truth(model, data, target, [(target, v) for v in range(7) if v != target])
    agree(proofs, 0, clean, moved)
    witnessed(proofs, 0, model, data, target, lambda v: (target, v))


@pytest.mark.parametrize("voters", ["features", "snapshot"])
@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_are_exact_both_ways(voters, seed):
    rng = np.random.default_rng([seed, 7])
    data, classes, target = random_graph(rng, n=5), int(rng.integers(2, 4)), int(rng.integers(5))
    model = model_of(voters, data, rng, classes, target)
    every = [(i, j) for j in range(5) for i in range(j)]
    proofs = us.prove(model, us.AllPairs(data, [target]))
    agree(proofs, 0, *truth(model, data, target, every))
    witnessed(proofs, 0, model, data, target, lambda e: every[e])


@pytest.mark.parametrize("voters", VOTERS)
@pytest.mark.parametrize("seed", range(3))
def test_listed_pairs_are_exact_both_ways(voters, seed):
    rng = np.random.default_rng([seed, 11])
    data, classes, target = random_graph(rng, n=7), int(rng.integers(2, 4)), int(rng.integers(7))
    model = model_of(voters, data, rng, classes, target)
    every = [(i, j) for j in range(7) for i in range(j)]
    touching = [pair for pair in every if target in pair]
    pool = touching if voters in ("labels", "two-hop") else every
    listed = [pool[i] for i in rng.permutation(len(pool))[:5]]
    proofs = us.prove(model, us.Pairs(data, listed, [target]))
    agree(proofs, 0, *truth(model, data, target, listed))
    witnessed(proofs, 0, model, data, target, lambda e: listed[e])


@pytest.mark.parametrize("seed", range(8))
def test_no_fake_node_that_was_tried_beats_a_size_under_inject(seed):
    rng = np.random.default_rng([seed, 13])
    data, classes = random_graph(rng, n=8), int(rng.integers(2, 4))
    net = awakened(us.BallotNetwork(3, classes, hidden=4), seed).freeze(
        data, known=some_known(rng, 8, classes)
    )
    proofs = us.prove(net, us.Inject(data, range(8)))
    own, scores = net.own_table.numpy(), (net(data.x, data.edge_index) * 2**20).long().numpy()
    wild = torch.tensor(rng.normal(size=(400, 3)) * 50, dtype=torch.float64)
    twin = net.exact()
    said = torch.round(twin.voice_weight * twin.cap * torch.tanh(twin.voice(wild)) * 2**20).detach().long()
    said = said.clamp(-3 * 2**20, 3 * 2**20).numpy()
    for u in range(8):
        size, label = int(proofs.size[u]), int(proofs.label[u])
        for rival in set(range(classes)) - {label}:
            worst = (said[:, rival] - said[:, label]).max() + own[u, rival] - own[u, label]
            after = scores[u, label] - scores[u, rival] - size * max(worst, 0)
            assert after >= (rival < label)
    assert proofs.sizes("deletes").tolist() == [0] * 8  # there is nothing to delete
    with pytest.raises(us.errors.InputError, match="no witness"):
        proofs.witness(0)


def test_many_targets_are_as_each_alone():
    rng = np.random.default_rng(17)
    data = random_graph(rng, n=40)
    model = model_of("two-hop", data, rng, 3, 0)
    together = us.prove(model, us.Row(data, range(40)))
    for u in (0, 7, 39):
        alone = us.prove(model, us.Row(data, [u]))
        assert [alone.sizes(c)[0] for c in CHANGES] == [together.sizes(c)[u] for c in CHANGES]
    some = us.prove(model, us.Row(data, torch.arange(40) % 5 == 1))
    assert some.size.tolist() == together.size[np.arange(40) % 5 == 1].tolist()


def test_a_row_and_all_pairs_agree_where_only_the_row_is_read():
    rng = np.random.default_rng(18)
    data = random_graph(rng, n=30)
    model = model_of("features", data, rng, 3, 0)
    rows, pairs = us.prove(model, us.Row(data, range(30))), us.prove(model, us.AllPairs(data, range(30)))
    never = rows.size == 29
    assert np.array_equal(rows.size[~never], pairs.size[~never])
    assert (pairs.size[never] == 435).all()


def test_prove_freezes_if_need_be():
    data = random_graph(np.random.default_rng(19), n=12)
    net = awakened(us.BallotNetwork(3, 2, hidden=4))
    for threat in (us.Row(data, [1]), us.AllPairs(data, [1])):
        assert not net.train().frozen
        us.prove(net, threat)
        assert net.frozen


class Plain(torch.nn.Module):
    def forward(self, x, edge_index):
        return x


def refusals():
    rng = np.random.default_rng(20)
    data = random_graph(rng, n=9)
    known = some_known(rng, 9, 3)
    two_hop = us.LabelBallots(3).freeze(data, known=known)
    plain = us.BallotNetwork(3, 3, hidden=4).freeze(data, known=known)
    other = random_graph(np.random.default_rng(21), n=9)
    snapshot = us.BallotNetwork(3, 3, voters=us.Snapshot(Sums(), data)).freeze(data)
    busy = int(torch.bincount(data.edge_index[0]).argmax())
    return [
        (two_hop, us.AllPairs(data, [0]), "prove it under Row"),
        (two_hop, us.Inject(data, [0]), "under Inject use"),
        (two_hop, us.Pairs(data, [(0, 1), (2, 3)], [0]), "every listed pair touches the target"),
        (two_hop, us.Row(other, [0]), "frozen with other links"),
        (two_hop, us.Row(random_graph(rng, n=8), [0]), "frozen for a graph of 9 nodes"),
        (plain, us.Row(other, [0]), "not those the model was frozen with"),
        (plain, us.Row(Data(edge_index=data.edge_index, num_nodes=9), [0]), "the graph has none"),
        (plain, us.AllPairs([data]), "PairBallots"),
        (plain, us.Pairs(data, [(0, 1)]), "name them"),
        (plain, us.Bits([[0, 1]]), "not under Bits"),
        (snapshot, us.Row(data, [busy]), "shaped by links of 1 of the targets"),
        (us.LabelBallots(3), us.Row(data, [0]), "known=labels"),
        (Plain(), us.Row(data, [0]), "poll, then certify"),
        (plain, "row", "The threat must be"),
    ]


@pytest.mark.parametrize("which", range(14))
def test_what_cannot_be_proved_is_refused_with_the_reason(which):
    model, threat, words = refusals()[which]
    with pytest.raises(us.errors.InputError, match=words):
        us.prove(model, threat)


def test_inject_checks_its_links():
    data = random_graph(np.random.default_rng(0))
    with pytest.raises(us.errors.InputError, match="links must be"):
        us.Inject(data, [0], links=0)
    assert us.Inject(data, [0], links=3).describe()["links"] == "3"


@pytest.mark.parametrize("voters", VOTERS)
@pytest.mark.parametrize("seed", range(3))
def test_arrivals_are_exact_both_ways(voters, seed):
    """The scores of an arrival, added by hand from what every voter says to a newcomer, in plain integers."""
    rng = np.random.default_rng([seed, 23])
    data, classes = random_graph(rng, n=7), int(rng.integers(2, 5))
    model = model_of(voters, data, rng, classes, 0)
    x = torch.tensor(rng.normal(size=(2, 3)), dtype=torch.float32)
    linked = [sorted(rng.permutation(7)[: rng.integers(0, 6)].tolist()) for _ in range(2)]
    proofs = us.prove(model, us.Row.new(data, x, linked))
    own, base = (table.tolist() for table in model.own_of_new(x, 2))
    said = model.ballot_table[:7].tolist()

    def answer(i, friends):
        total = [base[i][c] + sum(own[i][c] + said[v][c] for v in friends) for c in range(classes)]
        return max(range(classes), key=lambda c: (total[c], -c))

    for i in range(2):
        clean, moved = answer(i, linked[i]), []
        for chosen in subsets(range(7)):
            adds = len(set(chosen) - set(linked[i]))
            if answer(i, set(linked[i]) ^ set(chosen)) != clean:
                moved.append((adds, len(chosen) - adds))
        agree(proofs, i, clean, moved)
        witness = proofs.witness(i)
        assert witness is None or answer(i, set(linked[i]) ^ set(witness.tolist())) != clean


def test_an_arrival_with_the_features_of_a_node_is_answered_like_one():
    """A node without links that a model knows, and one that arrives with the same features and gets the same links."""
    rng = np.random.default_rng(24)
    data = random_graph(rng, n=9)
    data.edge_index = data.edge_index[:, (data.edge_index != 8).all(dim=0)]
    net = awakened(us.BallotNetwork(3, 3, hidden=4)).freeze(data)
    edges = torch.cat([data.edge_index, torch.tensor([[8, 0, 8, 3], [0, 8, 3, 8]])], dim=1)
    proofs = us.prove(net, us.Row.new(data, data.x[8:], [[0, 3]]))
    assert proofs.label[0] == int(net(data.x, edges)[8].argmax())


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((torch.zeros(1, 3), [[9]]), "between 0 and 8"),
        ((torch.zeros(1, 3), [[0.5]]), "list of node numbers"),
        ((torch.zeros(2, 3), [[0]]), "must have shape"),
        ((None, [[0]]), "need theirs too"),
        ((torch.zeros(0, 3), []), "at least one node"),
    ],
)
def test_arrivals_are_checked(parts, words):
    data = random_graph(np.random.default_rng(0))
    with pytest.raises(us.errors.InputError, match=words):
        us.Row.new(data, *parts)


def test_threats_without_noisy_graphs_cannot_be_polled():
    data = random_graph(np.random.default_rng(0))
    net = us.BallotNetwork(3, 3).freeze(data)
    with pytest.raises(us.errors.InputError):
        us.poll(net, us.Inject(data, [0]), us.Flip(0.8), samples=4, progress=False)
