"""Receptive fields: deleting an edge outside of one never changes what a network says."""

import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv

import unswayed as us
from unswayed.errors import InputError

from .small import FEATURES


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("layer", "degrees"), [(SAGEConv, False), (GCNConv, True)])
def test_an_edge_matters_only_within_the_field(data, layer, degrees, layers):
    torch.manual_seed(1)
    parts = [layer(FEATURES, FEATURES).double() for _ in range(layers)]

    def said(pairs):
        h, edges = data.x.double(), torch.cat([pairs, pairs.flip(0)], dim=1)
        for part in parts:
            h = part(h, edges).tanh()
        return h

    pairs = us.Row(data, [0]).graph.pairs
    fields, clean = us.receptive_fields(data, range(data.num_nodes), layers, degrees=degrees), said(pairs)
    hit = 0
    for edge in range(pairs.shape[1]):
        keep = torch.arange(pairs.shape[1]) != edge
        moved = (said(pairs[:, keep]) != clean).any(dim=1).nonzero()[:, 0].tolist()
        assert all(edge in fields[node] for node in moved)
        hit += len(moved)
    assert hit > 0.5 * sum(map(len, fields))


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_layers_are_a_count(data, bad):
    with pytest.raises(InputError, match="layers"):
        us.receptive_fields(data, [0], bad)
