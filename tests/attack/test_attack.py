"""Attacks against the smoothed classifier: the judge is held to real attacked graphs, the searches to known answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv, SimpleConv, global_add_pool

import unswayed as us
from unswayed.attack import KINDS, attack
from unswayed.attack.judge import AttackedStream, Judge
from unswayed.attack.proposals import Field, project
from unswayed.attack.scorers import AskingScorer, Scorers
from unswayed.errors import DoubtfulSetting, InputError, Unsupported
from unswayed.sampling.question import Question
from unswayed.sampling.stream import Stream
from unswayed.sampling.structures import noisy

NOISES = [us.Flip(beta=0.7), us.AddDelete(p_add=0.1, p_delete=0.4)]


class Net(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = first(5, 8), second(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Mean(torch.nn.Module):
    """Linear, then the mean over the node and its neighbours."""

    def __init__(self, wide, narrow):
        super().__init__()
        self.lin, self.conv = torch.nn.Linear(wide, narrow), SimpleConv("mean", combine_root="self_loop")

    def forward(self, x, edge_index):
        return self.conv(self.lin(x), edge_index)


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.conv, self.lin = SAGEConv(3, 6), torch.nn.Linear(6, 2)

    def forward(self, x, edge_index, batch):
        return self.lin(global_add_pool(self.conv(x, edge_index).relu(), batch))


class Degree(torch.nn.Module):
    """Class 1 iff the node has more than `least` neighbours: every addition counts the same."""

    def __init__(self, least):
        super().__init__()
        self.conv, self.lin = SimpleConv("sum"), torch.nn.Linear(1, 2)
        with torch.no_grad():
            self.lin.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            self.lin.bias.copy_(torch.tensor([least + 0.5, -least - 0.5]))

    def forward(self, x, edge_index):
        return self.lin(self.conv(x, edge_index))


def graph(n=12, seed=0, features=5):
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((n, n)) < 0.3, 1)
    edges = torch.tensor(np.array(np.nonzero(upper | upper.T)))
    return Data(x=torch.tensor(random.normal(size=(n, features)), dtype=torch.float32), edge_index=edges)


def toggled(data, pairs):
    """The graph with these edges added or deleted: built by hand, edge by edge."""
    edges = {tuple(sorted(edge)) for edge in data.edge_index.T.tolist()}
    for pair in pairs:
        edges ^= {tuple(sorted(pair))}
    both = [*edges, *[(b, a) for a, b in edges]]
    return Data(x=data.x, edge_index=torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T)


def settled(model, threat, noise, samples=2000):
    return us.certify(us.poll(model, threat, noise, samples=samples), alpha=0.01)


class Shy(torch.nn.Module):
    """Label 0, or no answer where a node has more than `most` neighbours; label 1 is never given."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x, edge_index):
        links = torch.zeros(len(x)).index_add(0, edge_index[0], torch.ones(edge_index.shape[1]))
        out = torch.stack([torch.ones(len(x)), torch.zeros(len(x))], dim=1)
        return torch.where(links[:, None] > self.most, torch.nan, out)


class TestJudge:
    @pytest.mark.parametrize("noise", NOISES)
    def test_votes_on_an_attacked_row_are_those_of_the_attacked_graph(self, noise):
        data, model = graph(), Net(SAGEConv, GCNConv).eval()
        judge = Judge(Question(model, us.Row(data, [4, 7]), noise, seed=11), samples=1000)
        changed = toggled(data, [(7, v) for v in (0, 2, 9)])
        real = us.poll(
            model, us.Row(changed, [7]), noise, samples=300, seed=11, purpose="select", shared=False
        )
        assert judge.counts(1, [0, 2, 9], 0, 300)[:-1].tolist() == real.counts[0].tolist()
        clean = us.poll(model, us.Row(data, [7]), noise, samples=300, seed=11, purpose="select", shared=False)
        assert judge.counts(1, [], 0, 300)[:-1].tolist() == clean.counts[0].tolist()
        assert clean.counts.tolist() != real.counts.tolist()

    @pytest.mark.parametrize("noise", NOISES)
    def test_votes_on_attacked_pairs_are_those_of_the_attacked_graph(self, noise):
        data, model = graph(8, features=3), Pooled().eval()
        threat = us.AllPairs([graph(6, 1, 3), data])
        judge = Judge(Question(model, threat, noise, seed=2), samples=1000)
        pairs, entries = threat.pairs_of(1), [3, 10, 11, 20]
        changed = toggled(data, [tuple(pairs[:, e].tolist()) for e in entries])
        real = us.poll(
            model,
            us.AllPairs([graph(6, 1, 3), changed]),
            noise,
            samples=300,
            seed=2,
            purpose="select",
            shared=False,
        )
        assert judge.counts(1, entries, 0, 300)[:-1].tolist() == real.counts[1].tolist()

    @pytest.mark.parametrize("noise", NOISES)
    def test_a_question_built_anew_gives_the_same_votes(self, noise):
        data, model, whole = graph(), Net(SAGEConv, GCNConv).eval(), Pooled().eval()
        small = [graph(6, 1, 3), graph(8, features=3)]
        pairs, moved = [(0, 1), (4, 7), (2, 9), (3, 4)], 0
        for asked, threat, target, entries in (
            (model, us.Row(data, [4, 7]), 1, [0, 2, 9]),
            (model, us.AllPairs(data, [4, 7]), 1, [0, 2, 9, 40]),
            (model, us.Pairs(data, pairs, [4, 7]), 1, [1, 2]),
            (whole, us.AllPairs(small), 1, [3, 10, 11, 20]),
            (whole, us.Pairs(small[1], [(0, 1), (4, 7)]), 0, [1]),
            (lambda rows: rows[:, :3].sum(axis=1) >= 2, us.Bits([[0, 1, 1, 0], [1, 0, 0, 0]]), 1, [1, 3]),
        ):
            question = Question(asked, threat, noise, seed=2, classes=2 if threat.kind == "bits" else None)
            judge = Judge(question, samples=1000)
            fresh = judge.afresh(target, entries)(0, 200)
            assert fresh.tolist() == judge.counts(target, entries, 0, 200).tolist()
            moved += fresh.tolist() != judge.counts(target, [], 0, 200).tolist()
            attacked, vector = threat.attacked(target, torch.tensor(entries)), threat.clean(target).clone()
            vector[entries] ^= True
            assert torch.equal(attacked.clean(0), vector)
            assert (attacked.targets[0], attacked.ones[0]) == (threat.targets[target], int(vector.sum()))
        assert moved >= 4

    def test_an_engine_that_remembers_the_clean_graph_is_found_out(self, monkeypatch):
        class Remembering:
            """Says 0 as long as it was made for a node without neighbours."""

            classes = 2

            def __init__(self, question):
                self.said = int(question.threat.ones[0] > 0)

            def count(self, start, stop, targets):
                return np.eye(2, dtype=np.int64)[[self.said]] * (stop - start)

        monkeypatch.setattr("unswayed.attack.judge.choose", Remembering)
        data = Data(x=torch.ones(10, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
        judge = Judge(Question(Degree(3), us.Row(data, [2]), NOISES[0]), samples=1000)
        assert [judge.changed(0, 0, [5]) for _ in range(5)] == [True, False, False, False, True]
        assert (judge.asked, judge.rebuilt) == (5, 2)

    def test_attacking_twice_the_same_stream_is_the_stream(self):
        noise, plain = us.AddDelete(p_add=0.1, p_delete=0.4), Stream(3)
        attacked = AttackedStream(3, "certify", {5: torch.tensor([1, 2])})
        clean = torch.tensor([False, True, False, True])
        other = clean.clone()
        other[[1, 2]] ^= True
        seen = noisy(clean, attacked.flips(0, 50, 4, noise, target=5))
        assert torch.equal(seen, noisy(other, plain.flips(0, 50, 4, noise, target=5)))
        assert torch.equal(
            attacked.flips(0, 9, 4, noise, target=6)[0], plain.flips(0, 9, 4, noise, target=6)[0]
        )

    def test_verdicts_need_separated_bounds(self):
        judge = Judge(Question(Net(GCNConv, GCNConv), us.Row(graph(), [0]), NOISES[0]), samples=1000)
        assert judge.verdict(np.array([900, 100, 0, 0]), label=0) is False
        assert judge.verdict(np.array([900, 100, 0, 0]), label=1) is True
        assert judge.verdict(np.array([520, 480, 0, 0]), label=1) is None
        assert judge.verdict(np.array([100, 0, 0, 900]), label=0) is True  # "no answer" is another outcome


class TestScorers:
    @pytest.mark.parametrize(
        "model",
        [Net(GCNConv, GCNConv), Net(SAGEConv, SAGEConv), Net(Mean, Mean)],
        ids=["gcn", "sage", "mean"],
    )
    def test_rows_score_as_the_module_itself_does(self, model):
        question = Question(model.eval(), us.Row(graph(), [2, 5]), NOISES[0])
        scorers = Scorers(question)
        assert scorers.obstacle is None
        vectors = torch.rand(9, 12, generator=torch.Generator().manual_seed(0)) < 0.4
        vectors[:, 5] = False
        torch.testing.assert_close(
            scorers.of(1)(vectors), AskingScorer(question, 1)(vectors), rtol=1e-4, atol=1e-5
        )

    def test_graphs_score_as_the_module_itself_does(self):
        question = Question(Pooled().eval(), us.AllPairs([graph(7, 1, 3)]), NOISES[0])
        vectors = torch.rand(9, 21, generator=torch.Generator().manual_seed(0)) < 0.4
        torch.testing.assert_close(
            Scorers(question).of(0)(vectors), AskingScorer(question, 0)(vectors), rtol=1e-4, atol=1e-5
        )

    def test_row_gradients_are_finite_differences(self):
        question = Question(Net(GCNConv, GCNConv).eval(), us.Row(graph(), [5]), NOISES[0])
        score = Scorers(question).of(0)
        row = torch.full((1, 12), 0.5, requires_grad=True)
        (slope,) = torch.autograd.grad(score(row)[0, 0], row)
        step = torch.zeros(1, 12)
        step[0, 3] = 1e-2
        numeric = (score(row + step) - score(row - step))[0, 0] / 2e-2
        assert slope[0, 3].item() == pytest.approx(numeric.item(), abs=1e-3)
        assert slope[0, 5] == 0  # the node's own entry is none


class TestAttacks:
    def test_nothing_succeeds_within_and_something_beyond(self):
        data, model = graph(14, 5), Net(SAGEConv, SAGEConv).eval()
        threat = us.Row(data, list(range(6)))
        certs = settled(model, threat, us.Flip(beta=0.8))
        found = attack(model, threat, certs, attempts=3, samples=3000, seed=1)
        assert found.sound
        assert found.judged > 4 * (found.rebuilt - 1) > 0
        assert np.all(found.attempts[certs.size >= 1] == 3)
        assert np.all(found.attempts[certs.size < 1] == 0)
        hit = found.attacked >= 0
        assert hit.any()
        assert np.all(found.attacked[hit] > certs.size[hit])
        assert np.all(found.gap >= 0)
        assert all((kind in KINDS) == bool(h) for kind, h in zip(found.by, hit, strict=True))

    @pytest.mark.parametrize("training", [True, False])
    def test_the_model_is_left_in_the_mode_it_came_in(self, training):
        model, threat = Net(SAGEConv, SAGEConv).train(training), us.Row(graph(14, 5), [0])
        model.first.train(not training)
        modes = [module.training for module in model.modules()]
        attack(model, threat, settled(model, threat, us.Flip(beta=0.8), 200), samples=200)
        Scorers(Question(model, threat, NOISES[0]))
        assert [module.training for module in model.modules()] == modes

    def test_graphs(self):
        threat = us.AllPairs([graph(6, seed, 3) for seed in range(3)])
        model = Pooled().eval()
        certs = settled(model, threat, us.Flip(beta=0.8), 500)
        found = attack(model, threat, certs, samples=500)
        assert found.sound
        assert np.all((found.attacked < 0) | (found.attacked > certs.size))

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_the_true_radius_is_known_and_every_attack_respects_it(self, kind):
        # beta near 1, no neighbours, class 1 needs more than 3 of them: 4 additions change the smoothed label, 3 do not
        data = Data(x=torch.ones(10, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
        model, threat = Degree(3), us.Row(data, [2])
        certs = settled(model, threat, us.Flip(beta=0.99))
        assert certs.label.tolist() == [0]
        found = attack(model, threat, certs, kinds=[kind], samples=2000)
        assert found.sound
        assert found.attacked.tolist() == [4]

    def test_a_false_certificate_is_found_out(self):
        data = Data(x=torch.ones(10, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
        model, threat = Degree(3), us.Row(data, [2])
        certs = settled(model, threat, us.Flip(beta=0.99))
        lie = replace(certs, size=np.array([5]))
        found = attack(model, threat, lie, samples=1000, beyond=False)
        assert not found.sound
        assert {breach.kind for breach in found.breaches} == set(KINDS)
        assert all(breach.target == 2 and len(breach.entries) == 5 for breach in found.breaches)

    def test_a_classifier_without_gradients_is_attacked_all_the_same(self):
        def parity(rows):
            return (rows[:, :3].sum(axis=1) >= 2).astype(int)

        threat = us.Bits([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
        certs = us.certify(us.poll(parity, threat, us.Flip(beta=0.9), samples=3000, classes=2), alpha=0.01)
        with pytest.raises(Unsupported, match="No gradient attack"):
            attack(parity, threat, certs, kinds=["gradient"])
        with pytest.warns(DoubtfulSetting, match="No gradient attack is tried"):
            found = attack(parity, threat, certs, samples=2000)
        assert set(found.kinds) == {"greedy", "random"}
        assert found.sound
        assert found.attacked.tolist() == [2, 2]

    def test_equal_seeds_give_equal_attacks(self):
        threat, model = us.Row(graph(14, 5), [0, 1]), Net(SAGEConv, SAGEConv).eval()
        certs = settled(model, threat, us.Flip(beta=0.8), 500)
        first, second = (attack(model, threat, certs, samples=500, seed=4) for _ in range(2))
        assert first.attacked.tolist() == second.attacked.tolist()
        assert first.by == second.by

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"kinds": ["clever"]}, "no attack 'clever'"),
            ({"attempts": -1}, "attempts"),
            ({"samples": 10}, "samples"),
        ],
    )
    def test_impossible_settings_are_refused(self, wrong, message):
        threat, model = us.Row(graph(), [0]), Net(SAGEConv, SAGEConv).eval()
        certs = settled(model, threat, us.Flip(beta=0.8), 200)
        with pytest.raises(InputError, match=message):
            attack(model, threat, certs, **wrong)

    def test_certificates_of_other_targets_are_refused(self):
        model = Net(SAGEConv, SAGEConv).eval()
        certs = settled(model, us.Row(graph(), [0]), us.Flip(beta=0.8), 200)
        with pytest.raises(InputError, match="other targets"):
            attack(model, us.Row(graph(), [1]), certs)


class TestSearch:
    def test_projection_is_the_nearest_point(self):
        weight = torch.tensor([0.9, 0.8, -0.3, 2.0])
        near = project(weight, 1.5)
        assert near.sum().item() == pytest.approx(1.5, abs=1e-5)
        assert near.min() >= 0
        assert near.max() <= 1
        grid = torch.cartesian_prod(*[torch.linspace(0, 1, 11)] * 4)
        feasible = grid[grid.sum(dim=1) <= 1.5]
        assert (near - weight).norm() <= (feasible - weight).norm(dim=1).min() + 1e-5
        assert torch.equal(project(torch.tensor([0.2, 0.1]), 1.0), torch.tensor([0.2, 0.1]))

    @pytest.mark.parametrize("kind", sorted(KINDS))
    @pytest.mark.parametrize("budget", [1, 3, 11])
    def test_proposals_are_distinct_free_entries_within_the_budget(self, kind, budget):
        question = Question(Net(SAGEConv, SAGEConv).eval(), us.Row(graph(), [5]), NOISES[0])
        free = torch.tensor([v for v in range(12) if v != 5])
        random = torch.Generator().manual_seed(0)
        field = Field(
            Scorers(question).of(0),
            question.threat.clean(0),
            free,
            1,
            NOISES[0],
            Stream(0, "train"),
            5,
            random,
        )
        entries = KINDS[kind](field, budget).tolist()
        assert 0 < len(entries) == len(set(entries)) <= budget
        assert 5 not in entries


class TestWhatIsAttacked:
    """An attack is of what the certificates say, or it is refused: "none succeeded" of something else says nothing."""

    def test_silence_moves_no_label_that_has_to_beat_labels_alone(self):
        model, threat = Shy(6), us.Row(graph(), [4])
        votes = us.poll(model, threat, us.Flip(beta=0.9), samples=2000)
        for rivals, falls in (("all", True), ("labels", False)):
            certs = us.certify(votes, rivals=rivals)
            assert certs.size[0] >= 0
            found = attack(model, threat, certs, kinds=["random", "greedy"], samples=1000)
            assert (found.attacked[0] >= 0) == falls

    def test_certificates_of_another_model_or_threat_are_refused(self):
        data, model = graph(), Net(SAGEConv, SAGEConv).eval()
        threat = us.Row(data, [4])
        certs = settled(model, threat, us.Flip(beta=0.8), 300)
        with pytest.raises(InputError, match="of another model"):
            attack(Net(SAGEConv, GCNConv).eval(), threat, certs)
        for other in (us.AllPairs(data, [4]), us.Row(toggled(data, [(0, 1)]), [4])):
            with pytest.raises(InputError, match="of another threat"):
                attack(model, other, certs)
        both = settled(model, us.Row(data, [4, 7]), us.Flip(beta=0.8), 300)
        assert attack(model, us.Row(data, [7]), both[1], samples=200, beyond=False).sound

    def test_other_promises_than_a_label_against_changed_entries_are_refused(self):
        model, threat = Net(SAGEConv, SAGEConv).eval(), us.Row(graph(), [4])
        votes = us.poll(model, threat, us.Flip(beta=0.8), samples=300)
        for other in (us.certify_top(votes, 2), votes, None):
            with pytest.raises(InputError, match="certificates that certify made"):
                attack(model, threat, other)
