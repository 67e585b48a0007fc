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
import torch
SETTINGS, SHARES = {{"scale": {0}}}, [{0}]
def helper(x): return x * {0}
class Scaled:
    def __call__(self, x): return x * {0}
scaled = Scaled()
"""
THEIRS = """
import mine, folder.mine
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
    ],
)
def test_code_and_settings_in_files_of_ones_own_matter_wherever_they_stand(reads, tmp_path, monkeypatch):
    """A store whose helper function was edited since went on with the votes of both."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "theirs.py").write_text(THEIRS.format(reads))
    found = []
    for scale in (1, -1, 1):
        for place in (tmp_path, tmp_path / "folder"):
            place.mkdir(exist_ok=True)
            (place / "mine.py").write_text(MINE.format(scale))
        for name in ("mine", "folder", "folder.mine", "theirs"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        linecache.checkcache()
        theirs = importlib.import_module("theirs")
        found.append((digest(theirs.Net()), digest(theirs.ask)))
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
