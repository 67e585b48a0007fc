from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from unswayed.datasets import Dataset, split
from unswayed.models import build
from unswayed.models.floors import floor, floors, nodes
from unswayed.models.floors.every import ALL_SEEN, all_floors
from unswayed.models.training.clean import fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.view import alone, view

QUICK = ("label ballots",)


@pytest.fixture(scope="module")
def blocks():
    """Two communities of 60, dense inside; features say a little of the community."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 2
    chance = torch.where(y[:, None] == y, 0.3, 0.03)
    edges = torch.triu(torch.rand(120, 120, generator=generator) < chance, 1).nonzero().t()
    x = torch.randn(120, 8, generator=generator) + 0.3 * y[:, None]
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=y)
    return Dataset("blocks", "node", 8, 2, data=data, labelled=0.3)


@pytest.fixture(scope="module")
def found(blocks):
    return all_floors(blocks, split(blocks, 0, test="rest"), teachers=QUICK)


def test_what_has_seen_more_knows_more(found):
    assert list(found) == ["majority", "labels", "distilled inductive", ALL_SEEN, "distilled transductive"]
    assert found["distilled transductive"].accuracy > found["labels"].accuracy + 0.1


def test_no_test_label_and_no_edge_reaches_a_floor_that_must_not_see_it(blocks, found):
    parts = split(blocks, 0, test="rest")
    hidden = blocks.graph.clone()
    hidden.y[parts.test] = 1 - hidden.y[parts.test]
    touches = torch.isin(hidden.edge_index, parts.test).any(dim=0)
    hidden.edge_index = hidden.edge_index[:, ~touches]
    other = all_floors(replace(blocks, data=hidden), parts, teachers=QUICK)
    for name in ("majority", "labels", "distilled inductive", ALL_SEEN):
        assert torch.equal(found[name].predictions, other[name].predictions), name
    assert not torch.equal(
        found["distilled transductive"].predictions, other["distilled transductive"].predictions
    )


def test_nodes_without_features_leave_the_majority(blocks):
    plain = Data(x=torch.ones(len(blocks.labels), 1), edge_index=blocks.graph.edge_index, y=blocks.labels)
    bare = replace(blocks, num_features=0, data=plain)
    found = all_floors(bare, split(bare, 0, test="rest"))
    assert list(found) == ["majority"]


def test_the_majority_is_the_usual_label_even_where_as_many_of_each_class_are_learnt():
    y = (torch.arange(300) % 10 > 0).long()  # nine in ten are of class 1
    data = Data(x=torch.ones(300, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=y)
    rare = Dataset("rare", "node", 0, 2, data=data)
    parts = split(rare, 0, test="rest")
    assert rare.labels[parts.train].bincount().tolist() == [20, 20]
    assert floor(rare, parts).accuracy > 0.9
    assert all_floors(rare, parts)["majority"].accuracy > 0.9


def test_where_test_nodes_are_strangers_the_nodes_that_judge_are_strangers_too():
    """Of features that say nothing a perceptron can learn by heart what it is told; judged by the nodes it was told of, it would seem right."""
    generator = torch.Generator().manual_seed(0)
    y, x = torch.randint(2, (300,), generator=generator), torch.eye(300)
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), y=y)
    numbered = Dataset("numbered", "node", 300, 2, data=data)
    parts, told = split(numbered, 0, test="rest"), torch.eye(2)[y]
    distilled = {
        protocol: floors(numbered, parts, protocol=protocol, teacher=told[seen])[-1]
        for protocol, seen in (
            ("transductive", torch.arange(300)),
            ("inductive", torch.cat([parts.train, parts.val]).sort().values),
        )
    }
    assert distilled["transductive"].validation > 0.95
    assert distilled["inductive"].validation < 0.7


def test_what_a_teacher_saw_of_test_nodes_is_learnt_by_heart_too(blocks):
    parts, told = split(blocks, 0, test="rest"), torch.eye(2)[blocks.labels]
    seen = torch.cat([parts.train, parts.val]).sort().values
    whole = {own.name: own for own in floors(blocks, parts, teacher=told)}
    assert whole["mlp-by-heart"].accuracy > whole["mlp-distilled"].accuracy + 0.1
    assert floor(blocks, parts, teacher=told).name == "mlp-by-heart"
    names = [own.name for own in floors(blocks, parts, protocol="inductive", teacher=told[seen])]
    assert names == ["majority", "mlp", "mlp-decayed", "mlp-distilled"]


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_the_floor_is_the_mean_of_a_few_that_learnt_like_the_best_one(blocks, protocol):
    """One perceptron's luck would move it by as much as certificates gain."""
    parts, told = split(blocks, 0, test="rest"), torch.eye(2)[blocks.labels]
    seen = view(blocks, parts, protocol)
    teacher = told[seen.kept]
    best = max(floors(blocks, parts, protocol=protocol, teacher=teacher), key=lambda own: own.validation)
    learner = {**nodes.FROM_LABELS, **nodes.DISTILLED, **nodes.BY_HEART}[best.name]
    labels = best.name in nodes.FROM_LABELS
    learnt = seen.train if labels else nodes.taught_nodes(seen, protocol)
    said = 0
    for seed in (0, 1000, 2000):
        bare, soft = alone(seen, learnt, None if labels else teacher)
        model = build("mlp", 8, 2, seed=seed, hidden=learner.hidden)
        with seeded(seed, "cpu"):
            fit_clean(model, bare, soft, settings=learner.settings)
        said = said + model(blocks.graph.x, seen.data.edge_index).detach()
    found = floor(blocks, parts, protocol=protocol, teacher=teacher)
    assert found.name == best.name
    assert torch.equal(found.predictions, said.argmax(dim=1))
