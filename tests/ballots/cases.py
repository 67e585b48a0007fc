"""Small graphs, labels and networks to be tried."""

import numpy as np
import torch
from torch_geometric.data import Data


def random_graph(rng, n=9, features=3, density=0.4):
    upper = np.triu(rng.random((n, n)) < density, 1)
    first, second = np.nonzero(upper)
    edges = torch.tensor(np.stack([np.r_[first, second], np.r_[second, first]]))
    x = torch.tensor(rng.normal(size=(n, features)), dtype=torch.float32) if features else None
    return Data(x=x, edge_index=edges, num_nodes=n)


def some_known(rng, n, classes):
    return torch.tensor(np.where(rng.random(n) < 0.5, rng.integers(0, classes, n), -1))


def awakened(net, seed=0):
    """Weights as after some training: nothing is zero any more."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(torch.randn_like(p) * 0.5)
    return net.eval()
