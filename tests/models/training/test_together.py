import copy
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from unswayed import datasets
from unswayed.datasets import Dataset
from unswayed.models import build
from unswayed.models.floors import floor, floors
from unswayed.models.training import fit, untrained
from unswayed.models.training.together import EnsembleSettings, fit_ensemble
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs
from unswayed.theory.noise import Flip

NOISE = Flip(beta=0.7)
QUICK = EnsembleSettings(steps=40, batch=8, copies=2, consistency=1.0)


def graphs_of(features):
    """Label 1 for the larger graphs, which have more edges and more nodes of the second kind."""
    generator = torch.Generator().manual_seed(3)
    graphs = []
    for index in range(36):
        label = index % 2
        n = 6 + index % 3 + 22 * label
        ends = torch.randint(n, (2, 3 * n), generator=generator)
        kinds = (torch.rand(n, generator=generator) < 0.2 + 0.6 * label).long()
        x = torch.eye(2)[kinds] if features else torch.ones(n, 1)
        edges = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=n)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([label])))
    return Dataset("toys", "graph", features, 2, graphs=tuple(graphs))


def short_floors(monkeypatch):
    monkeypatch.setattr("unswayed.models.floors.graphs.COUNTS_STEPS", 60)


@pytest.fixture(scope="module", params=[2, 0], ids=["features", "featureless"])
def toys(request):
    return graphs_of(request.param)


@pytest.fixture(scope="module")
def trained(toys):
    return fit("gin", toys, datasets.split(toys, 0), recipe="noise", noise=NOISE, settings=QUICK, seed=2)


def test_the_recipe_learns_and_the_seed_decides(toys, trained):
    again = fit("gin", toys, datasets.split(toys, 0), recipe="noise", noise=NOISE, settings=QUICK, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), trained.parameters(), strict=True))
    votes = choose(Question(model=trained, threat=AllPairs(list(toys.graphs)), noise=NOISE, seed=4)).count(
        0, 40
    )
    assert (votes.argmax(axis=1) == toys.labels.numpy()).sum() >= 33


def test_weights_and_moments_survive_a_file(toys, trained, tmp_path):
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    again = untrained("gin", toys, "noise", seed=9)
    again.load_state_dict(load_file(tmp_path / "w.safetensors"))
    for graph in toys.graphs[:4]:
        assert torch.equal(again(graph.x, graph.edge_index), trained(graph.x, graph.edge_index))


@torch.no_grad()
def test_the_dense_engine_knows_the_ensemble_and_votes_as_the_generic_one(toys, trained):
    model = copy.deepcopy(trained)
    for member in model.members:  # make the answers depend on the edges of every graph
        for readout in member.readouts:
            (readout if isinstance(readout, torch.nn.Linear) else readout[-1]).weight.mul_(4)
    threat = AllPairs(list(toys.graphs[:6]))
    fast, generic = (
        choose(Question(model=model, threat=threat, noise=NOISE, seed=4, engine=engine))
        for engine in ("fast", "generic")
    )
    assert fast.name == "dense"
    assert (fast.count(0, 200) == generic.count(0, 200)).all()


def test_moments_are_those_of_the_training_graphs_alone(toys):
    learnt = torch.arange(0, 20)
    model = build("ensemble", toys.num_features, 2, task="graph", members=2)
    other = build("ensemble", toys.num_features, 2, task="graph", members=2)
    changed = [Data(x=5 * g.x, edge_index=g.edge_index, y=1 - g.y) for g in toys.graphs[20:]]
    spoilt = Dataset("toys", "graph", toys.num_features, 2, graphs=(*toys.graphs[:20], *changed))
    few = EnsembleSettings(steps=2, batch=4)
    for dataset, network in ((toys, model), (spoilt, other)):
        torch.manual_seed(0)
        fit_ensemble(network, dataset, learnt, NOISE, seed=0, device="cpu", settings=few)
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    )
    sums = torch.stack([g.x.sum(0) for g in toys.graphs[:20]])
    sums = sums if toys.num_features else sums / (sums + 12)
    torch.testing.assert_close(model.members[0].centre, sums.mean(0))
    torch.testing.assert_close(model.members[1].rate, 1 / sums.std(0, correction=0))


def test_test_graphs_never_reach_the_recipe(toys):
    parts = datasets.split(toys, 0)
    spoilt = list(toys.graphs)
    for place in parts.test.tolist():
        spoilt[place] = Data(
            x=3 * spoilt[place].x, edge_index=spoilt[place].edge_index[:, :2], y=1 - spoilt[place].y
        )
    other = Dataset("toys", "graph", toys.num_features, 2, graphs=tuple(spoilt))
    few = EnsembleSettings(steps=3, batch=4)
    first, second = (fit("gin", d, parts, recipe="noise", noise=NOISE, settings=few) for d in (toys, other))
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_without_layers_no_edge_is_seen(toys):
    model = build("ensemble", toys.num_features, 2, task="graph", layers=0)
    graph = toys.graphs[1]
    assert torch.equal(model(graph.x, graph.edge_index), model(graph.x, graph.edge_index[:, :0]))


@pytest.mark.slow
def test_floors_of_graphs_see_no_edge_and_are_chosen_on_graphs_they_have_not_learnt(toys, monkeypatch):
    short_floors(monkeypatch)
    parts = datasets.split(toys, 0)
    found = {option.name: option for option in floors(toys, parts)}
    assert {"majority", "counts-linear", "counts-perceptron"} < set(found)
    bare = Dataset(
        "toys", "graph", toys.num_features, 2,
        graphs=tuple(Data(x=g.x, edge_index=g.edge_index[:, :0], y=g.y) for g in toys.graphs),
    )  # fmt: skip
    edgeless = {option.name: option for option in floors(bare, parts)}
    assert all(torch.equal(found[name].predictions, edgeless[name].predictions) for name in found)
    assert floor(toys, parts).validation == max(option.validation for option in found.values())
    assert found["counts-linear"].accuracy > 0.7


def test_a_floor_is_judged_on_graphs_it_has_not_learnt(toys, monkeypatch):
    """A pupil who knows the graphs of its lesson by heart and is wrong about all others never scores."""
    parts, lessons = datasets.split(toys, 0), []

    def by_heart(name, dataset, graphs, seed):
        lessons.append(sorted(graphs.tolist()))
        answers = 1 - dataset.labels
        answers[graphs] = dataset.labels[graphs]
        return answers

    monkeypatch.setattr("unswayed.models.floors.graphs._taught", by_heart)
    found = {option.name: option for option in floors(toys, parts)}
    assert (found["counts-linear"].validation, found["counts-linear"].accuracy) == (0.0, 0.0)
    known = sorted([*parts.train.tolist(), *parts.val.tolist()])
    assert known in lessons  # the last lesson is all development graphs
    assert all(set(lesson) <= set(known) for lesson in lessons)
    share = toys.labels[known].bincount().max() / len(known)  # the majority is judged on the same graphs
    assert found["majority"].validation == pytest.approx(float(share))


def test_answers_that_round_to_certainty_leave_finite_weights(toys):
    model = build("ensemble", toys.num_features, 2, task="graph", members=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1e4)
    fit_ensemble(model, toys, torch.arange(20), NOISE, seed=0, device="cpu", settings=replace(QUICK, steps=3))
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
