import copy
import functools
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import unswayed as us
from unswayed.errors import StoreError
from unswayed.sampling.digest import describe_model


class Net(nn.Module):
    def __init__(self, scale=1.0, slope=0.2):
        super().__init__()
        torch.manual_seed(0)
        self.scale = scale
        self.linear, self.act = nn.Linear(3, 2), nn.LeakyReLU(slope)

    def forward(self, x, edge_index):
        return self.act(self.linear(x)) * self.scale


def digest(model):
    return describe_model(model)["sha256"]


def test_modes_copies_and_gradients_do_not_matter():
    net = Net()
    copied = copy.deepcopy(net).train()
    copied(torch.ones(1, 3), None).sum().backward()
    assert digest(net.eval()) == digest(copied) == digest(Net())


def test_weights_settings_classes_and_structure_matter():
    changed = Net()
    changed.linear.weight.data[0, 0] += 1e-6

    class Other(Net):
        def forward(self, x, edge_index):
            return -super().forward(x, edge_index)

    wide = GCN(3, 8, 2, 2, dropout=0.1)
    settled = copy.deepcopy(wide)
    settled.convs[0].improved = True
    models = [Net(), changed, Net(scale=2.0), Net(slope=0.1), Other(), wide, settled]
    assert len({digest(model) for model in models}) == len(models)


class Holding(nn.Module):
    """Answers by what is neither a parameter nor in its state dict."""

    def __init__(self, matrix, act=torch.relu, shift=0.0, sign=1.0):
        super().__init__()
        self.matrix, self.act, self._sign = matrix, act, sign
        self.register_buffer("shift", torch.tensor(shift), persistent=False)
        self.itself = [self]  # a way to hold a module unregistered; must not be followed for ever

    def forward(self, x, edge_index):
        return self._sign * self.act(x @ self.matrix) + self.shift


def test_what_a_module_holds_matters():
    hooked = Holding(torch.eye(2))
    hooked.register_forward_hook(lambda module, inputs, out: -out)
    patched = Holding(torch.eye(2))
    patched.forward = lambda x, edge_index: x
    models = [
        Holding(torch.eye(2)),
        Holding(torch.ones(2, 2)),
        Holding(torch.eye(2).to_sparse()),
        Holding(torch.ones(2, 2).to_sparse()),
        Holding(torch.eye(2), torch.tanh),
        Holding(torch.eye(2), shift=1.0),
        Holding(torch.eye(2), sign=-1.0),
        hooked,
        patched,
    ]
    assert len({digest(model) for model in models}) == len(models)
    assert digest(Holding(torch.eye(2))) == digest(models[0]) == digest(copy.deepcopy(models[0]))


def make(value, array):
    def ask(rows, offset=0):
        return (rows.sum(axis=1) + value + offset + array.sum()) % 2

    return ask


def test_functions_are_told_apart_by_source_closure_and_arguments():
    asks = [
        make(0, np.zeros(2)),
        make(1, np.zeros(2)),
        make(0, np.ones(2)),
        functools.partial(make(0, np.zeros(2)), offset=1),
        lambda rows: rows[:, 0],
        lambda rows: rows[:, 1],
        Net().forward,
        np.sum,
    ]
    assert len({digest(ask) for ask in asks}) == len(asks)
    assert digest(make(0, np.zeros(2))) == digest(make(0, np.zeros(2)))


def test_estimators_are_hashed_by_what_they_learnt():
    from sklearn.ensemble import RandomForestClassifier

    x, y = np.eye(6), np.arange(6) % 2
    fit = [RandomForestClassifier(4, random_state=seed).fit(x, y) for seed in (0, 0, 1)]
    assert digest(fit[0]) == digest(fit[1]) != digest(fit[2])


def test_another_process_computes_the_same_hash():
    code = (
        "from torch_geometric.nn import GAT, GIN;"
        "import numpy as np, torch; from sklearn.tree import DecisionTreeClassifier as T;"
        "from unswayed.sampling.digest import describe_model as d; torch.manual_seed(0);"
        "print(d(T(random_state=0).fit(np.eye(6), np.arange(6) % 3))['sha256'], d(torch.nn.Linear(3, 2))['sha256'],"
        "d(GAT(3, 4, 2, 2))['sha256'], d(GIN(3, 4, 2, 2))['sha256'],"
        "d(torch.nn.TransformerEncoderLayer(4, 2))['sha256'])"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1


def test_masks_matter_only_to_modules_that_can_read_them(tmp_path):
    class OnData(Net):
        def forward(self, data):
            return super().forward(data.x, data.edge_index) + data.mask[:, None]

    def data(first):
        mask = torch.tensor([first, False])
        return Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]), mask=mask)

    for name, model in (("edges", Net()), ("data", OnData())):
        us.poll(model, us.Row(data(True), 0), us.Flip(0.7), samples=5, store=tmp_path / name)
    us.poll(Net(), us.Row(data(False), 0), us.Flip(0.7), samples=5, store=tmp_path / "edges")
    with pytest.raises(StoreError, match="constants"):
        us.poll(OnData(), us.Row(data(False), 0), us.Flip(0.7), samples=5, store=tmp_path / "data")
