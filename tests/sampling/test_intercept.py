"""Nodes that lie about their features: every coin of the noise, every set of liars, asked of the model itself."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, GraphSAGE

import unswayed as us
from unswayed.errors import DoubtfulSetting, InputError, Unsupported
from unswayed.sampling.masked import Masked
from unswayed.sampling.question import Question
from unswayed.sampling.threats.intercept import paths_to

SHAPE = [(0, 1), (1, 2), (1, 3), (3, 4)]  # the target is 1


def graph(x, pairs=SHAPE) -> Data:
    ends = torch.tensor(pairs).T
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def every_coin(model, data, noise, hops=2, target=1):
    """Exact probabilities of each label: the model asked about every noisy graph."""
    threat = us.Intercept(data, [target], hops=hops)
    layout, asked = threat.layout(0), threat.asks(model).eval()
    coins, n = torch.tensor(list(product([False, True], repeat=len(layout.clean)))), layout.graph.num_nodes
    batch = torch.arange(len(coins)).repeat_interleave(n)
    with torch.no_grad():
        out = asked(layout.graph.x.repeat(len(coins), 1), layout.listed(layout.clean ^ coins), batch)
    labels = out.view(len(coins), n, -1)[:, 0].argmax(dim=1).tolist()
    edges = int(layout.clean.sum())
    chance: dict[int, Fraction] = {}
    for label, lost, masked in zip(
        labels, coins[:, :edges].sum(1).tolist(), coins[:, edges:].sum(1).tolist(), strict=True
    ):
        p = _power(Fraction(noise.edges), lost, edges) * _power(
            Fraction(noise.features), masked, len(layout.clean) - edges
        )
        chance[label] = chance.get(label, 0) + p
    return chance


def _power(p, some, of):
    return p**some * (1 - p) ** (of - some)


class Pools(nn.Module):
    """Adds up all features, wherever they are: message passing it is not."""

    def forward(self, x, edge_index, batch):
        total = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x.sum(dim=1))[batch]
        return torch.stack([total - 1.5, 1.5 - total], dim=1)


class Watches(nn.Module):
    """Says 1 where anything strange is anywhere to be seen."""

    def forward(self, x, edge_index, batch):
        strange = (x.abs() > 50).any(dim=1).float()
        strange = torch.zeros(int(batch.max()) + 1).index_add(0, batch, strange)[batch].clamp(max=1)
        return torch.stack([0.5 - strange, strange], dim=1)


@pytest.mark.parametrize(
    ("noise", "own"),
    [
        (us.Mask(features=0.875, edges=0.5), True),
        (us.Mask(features=0.5, edges=0.875), False),
        (us.Mask(0.9375, 0), True),
    ],
)
@pytest.mark.parametrize("kind", [Pools, Watches, GCN, GIN])
def test_no_lie_that_is_covered_changes_the_exact_smoothed_label(kind, noise, own):
    torch.manual_seed(1)
    model = kind() if kind in (Pools, Watches) else kind(2, 4, 2, 2)
    x = torch.rand(5, 2)
    chance = every_coin(model, graph(x), noise)
    label = max(chance, key=lambda c: chance[c])
    top, rest = chance[label], max((p for c, p in chance.items() if c != label), default=Fraction(0))
    threat = us.Intercept(graph(x), [1], own=own)
    met = threat.noticed(noise)[0]
    covered = sum(1 for bound in met if top - rest > 2 * Fraction(float(bound))) - 1
    liars = [v for v in range(5) if own or v != 1]
    for count in range(1, min(covered, 2) + 1):
        for chosen, size in product(combinations(liars, count), (-100.0, 100.0)):
            lied = x.clone()
            lied[list(chosen)] = size
            after = every_coin(model, graph(lied), noise)
            assert all(after.get(label, 0) > p for c, p in after.items() if c != label)
    if kind is Watches:  # it is as wrong as any model can be: what is claimed to be seen at most, is seen
        assert covered >= 1
        worst = max(every_coin(model, graph(_lied(x, v)), noise).get(1, 0) for v in liars)
        assert worst <= Fraction(float(met[1]))
        assert float(worst) == pytest.approx(met[1], abs=1e-12)


def _lied(x, v):
    lied = x.clone()
    lied[v] = 100.0
    return lied


@pytest.mark.parametrize("make", [GCN, GraphSAGE, GIN])
def test_without_masks_in_sight_the_answer_is_the_models_own(make):
    """Two layers see two hops, so surroundings of two hops change nothing; degrees count at every node in sight."""
    torch.manual_seed(0)
    pairs = [(i, j) for i, j in combinations(range(14), 2) if torch.rand(()) < 0.2]
    data, model = graph(torch.randn(14, 3), [*pairs, (12, 13)]), make(3, 8, 2, 4).eval()
    with torch.no_grad():
        whole = model(data.x, data.edge_index)
        threat = us.Intercept(data, range(14))
        for target in range(14):
            layout = threat.layout(target)
            index = layout.listed(layout.clean[None])
            batch = torch.zeros(layout.graph.num_nodes, dtype=torch.int64)
            out = Masked(model, 2)(layout.graph.x, index, batch)[0]
            assert torch.allclose(out, whole[target], atol=1e-5)


def test_paths_are_those_that_meet_no_node_twice():
    torch.manual_seed(3)
    pairs = [(i, j) for i, j in combinations(range(8), 2) if torch.rand(()) < 0.45]
    threat = us.Intercept(graph(torch.randn(8, 1), pairs), [0, 5], hops=3)
    counted = paths_to(threat.joins, threat.targets, 4)
    links = {frozenset(pair) for pair in pairs}
    for place, target in enumerate((0, 5)):
        for node in set(range(8)) - {target}:
            for hops in range(1, 5):
                between = product(set(range(8)) - {node, target}, repeat=hops - 1)
                chains = [(node, *mid, target) for mid in between if len(set(mid)) == hops - 1]
                paths = sum(all(frozenset(step) in links for step in pairwise(c)) for c in chains)
                assert (
                    counted[place, node, hops - 1] == paths if hops < 4 else counted[place, node, 3] >= paths
                )


def small():
    torch.manual_seed(0)
    data = graph(torch.randn(5, 3))
    return data, GraphSAGE(3, 4, 2, 2).eval()


def test_votes_are_those_of_the_enumerated_law():
    data, model = small()
    threat, noise = us.Intercept(data, [1, 4]), us.Mask(features=0.5, edges=0.25)
    votes = us.poll(model, threat, noise, samples=4000, progress=False)
    for place, target in enumerate((1, 4)):
        chance = every_coin(model, data, noise, target=target)
        for label in range(2):
            assert votes.counts[place, label] / 4000 == pytest.approx(float(chance.get(label, 0)), abs=0.05)


def test_certificates_count_liars_and_say_so():
    data, model = small()
    threat, noise = us.Intercept(data, range(5), own=False), us.Mask(features=0.875, edges=0.75)
    votes = us.poll(model, threat, noise, samples=2000, progress=False)
    certs = us.certify_intercepted(votes, threat, alpha=0.01, family=True)
    assert certs.size.max() > 0
    assert np.array_equal(certs.sizes("adds"), certs.size)
    assert certs.sizes("deletes").max() == 0
    assert np.array_equal(certs.grid(2, 1)[:, 2, 1], certs.size >= 2)
    best = int(certs.size.argmax())
    assert "features" in certs.statement(best)
    assert certs.ceiling >= certs.size[best]
    assert certs.explanation(best).facts["ceiling"] >= certs.size[best]
    assert np.array_equal(certs[[best]].met, certs.met[[best]])
    threat = us.Intercept(data, range(5))
    whole = us.certify_intercepted(
        us.poll(model, threat, noise, samples=2000, progress=False), threat, alpha=0.01, family=True
    )
    assert whole.shared(1) == int(((whole.size < 1) & ~whole.abstained).sum())


class Selfish(nn.Module):
    """A node's own features decide, and nobody else's."""

    def forward(self, x, edge_index):
        return torch.cat([x + 0.1, -x], dim=1)


def test_who_is_taken_for_honest_may_be_the_liar():
    """One node that lies about itself flips its own label, which no certificate that takes it for honest covers."""
    noise, honest = us.Mask(features=0.25, edges=0.75), torch.ones(5, 1)
    lying = honest.index_fill(0, torch.tensor([1]), -1.0)
    chances = [every_coin(Selfish(), graph(x), noise) for x in (honest, lying)]
    assert [max(chance, key=chance.get) for chance in chances] == [0, 1]
    for own in (True, False):
        threat = us.Intercept(graph(honest), range(5), own=own)
        votes = us.poll(Selfish(), threat, noise, samples=2000, progress=False)
        certs = us.certify_intercepted(votes, threat, family=True)
        assert certs.size.tolist() == [0 if own else 4] * 5
        assert ("up to 4 other nodes" in certs.statement(1)) == (not own)
        if own:
            assert certs.shared(1) == 5
        else:
            with pytest.raises(Unsupported, match="honest"):
                certs.shared(1)


def test_targets_keep_their_own_surroundings_in_any_order():
    data, model = small()
    threat, noise = us.Intercept(data, [1, 0, 4], own=False), us.Mask(features=0.75, edges=0.5)
    votes = us.poll(model, threat, noise, samples=500, progress=False)
    certs = us.certify_intercepted(votes, threat, alpha=0.01)
    assert len(np.unique(certs.met, axis=0)) == 3
    for order in ([2, 0, 1], [1, 2], [0, 0]):
        picked = us.certify_intercepted(votes.take(np.array(order)), threat, alpha=0.01)
        assert np.array_equal(picked.met, certs.met[order])
        assert np.array_equal(picked.size, certs.size[order])


def test_what_cannot_be_asked_is_refused(tmp_path):
    data, model = small()
    threat, noise = us.Intercept(data, [1]), us.Mask(features=0.5, edges=0.5)
    votes = us.poll(model, threat, noise, samples=50, progress=False)
    certs = us.certify_intercepted(votes, threat, alpha=0.1)
    certs.save(tmp_path / "lies.npz")
    assert np.array_equal(us.load(tmp_path / "lies.npz").met, certs.met)
    with pytest.raises(Unsupported, match="certify_intercepted"):
        us.certify(votes)
    with pytest.raises(InputError, match="another threat"):
        us.certify_intercepted(votes, us.Intercept(data, [2]))
    with pytest.warns(DoubtfulSetting, match="alpha"):
        us.certify_intercepted(votes, threat, alpha=0.2)
    with pytest.raises(InputError, match="another threat"):
        us.certify_intercepted(votes, us.Intercept(data, [1], hops=1))
    with pytest.raises(InputError, match="noise for the threat"):
        us.poll(model, us.Row(data, [1]), noise, samples=5)
    with pytest.raises(InputError, match="hops"):
        us.Intercept(data, [1], hops=0)
    with pytest.raises(InputError, match="no features"):
        us.Intercept(Data(edge_index=data.edge_index, num_nodes=5), [1])
    with pytest.raises(Unsupported, match="forward"):
        us.poll(lambda z: z, threat, noise, samples=5)


def test_a_question_asked_again_wraps_the_model_once():
    data, model = small()
    threat = us.Intercept(data, [1])
    question = Question(model=model, threat=threat, noise=us.Mask(0.5, 0.5))
    assert threat.asks(question.model) is question.model


@pytest.mark.parametrize("noise", [us.Flip(0.7), us.AddDelete(p_add=0.3, p_delete=0.3), us.AddDelete(0, 0.5)])
def test_noise_that_masks_nothing_says_nothing_of_liars(noise):
    """Links that come and go leave a node's own features in sight: no number of samples proves that they may be rewritten."""
    threat = us.Intercept(graph(torch.ones(5, 1)), range(5))
    with pytest.raises(InputError, match="Mask"):
        us.poll(Selfish(), threat, noise, samples=50, progress=False)
    votes = us.Votes.from_counts([[2_000, 0]] * 5, noise, 5, provenance={"threat": threat.describe()})
    with pytest.raises(InputError, match="counts nodes"):
        us.certify(votes)
