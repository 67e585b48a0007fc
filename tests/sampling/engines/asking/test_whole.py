"""One noisy graph for all nodes: the same votes as asking the module itself, sample by sample."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINConv, GraphConv, GraphSAGE, SAGEConv
from torch_geometric.utils import to_undirected

from unswayed.errors import InputError
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.asking.whole import WholeGraphEngine, transform_first
from unswayed.sampling.question import Question
from unswayed.sampling.sparse import SparseStream, pair_of
from unswayed.sampling.threats import AllPairs, Row
from unswayed.theory.noise import AddDelete, Flip

NOISE = AddDelete(p_add=0.02, p_delete=0.4)
N, F, C = 40, 12, 3


class Net(nn.Module):
    """Two layers of any kind, the first one narrowing."""

    def __init__(self, one: nn.Module, two: nn.Module) -> None:
        super().__init__()
        self.one, self.two = one, two

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index)


def gin(inside: int, out: int) -> GINConv:
    return GINConv(
        nn.Sequential(nn.Linear(inside, out), nn.ReLU(), nn.Linear(out, out)), train_eps=True, eps=0.3
    )


NARROWING = {
    "sage-mean": lambda i, o: SAGEConv(i, o),
    "sage-sum": lambda i, o: SAGEConv(i, o, aggr="sum", root_weight=False, normalize=True),
    "graphconv": lambda i, o: GraphConv(i, o),
    "gin": gin,
}


@pytest.fixture(scope="module")
def data() -> Data:
    torch.manual_seed(0)
    edges = to_undirected(torch.randint(0, N, (2, 60)))
    return Data(x=torch.rand(N, F), edge_index=edges, y=torch.randint(0, C, (N,)))


def net(kind: str) -> Net:
    torch.manual_seed(1)
    return Net(NARROWING[kind](F, 5), NARROWING[kind](5, C)).eval()


def by_hand(model: nn.Module, threat: AllPairs, noise: AddDelete, samples: int, seed: int = 0) -> np.ndarray:
    """Votes counted one noisy graph at a time with nothing of the engines but the list of ones."""
    graph = threat.graphs[0]
    question = Question(model, threat, noise, seed=seed)
    i, j = graph.pairs
    clean = torch.sort(j * (j - 1) // 2 + i).values
    counts = np.zeros((len(threat), C), int)
    for s in range(samples):
        _, entry = SparseStream(question.stream).ones(s, s + 1, N * (N - 1) // 2, clean, noise)
        i, j = pair_of(entry)
        loops = graph.loops.expand(2, -1)
        edge_index = torch.cat([torch.stack([i, j]), torch.stack([j, i]), loops], dim=1)
        with torch.no_grad():
            label = model(graph.x, edge_index).argmax(1)[threat.nodes]
        counts[np.arange(len(threat)), label.numpy()] += 1
    return counts


@pytest.mark.parametrize("kind", NARROWING)
def test_turned_layers_answer_the_same(kind: str, data: Data) -> None:
    model = net(kind).double()
    turned = transform_first(model)
    assert type(turned.one) is not type(model.one)
    x = data.x.double()
    # node 3 has no neighbour: only a bias is left
    lonely = data.edge_index[:, (data.edge_index != 3).all(dim=0)]
    for edges in (data.edge_index, lonely, lonely[:, :0]):
        torch.testing.assert_close(turned(x, edges), model(x, edges), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", NARROWING)
def test_votes_are_those_of_one_graph_at_a_time(kind: str, data: Data) -> None:
    threat = AllPairs(data, torch.arange(N))
    question = Question(net(kind).double(), threat, NOISE, dtype=torch.float64)
    assert WholeGraphEngine.supports(question) is None
    expected = by_hand(net(kind), threat, NOISE, 30)
    assert np.array_equal(WholeGraphEngine(question).count(0, 30), expected)
    assert np.array_equal(GenericEngine(question).count(0, 30), expected)


def test_deeper_models_of_pyg_are_taken(data: Data) -> None:
    torch.manual_seed(2)
    model = GraphSAGE(F, 6, num_layers=3, out_channels=C).eval()
    threat = AllPairs(data, [0, 7, 11])
    engine = choose(Question(model, threat, NOISE, engine="fast"))
    assert engine.name == "whole-graph"
    assert np.array_equal(engine.count(0, 25), by_hand(model, threat, NOISE, 25))


def test_blocks_batches_and_targets_do_not_change_votes(data: Data) -> None:
    threat = AllPairs(data, torch.arange(N))
    whole = WholeGraphEngine(Question(net("sage-mean"), threat, NOISE)).count(0, 21)
    parts = WholeGraphEngine(Question(net("sage-mean"), threat, NOISE, batch_size=4))
    assert np.array_equal(parts.count(0, 5) + parts.count(5, 6) + parts.count(6, 21), whole)
    assert np.array_equal(parts.count(0, 21, (3, 1)), whole[[3, 1]])


def test_obstacles_are_named(data: Data) -> None:
    threat = AllPairs(data, [0])
    plain = Net(GCNConv(F, 4), GCNConv(4, C)).eval()
    assert "as fast" in str(WholeGraphEngine.supports(Question(plain, threat, NOISE)))
    assert "AllPairs" in str(WholeGraphEngine.supports(Question(net("gin"), Row(data, [0]), NOISE)))
    assert "own" in str(WholeGraphEngine.supports(Question(net("gin"), threat, NOISE, shared=False)))
    assert "module" in str(WholeGraphEngine.supports(Question(lambda x, edge_index: x, threat, NOISE)))
    for kind in ("forward", "propagate_forward", "message_forward", "aggregate_forward"):
        hooked = net("sage-mean")
        for layer in (hooked.one, hooked.two):
            getattr(layer, f"register_{kind}_hook")(lambda *_: None)
        assert "as fast" in str(WholeGraphEngine.supports(Question(hooked, threat, NOISE)))
    inside = net("gin")
    for layer in (inside.one, inside.two):
        layer.nn[0].register_forward_hook(lambda *_: None)
    assert "as fast" in str(WholeGraphEngine.supports(Question(inside, threat, NOISE)))


def test_which_stream_is_drawn(data: Data) -> None:
    threat, model = AllPairs(data, [0, 1]), net("gin")
    assert Question(model, threat, NOISE).stream_name.endswith("sparse-2")
    dense = Question(model, threat, NOISE, draws="dense")
    assert not dense.sparse
    assert not Question(model, threat, Flip(beta=0.7)).sparse
    assert not Question(model, Row(data, [0]), NOISE).sparse
    assert not Question(model, threat, NOISE, shared=False).sparse
    with pytest.raises(InputError, match="Sparse draws"):
        Question(model, Row(data, [0]), NOISE, draws="sparse", shared=False)
    with pytest.raises(InputError, match="draws must be"):
        Question(model, threat, NOISE, draws="some")


@pytest.mark.parametrize("draws", ["dense", "sparse"])
def test_equal_probabilities_reproduce_the_votes_of_flip(draws: str, data: Data) -> None:
    threat, flip = AllPairs(data, torch.arange(N)), Flip(beta=0.9)
    same = AddDelete(p_add=flip.p_add, p_delete=flip.p_delete)
    one, other = (
        GenericEngine(Question(net("sage-mean"), threat, noise, draws=draws)).count(0, 12)
        for noise in (flip, same)
    )
    assert np.array_equal(one, other)


def test_dense_and_sparse_streams_have_the_same_law(data: Data) -> None:
    """Vote shares of both streams agree within 5 standard errors for every node and class."""
    threat = AllPairs(data, torch.arange(N))
    noise, samples = AddDelete(p_add=0.05, p_delete=0.4), 1500
    shares = [
        WholeGraphEngine(Question(net("sage-mean"), threat, noise, draws=draws)).count(0, samples) / samples
        for draws in ("dense", "sparse")
    ]
    middle = (shares[0] + shares[1]) / 2
    error = np.sqrt(2 * middle * (1 - middle) / samples) + 1e-3
    assert np.all(np.abs(shares[0] - shares[1]) < 5 * error)
