"""Noise that only hides, drawn, polled and certified: against the definition and the model itself."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv, global_mean_pool

import unswayed as us
from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling import drawing
from unswayed.sampling.drawing import NodeStream, SeatStream
from unswayed.sampling.engines.asking import generic
from unswayed.sampling.engines.rows import engine as row_engine
from unswayed.sampling.question import Question
from unswayed.sampling.structures import layout_of
from unswayed.sampling.threats.inject import Inject

from .small import FEATURES


class Net(nn.Module):
    """Two rounds of message passing."""

    def __init__(self, layer=SAGEConv):
        super().__init__()
        torch.manual_seed(3)
        self.one, self.two = layer(FEATURES, 8), layer(8, 3)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def test_keep_draws_the_law_that_is_certified(data):
    """How many neighbours are seen, over many samples, against C(d,j)·C(D−d,s−j)/C(D,s)."""
    threat, noise = us.Row(data, [0, 5]), us.Keep(3, 10)
    stream = SeatStream(4, "certify", threat)
    for place, node in enumerate([0, 5]):
        clean, degree = threat.clean(place), int(threat.ones[place])
        from_zero, from_one = stream.flips(0, 20_000, len(clean), noise, target=node)
        assert not from_zero.any()
        rows = clean & ~from_one
        seats = max(degree, 10)
        expected = stats.hypergeom(seats, degree, 3).pmf(np.arange(4))
        seen = np.bincount(rows.sum(dim=1).numpy(), minlength=4) / 20_000
        assert seen == pytest.approx(expected, abs=0.015)
        each = rows[:, clean].float().mean(dim=0).numpy()
        assert each == pytest.approx(np.full(degree, 3 / seats), abs=0.015)


@pytest.mark.parametrize("layer", [SAGEConv, GCNConv])
@pytest.mark.parametrize("engine", ["generic", "auto"])
def test_votes_of_keep_are_the_model_s_own(data, layer, engine):
    """Every vote, one graph at a time, on a graph built from the seats that were drawn."""
    model, nodes, noise = Net(layer).eval(), [0, 3, 11], us.Keep(2, 5)
    threat = us.Row(data, nodes)
    votes = us.poll(model, threat, noise, samples=40, seed=9, engine=engine)
    stream, slow = SeatStream(9, "certify", threat), np.zeros((3, 3), dtype=int)
    for i, node in enumerate(nodes):
        clean = threat.clean(i)
        rows = clean & ~stream.flips(0, 40, len(clean), noise, target=node)[1]
        rest = threat.graph.edge_index[:, (threat.graph.edge_index != node).all(dim=0)]
        for row in rows:
            seen = row.nonzero()[:, 0]
            star = torch.stack([torch.full_like(seen, node), seen])
            with torch.no_grad():
                said = model(data.x, torch.cat([rest, star, star.flip(0)], dim=1))[node]
            slow[i, int(said.argmax())] += 1
    assert votes.counts.tolist() == slow.tolist()
    assert votes.provenance["stream"] == "philox4x32-10/seats-1"
    assert votes.provenance["shared"] is False


def test_keep_is_polled_certified_stored_and_loaded(data, tmp_path):
    votes = us.poll(Net().eval(), us.Row(data, [0, 1, 2]), us.Keep(2, 8), samples=200, store=tmp_path / "run")
    again = us.poll(Net().eval(), us.Row(data, [0, 1, 2]), us.Keep(2, 8), samples=400, store=tmp_path / "run")
    whole = us.poll(Net().eval(), us.Row(data, [0, 1, 2]), us.Keep(2, 8), samples=400)
    assert (again.counts == whole.counts).all()
    assert votes.noise == us.Keep(2, 8)
    certs = us.certify(again, alpha=0.01)
    adds = us.theory.certified_size(
        certs.p_top, certs.p_rest, us.Keep(2, 8), votes.entries, ones=votes.ones, change="adds"
    )
    assert (certs.sizes("adds") == adds).all()
    assert certs.grid(2, 2).shape == (3, 3, 3)
    assert "2 of 8 seats kept" in certs.statement(0)


def test_keep_is_for_rows(data):
    for threat in (us.AllPairs(data, [0]), us.Bits(np.eye(3, dtype=bool)), Inject(data, [0])):
        with pytest.raises(InputError, match=r"row|Hide"):
            us.poll(Net().eval(), threat, us.Keep(2, 5), samples=10)


def test_hide_draws_the_law_that_is_certified(data):
    """Pairs of edges: both seen iff no end is hidden and neither is lost."""
    threat, noise = Inject(data, [0]), us.Hide(nodes=0.25, edges=0.5)
    edges = threat.graph.pairs.shape[1]
    _, gone = NodeStream(2, "certify", threat).flips(0, 20_000, edges, noise)
    seen = ~gone
    assert seen.float().mean(dim=0).numpy() == pytest.approx(np.full(edges, 0.5 * 0.75**2), abs=0.016)
    first, second = threat.graph.pairs
    together = [
        (i, j)
        for i in range(8)
        for j in range(i)
        if len({*first[[i, j]].tolist(), *second[[i, j]].tolist()}) == 3
    ]
    for i, j in together:
        assert float((seen[:, i] & seen[:, j]).float().mean()) == pytest.approx(0.25 * 0.75**3, abs=0.015)


def test_votes_under_hide_are_the_model_s_own(data):
    model, nodes, noise = Net().eval(), [0, 3, 11], us.Hide(nodes=0.3, edges=0.2)
    threat = Inject(data, nodes, links=2)
    votes = us.poll(model, threat, noise, samples=30, seed=5)
    pairs, slow = threat.graph.pairs, np.zeros((3, 3), dtype=int)
    _, gone = NodeStream(5, "certify", threat).flips(0, 30, pairs.shape[1], noise)
    for lost in gone:
        left = pairs[:, ~lost]
        with torch.no_grad():
            said = model(data.x, torch.cat([left, left.flip(0)], dim=1))[nodes].argmax(dim=1)
        slow[np.arange(3), said.numpy()] += 1
    assert votes.counts.tolist() == slow.tolist()
    assert votes.noise == us.Hide(nodes=0.3, edges=0.2, links=2)
    assert votes.entries.tolist() == [data.num_nodes] * 3


def test_certificates_count_fake_nodes(data):
    sure = us.Votes.from_counts([[9_990, 10]], us.Hide(nodes=0.9, edges=0.5), entries=20)
    few = us.Votes.from_counts([[9_990, 10]], us.Hide(nodes=0.9, edges=0.5, links=1), entries=20)
    assert 0 < us.certify(sure).size[0] < us.certify(few).size[0] <= 20


class Pooled(Net):
    """The mean over all nodes is in every answer."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + x.mean(dim=0)[:3]


class Batched(Net):
    """It reads `batch`."""

    def forward(self, x, edge_index, batch=None):
        return super().forward(x, edge_index) + global_mean_pool(x, batch)[batch][:, :3]


@pytest.mark.parametrize("model", [Pooled, Batched])
def test_fake_nodes_need_a_model_that_isolated_nodes_do_not_matter_to(data, model):
    with pytest.raises(UnsoundModel, match="nobody is joined to"):
        us.poll(model().eval(), Inject(data, [0]), us.Hide(0.5, 0.5), samples=10)


def test_fake_nodes_need_noise_that_hides_nodes(data):
    for noise in (us.Flip(0.7), us.AddDelete(0, 0.5)):
        with pytest.raises(InputError, match="Hide"):
            us.poll(Net().eval(), Inject(data, [0]), noise, samples=10)
    with pytest.raises(InputError, match="inject"):
        us.poll(Net().eval(), us.Row(data, [0]), us.Hide(0.5, 0.5), samples=10)


def test_noise_that_only_deletes_is_polled(data):
    votes = us.poll(Net().eval(), us.Row(data, [0, 1]), us.AddDelete(p_add=0, p_delete=0.5), samples=100)
    whole = us.poll(Net().eval(), us.AllPairs(data, [0, 1]), us.AddDelete(p_add=0, p_delete=0.5), samples=100)
    assert votes.counts.sum() == whole.counts.sum() == 200
    assert us.certify(votes).size.max() < 2


def test_trial_graphs_of_keep_have_a_layout(data):
    question = Question(Net().eval(), us.Row(data, [0]), us.Keep(2, 5))
    assert layout_of(question, 0).size(question) > data.num_nodes
    assert not question.shared


@pytest.mark.parametrize(
    ("noise", "engine"),
    [
        (us.Keep(2, 5), "generic"),
        *((us.AddDelete(p_add=0, p_delete=0.6), way) for way in ("generic", "auto")),
    ],
)
def test_equal_rows_are_asked_once_and_counted_as_often_as_drawn(data, noise, engine, monkeypatch):
    threat = us.Row(data, [0, 3, 11])
    asked = {"samples": 300, "seed": 2, "shared": False, "engine": engine, "audit": 0}
    quick = us.poll(Net().eval(), threat, noise, **asked)
    seen = []
    monkeypatch.setattr(drawing, "ALIKE", -1)
    for module in (generic, row_engine):
        monkeypatch.setattr(module, "distinct", lambda flips, ones: seen.append(len(ones)) or (flips, None))
    slow = us.poll(Net().eval(), threat, noise, **asked)
    assert seen
    assert quick.counts.tolist() == slow.counts.tolist()


def test_different_rows_are_few_where_ones_are():
    from_one = torch.tensor(
        [[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 0, 1]], dtype=torch.bool
    )
    flips = torch.zeros_like(from_one), from_one
    few, back = drawing.distinct(flips, torch.tensor([0]))
    assert len(few[1]) == 2
    assert (few[1][back][:, 0] == from_one[:, 0]).all()
    assert drawing.distinct(flips, torch.tensor([0, 1, 2]))[1] is None
    assert drawing.distinct(flips, torch.arange(3).repeat(9))[1] is None


def test_a_faint_part_that_reads_all_nodes_is_noticed_under_fake_nodes():
    class Faint(torch.nn.Module):
        def forward(self, x, edge_index):
            heard = torch.zeros(len(x), 2).index_add(0, edge_index[1], x[edge_index[0]])
            return heard + 1e-4 * x.mean(0) * torch.tensor([-1.0, 1.0])

    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 40))
    data = Data(x=torch.rand(30, 2), edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=30)
    with pytest.raises(UnsoundModel):
        us.poll(Faint(), Inject(data, [0, 1]), us.Hide(nodes=0.9, edges=0.5), samples=10)


def test_fake_nodes_beyond_those_spoken_of_are_not_covered(data):
    votes = us.poll(Net().eval(), Inject(data, [0], links=1), us.Hide(nodes=0.99, edges=0.9), samples=400)
    certs = us.certify(votes, alpha=0.01)
    assert certs.sizes("adds")[0] == certs.size[0] == len(data.x)
    assert certs.share(at=[len(data.x), len(data.x) + 1], change="adds").tolist() == [1, 0]
    assert certs.share(at=[0, 1], change="deletes").tolist() == [1, 0]
    bare = us.certify(us.Votes.from_counts([[400, 0]], us.Hide(0.99, 0.9), 5, ones=0), alpha=0.01)
    assert bare.share(at=[5, 6], change="adds").tolist() == [1, 0]


class Gathered(nn.Module):
    """Attention over the whole graph that falls off with the size of features: a giant would not be heard."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 3)

    def forward(self, x, edge_index):
        weight = torch.softmax(-x.pow(2).sum(dim=1), dim=0)
        return self.conv(x, edge_index) + (weight[:, None] * x).sum(dim=0)[:3]


class Worded(nn.Module):
    """Features are numbers of words, and the largest of all nodes is read: copies of nodes would not change it."""

    def __init__(self):
        super().__init__()
        self.word, self.conv = nn.Embedding(40, 4), GCNConv(4, 3)

    def forward(self, x, edge_index):
        h = self.word(x)
        return self.conv(h, edge_index) + h.amax(dim=0)[:3]


@pytest.mark.parametrize(
    ("model", "x"), [(Gathered, torch.arange(48.0).view(12, 4).cos()), (Worded, torch.arange(12))]
)
def test_what_reads_all_nodes_is_noticed_even_where_strangers_are_not(model, x):
    torch.manual_seed(0)
    ring = torch.stack([torch.arange(12), torch.arange(1, 13) % 12])
    data = Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    with pytest.raises(UnsoundModel, match="nobody is joined"):
        us.poll(model().eval(), Inject(data, [0, 1]), us.Hide(nodes=0.5, edges=0.5), samples=10)
