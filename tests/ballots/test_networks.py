"""Ballot models against slow ones in plain Python: who says what, and what the frozen sum is."""

import contextlib
import copy
import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.fixed import SCALE
from unswayed.ballots.links import Links
from unswayed.ballots.networks import BallotNetwork, LabelBallots, Snapshot
from unswayed.errors import DoubtfulSetting, InputError, UnsoundModel

from .cases import awakened, random_graph, some_known


def neighbours(edge_index, n):
    around = {u: set() for u in range(n)}
    for a, b in edge_index.T.tolist():
        if a != b:
            around[a].add(b)
            around[b].add(a)
    return around


def slow_label_ballot(v, u, around, known, classes, sharpness=16):
    """The definition, in exact fractions."""
    if known[v] >= 0:
        return [float(c == known[v]) for c in range(classes)]
    told = [known[w] for w in around[v] if w != u and known[w] >= 0]
    share = [
        (Fraction(told.count(c)) + Fraction(1, 10) / classes) / (len(told) + Fraction(1, 10))
        for c in range(classes)
    ]
    power = [s**sharpness for s in share]
    return [float(p / sum(power)) for p in power]


@pytest.mark.parametrize("seed", range(20))
def test_label_ballots_say_what_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    data, classes = random_graph(rng), int(rng.integers(2, 5))
    known = some_known(rng, 9, classes)
    around = neighbours(data.edge_index, 9)
    spoken, links = LabelBallots(classes).speak(data, known), Links.of(data)
    for v, u, said in zip(links.voter.tolist(), links.target.tolist(), spoken.links, strict=True):
        assert said.tolist() == pytest.approx(
            slow_label_ballot(v, u, around, known.tolist(), classes), abs=1e-12
        )
    for v, said in enumerate(spoken.newcomers):
        assert said.tolist() == pytest.approx(
            slow_label_ballot(v, None, around, known.tolist(), classes), abs=1e-12
        )


def test_a_frozen_answer_is_the_sum_of_its_tables_whatever_the_links():
    rng = np.random.default_rng(3)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    around, labels = neighbours(data.edge_index, 9), known.tolist()
    model = LabelBallots(3).freeze(data, known=known)
    for _ in range(20):
        other = random_graph(rng, features=0)
        there = neighbours(other.edge_index, 9)
        for u in range(9):
            expected = np.zeros(3, dtype=np.int64)
            for v in there[u]:
                said = slow_label_ballot(v, u if v in around[u] else None, around, labels, 3)
                expected += np.round(np.array(said) * SCALE).astype(np.int64)
            assert (model(None, other.edge_index)[u] * SCALE).tolist() == expected.tolist()


@pytest.mark.parametrize("voters", ["features", "two-hop"])
def test_frozen_and_float_answers_agree_but_for_rounding(voters):
    rng = np.random.default_rng(5)
    data, known = random_graph(rng), some_known(rng, 9, 4)
    net = awakened(BallotNetwork(3, 4, voters=voters, hidden=8))
    links = Links.of(data)
    told = net.score(links, net.speak(links, known)).detach()
    frozen = net.freeze(data, known=known)(data.x, data.edge_index)
    assert frozen.dtype == torch.float64
    assert torch.allclose(frozen, told.double(), atol=1e-4)
    assert not torch.allclose(frozen, torch.zeros(1).double())


def test_at_the_start_a_network_is_label_ballots():
    rng = np.random.default_rng(6)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    net = BallotNetwork(3, 3, voters="two-hop").freeze(data, known=known)
    assert torch.equal(
        net(data.x, data.edge_index), LabelBallots(3).freeze(data, known=known)(None, data.edge_index)
    )


def test_order_repetition_loops_and_missing_directions_do_not_matter():
    rng = np.random.default_rng(7)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    net = awakened(BallotNetwork(3, 3, voters="two-hop")).freeze(data, known=known)
    clean = net(data.x, data.edge_index)
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    messy = torch.cat([data.edge_index.flip(1), one_way, torch.tensor([[2, 4], [2, 4]])], dim=1)
    assert torch.equal(clean, net(data.x, messy))
    assert torch.equal(clean, net(data.x, one_way))


def test_a_batch_answers_as_each_graph_alone():
    rng = np.random.default_rng(8)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    net = awakened(BallotNetwork(3, 3, voters="two-hop")).freeze(data, known=known)
    others = [random_graph(rng).edge_index for _ in range(3)]
    together = torch.cat([edges + 9 * i for i, edges in enumerate(others)], dim=1)
    said = net(data.x.repeat(3, 1), together)
    alone = torch.cat([net(data.x, edges) for edges in others])
    assert torch.equal(said, alone)
    batch = torch.arange(3).repeat_interleave(9)
    assert torch.equal(net(None, together, batch), alone)


def test_a_nodes_own_label_never_enters_its_own_score():
    rng = np.random.default_rng(9)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    for voters in ("features", "two-hop"):
        net = awakened(BallotNetwork(3, 3, voters=voters))
        for u in range(9):
            said = []
            for label in (-1, 0, 1, 2):
                told = known.clone()
                told[u] = label
                said.append(net.freeze(data, known=told)(data.x, data.edge_index)[u])
            assert all(torch.equal(said[0], other) for other in said)


def test_hidden_labels_count_as_unknown():
    rng = np.random.default_rng(10)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    hidden = torch.tensor(rng.random(9) < 0.5)
    model = LabelBallots(3)
    one, other = model.speak(data, known, hidden), model.speak(data, known.masked_fill(hidden, -1))
    assert torch.equal(one.links, other.links)
    assert torch.equal(one.newcomers, other.newcomers)


def test_training_reaches_every_weight():
    rng = np.random.default_rng(11)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    for channels, graph in ((3, data), (0, Data(edge_index=data.edge_index, num_nodes=9))):
        net = awakened(BallotNetwork(channels, 3, voters="two-hop", hidden=4))
        links = Links.of(graph)
        net.score(links, net.speak(links, known)).square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
        assert net.freeze(graph, known=known)(graph.x, graph.edge_index).shape == (9, 3)


def test_ballots_stay_within_the_cap():
    rng = np.random.default_rng(12)
    data = random_graph(rng)
    net = awakened(BallotNetwork(3, 3, cap=0.5))
    with torch.no_grad():
        net.voice_weight.fill_(40.0)
    net.freeze(data, known=some_known(rng, 9, 3))
    assert int(net.ballot_table.abs().max()) == SCALE // 2
    assert int(net.reach) == SCALE // 2 + 1


def test_state_travels_with_its_tables(tmp_path):
    rng = np.random.default_rng(13)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    net = awakened(BallotNetwork(3, 3, voters="two-hop", hidden=4)).freeze(data, known=known)
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    fresh = BallotNetwork(3, 3, voters="two-hop", hidden=4)
    fresh.load_state_dict(load_file(tmp_path / "net.safetensors"))
    assert fresh.frozen
    assert fresh.eval().table_hash == net.table_hash
    assert torch.equal(fresh(data.x, data.edge_index), net(data.x, data.edge_index))
    bare = BallotNetwork(3, 3, voters="two-hop", hidden=4)
    fresh.load_state_dict(bare.state_dict())
    assert not fresh.frozen
    twin = copy.deepcopy(net)
    assert torch.equal(twin(data.x, data.edge_index), net(data.x, data.edge_index))


def test_training_forgets_the_tables():
    data = random_graph(np.random.default_rng(14))
    net = BallotNetwork(3, 3).freeze(data)
    assert net.frozen
    assert not net.train().frozen


def test_it_can_be_polled():
    rng = np.random.default_rng(15)
    data, known = random_graph(rng), some_known(rng, 9, 3)
    net = awakened(BallotNetwork(3, 3, voters="two-hop")).freeze(data, known=known)
    votes = us.poll(net, us.Row(data, [0, 4]), us.Flip(0.8), samples=64, progress=False)
    assert votes.counts.sum() == 128
    bare = Data(edge_index=data.edge_index, num_nodes=9)
    plain = LabelBallots(3).freeze(bare, known=known)
    assert us.poll(plain, us.Row(bare, [0, 4]), us.Flip(0.8), samples=8, progress=False).counts.sum() == 16
    assert us.poll(plain, us.AllPairs(bare, [1]), us.Flip(0.8), samples=8, progress=False).counts.sum() == 8


def test_a_snapshot_speaks_by_what_was_said_once():
    rng = np.random.default_rng(16)
    data = random_graph(rng)
    keep = (data.edge_index != 4).all(dim=0)
    trusted = Data(x=data.x, edge_index=data.edge_index[:, keep])

    class Encoder(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.zeros(len(x), 3).index_add_(0, edge_index[1], x[edge_index[0]])

    snapshot = Snapshot(Encoder(), trusted)
    assert not snapshot.seen[4]
    net = awakened(BallotNetwork(3, 3, voters=snapshot)).freeze(data)
    assert net.seen.tolist() == snapshot.seen.tolist()
    wild = torch.cat([data.edge_index, torch.tensor([[0, 1], [1, 0]])], dim=1)
    assert torch.equal(net(data.x, wild)[4], net(data.x, data.edge_index)[4])
    with pytest.raises(InputError, match="one row of numbers"):
        Snapshot(_Two(), trusted)
    with pytest.raises(InputError, match="The snapshot holds 9 nodes"):
        net.thaw().freeze(random_graph(rng, n=7))


@pytest.mark.parametrize("kind", ["frozen", "floats", "groups"])
def test_edges_in_narrow_numbers_are_those_between_the_same_nodes(kind):
    """Node times number of nodes would wrap around, and the answers of others be given."""
    nodes, edges = 100_000, torch.tensor([[50_000, 60_000], [60_000, 50_000]])
    known = torch.full((nodes,), -1)
    known[50_000], known[60_000] = 0, 1
    data = Data(edge_index=edges, num_nodes=nodes, x=torch.ones(nodes, 1))
    model = LabelBallots(2).freeze(data, known=known)
    if kind == "floats":
        model.thaw()
    if kind == "groups":
        model = us.Hashed(model, 2).eval()
    answers = model(data.x, edges)
    assert torch.equal(model(data.x, edges.int()).nan_to_num(-1), answers.nan_to_num(-1))
    if kind == "frozen":
        assert answers[50_000].argmax() == 1
        assert us.prove(model, us.Row(data, [50_000, 60_000])).label.tolist() == [1, 0]


@pytest.mark.parametrize("rows", [9, 2])
def test_an_encoder_is_asked_in_evaluation_mode_and_left_in_its_own(rows):
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.resting, self.working = torch.nn.Dropout(0.5), torch.nn.Dropout(0.5)

        def forward(self, x, edge_index):
            return self.working(self.resting(x))[:rows]

    data, encoder = random_graph(np.random.default_rng(3)), Encoder()
    encoder.resting.eval()
    with contextlib.nullcontext() if rows == 9 else pytest.raises(InputError, match="one row of numbers"):
        assert torch.equal(Snapshot(encoder, data).embeddings, data.x.float())
    assert [module.training for module in encoder.modules()] == [True, False, True]


class _Two(torch.nn.Module):
    def forward(self, x, edge_index):
        return x[:2]


def told(data):
    return LabelBallots(2).freeze(data, known=[0] * 9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: LabelBallots(1), "two classes or more"),
        (lambda d: LabelBallots(2, sharpness=0), "sharpness must be"),
        (lambda d: LabelBallots(2, tau=-1), "tau must be"),
        (lambda d: BallotNetwork(-1, 2), "in_channels must be"),
        (lambda d: BallotNetwork(3, 2, hidden=0), "hidden must be"),
        (lambda d: BallotNetwork(3, 2, cap=1e9), "cap must be"),
        (lambda d: BallotNetwork(3, 2, voters="all"), "voters must be"),
        (lambda d: BallotNetwork(4, 2).freeze(d), "reads 4 features"),
        (lambda d: LabelBallots(2).freeze(d, known=[0] * 8), "one whole number for each of the 9"),
        (lambda d: LabelBallots(2).freeze(d, known=[2] * 9), "between −1"),
        (lambda d: told(d)(None, torch.tensor([[0], [9]])), "not in its graph"),
        (lambda d: told(d)(d.x[:5], d.edge_index), "frozen for a graph of 9 nodes"),
        (
            lambda d: BallotNetwork(3, 2).freeze(d)(d.x + 1, d.edge_index),
            "not those the model was frozen with",
        ),
        (
            lambda d: BallotNetwork(3, 2).freeze(d)(d.x.repeat(2, 1), torch.tensor([[0], [9]])),
            "not in its graph",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call(random_graph(np.random.default_rng(0)))


def test_features_touched_after_the_first_look_are_refused():
    data = random_graph(np.random.default_rng(0))
    net = BallotNetwork(3, 2).freeze(data)
    x = data.x.clone()
    net(x, data.edge_index)
    x[0, 0] += 1
    with pytest.raises(InputError, match="not those"):
        net(x, data.edge_index)


@pytest.mark.parametrize("disguise", ["plain", "log", "one-hot"])
def test_features_made_from_structure_may_not_vote(disguise):
    data = random_graph(np.random.default_rng(1), n=40)
    degree = torch.bincount(data.edge_index[0], minlength=40)
    data.x = {
        "plain": torch.stack([degree / 7, torch.rand(40)], dim=1),
        "log": degree.float().log1p()[:, None],
        "one-hot": torch.nn.functional.one_hot(degree).float(),
    }[disguise]
    with pytest.raises(UnsoundModel, match="may not vote"):
        BallotNetwork(data.x.shape[1], 2).freeze(data)


def test_wild_weights_are_refused():
    data = random_graph(np.random.default_rng(1))
    net = BallotNetwork(3, 2)
    with torch.no_grad():
        net.own_weight.fill_(float("inf"))
    with pytest.raises(UnsoundModel, match="not finite"):
        net.freeze(data)
    with torch.no_grad():
        net.own_weight.fill_(1e9)
    with pytest.raises(UnsoundModel, match="too large"):
        net.freeze(data)


def test_freezing_straight_after_training_leaves_nothing_to_chance():
    data = random_graph(np.random.default_rng(2))
    net = awakened(BallotNetwork(3, 3, hidden=32)).train()
    first = net.freeze(data).table_hash
    assert net.train().freeze(data).table_hash == first
    x = torch.randn(1, 3)
    assert torch.equal(net.own_of_new(x, 1)[0], net.own_of_new(x, 1)[0])
    fresh = copy.deepcopy(net)
    assert torch.equal(net.own_of_new(x, 1)[0], fresh.own_of_new(x, 1)[0])


def test_known_labels_of_a_column_with_gaps_are_unknown_there():
    data = random_graph(np.random.default_rng(0))
    gaps = [0.0, 1.0, float("nan")] * 3
    found = LabelBallots(2).freeze(data, known=gaps).state_dict()
    plain = LabelBallots(2).freeze(data, known=[0, 1, -1] * 3).state_dict()
    assert all(torch.equal(found[name], plain[name]) for name in plain)
    with pytest.raises(InputError, match="one whole number"):
        LabelBallots(2).freeze(data, known=[0.5] * 9)


def test_who_knows_no_label_is_warned_that_nothing_is_said():
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    data = Data(edge_index=torch.cat([ring, ring.flip(0)], dim=1), num_nodes=3)
    with pytest.warns(DoubtfulSetting, match="No label is known, so label ballots say nothing"):
        us.LabelBallots(2).freeze(data, known=torch.full((3,), -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        us.LabelBallots(2).freeze(data, known=torch.tensor([0, -1, -1]))
