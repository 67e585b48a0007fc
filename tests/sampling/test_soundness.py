"""Classifiers that a certificate cannot stand on are refused, and those that mix their batch are asked alone."""

import numpy as np
import pytest
import torch
import torch.nn.functional as functional
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import BatchNorm, GCNConv, GraphNorm, global_mean_pool

from unswayed.errors import UnsoundModel
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Bits, Row
from unswayed.theory.noise import AddDelete, Flip

from .small import CLASSES, FEATURES, Node, Pooled, engine


def test_modes_of_every_module_are_restored_after_success_and_after_failure(data):
    model = Node(nn.Sequential(nn.ReLU(), nn.Dropout(0.5)))
    model.between[1].eval()
    modes = [module.training for module in model.modules()]
    engine(model, Row(data, [0])).count(0, 5)
    assert [module.training for module in model.modules()] == modes
    assert not any("forward" in module.__dict__ for module in model.modules())
    model.second = GCNConv(8, 1)
    with pytest.raises(UnsoundModel):
        engine(model, Row(data, [0]))
    assert model.training
    assert not model.between[1].training


def test_gradients_are_not_recorded_and_parameters_stay(data):
    model = Node()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    engine(model, Row(data, [0])).count(0, 5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_cached_propagation_is_refused(data):
    with pytest.raises(UnsoundModel, match="cache"):
        engine(Node(cached=True), Row(data, [0]))


def test_batch_norm_needs_running_statistics(data):
    for norm in (nn.BatchNorm1d(8, track_running_stats=False), BatchNorm(8, track_running_stats=False)):
        with pytest.raises(UnsoundModel, match="statistics of the batch"):
            engine(Node(norm), Row(data, [0]))
    engine(Node(nn.BatchNorm1d(8)), Row(data, [0])).count(0, 3)


class StubbornNorm(nn.BatchNorm1d):
    def train(self, mode=True):
        return super().train(True)


class StubbornDropout(nn.Dropout):
    def train(self, mode=True):
        return super().train(True)


@pytest.mark.parametrize("layer", [StubbornNorm(8), StubbornDropout(0.5)])
def test_layers_that_stay_in_training_mode_are_refused(data, layer):
    with pytest.raises(UnsoundModel, match=r"training|statistics of the batch"):
        engine(Node(layer), Row(data, [0]))


class AlwaysDropping(Node):
    def forward(self, x, edge_index):
        return super().forward(functional.dropout(x, 0.5), edge_index)


def test_functional_dropout_left_on_is_refused(data):
    with pytest.raises(UnsoundModel, match="two identical calls"):
        engine(AlwaysDropping(), Row(data, [0]))


class HomeMadeCache(Node):
    kept = None

    def forward(self, x, edge_index):
        if self.kept is None:
            self.kept = edge_index
        return super().forward(x, self.kept)


def test_state_that_outlives_a_call_is_refused(data):
    with pytest.raises(UnsoundModel, match="asked before"):
        engine(HomeMadeCache(), Row(data, [0]))


class PooledCache(Pooled):
    """Remembers its last answer of each shape."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x, edge_index, batch):
        out = super().forward(x, edge_index, batch)
        return self.kept.setdefault((len(x), out.shape), out)


@pytest.mark.parametrize("noise", [Flip(0.7), Flip(0.999999), AddDelete(1e-6, 1e-6)])
def test_state_is_found_behind_a_graph_of_one_node_and_under_little_noise(data, noise):
    lonely = Data(x=torch.ones(1, FEATURES), edge_index=torch.zeros((2, 0), dtype=torch.long))
    with pytest.raises(UnsoundModel, match="asked before"):
        GenericEngine(Question(PooledCache(), AllPairs([lonely, data]), noise))
    with pytest.raises(UnsoundModel, match="asked before"):
        GenericEngine(Question(HomeMadeCache(), AllPairs(data, [0]), noise))


def test_a_module_that_mixes_its_batch_is_asked_one_graph_at_a_time(data):
    class Mixing(Pooled):
        def forward(self, x, edge_index, batch):
            out = super().forward(x, edge_index, batch)
            return out - out.mean(dim=0, keepdim=True) + torch.arange(CLASSES) * out.abs().max()

    class Norming(Node):
        def __init__(self):
            super().__init__(GraphNorm(8))

    for model, threat in ((Mixing(), AllPairs([data])), (Norming(), Row(data, [0]))):
        mixing = engine(model, threat, batch_size=50)
        with pytest.warns(UserWarning, match="one noisy graph at a time"):
            mixing.count(0, 60)
        assert not mixing.classifier.batched


class Norming(Node):
    """Norms over whatever graphs come together; a node's own first feature goes straight to its logits."""

    def __init__(self, scale):
        super().__init__(GraphNorm(8))
        self.scale = scale

    def forward(self, x, edge_index):
        return self.scale * (super().forward(x, edge_index) + x[:, :1])


@pytest.mark.parametrize(("scale", "feature"), [(1.0, 1e9), (1e-7, 1.0)])
def test_mixing_is_noticed_beside_a_huge_logit_and_among_tiny_ones(data, scale, feature):
    odd = data.clone()
    odd.x[3, 0] = feature
    mixing = engine(Norming(scale), AllPairs(odd, [0, 3, 5]), batch_size=50)
    with pytest.warns(UserWarning, match="one noisy graph at a time"):
        together = mixing.count(0, 60)
    assert (
        together.tolist()
        == engine(Norming(scale), AllPairs(odd, [0, 3, 5]), batch_size=1).count(0, 60).tolist()
    )


class RowMixing(nn.Module):
    def forward(self, x):
        count = x.sum(dim=1)
        return torch.stack([count - count.mean(), torch.zeros_like(count)], dim=1)


@pytest.mark.parametrize("model", [RowMixing(), lambda rows: rows.sum(axis=1) > np.median(rows.sum(axis=1))])
def test_rows_of_bits_that_are_compared_with_each_other_are_asked_one_at_a_time(model):
    mixing = engine(model, Bits(np.ones((1, 6))), classes=2)
    with pytest.warns(UserWarning, match="one noisy row at a time"):
        votes = mixing.count(0, 50)
    assert votes.tolist() == [[50, 0]]


def test_a_module_told_the_batch_may_normalise_by_graph(data):
    class Norming(Pooled):
        def __init__(self):
            super().__init__()
            self.norm = GraphNorm(8)

        def forward(self, x, edge_index, batch):
            h = self.norm(self.first(x, edge_index), batch)
            return global_mean_pool(self.second(h.relu(), edge_index), batch)

    norming = engine(Norming(), AllPairs([data]))
    norming.count(0, 60)
    assert norming.classifier.batched


class Collecting(Node):
    """Harmless today, but nobody can know: what it keeps could be read at any time."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x, edge_index):
        if isinstance(self.kept, int):
            self.kept += 1
        elif isinstance(self.kept, dict):
            self.kept.setdefault(edge_index.shape, 1)
        else:
            self.kept.append(edge_index.shape[1])
        return super().forward(x, edge_index)


@pytest.mark.parametrize("kept", [0, {}, []])
def test_settings_that_change_with_every_question_are_refused_by_name(data, kept):
    with pytest.raises(UnsoundModel, match="changes its own kept"):
        engine(Collecting(kept), Row(data, [0]))


class Looking(Node):
    last = None

    def forward(self, x, edge_index):
        self.last = super().forward(x, edge_index)
        return self.last


def test_a_tensor_kept_to_be_looked_at_is_allowed(data):
    assert np.array_equal(
        engine(Looking(), Row(data, [0])).count(0, 9), engine(Node(), Row(data, [0])).count(0, 9)
    )


class Drifting(Node):
    """What it subtracts grows with every question, too little for a few to show it."""

    def __init__(self, kind):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.scale = torch.nn.Parameter(torch.ones(()), requires_grad=False)
        self.kind = kind

    def forward(self, x, edge_index):
        getattr(self, self.kind).add_(1e-6)
        return super().forward(x, edge_index) * self.scale - self.mean


@pytest.mark.parametrize("kind", ["mean", "scale"])
def test_buffers_and_parameters_that_change_with_every_question_are_refused(data, kind):
    with pytest.raises(UnsoundModel, match=f"changes its own {kind}"):
        engine(Drifting(kind), Row(data, [0]))
