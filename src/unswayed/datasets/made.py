"""A graph that needs no download: communities that keep to themselves, and features that say little."""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from unswayed.datasets.loading import Dataset

BLOCKS = "blocks"


def block_model(
    *, classes: int = 6, members: int = 50, inside: float = 0.4, outside: float = 0.03, seed: int = 0
) -> Dataset:
    """A stochastic block model with weak features: each pair of nodes is linked with chance `inside` or `outside`.

    Eight numbers describe a node, the mean of its class plus three times as much noise. A fifth of all labels is known.
    """
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(classes * members) % classes
    chance = torch.where(y[:, None] == y, inside, outside)
    half = torch.triu(torch.rand(chance.shape, generator=generator) < chance, 1).nonzero().t()
    x = torch.randn(classes, 8, generator=generator)[y] + 3 * torch.randn(len(y), 8, generator=generator)
    data = Data(x=x, edge_index=coalesce(torch.cat([half, half.flip(0)], dim=1)), y=y)
    return Dataset(BLOCKS, "node", 8, classes, data=data, labelled=0.2)
