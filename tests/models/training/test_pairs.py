"""Training pair ballots: what the worst change takes, and what is kept."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.pairs import PairBallots
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models.training.pairs import Counted, PairSettings, fit_pairs

QUICK = PairSettings(steps=60, warm_up=20)


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
    network = PairBallots(2, 2).requires_grad_(False)
    counted = Counted.of(dataset.graphs, dataset.labels)
    margin, harm = (part * counted.scale for part in counted.margins(network))
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
