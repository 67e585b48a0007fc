"""Meanings of labels: read off known ones, exact in proofs, and used where like does not go with like alone."""

from math import log

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.labels import unlike
from unswayed.ballots.links import Links
from unswayed.ballots.meaning import suited
from unswayed.errors import DoubtfulSetting, InputError

from .cases import awakened, random_graph, some_known
from .test_networks import neighbours, slow_label_ballot


def market(seed: int = 0, nodes: int = 200) -> Data:
    """Two kinds of people, who deal mostly with the other kind."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % 2
    chance = torch.where(y[:, None] == y, 0.02, 0.12)
    half = torch.triu(torch.rand(nodes, nodes, generator=generator) < chance, 1).nonzero().t()
    return Data(x=torch.ones(nodes, 1), edge_index=torch.cat([half, half.flip(0)], dim=1), y=y)


def told(data: Data, every: int = 3) -> torch.Tensor:
    return torch.where(torch.arange(data.num_nodes) % every == 0, data.y, -1)


def slow_meaning(data, known, classes, n):
    """The definition, by loops."""
    around, known = neighbours(data.edge_index, n), known.tolist()
    tables = []
    for sure in (True, False):
        together = np.zeros((classes, classes))
        for u in range(n):
            for v in around[u] if known[u] >= 0 else ():
                if known[v] >= 0 or not sure:  # hearsay is what v would say were its own label not known
                    heard = known if sure else [*known[:v], -1, *known[v + 1 :]]
                    together[:, known[u]] += slow_label_ballot(v, u, around, heard, classes)
        usual = together.sum(axis=1) / max(together.sum(), 1e-300)
        table = np.zeros((classes, classes))
        for a in range(classes):
            if together[a].sum() < 1:
                continue
            row = [
                log((together[a, c] + 10 * usual[a]) / (together[:, c].sum() + 10) / usual[a])
                for c in range(classes)
            ]
            spread = max(row) - min(row)
            table[a] = (np.array(row) - np.mean(row)) / spread if spread > 0 else 0
        tables.append(table)
    return np.array(tables)


@pytest.mark.parametrize("seed", range(12))
def test_a_meaning_is_what_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    data, classes = random_graph(rng, 12), int(rng.integers(2, 4))
    known = some_known(rng, 12, classes)
    found = us.meaning_of(data, known, classes)
    assert found.numpy() == pytest.approx(slow_meaning(data, known, classes, 12), abs=1e-9)
    assert float(found.abs().max()) <= 1


@pytest.mark.parametrize("voters", ["labels", "two-hop", "features"])
@pytest.mark.parametrize("seed", range(6))
def test_sizes_with_meanings_are_exact(seed, voters):
    """Every change of a row, asked of the model itself: none of at most K moves the answer, and the witness does."""
    rng = np.random.default_rng(seed)
    data, classes, n = random_graph(rng, 7), 3, 7
    known, meaning = some_known(rng, n, classes), torch.tensor(rng.uniform(-1, 1, (2, classes, classes)))
    if voters == "labels":
        net = us.LabelBallots(classes, meaning=meaning)
    else:
        net = awakened(us.BallotNetwork(3, classes, voters=voters, meaning=meaning), seed)
    net.freeze(data, known=known)
    proofs = us.prove(net, us.Row(data, torch.arange(n)))
    for u in range(n):
        others = [v for v in range(n) if v != u]
        clean = {v for a, v in data.edge_index.T.tolist() if a == u}
        rest = data.edge_index[:, (data.edge_index != u).all(dim=0)]
        fewest = None
        for mask in range(2 ** len(others)):
            changed = {v for place, v in enumerate(others) if mask >> place & 1}
            row = torch.tensor([[u, v] for v in sorted(clean ^ changed)], dtype=torch.int64).reshape(-1, 2).T
            label = int(net(data.x, torch.cat([rest, row, row.flip(0)], dim=1))[u].argmax())
            if label != proofs.label[u]:
                fewest = min(len(changed), n if fewest is None else fewest)
        assert proofs.size[u] == (len(others) if fewest is None else fewest - 1)
        assert (proofs.witness(u) is None) == (fewest is None)


def test_where_like_goes_with_like_labels_are_taken_at_their_word():
    data = market()
    known = told(data)
    assert unlike(Links.of(data), known)
    assert suited(data, known, 2).meaning is not None
    alike = Data(x=data.x, edge_index=data.edge_index, y=(torch.arange(200) < 100).long())
    inside = alike.y[data.edge_index[0]] == alike.y[data.edge_index[1]]
    alike.edge_index = data.edge_index[:, inside]
    assert not unlike(Links.of(alike), told(alike))
    assert suited(alike, told(alike), 2).meaning is None
    assert not unlike(Links.of(data), torch.full((200,), -1))


def test_a_market_is_proved_by_what_labels_mean_and_the_prospect_says_so():
    data = market()
    known = told(data)
    nodes = (known < 0).nonzero()[:, 0]
    truth = data.y[nodes].numpy()
    at = [0, 1, 3]
    with pytest.warns(DoubtfulSetting, match="meaning=us.meaning_of"):
        taken = us.LabelBallots(2).freeze(data, known=known)
    plain = us.prove(taken, us.Row(data, nodes)).accuracy(truth, at=at)
    model = us.LabelBallots(2, meaning=us.meaning_of(data, known)).freeze(data, known=known)
    meant = us.prove(model, us.Row(data, nodes)).accuracy(truth, at=at)
    assert (meant > plain + 0.1).all()
    ahead = us.prospect(data, known)
    assert ahead.unlike
    assert ahead.base > 0.9
    assert "other labels more often" in str(ahead)
    assert ahead.to_dict()["unlike"]


def test_meanings_are_saved_with_the_weights_and_older_weights_have_none(tmp_path):
    data = market()
    known = told(data)
    net = awakened(us.BallotNetwork(1, 2, voters="two-hop", meaning=us.meaning_of(data, known)))
    net.freeze(data, known=known)
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    other = us.BallotNetwork(1, 2, voters="two-hop").eval()
    older = other.state_dict()
    assert "meaning" not in older
    other.load_state_dict(load_file(tmp_path / "net.safetensors"))
    assert torch.equal(other(data.x, data.edge_index), net(data.x, data.edge_index))
    assert torch.equal(other.thaw().freeze(data, known=known).ballot_table, net.ballot_table)
    assert "meaning" in repr(other)
    other.load_state_dict(older)
    assert other.meaning is None


@pytest.mark.parametrize("meaning", [torch.eye(3), torch.full((2, 3, 3), torch.nan), 2 * torch.ones(2, 3, 3)])
def test_what_is_no_meaning_is_refused(meaning):
    with pytest.raises(InputError, match="meaning_of"):
        us.LabelBallots(3, meaning=meaning)


def test_without_a_known_label_there_is_nothing_to_read_a_meaning_off():
    data = market()
    with pytest.raises(InputError, match="there is none"):
        us.meaning_of(data, torch.full((200,), -1), 2)


def test_what_hearsay_means_is_known_also_where_every_label_is():
    data = market()
    known, heard = us.meaning_of(data, data.y)
    assert torch.equal(known.sign(), torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
    assert torch.equal(heard.sign(), -known.sign())  # who deals with my kind is of the other
