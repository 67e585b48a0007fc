"""A small graph, a model of it, and how it is polled."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.runners import serial

FLIP = us.Flip(beta=0.7)


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(15, 4), edge_index=erdos_renyi_graph(15, 0.2))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return GCN(4, 8, 2, 3, dropout=0.5)


@pytest.fixture
def ask(model, data):
    return lambda samples=2500, **rest: us.poll(model, us.Row(data, [0, 4]), FLIP, samples=samples, **rest)


@pytest.fixture
def whole_blocks(monkeypatch):
    """Blocks are never cut, however slow the machine is."""
    monkeypatch.setattr(serial.Pace, "of", classmethod(lambda pace, engine: pace(None)))
