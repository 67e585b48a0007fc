"""A service notices what a copy of the model does not hold: names that its code reads, and the rest of the data."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError, UnsoundModel

FLIP = us.Flip(beta=0.8)
SIGN = 1.0


def sign_of(module):
    return module.SIGN


class Reading(nn.Module):
    """Goes by a global, and by a constant of its class."""

    SIGN = 1.0

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 3)

    def forward(self, x, edge_index):
        return SIGN * sign_of(self) * self.conv(x, edge_index)


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(20, 4), edge_index=erdos_renyi_graph(20, 0.2))


@pytest.mark.parametrize("noise", [FLIP, None])
@pytest.mark.parametrize("where", ["global", "class", "method", "function"])
def test_names_that_are_bound_anew_are_found_out(data, monkeypatch, noise, where):
    model = Reading() if noise is not None else us.Hashed(Reading(), 5)
    service = us.Smoothed(model, noise, data, samples=50, audit=0)
    service.certify([1, 2])
    home = globals()
    with monkeypatch.context() as patch:
        if where == "global":
            patch.setitem(home, "SIGN", -1.0)
        elif where == "class":
            patch.setattr(Reading, "SIGN", -1.0)
        elif where == "method":
            patch.setattr(Reading, "forward", lambda self, x, edge_index: -self.conv(x, edge_index))
        else:
            patch.setitem(home, "sign_of", lambda module: -module.SIGN)
        for ask in (service.certify, service.predict, service.audit):
            with pytest.raises(UnsoundModel, match="has changed since this service was made"):
                ask([1, 2])
    service.certify([1, 2])  # as it was


class Whole(nn.Module):
    """Reads whatever the data holds."""

    def forward(self, data):
        said = torch.zeros(len(data.x), 2).index_add(
            0, data.edge_index[1], data.x[data.edge_index[0], :2] * 0.1
        )
        return said + torch.stack([-data.pos, data.pos], dim=1)


def test_a_graph_that_differs_in_what_else_the_model_reads_is_another_graph(data):
    then = Data(x=data.x, edge_index=data.edge_index, pos=torch.ones(20))
    service = us.Smoothed(Whole(), FLIP, then, samples=50, audit=0)
    assert service.certify(us.Row(then, [0])).label[0] == 1
    other = Data(x=data.x, edge_index=data.edge_index, pos=-torch.ones(20))
    with pytest.raises(InputError, match="another graph"):
        service.certify(us.Row(other, [0]))


def test_labels_and_masks_make_no_other_graph_for_models_of_features_and_links(data):
    service = us.Smoothed(Reading(), FLIP, data, samples=50, audit=0)
    labelled = Data(x=data.x, edge_index=data.edge_index, y=torch.ones(20))
    assert len(service.certify(us.Row(labelled, [0]))) == 1
    weighted = Data(x=data.x, edge_index=data.edge_index, edge_weight=torch.rand(data.edge_index.shape[1]))
    with pytest.raises(InputError, match="another graph"):
        service.certify(us.Row(weighted, [0]))
