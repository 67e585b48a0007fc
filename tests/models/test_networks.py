import pytest
import torch
from torch_geometric.data import Batch, Data

from unswayed.errors import InputError
from unswayed.models import NAMES, build
from unswayed.models.networks import DegreeFeatures
from unswayed.sampling.engines.graphs.dense import DenseEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs
from unswayed.theory.noise import Flip

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


@pytest.mark.parametrize("name", NAMES)
def test_node_networks_answer_every_node_the_same_way_twice(name):
    model, x = build(name, 5, 3), torch.rand(4, 5)
    assert model(x, EDGES).shape == (4, 3)
    assert torch.equal(model(x, EDGES), model(x, EDGES))


@pytest.mark.parametrize("name", ["gin", "gcn", "mlp", "ensemble"])
@pytest.mark.parametrize("features", [5, 0])
def test_graph_networks_answer_each_graph_by_itself(name, features):
    model = build(name, features, 3, task="graph")
    graphs = [Data(x=torch.rand(n, features or 1), edge_index=EDGES) for n in (4, 6)]
    batch = Batch.from_data_list(graphs)
    together = model(batch.x, batch.edge_index, batch.batch)
    alone = torch.cat([model(graph.x, graph.edge_index) for graph in graphs])
    assert torch.allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize(("name", "task"), [("mlp", "node"), ("mlp", "graph")])
def test_structure_free_models_see_no_edge(name, task):
    model, x = build(name, 5, 3, task=task), torch.rand(4, 5)
    assert torch.equal(model(x, EDGES), model(x, EDGES[:, :0]))


def test_the_seed_decides_the_weights_and_leaves_the_callers_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first, second, other = (build("sage", 4, 2, seed=seed).first.lin_l.weight for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_degrees_are_counted_from_the_edges_given():
    degrees = DegreeFeatures(bins=3)(torch.ones(4, 1), EDGES)
    assert degrees.argmax(dim=1).tolist() == [1, 2, 2, 1]
    assert degrees.sum(dim=1).tolist() == [1, 1, 1, 1]
    assert DegreeFeatures(bins=3)(torch.ones(4, 1), EDGES[:, :2]).argmax(dim=1).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("name", ["gin", "gcn", "ensemble"])
def test_featureless_networks_see_only_the_noisy_degrees(name):
    """Degrees of the clean graph that somebody left in x are not looked at: only the edges given are."""
    model, noisy = build(name, 0, 3, task="graph", seed=1).eval(), EDGES[:, :4]
    ones, clean_degrees = torch.ones(4, 1), torch.tensor([[1.0], [2.0], [2.0], [1.0]])
    assert torch.equal(model(clean_degrees, noisy), model(ones, noisy))


def test_a_featureless_gin_sees_degrees_at_all():
    model = build("gin", 0, 3, task="graph", seed=1).eval()
    assert not torch.allclose(model(torch.ones(4, 1), EDGES[:, :4]), model(torch.ones(4, 1), EDGES))


@pytest.mark.parametrize("name", ["gin", "ensemble"])
def test_whatever_the_clean_graph_was_equal_noisy_graphs_get_equal_answers(name):
    """A path and a complete graph, each flipped into every graph of four nodes in turn."""
    path = Data(x=torch.ones(4, 1), edge_index=EDGES, num_nodes=4)
    complete = Data(x=torch.ones(4, 1), edge_index=(~torch.eye(4, dtype=torch.bool)).nonzero().T, num_nodes=4)
    model = build(name, 0, 3, task="graph", seed=1).eval()
    engine = DenseEngine(Question(model, AllPairs([path, complete]), Flip(beta=0.7), dtype=torch.float64))
    every = torch.cartesian_prod(*[torch.tensor([False, True])] * 6)
    answers = [
        graph.logits((flips, flips))
        for graph in (engine._noisy(0), engine._noisy(1))
        for flips in [every ^ graph.clean]
    ]
    torch.testing.assert_close(*answers)
    if name == "gin":
        assert len(answers[0].round(decimals=6).unique(dim=0)) > 2


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="choose one of gcn"):
        build("transformer", 4, 2)
    with pytest.raises(InputError, match="'node' or 'graph'"):
        build("gcn", 4, 2, task="edge")
