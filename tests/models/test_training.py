import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from unswayed import datasets
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models import build
from unswayed.models.floors import floor, floors, nodes
from unswayed.models.floors.nodes import alike
from unswayed.models.floors.perceptrons import Perceptron
from unswayed.models.training import RECIPES, fit, untrained
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.graphs import GraphPool, GraphSettings
from unswayed.models.training.keeping import seeded
from unswayed.models.training.noisy import NoisyRows, NoisySettings
from unswayed.models.training.together import EnsembleSettings
from unswayed.models.training.view import view
from unswayed.sampling.stream import Stream
from unswayed.theory.hide import Hide
from unswayed.theory.keep import Keep
from unswayed.theory.noise import AddDelete, Flip

QUICK = NoisySettings(warm_up=40, steps=10, batch=16, check_every=5, checks=1)
NOISE = Flip(beta=0.8)


@pytest.fixture(autouse=True)
def small_teachers(monkeypatch):
    """One short teacher of each kind: what is tested is who sees what, not how good they are."""
    monkeypatch.setattr("unswayed.models.training.teacher.MEMBERS", 1)
    monkeypatch.setattr("unswayed.models.training.teacher.CleanSettings", lambda: CleanSettings(steps=30))
    quick = Perceptron(64, CleanSettings(steps=60, weight_decay=0.0))
    monkeypatch.setitem(nodes.FROM_LABELS, "mlp", Perceptron(64, CleanSettings(steps=60)))
    monkeypatch.setitem(nodes.DISTILLED, "mlp-distilled", quick)


@pytest.fixture(scope="module")
def toy():
    """Two communities whose features give the class away."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 2
    x = torch.rand(120, 6, generator=generator) * 0.3
    x[torch.arange(120), y] += 1
    ends = torch.randint(120, (2, 300), generator=generator)
    ends = ends[:, (y[ends[0]] == y[ends[1]]) & (ends[0] != ends[1])]
    return Dataset("toy", "node", 6, 2, data=Data(x=x, edge_index=to_undirected(ends), y=y))


@pytest.fixture(scope="module")
def parts(toy):
    return datasets.split(toy, 0, test=30, per_class=10)


def accuracy(model, dataset, nodes):
    answers = model(dataset.graph.x, dataset.graph.edge_index).argmax(dim=1)
    return float((answers == dataset.labels)[nodes].float().mean())


@pytest.mark.parametrize("recipe", ["clean", "noise", "distill"])
@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_every_recipe_learns_and_the_seed_decides(toy, parts, recipe, protocol):
    options = {} if recipe == "clean" else {"noise": NOISE, "settings": QUICK}
    models = [fit("sage", toy, parts, recipe=recipe, protocol=protocol, seed=1, **options) for _ in range(2)]
    assert not models[0].training
    assert accuracy(models[0], toy, parts.test) > 0.9
    for mine, same in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(mine, same)


@pytest.mark.parametrize("recipe", ["clean", "noise", "distill"])
def test_inductive_training_never_sees_a_test_node(toy, parts, recipe):
    """Whatever the test nodes' labels, features and edges are, the weights are the same bit for bit."""
    other = toy.graph.clone()
    other.y[parts.test] = 1 - other.y[parts.test]
    other.x[parts.test] = 99.0
    touched = torch.isin(other.edge_index, parts.test).any(dim=0)
    other.edge_index = other.edge_index[:, ~touched]
    changed = Dataset("toy", "node", 6, 2, data=other)
    options = {} if recipe == "clean" else {"noise": NOISE, "settings": QUICK}
    mine, theirs = (
        fit("sage", given, parts, recipe=recipe, protocol="inductive", **options) for given in (toy, changed)
    )
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


class Settling(torch.nn.Module):
    """Takes its scale from the first features that it is handed, in whichever mode."""

    def __init__(self):
        super().__init__()
        self.network = build("sage", 6, 2)
        self.scale = None

    def forward(self, x, edge_index):
        if self.scale is None:
            self.scale = x.detach().abs().mean(dim=0)
        return self.network(x / self.scale, edge_index)


def test_a_module_of_ones_own_is_not_even_tried_on_a_test_node(toy, parts):
    other = toy.graph.clone()
    other.x[parts.test] = 99.0
    quick = CleanSettings(steps=8)
    mine, theirs = (
        fit(Settling(), given, parts, protocol="inductive", settings=quick)
        for given in (toy, replace(toy, data=other))
    )
    assert torch.equal(mine.scale, theirs.scale)


@pytest.mark.parametrize("recipe", ["clean", "distill"])
def test_transductive_training_never_reads_a_test_label(toy, parts, recipe):
    other = toy.graph.clone()
    other.y[parts.test] = 1 - other.y[parts.test]
    changed = Dataset("toy", "node", 6, 2, data=other)
    options = {} if recipe == "clean" else {"noise": NOISE, "settings": QUICK}
    mine, theirs = (fit("sage", given, parts, recipe=recipe, **options) for given in (toy, changed))
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_inductive_view_keeps_every_other_edge(toy, parts):
    seen = view(toy, parts, "inductive")
    assert len(seen.kept) == 90
    assert torch.equal(toy.labels[parts.train], seen.data.y[seen.train])
    ends = seen.kept[seen.data.edge_index]
    untouched = ~torch.isin(toy.graph.edge_index, parts.test).any(dim=0)
    assert {tuple(e) for e in ends.t().tolist()} == {
        tuple(e) for e in toy.graph.edge_index[:, untouched].t().tolist()
    }


def test_training_rows_keep_a_few_links(toy):
    graph = toy.graph
    noisy = NoisyRows(graph, Keep(2, 5), seed=0)
    nodes = torch.arange(graph.num_nodes).repeat(20)
    rows, clean = noisy.rows(nodes, 64), noisy.around.adjacent(nodes)
    assert not bool((rows & ~clean).any())
    assert int(rows.sum(dim=1).max()) == 2
    assert torch.equal(noisy.rows(nodes[5:9], 69), rows[5:9])
    with pytest.raises(InputError, match="on rows"):
        NoisyRows(graph, Hide(0.5, 0.5), seed=0)


def test_training_rows_follow_the_noise(toy):
    nodes = torch.arange(120).repeat(40)
    rows = NoisyRows(toy.graph, AddDelete(p_add=0.1, p_delete=0.6), 0).rows(nodes, 0)
    clean = torch.zeros(120, 120, dtype=torch.bool)
    clean[toy.graph.edge_index[0], toy.graph.edge_index[1]] = True
    clean = clean.repeat(40, 1)
    assert float(rows[~clean].float().mean()) == pytest.approx(0.1, abs=0.005)
    assert float(rows[clean].float().mean()) == pytest.approx(0.4, abs=0.02)


@pytest.fixture(scope="module")
def small_graphs():
    generator = torch.Generator().manual_seed(1)
    graphs = []
    for index in range(40):
        n, label = 5 + index % 4, index % 2
        ends = torch.randint(n, (2, 6), generator=generator)
        x = torch.zeros(n, 3)
        x[torch.arange(n), torch.randint(2, (n,), generator=generator) + label] = 1
        edges = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=n)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([label])))
    return Dataset("toys", "graph", 3, 2, graphs=tuple(graphs))


def test_noisy_batches_are_the_structures_of_the_all_pairs_threat(small_graphs):
    """Entry j(j-1)/2 + i is the pair (i, j): the same word decides it in training as in polling."""
    pool, stream = GraphPool(small_graphs.graphs, "cpu"), Stream(5, "train")
    chosen = torch.tensor([3, 10])
    x, edges, batch = pool.batch(chosen, NOISE, stream, 7)
    offset = 0
    for place, index in enumerate(chosen.tolist()):
        graph = small_graphs.graphs[index]
        n = graph.num_nodes
        flips, _ = stream.flips(7 + place, 8 + place, n * (n - 1) // 2, NOISE)
        clean = {tuple(e) for e in graph.edge_index.t().tolist()}
        wanted = {
            (i, j)
            for j in range(n)
            for i in range(j)
            if ((i, j) in clean) != bool(flips[0, j * (j - 1) // 2 + i])
        }
        mine = edges[:, batch[edges[0]] == place] - offset
        assert {(a, b) for a, b in mine.t().tolist() if a < b} == wanted
        assert torch.equal(x[batch == place], graph.x)
        offset += n


@pytest.mark.parametrize("recipe", ["clean", "noise"])
def test_graph_recipes_learn(small_graphs, recipe):
    parts = datasets.split(small_graphs, 0)
    settings = {
        "clean": GraphSettings(steps=60, batch=16, check_every=20, checks=2),
        "noise": EnsembleSettings(steps=60, batch=16),
    }[recipe]
    model = fit("gin", small_graphs, parts, recipe=recipe, noise=NOISE, settings=settings)
    right = [int(model(g.x, g.edge_index).argmax()) == int(g.y) for g in small_graphs.graphs]
    assert sum(right) >= 30


def test_weights_of_every_recipe_load_back_into_what_the_recipe_trains(toy, parts, small_graphs):
    for dataset, name, recipe in [
        (toy, "sage", "clean"),
        (toy, "sage", "distill"),
        (toy, "gat", "clean"),
        (toy, "gat", "distill"),
        (small_graphs, "gin", "clean"),
        (small_graphs, "gin", "noise"),
    ]:
        some = parts if dataset is toy else datasets.split(small_graphs, 0)
        quick = {
            "clean": GraphSettings(steps=2, batch=4, check_every=2, checks=1),
            "noise": EnsembleSettings(steps=2, batch=4),
        }.get(recipe)
        few = quick if dataset is small_graphs else QUICK if recipe == "distill" else None
        trained = fit(name, dataset, some, recipe=recipe, noise=Flip(beta=0.7), settings=few)
        again = untrained(name, dataset, recipe, seed=5)
        assert again.load_state_dict(trained.state_dict()).missing_keys == []


def test_attention_that_learns_under_noise_has_a_way_past_it(toy):
    assert [untrained("gat", toy, recipe).first.residual for recipe in RECIPES] == [False, True, True]


def test_attention_is_dropped_in_clean_training_alone(toy):
    """The forward pass for noisy rows drops states only: attention dropped by the network itself would be another model."""
    clean, noisy = untrained("gat", toy, "clean"), untrained("gat", toy, "distill")
    assert [clean.first.dropout, clean.second.dropout, clean.drop] == [0.6] * 3
    assert [noisy.first.dropout, noisy.second.dropout, noisy.drop] == [0.0, 0.0, 0.5]


def test_floors_ignore_edges_and_the_best_is_chosen_on_validation(toy, parts):
    found = {option.name: option for option in floors(toy, parts)}
    assert set(found) == {"majority", "mlp", "mlp-decayed", "mlp-distilled", "mlp-by-heart"}
    bare = Dataset(
        "toy", "node", 6, 2, data=Data(x=toy.graph.x, edge_index=toy.graph.edge_index[:, :0], y=toy.labels)
    )
    assert torch.equal(found["mlp"].predictions, {f.name: f for f in floors(bare, parts)}["mlp"].predictions)
    assert found["mlp"].accuracy > 0.9


def test_inductive_floors_never_see_a_test_node(toy, parts):
    """However large the features of test nodes are, what is learnt and chosen without them stays."""
    other = toy.graph.clone()
    other.y[parts.test] = 1 - other.y[parts.test]
    other.x[parts.test] = 99.0
    changed = replace(toy, data=other)
    mine, theirs = (floors(given, parts, protocol="inductive") for given in (toy, changed))
    seen = torch.ones(120, dtype=torch.bool).index_fill(0, parts.test, False)
    assert torch.equal(*(alike(given, parts).graph.x[seen] for given in (toy, changed)))
    for one, same in zip(mine, theirs, strict=True):
        assert one.validation == same.validation
        assert torch.equal(one.predictions[seen], same.predictions[seen])


def test_floors_learn_though_one_feature_is_huge(toy, parts):
    amounts = torch.rand(len(toy.labels), 1, generator=torch.Generator().manual_seed(0)) * 1e6
    data = Data(x=torch.cat([toy.graph.x, amounts], 1), edge_index=toy.graph.edge_index, y=toy.labels)
    rich = replace(toy, num_features=7, data=data)
    found = {option.name: option for option in floors(rich, parts)}
    assert found["mlp"].accuracy > 0.9
    assert alike(toy, parts) is toy  # features of a usual size stay as they are, and so do published floors


def test_floors_learn_though_all_features_are_tiny(toy, parts):
    """Around a large common value too: what tells nodes apart is how they differ."""
    for shift in (0.0, 5.0):
        data = Data(x=shift + 1e-3 * toy.graph.x, edge_index=toy.graph.edge_index, y=toy.labels)
        assert floor(replace(toy, data=data), parts).accuracy > 0.9
        labels_alone = next(f for f in floors(replace(toy, data=data), parts) if f.name == "mlp")
        assert labels_alone.accuracy > 0.9


def test_a_floor_counts_test_nodes_whose_label_is_known(toy, parts):
    """As certified accuracy does: a floor that is wrong about all others would flatter it."""
    whole = floor(toy, parts)
    some = toy.graph.clone()
    some.y[parts.test[::2]] = -1
    right = (whole.predictions == toy.labels)[parts.test[1::2]].float()
    found = floor(replace(toy, data=some), parts)
    assert torch.equal(found.predictions, whole.predictions)
    assert found.accuracy == float(right.mean()) > 0.8
    some.y[parts.test] = -1
    assert math.isnan(floor(replace(toy, data=some), parts).accuracy)


def test_mistakes_are_told(toy, parts, small_graphs):
    with pytest.raises(InputError, match="say which with noise="):
        fit("sage", toy, parts, recipe="noise")
    with pytest.raises(InputError, match="recipe must be one of"):
        fit("sage", toy, parts, recipe="magic")
    with pytest.raises(InputError, match="protocol must be one of"):
        fit("sage", toy, parts, protocol="psychic")
    with pytest.raises(InputError, match="for graphs use the recipe 'noise'"):
        fit("gin", small_graphs, datasets.split(small_graphs, 0), recipe="distill", noise=NOISE)
    assert isinstance(datasets.split(small_graphs, 0), Split)
    assert build("gin", 3, 2, task="graph").sizes == {}


@pytest.mark.parametrize(("fixed", "warns"), [(True, True), (True, False), (False, False)])
def test_training_leaves_the_callers_wish_for_fixed_sums(fixed: bool, warns: bool) -> None:
    try:
        torch.use_deterministic_algorithms(fixed, warn_only=warns)
        with seeded(3, "cpu"):
            torch.use_deterministic_algorithms(not fixed, warn_only=not warns)
        assert torch.are_deterministic_algorithms_enabled() == fixed
        assert torch.is_deterministic_algorithms_warn_only_enabled() == warns
    finally:
        torch.use_deterministic_algorithms(False)


def test_training_leaves_threads_and_generators_as_they_were() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        state = torch.get_rng_state()
        with seeded(3, "cpu"):
            assert torch.get_num_threads() == 1
            torch.rand(5)
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(before)
