"""What the tests of sampling share."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from .small import FEATURES, NODES


@pytest.fixture
def data():
    torch.manual_seed(0)
    return Data(
        x=torch.randn(NODES, FEATURES), edge_index=erdos_renyi_graph(NODES, 0.25), y=torch.arange(NODES)
    )
