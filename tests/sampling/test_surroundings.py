"""What torch is told around a call: it must neither enter the answers of a model nor be changed by asking."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError

FLIP = us.Flip(beta=0.8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = SAGEConv(4, 8), SAGEConv(8, 3)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


@pytest.fixture
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(20, 4), edge_index=erdos_renyi_graph(20, 0.2))


def autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16)


def hook():
    """All answers of all modules, with the classes the other way round."""
    return register_module_forward_hook(lambda module, given, out: out.flip(-1))


@pytest.mark.parametrize(("around", "word"), [(autocast, "autocast"), (hook, "hook")])
def test_another_function_than_the_model_is_not_asked(data, around, word, tmp_path):
    model, frozen = Net().eval(), us.LabelBallots(2).freeze(data, known=[0, 1] * 10)
    threat, served = us.Row(data, [0, 1, 2]), us.Smoothed(model, FLIP, data, samples=100)
    exact = us.Smoothed(frozen, None, data)
    us.poll(model, threat, FLIP, samples=1000, store=tmp_path)
    calls = [
        lambda: us.poll(model, threat, FLIP, samples=2000, store=tmp_path),
        lambda: us.prove(frozen, threat),
        lambda: us.prove(us.Hashed(model, 5), threat),
        lambda: us.Smoothed(model, FLIP, data),
        lambda: served.predict([0]),
        lambda: served.audit(),
        lambda: exact.certify([0]),
    ]
    with around():
        for call in calls:
            with pytest.raises(InputError, match=word):
                call()
    for call in calls:
        call()


def test_asking_depends_on_no_seed_and_leaves_everything_as_it_was(data):
    model, threat = Net().eval(), us.Row(data, [0, 1, 2])
    first = us.poll(model, threat, FLIP, samples=300)
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002 (the state of others)
    random.seed(7)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    try:
        before = _state()
        again = us.poll(model, threat, FLIP, samples=300)
        assert _state() == before
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    assert again.counts.tolist() == first.counts.tolist()


def _state():
    old = np.random.get_state()  # noqa: NPY002 (the state of others)
    return (
        torch.get_rng_state().tolist(),
        old[1].tolist(),
        random.getstate(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
    )
