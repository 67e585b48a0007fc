"""The user's own modules, trained under noise by the same recipes."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

import unswayed as us
from unswayed.datasets import split
from unswayed.datasets.made import block_model
from unswayed.errors import InputError
from unswayed.models.training import fit
from unswayed.models.training.noisy import NoisySettings, asking, plain_logits, row_logits

QUICK = NoisySettings(warm_up=20, steps=20, batch=16, check_every=10, checks=1)


class Odd(nn.Module):
    """Reads the edges by itself, so that no engine knows its layers."""

    def __init__(self, features, classes):
        super().__init__()
        self.conv, self.out = GCNConv(features, 16), nn.Linear(16, classes)

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[0], minlength=len(x)).clamp(min=1)
        return self.out(self.conv(x, edge_index).relu() / degree[:, None])


class Known(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.one, self.two = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize(("kind", "ask"), [(Odd, plain_logits), (Known, row_logits)])
@pytest.mark.parametrize("recipe", ["noise", "distill"])
def test_an_own_module_learns_under_noise(kind, ask, recipe):
    data = block_model()
    parts = split(data, 0, test="rest")
    torch.manual_seed(0)
    model = kind(data.num_features, data.num_classes)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    teacher = (
        torch.nn.functional.one_hot(data.labels, data.num_classes).float() if recipe == "distill" else None
    )
    trained = fit(model, data, parts, recipe=recipe, noise=us.Flip(0.9), settings=QUICK, teacher=teacher)
    assert trained is model
    assert asking(model) is ask
    assert not trained.training
    assert any(not torch.equal(a, b) for a, b in zip(before, trained.parameters(), strict=True))


def test_what_cannot_be_trained_is_refused():
    data = block_model()
    parts = split(data, 0, test="rest")

    class OfData(nn.Module):
        def forward(self, data):
            return data.x

    with pytest.raises(InputError, match=r"forward\(data\)"):
        fit(OfData(), data, parts, recipe="noise", noise=us.Flip(0.9))
    with pytest.raises(InputError, match="one column for each"):
        fit(Known(data.num_features, 1), data, parts, recipe="noise", noise=us.Flip(0.9))
