"""What a model's code reads from files of one's own is part of its hash."""

import importlib
import linecache
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import unswayed as us
from unswayed.errors import StoreError
from unswayed.sampling.digest import describe_model


def digest(model):
    return describe_model(model)["sha256"]


SHARED, ROWS, SCALE = nn.Linear(3, 2), np.arange(3.0), 2.0


def by_network(x, edge_index):
    return [SHARED(row) for row in x]


def by_array(x, edge_index):
    return x * ROWS


class ByNumber(nn.Module):
    def forward(self, x, edge_index):
        return x * SCALE


@pytest.mark.parametrize(
    "model", [by_network, by_array, ByNumber(), lambda x, edge_index: SHARED(x) * ROWS * SCALE]
)
def test_what_a_function_reads_from_its_file_is_part_of_it(model, monkeypatch):
    """A notebook's `lambda x, edge_index: net(x, edge_index)`: trained further, it is another classifier."""
    before = digest(model)
    assert digest(model) == before
    other = nn.Linear(3, 2)
    for name, value in (("SHARED", other), ("ROWS", -ROWS), ("SCALE", 3.0)):
        monkeypatch.setitem(globals(), name, value)
    assert digest(model) != before


SEEN = []


class Remembers(nn.Module):
    SEEN = 1

    def forward(self, x, edge_index):
        return x * self.SEEN


def test_a_part_that_is_called_like_something_in_the_file_is_not_that(monkeypatch):
    before = digest(Remembers())
    monkeypatch.setitem(globals(), "SEEN", [1])
    assert digest(Remembers()) == before


MINE = """
import argparse, collections, fractions, functools, types
import numpy as np, torch
from sklearn.preprocessing import StandardScaler
SETTINGS, SHARES = {{"scale": {0}}}, [{0}]
def helper(x): return x * {0}
class Scaled:
    def __call__(self, x): return x * {0}
    def method(self, x): return x * {0}
scaled = Scaled()
bound = scaled.method
def times(function):
    @functools.wraps(function)
    def wrapped(*given): return function(*given) * {0}
    return wrapped
@times
def decorated(x): return x
@functools.lru_cache
def cached(): return {0}
@functools.singledispatch
def dispatched(x): return x
@dispatched.register
def _(x: int): return x * {0}
@torch.jit.script
def scripted(x): return x * {0}
class Meta(type):
    def scale(cls): return {0}
class Made(metaclass=Meta): pass
space, words = types.SimpleNamespace(scale={0}), argparse.Namespace(scale={0})
proxy, queue = types.MappingProxyType(dict(scale={0})), collections.deque([{0}])
single, whole, exact = np.float32({0}), np.int64({0}), fractions.Fraction({0})
several, vector = range(3 + {0}), np.vectorize(lambda x: x * {0})
scaler = StandardScaler().fit([[0.0], [2.0 + {0}]])
"""
THEIRS = """
import torch, mine, folder.mine
from mine import *
class Net(torch.nn.Module):
    def forward(self, x, edge_index): return {0}
def ask(x, edge_index): return {0}
"""


@pytest.mark.parametrize(
    "reads",
    [
        "helper(x)",
        "mine.helper(x)",
        "folder.mine.helper(x)",
        "scaled(x)",
        "Scaled()(x)",
        "x * SETTINGS['scale']",
        "x * SHARES[0]",
        "bound(x)",
        "decorated(x)",
        "x * cached()",
        "x * dispatched(1)",
        "scripted(x)",
        "x * Made.scale()",
        *(f"x * {held}.scale" for held in ("space", "words")),
        *(
            f"x * {held}"
            for held in ("proxy['scale']", "queue[0]", "single", "whole", "float(exact)", "len(several)")
        ),
        "vector(x)",
        "scaler.transform(x)",
    ],
)
def test_code_and_settings_in_files_of_ones_own_matter_wherever_they_stand(reads, tmp_path, monkeypatch):
    """A store whose helper function was edited since went on with the votes of both."""
    matters(THEIRS.format(reads), tmp_path, monkeypatch)


WRAPPED = """
import torch
from mine import times
class Net(torch.nn.Module):
    @times
    def forward(self, x, edge_index): return x
@times
def ask(x, edge_index): return x
"""
LATER = """
import torch
class Net(torch.nn.Module):
    def forward(self, x, edge_index):
        {0} helper
        return helper(x)
def ask(x, edge_index):
    {0} helper
    return helper(x)
"""


@pytest.mark.parametrize(
    "theirs", [WRAPPED, LATER.format("from mine import"), LATER.format("from folder.mine import")]
)
def test_what_wraps_a_model_and_what_it_imports_when_it_is_called_matters(theirs, tmp_path, monkeypatch):
    """What wraps a function seems to have its source, and the file that is imported later was not looked at."""
    matters(theirs, tmp_path, monkeypatch)


def matters(theirs, tmp_path, monkeypatch):
    """The hashes of a model and a function in this file are others once what they read is edited, and the same once it is as before."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "theirs.py").write_text(theirs)
    found = []
    for scale in (1, -1, 1):
        for place in (tmp_path, tmp_path / "folder"):
            place.mkdir(exist_ok=True)
            (place / "mine.py").write_text(MINE.format(scale))
        for name in ("mine", "folder", "folder.mine", "theirs"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        linecache.checkcache()
        importlib.invalidate_caches()
        module = importlib.import_module("theirs")
        model = module.Net()
        before = digest(model)
        model(torch.ones(1, 1), None)
        assert digest(model) == before  # whatever it has imported or remembered meanwhile
        found.append((before, digest(module.ask)))
    assert found[0] == found[2]
    assert all(one != other for one, other in zip(*found[:2], strict=True))


def test_a_store_is_not_continued_by_a_function_whose_network_was_trained_further(tmp_path):
    data = Data(x=torch.randn(6, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))

    def ask(samples):
        return us.poll(
            lambda x, edge_index: SHARED(x),
            us.Row(data, [0]),
            us.Flip(0.8),
            samples=samples,
            store=tmp_path / "run",
        )

    ask(50)
    with torch.no_grad():
        SHARED.weight.add_(1)
    with pytest.raises(StoreError, match="another model"):
        ask(100)
