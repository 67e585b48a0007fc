import argparse
import copy
import functools
import gc
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, Sequential

import unswayed as us
from unswayed.errors import StoreError, UnsoundModel
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


@dataclass
class Config:
    sign: float
    names: list = field(default_factory=list)


class Slotted:
    __slots__ = ("sign",)

    def __init__(self, sign):
        self.sign = sign


class Signs(Enum):
    MINUS = -1
    PLUS = 1


Point = namedtuple("Point", "sign")
SETTINGS = {
    "argparse": lambda sign: argparse.Namespace(sign=sign),
    "simple namespace": lambda sign: SimpleNamespace(sign=sign),
    "dataclass": Config,
    "deep": lambda sign: {"a": [{"b": (Config(1.0, [SimpleNamespace(sign=sign)]),)}]},
    "slots": Slotted,
    "enum": Signs,
    "named tuple": Point,
    "set": lambda sign: {"flip", "x", "y"} if sign < 0 else {"keep", "x", "y"},
    "frozen set": lambda sign: frozenset({sign, 5}),
    "numpy scalar": np.float32,
    "numpy objects": lambda sign: np.array([sign, "x"], dtype=object),
    "data": lambda sign: Data(x=torch.full((2, 1), float(sign)), edge_index=torch.zeros(2, 0).long()),
    "device": lambda sign: torch.device("cpu" if sign < 0 else "meta"),
    "type": lambda sign: torch.float32 if sign < 0 else torch.float64,
    "class": lambda sign: Config if sign < 0 else Slotted,
    "function": lambda sign: torch.neg if sign < 0 else torch.abs,
    "lambdas on one line": lambda sign: (lambda x: -x) if sign < 0 else (lambda x: x),
    "keyword default": lambda sign: functools.partial(print, end=sign),
    "default dict": lambda sign: defaultdict(int if sign < 0 else float),
    "ordered": lambda sign: OrderedDict([(sign, 1), (0, 2)]),
    "order of a dict": lambda sign: {1: 0, 2: 0} if sign < 0 else {2: 0, 1: 0},
    "range": lambda sign: range(sign + 5),
    "path": lambda sign: PurePosixPath(f"a/{sign}"),
    "type of a number": lambda sign: 1 if sign < 0 else 1.0,
    "fraction": lambda sign: Fraction(sign, 3),
    "modules unregistered": lambda sign: [Net(scale=sign)],
    "random state": lambda sign: np.random.RandomState(sign + 1),
    "generator": lambda sign: torch.Generator().manual_seed(sign + 1),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_every_kind_tell_two_models_apart(name):
    make = SETTINGS[name]
    minus, again, plus = (Net(scale=make(sign)) for sign in (-1, -1, 1))
    assert digest(minus) == digest(again) == digest(copy.deepcopy(minus))
    assert digest(minus) != digest(plus)


@pytest.mark.parametrize(
    "value", [threading.Lock(), (i for i in range(3)), sys.stdout, torch.empty(2, device="meta")]
)
def test_what_has_no_content_to_compare_is_refused_by_name(value):
    with pytest.raises(UnsoundModel, match=r"the classifier\.scale\.item 0.*has no content"):
        digest(Net(scale={"deep": value}))


def test_the_source_of_base_classes_matters():
    def family(sign):
        if sign < 0:

            class Base(Net):
                def turned(self, x):
                    return -x
        else:

            class Base(Net):
                def turned(self, x):
                    return x

        class Child(Base):
            def forward(self, x, edge_index):
                return self.turned(super().forward(x, edge_index))

        return Child()

    assert digest(family(-1)) == digest(family(-1)) != digest(family(1))


def test_what_is_put_into_a_class_matters(monkeypatch):
    before = digest(Net())
    monkeypatch.setattr(Net, "forward", lambda self, x, edge_index: -self.linear(x))
    assert digest(Net()) != before
    monkeypatch.undo()
    monkeypatch.setattr(Net, "slope", 3, raising=False)
    assert digest(Net()) != before


def test_classes_and_functions_without_source_are_told_apart():
    def made(sign):
        scope = {"nn": nn}
        exec(f"class Odd(nn.Module):\n    def forward(self, x, edge_index): return {sign} * x", scope)
        exec(f"def odd(rows): return rows[:, {sign}]", scope)
        return scope["Odd"](), scope["odd"]

    (minus, less), (plus, more) = made(-1), made(1)
    assert digest(minus) != digest(plus)
    assert digest(less) != digest(more)
    assert digest(less) == digest(made(-1)[1])


class Turning(nn.Module):
    def __init__(self, sign: float):
        super().__init__()
        self.sign = sign

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return x * self.sign


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_compiled_programs_matter():
    example = torch.ones(2, 2), torch.zeros(2, 0).long()
    for build in (
        torch.jit.script,
        lambda module: torch.jit.trace(module, example),
        torch.fx.symbolic_trace,
    ):
        minus, again, plus = (build(Turning(sign)) for sign in (-1.0, -1.0, -1.00000001))
        assert digest(minus) == digest(again) != digest(plus)


def test_the_wiring_of_a_sequential_matters():
    def wired(text):
        return Sequential(
            "x, edge_index", [(nn.Identity(), "x -> a"), (nn.Tanh(), "x -> b"), (torch.sub, text)]
        )

    assert digest(wired("a, b -> x")) == digest(wired("a, b -> x")) != digest(wired("b, a -> x"))


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


@pytest.mark.slow
def test_another_process_computes_the_same_hash():
    code = (
        "from torch_geometric.nn import GAT, GIN;"
        "import numpy as np, torch; from sklearn.tree import DecisionTreeClassifier as T;"
        "from unswayed.sampling.digest import describe_model as d; torch.manual_seed(0);"
        "print(d(T(random_state=0).fit(np.eye(6), np.arange(6) % 3))['sha256'], d(torch.nn.Linear(3, 2))['sha256'],"
        "d(GAT(3, 4, 2, 2))['sha256'], d(GIN(3, 4, 2, 2))['sha256'],"
        "d(torch.nn.TransformerEncoderLayer(4, 2))['sha256']);"
        "import test_digest as t;"
        "print([t.digest(t.Net(scale=make(-1))) for name, make in t.SETTINGS.items()])"
    )
    here = str(Path(__file__).parent)
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([here, *sys.path])},
        ).stdout
        for seed in ("1", "2")
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


def test_a_model_is_hashed_in_several_threads_at_once():
    net, found = Net(), []

    def give_way(phase, info):
        time.sleep(0)

    def hash_often():
        for _ in range(4):
            found.append(digest(net))

    threads = [threading.Thread(target=hash_often) for _ in range(3)]
    was = gc.get_threshold()
    gc.callbacks.append(give_way)  # threads take turns in the middle of what Python does in one go else
    gc.set_threshold(200, 100, 100)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*was)
        gc.callbacks.remove(give_way)
    assert found == [digest(net)] * 12
