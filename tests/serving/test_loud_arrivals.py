"""Nodes that arrive with features so large that rounding hides everything else."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import unswayed as us


def cancelling():
    """What the one who arrives sends to its neighbours comes back from them and is taken away again."""
    model = GraphSAGE(2, 2, 2, 2, act=None)
    weights = {
        "0.lin_l": [[1, 0], [0, 0]],
        "0.lin_r": [[1, 0], [0, 1]],
        "1.lin_l": [[3, 0], [0, 0]],
        "1.lin_r": [[-1, 0], [0, 0]],
    }
    state = {
        f"convs.{name}.weight": torch.tensor(rows, dtype=torch.float32) for name, rows in weights.items()
    }
    model.load_state_dict(state | {f"convs.{i}.lin_l.bias": torch.zeros(2) for i in (0, 1)})
    return model


@pytest.mark.filterwarnings("ignore:The row engine is not used")
@pytest.mark.parametrize("size", [1.2e6, 6e6, torch.inf])
def test_whoever_arrives_with_huge_features_is_never_asked_about_by_sums_in_the_order_of_the_clean_row(size):
    """Rounding hides the rest; the engine of others who arrived, before or at the same time, won five votes of 400 by it."""
    around = torch.arange(12)
    ring = torch.stack([torch.cat([around, around]), torch.cat([around + 1, around - 1]) % 12])
    data = Data(x=torch.randn(12, 2, generator=torch.Generator().manual_seed(0)), edge_index=ring)
    model, noise = cancelling(), us.AddDelete(0.3, 0.3)
    service = us.Smoothed(model, noise, data, samples=400, audit=0)
    for feature, by_row in ((0.3, True), (size, False)):
        arriving = us.Row.new(data, [[0.3, 0.1], [feature, 0.2]], [[0, 1], [2, 3, 4, 7]])
        slow = us.poll(model, arriving, noise, samples=400, seed=3, engine="generic", batch_size=1).counts
        for votes in (
            service.certify(arriving, seed=3).votes,
            us.poll(model, arriving, noise, samples=400, seed=3),
        ):
            assert (votes.notes["engine"] == "row") is by_row
            assert np.abs(votes.counts - slow).max() <= (0 if by_row else 1)
