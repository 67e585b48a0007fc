"""Every form of classifier is asked the same question and answers it alike."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import DenseGCNConv, Sequential, global_add_pool

from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Bits, Row
from unswayed.theory.noise import Flip

from .small import CLASSES, FEATURES, NODES, Node, Pooled, engine


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x[:, 0],
        lambda x: x[:-1],
        lambda x: x.view(1, 1, *x.shape),
        lambda x: (x, x),
        lambda x: x[:, :1],
        lambda x: {"logits": x},
        lambda x: x.to(torch.complex64),
    ],
)
def test_wrong_output_shapes_are_refused(data, answer):
    class Wrong(Node):
        def forward(self, x, edge_index):
            return answer(super().forward(x, edge_index))

    with pytest.raises(UnsoundModel):
        engine(Wrong(), Row(data, [0]))


def test_classes_are_the_columns_and_must_fit_what_is_said(data):
    assert engine(Node(), Row(data, [0])).classes == CLASSES
    assert engine(Node(), Row(data, [0]), classes=CLASSES).classes == CLASSES
    with pytest.raises(InputError, match="columns"):
        engine(Node(), Row(data, [0]), classes=4)


def test_forms_of_the_same_network_vote_alike(data):
    node = Node()

    class OnData(Node):
        def forward(self, data):
            return super().forward(data.x, data.edge_index)

    class Extra(Node):
        def forward(self, x, edge_index, edge_weight=None, batch=None):
            assert edge_weight is None
            return super().forward(x, edge_index)

    chain = Sequential(
        "x, edge_index", [(node.first, "x, edge_index -> x"), nn.ReLU(), (node.second, "x, edge_index -> x")]
    )
    threat = Row(data, [0, 4])
    expected = engine(node, threat).count(0, 60)
    forms = [OnData(), Extra(), chain, lambda x, edge_index: node.eval()(x, edge_index).detach().numpy()]
    for form in forms:
        assert np.array_equal(engine(form, threat).count(0, 60), expected)
    labelled = engine(lambda x, edge_index: node.eval()(x, edge_index).argmax(1), threat, classes=CLASSES)
    assert np.array_equal(labelled.count(0, 60), expected)


def test_graph_classifiers_with_and_without_batch_and_on_data_vote_alike(data):
    model = Pooled()

    class OnData(Pooled):
        def forward(self, data):
            return super().forward(data.x, data.edge_index, data.batch)

    class Alone(Pooled):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index, torch.zeros(len(x), dtype=torch.long))

    small = data.subgraph(torch.arange(4))
    threat = AllPairs([data, small])
    expected = engine(model, threat).count(0, 50)
    assert np.array_equal(engine(OnData(), threat).count(0, 50), expected)
    alone = engine(Alone(), threat)
    assert not alone.classifier.batched
    assert np.array_equal(alone.count(0, 50), expected)
    one = engine(lambda x, edge_index: int(Alone().eval()(x, edge_index).argmax()), threat, classes=CLASSES)
    assert np.array_equal(one.count(0, 50), expected)


class Dense(nn.Module):
    """PyG's dense convolutions take [n, F] and [B, n, F] alike."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.second = DenseGCNConv(FEATURES, 8), DenseGCNConv(8, CLASSES)

    def forward(self, x, adj, mask=None):
        return self.second(self.first(x, adj, mask).relu(), adj, mask)


class Flat(Dense):
    """A module for one graph only."""

    def forward(self, x, adj):
        assert x.ndim == 2
        return super().forward(x, adj)[0]


class Stacked(Dense):
    """A module for batches only."""

    def forward(self, x, adj):
        assert x.ndim == 3
        return super().forward(x, adj)


@pytest.mark.parametrize("kind", [Dense, Flat, Stacked])
def test_modules_on_dense_adjacencies_vote_like_their_sparse_twin(data, kind):
    sparse = Node()
    dense = Dense()
    for one, other in ((sparse.first, dense.first), (sparse.second, dense.second)):
        one.load_state_dict(other.state_dict())
    model = kind()
    for threat in (Row(data, [0, 4]), AllPairs(data, [0, 4])):
        expected = engine(sparse, threat).count(0, 40)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if kind is not Flat else "ignore")
            asked = engine(model, threat, batch_size=7)
            asked.count(0, 40)
        assert asked.classifier.batched == (kind is not Flat)
        assert np.array_equal(asked.count(0, 40), expected)


class Rooted(Node):
    """A module with a vector for each node of the one graph that it knows."""

    def __init__(self):
        super().__init__()
        self.own = nn.Parameter(torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(3)))

    def forward(self, x, edge_index):
        return super().forward(x + self.own, edge_index)


class Cut(Rooted):
    """Says too little of a batch in place of failing on it."""

    def forward(self, x, edge_index):
        inside = edge_index[:, edge_index.max(dim=0).values < NODES]
        return super().forward(x[:NODES], inside)


@pytest.mark.parametrize("kind", [Rooted, Cut])
def test_a_module_that_knows_one_graph_only_is_asked_about_one_at_a_time(data, kind):
    model, samples = kind(), 200  # more than are asked without looking for the fastest batch
    twin = Data(x=data.x + model.own.detach(), edge_index=data.edge_index)
    expected = engine(Node(), Row(twin, [0, 4]), batch_size=1).count(0, samples)
    asked = engine(model, Row(data, [0, 4]))
    with pytest.warns(UserWarning, match="one noisy graph at a time") as said:
        counts = asked.count(0, samples)
    assert len(said) == 1
    assert not str(said[0].message).endswith("..")
    assert np.array_equal(counts, expected)
    assert not asked.classifier.batched


def test_memory_that_runs_out_on_a_batch_says_nothing_of_the_classifier(data):
    class Tight(Node):
        def forward(self, x, edge_index):
            if len(x) > 4 * NODES:
                raise RuntimeError("out of memory")
            return super().forward(x, edge_index)

    asked = engine(Tight(), Row(data, [0]))
    assert np.array_equal(asked.count(0, 200), engine(Node(), Row(data, [0]), batch_size=1).count(0, 200))
    assert asked.classifier.batched


@pytest.mark.parametrize(("name", "mend"), [("edge_weight", "edge_attr="), ("t", "default")])
def test_a_parameter_that_no_noisy_graph_has_is_refused_with_what_to_do(data, name, mend):
    model = eval(f"lambda x, edge_index, {name}: x[:, :3]")
    with pytest.raises(UnsoundModel, match=f"needs {name}.*{mend}"):
        engine(model, Row(data, [0]))


def test_dense_graph_classifiers(data):
    class Whole(Dense):
        def forward(self, x, adj):
            return super().forward(x, adj).mean(dim=-2)

    asked = engine(Whole(), AllPairs([data, data.subgraph(torch.arange(5))]))
    assert asked.classifier.batched
    assert asked.count(0, 30).sum(axis=1).tolist() == [30, 30]


class OwnCall(Node):
    def __call__(self, features, links):
        return -super().__call__(features, links)


def test_a_call_of_its_own_is_what_is_asked(data):
    asked = engine(OwnCall(), Row(data, [0]))
    layout = asked.classifier
    assert layout.names == ["features", "links"]
    plain = engine(Node(), Row(data, [0])).answers(0, 5, (0,))
    assert torch.equal(asked.answers(0, 5, (0,)), -plain)


def test_a_forward_that_needs_more_than_a_graph_is_refused(data):
    class Needy(Node):
        def forward(self, x, edge_index, position):
            return super().forward(x, edge_index)

    with pytest.raises(UnsoundModel, match="position"):
        engine(Needy(), Row(data, [0]))
    with pytest.raises(InputError, match="callable"):
        engine(3, Row(data, [0]))


def test_nan_logits_and_minus_one_are_no_answer(data):
    class Doubtful(Node):
        def forward(self, x, edge_index):
            out = super().forward(x, edge_index)
            return torch.where(out.amax(dim=1, keepdim=True) > 0.3, out, torch.nan)

    threat = Row(data, [0, 4])
    plain, doubtful = Node(), Doubtful()
    counts = engine(doubtful, threat).count(0, 200)
    assert 0 < counts.sum() < 400
    assert np.all(counts <= engine(plain, threat).count(0, 200))

    def labels(x, edge_index):
        out = doubtful.eval()(x, edge_index)
        return torch.where(out.isnan().any(dim=1), -1, out.argmax(dim=1))

    assert np.array_equal(engine(labels, threat, classes=CLASSES).count(0, 200), counts)


def test_labels_need_classes_and_must_lie_among_them(data):
    threat = Row(data, [0])
    with pytest.raises(InputError, match="classes="):
        engine(lambda x, edge_index: torch.zeros(len(x), dtype=torch.long), threat)
    with pytest.raises(UnsoundModel, match="outside"):
        engine(lambda x, edge_index: torch.full((len(x),), 3), threat, classes=3)
    with pytest.raises(UnsoundModel, match="outside"):
        engine(lambda x, edge_index: torch.full((len(x),), -2), threat, classes=3)


def test_bits_take_modules_callables_and_predict():
    rng = np.random.default_rng(0)
    x = rng.random((3, 9)) < 0.5
    weight = rng.normal(size=(9, 4))

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(9, 4, bias=False)
            self.linear.weight.data = torch.tensor(weight.T, dtype=torch.float32)

        def forward(self, rows):
            return self.linear(rows)

    class Estimator:
        classes_ = np.array(["a", "b", "c", "d"])

        def predict(self, rows):
            assert rows.dtype == bool
            return self.classes_[(rows @ weight).argmax(axis=1)]

    expected = engine(Module(), Bits(x)).count(0, 100)
    assert np.array_equal(engine(Estimator(), Bits(x)).count(0, 100), expected)
    assert np.array_equal(engine(lambda rows: rows @ weight, Bits(x)).count(0, 100), expected)
    labels = engine(lambda rows: (rows @ weight).argmax(axis=1), Bits(x), classes=4)
    assert np.array_equal(labels.count(0, 100), expected)
    with pytest.raises(InputError, match="4 classes"):
        engine(Estimator(), Bits(x), classes=5)


def test_a_model_in_double_precision_is_asked_in_double_precision(data):
    model = Node().double()
    data.x = data.x.double()
    assert engine(model, Row(data, [0])).count(0, 20).sum() == 20


def test_the_callers_model_is_never_cast(data):
    model = Node()
    asked = GenericEngine(Question(model, Row(data, [0]), Flip(0.7), dtype=torch.float64))
    assert asked.count(0, 20).sum() == 20
    assert model.first.lin.weight.dtype == torch.float32


def test_global_pooling_of_sums(data):
    class Summed(Pooled):
        def forward(self, x, edge_index, batch):
            return global_add_pool(Node.forward(self, x, edge_index), batch)

    assert engine(Summed(), AllPairs([data])).count(0, 30).sum() == 30
