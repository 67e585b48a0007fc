"""Training pair ballots: what the worst change takes, and what is kept."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.pairs import PairBallots
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models.floors import floor, graphs
from unswayed.models.training.counted import Counted
from unswayed.models.training.pairs import PairSettings, Voting, fit_pairs

QUICK = PairSettings(
    voting=(Voting(1, True, 0.5), Voting(3, False, 0.9)), silent=("counts-linear",), steps=60, warm_up=20
)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Structure-free models learn these graphs in a moment."""
    monkeypatch.setattr(graphs, "COUNTS_STEPS", 60)


def shapes(count: int = 60, features: int = 2) -> tuple[Dataset, Split]:
    """Graphs of two kinds of nodes, in half of which the two kinds are linked, in the others each with its own."""
    chance = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(count):
        kind = torch.randint(2, (12,), generator=chance)
        apart = kind[:, None] != kind
        wanted = apart if number % 2 else ~apart
        linked = torch.triu(wanted & (torch.rand(12, 12, generator=chance) < 0.6), diagonal=1)
        pairs = linked.nonzero().T
        x = torch.nn.functional.one_hot(kind, 2).float() if features else torch.ones(12, 1)
        y = torch.tensor([number % 2])
        graphs.append(Data(x=x, edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), y=y))
    order = torch.randperm(count, generator=chance)
    parts = Split(order[: count // 2], order[count // 2 : count * 2 // 3], order[count * 2 // 3 :])
    return Dataset("shapes", "graph", features, 2, graphs=tuple(graphs)), parts


def test_margins_are_the_networks_and_no_single_change_takes_more() -> None:
    dataset, _ = shapes(6)
    torch.manual_seed(1)
    network = PairBallots(2, 2, hidden=8).standardise(list(dataset.graphs)).requires_grad_(False)
    counted = Counted.of(dataset.graphs, dataset.labels)
    margin, harm = (part[0] for part in counted.margins(*counted.scores(network)))
    for place, graph in enumerate(dataset.graphs):
        label = int(graph.y)

        def ahead(edges: torch.Tensor, graph: Data = graph, label: int = label) -> float:
            score = network(graph.x, edges)[0]
            return float(score[label] - score[1 - label])

        now = ahead(graph.edge_index)
        assert now == pytest.approx(float(margin[place, 1 - label]), abs=1e-4)
        have = {tuple(edge) for edge in graph.edge_index.T.tolist()}
        after = [ahead(torch.tensor(sorted(have ^ {(i, j), (j, i)})).T) for j in range(12) for i in range(j)]
        assert now - min(after) == pytest.approx(float(harm[place, 1 - label]), abs=1e-4)


def test_graphs_taken_out_are_counted_as_they_were() -> None:
    dataset, _ = shapes(6)
    network = PairBallots(2, 2, hidden=8, members=3).requires_grad_(False)
    counted, chosen = Counted.of(dataset.graphs, dataset.labels), torch.tensor([4, 0, 4])
    margin, harm = counted.margins(*counted.scores(network))
    part = counted.take(chosen)
    for now, before in zip(part.margins(*part.scores(network)), (margin, harm), strict=True):
        assert torch.allclose(now, before[:, chosen])


def test_the_seed_decides_every_weight_and_the_callers_draws_stay() -> None:
    """Weights of links that are not heard came from the caller's generator, and with them another hash in every run."""
    dataset, parts = shapes(30)
    settings = replace(QUICK, voting=())
    torch.manual_seed(7)
    first = fit_pairs(dataset, parts, settings=settings).state_dict()
    drawn = torch.rand(1)
    second = fit_pairs(dataset, parts, settings=settings).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first if first[name] is not None)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(1))


@pytest.mark.parametrize("members", [1, 3])
def test_no_more_is_counted_as_proved_than_proofs_have(members: int) -> None:
    dataset, _ = shapes(20)
    torch.manual_seed(members)
    network = PairBallots(2, 2, hidden=8, cap=0.5, members=members).standardise(list(dataset.graphs))
    counted = Counted.of(dataset.graphs, dataset.labels)
    heard = {size: counted.proved(network, (size,)) for size in (0, 1, 5)}
    proofs = us.prove(network, us.AllPairs(list(dataset.graphs)))
    for size, number in heard.items():
        exact = 20 * proofs.accuracy(dataset.labels, at=[size])[0]
        assert number == pytest.approx(exact) if size < 2 else number <= exact + 1e-9


@pytest.mark.parametrize("features", [2, 0])
def test_with_silent_links_it_is_the_floor_itself(features: int) -> None:
    dataset, split = shapes(30, features)
    best = floor(dataset, split, seed=1)
    network = fit_pairs(dataset, split, seed=1, settings=PairSettings(voting=()))
    proofs = us.prove(network, us.AllPairs(list(dataset.graphs)))
    assert (proofs.size == 66).all()
    assert proofs.label.tolist() == best.predictions.tolist()
    assert set(PairSettings().silent) == set(graphs.COUNTS)


def test_links_are_learnt_where_they_say_more_than_nodes_and_proved() -> None:
    dataset, split = shapes()
    one, two = (fit_pairs(dataset, split, seed=2, settings=QUICK) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    tested = [dataset.graphs[place] for place in split.test.tolist()]
    proofs = us.prove(one, us.AllPairs(tested))
    assert proofs.accuracy(dataset.labels[split.test], at=[0, 2]).min() > 0.8


def test_links_are_silent_where_they_say_nothing() -> None:
    dataset, split = shapes()
    swapped = [Data(x=g.x + g.y * 2, edge_index=g.edge_index, y=g.y) for g in dataset.graphs]
    plain = replace(dataset, graphs=tuple(swapped))
    network = fit_pairs(plain, split, settings=QUICK)
    tested = [plain.graphs[place] for place in split.test.tolist()]
    proofs = us.prove(network, us.AllPairs(tested))
    assert proofs.accuracy(plain.labels[split.test], at=[66])[0] == 1.0


def test_graphs_without_features_are_told_apart_by_their_numbers() -> None:
    dataset, split = shapes(30, features=0)
    assert fit_pairs(dataset, split, settings=QUICK).in_channels == 0


def test_too_many_kinds_are_refused() -> None:
    many = [Data(x=torch.randn(9000, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64)) for _ in range(4)]
    with pytest.raises(InputError, match="different rows of features"):
        Counted.of(many, torch.zeros(4, dtype=torch.int64))
