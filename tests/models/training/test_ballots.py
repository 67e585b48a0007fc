"""Certified training: what it may see, that it is repeatable, and that it is never worse than what it starts from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

import unswayed as us
from unswayed.ballots.links import Links
from unswayed.ballots.models import Spoken
from unswayed.ballots.networks import BallotNetwork
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError, UnsoundModel
from unswayed.models.training import fit
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.ballots import fit_ballots
from unswayed.models.training.classroom import known_labels, presumed_labels
from unswayed.models.training.worst import Rows, margins, most_against, worst_harm

QUICK = BallotSettings(steps=40, warm_up=10, taus=(2.0,), check_every=20, attack_size=2, distil=False)


def blocks(features: int = 8, seed: int = 0, nodes: int = 120) -> tuple[Dataset, Split]:
    torch.manual_seed(seed)
    y = torch.arange(nodes) % 3
    order = torch.argsort(y, stable=True)
    linked = torch.full((3, 3), 0.03) + 0.22 * torch.eye(3)
    edges = order[stochastic_blockmodel_graph([nodes // 3] * 3, linked)]
    x = (
        torch.randn(nodes, features) + torch.nn.functional.one_hot(y, features)
        if features
        else torch.ones(nodes, 1)
    )
    data = Data(x=x, edge_index=edges, y=y)
    mixed, train, known = torch.randperm(nodes), 3 * nodes // 10, 4 * nodes // 10
    parts = Split(mixed[:train], mixed[train:known], mixed[known:])
    return Dataset("blocks", "node", features, 3, data=data), parts


class TestWorst:
    """The differentiable worst case against every attack there is."""

    @pytest.mark.parametrize("change", ["any", "adds"])
    def test_is_the_largest_harm_of_any_attack(self, change: str) -> None:
        torch.manual_seed(3)
        nodes, classes, size = 6, 3, 2
        edges = torch.tensor([[0, 1, 0, 2, 3, 4], [1, 0, 2, 0, 4, 3]])
        links = Links.of(Data(edge_index=edges, num_nodes=nodes))
        said = torch.randn(nodes, classes)
        spoken = Spoken(torch.randn(nodes, classes), said[links.voter], said)
        (rows,), label = Rows.alike(links.starts(), torch.tensor([0])), torch.tensor([1])
        own, heard = spoken.own[:1], said[links.voter[rows.place]]
        harm = worst_harm(own, heard, most_against(said, size), rows, label, size, change)[0]
        margin = margins(own, heard, rows, label, 2.0)[0]
        for rival in (0, 2):
            least = min(self._margins(spoken, size, change, rival))
            assert float(margin[rival] - harm[rival]) <= least + 1e-5  # never milder than the truth
            twice = float(margin[rival] - harm[rival])
            pessimism = float((said[1:3] - said[1:3, 1:2]).abs().max() + spoken.own[0].abs().max()) * size * 2
            assert twice >= least - pessimism  # neighbours may be counted as newcomers too, no more than that

    def _margins(self, spoken: Spoken, size: int, change: str, rival: int) -> list[float]:
        from itertools import combinations

        found, said, own = [], spoken.newcomers, spoken.own[0]
        for attack in [c for k in range(size + 1) for c in combinations(range(1, 6), k)]:
            if change == "adds" and set(attack) & {1, 2}:
                continue
            row = {1, 2} ^ set(attack)
            score = 2.0 * own + sum((own + said[v] for v in row), start=torch.zeros(3))
            found.append(float(score[1] - score[rival]))
        return found


class TestPresumed:
    def test_nothing_of_the_held_nodes_is_in_what_is_presumed(self) -> None:
        data, split = blocks()
        links, held = Links.of(data.graph), split.test[:20]
        known = known_labels(data.labels, split.train)
        first = presumed_labels(known, links.without(held), us.LabelBallots(3))
        rewired = torch.stack([held, held.roll(1)])
        changed = Data(
            edge_index=torch.cat([data.graph.edge_index, rewired, rewired.flip(0)], 1), num_nodes=120
        )
        second = presumed_labels(known, Links.of(changed).without(held), us.LabelBallots(3))
        assert torch.equal(first, second)
        assert bool((first[held] == -1).all())
        assert int((first >= 0).sum()) > len(split.train)

    def test_a_network_that_presumes_refuses_other_targets(self) -> None:
        data, split = blocks(features=0, seed=1)
        split = replace(split, test=split.test[:30])  # others are there, of whom something can be presumed
        network = fit_ballots(data, split, settings=QUICK, protocol="inductive")
        assert network.seen is not None  # here presuming helps
        us.prove(network, us.Row(data.graph, split.test))
        with pytest.raises(UnsoundModel, match="shaped by links of 36 of the targets"):
            us.prove(network, us.Row(data.graph, split.train))

    def test_a_network_that_may_not_presume_proves_anybody(self) -> None:
        data, split = blocks(features=0, seed=1, nodes=180)
        plain = replace(QUICK, steps=2, presume=False)
        network = fit_ballots(data, split, settings=plain, protocol="inductive")
        assert network.seen is None
        us.prove(network, us.Row(data.graph, split.train))

    def test_a_network_of_a_snapshot_refuses_whom_the_encoder_has_seen(self) -> None:
        data, split = blocks()
        among = torch.isin(data.graph.edge_index, split.train).all(dim=0)
        trusted = Data(x=data.graph.x, edge_index=data.graph.edge_index[:, among])
        voters: Any = us.Snapshot(Heard(), trusted)
        network = fit_ballots(data, split, settings=replace(QUICK, steps=2, voters=voters))
        us.prove(network, us.Row(data.graph, split.test))
        with pytest.raises(UnsoundModel, match="shaped by links"):
            us.prove(network, us.Row(data.graph, split.train))


class Heard(torch.nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return x.index_add(0, edge_index[1], x[edge_index[0]])


class TestFit:
    def test_proves_no_less_on_judges_than_untrained_ballots_and_repeats_itself(self) -> None:
        data, split = blocks()
        settings = replace(QUICK, presume=False)  # so that validation nodes can be proved
        one, two = (fit("ballots", data, split, seed=1, settings=settings) for _ in range(2))
        assert isinstance(one, BallotNetwork)
        assert one.table_hash == two.table_hash
        known = known_labels(data.labels, torch.cat([split.train, split.val]))
        plain = us.LabelBallots(3).freeze(data.graph, known=known)
        threat, truth = us.Row(data.graph, split.val), data.labels[split.val].numpy()
        at = list(QUICK.judged_at)
        trained, before = (us.prove(model, threat) for model in (one, plain))
        assert trained.accuracy(truth, at=at).mean() >= before.accuracy(truth, at=at).mean() - 1e-9

    @pytest.mark.parametrize("features", [0, 8])
    def test_no_test_label_and_inductively_no_test_feature_or_edge_is_read(self, features: int) -> None:
        data, split = blocks(features, nodes=180)
        one = fit_ballots(data, split, protocol="inductive", settings=QUICK)
        graph = data.graph.clone()
        graph.y[split.test] = (graph.y[split.test] + 1) % 3
        graph.x[split.test] = 7.0
        kept = ~torch.isin(graph.edge_index, split.test).any(dim=0)
        graph.edge_index = graph.edge_index[:, kept]
        other = fit_ballots(
            Dataset("blocks", "node", features, 3, data=graph), split, protocol="inductive", settings=QUICK
        )
        weights = zip(one.named_parameters(), other.named_parameters(), strict=True)
        assert all(torch.equal(mine, theirs) for (_, mine), (_, theirs) in weights)
        assert one.tau == other.tau

    def test_far_above_the_floor_where_structure_counts(self) -> None:
        data, split = blocks(features=0)
        proofs = us.prove(fit_ballots(data, split, settings=QUICK), us.Row(data.graph, split.test))
        share = proofs.accuracy(data.labels[split.test].numpy(), at=[0, 2])
        assert share[0] > 0.8
        assert share[1] > 0.5  # the majority is right on a third

    def test_a_graph_without_a_link_in_sight(self) -> None:
        data, split = blocks()
        bare = data.graph.clone()
        bare.edge_index = bare.edge_index[:, torch.isin(bare.edge_index, split.test).any(dim=0)]
        network = fit_ballots(replace(data, data=bare), split, protocol="inductive", settings=QUICK)
        assert network.frozen

    def test_progress_reaches_its_end(self) -> None:
        data, split = blocks()
        told: list[tuple[int, int, str]] = []
        fit_ballots(data, split, settings=QUICK, progress=lambda *now: told.append(now))
        assert told[-1][:2] == (40, 40)
        assert np.all(np.diff([done for done, _, _ in told]) >= 0)

    def test_rare_classes_weigh_as_much_when_balanced(self) -> None:
        data, split = blocks()
        network = fit_ballots(
            data, split, settings=BallotSettings(steps=20, taus=(2.0,), balanced=True, distil=True)
        )
        assert network.frozen

    @pytest.mark.parametrize(
        "wrong",
        [
            {"attack_size": 0},
            {"attack_size": 1.5},
            {"change": "deletes"},
            {"taus": ()},
            {"taus": (0.0,)},
            {"check_every": 0},
            {"steps": 0},
        ],
    )
    def test_settings_refuse_what_they_cannot_do(self, wrong: dict[str, object]) -> None:
        with pytest.raises(InputError):
            BallotSettings(**wrong)  # type: ignore[arg-type]


class TestMeaning:
    """Where like does not go with like, labels speak for those they are met beside."""

    def market(self) -> tuple[Dataset, Split]:
        torch.manual_seed(0)
        y = torch.arange(200) % 2
        order = torch.argsort(y, stable=True)
        edges = order[stochastic_blockmodel_graph([100, 100], torch.tensor([[0.02, 0.12], [0.12, 0.02]]))]
        data, mixed = Data(x=torch.randn(200, 4), edge_index=edges, y=y), torch.randperm(200)
        return Dataset("market", "node", 4, 2, data=data), Split(mixed[:60], mixed[60:90], mixed[90:])

    @pytest.mark.parametrize("protocol", ["transductive", "inductive"])
    def test_a_market_is_proved_where_labels_at_their_word_prove_less(self, protocol: str) -> None:
        dataset, split = self.market()
        truth = dataset.labels[split.test].numpy()

        def proved(settings: BallotSettings) -> float:
            network = fit_ballots(dataset, split, settings=settings, protocol=protocol)
            assert (network.meaning is not None) == settings.meaning
            proofs = us.prove(network, us.Row(dataset.graph, split.test))
            return float(proofs.accuracy(truth, at=[1])[0])

        assert proved(QUICK) > proved(replace(QUICK, meaning=False)) + 0.1

    def test_blocks_of_friends_are_learnt_as_ever(self) -> None:
        dataset, split = blocks()
        with_it, without_it = (
            fit_ballots(dataset, split, settings=replace(QUICK, meaning=meaning)) for meaning in (True, False)
        )
        assert with_it.meaning is None
        assert torch.equal(with_it.ballot_table, without_it.ballot_table)
