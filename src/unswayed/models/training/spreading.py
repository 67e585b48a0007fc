"""Spread: what a graph convolution does to its inputs, for one graph that stays the same through a whole training."""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from unswayed.ballots.links import Links
from unswayed.sampling.engines.plans.surroundings import csr, symmetric


class Spread:
    """Multiplies rows by D^-½ (A + I) D^-½ of an undirected graph (Kipf and Welling 2017); differentiable.

    The same matrix as in PyG's GCNConv and APPNP, made once. It is symmetric, so that going back is multiplying by it again:
    on a CPU, as compressed rows, ten times as fast as sums over edges. On a card sums over edges have a fixed order.
    """

    def __init__(self, data: Data) -> None:
        links = Links.of(copy.copy(data).cpu())
        n, device = links.nodes, data.edge_index.device
        code = torch.cat([links.codes, torch.arange(n) * (n + 1)]).sort().values
        target, voter = code // n, code % n
        root = torch.bincount(target, minlength=n).float().rsqrt()
        self.target, self.voter = target.to(device), voter.to(device)
        self.weight = (root[target] * root[voter])[:, None].to(device)
        starts, shape = torch.searchsorted(target, torch.arange(n + 1)), (n, n)
        self.rows = csr(starts, voter, self.weight[:, 0], shape) if device.type == "cpu" else None

    def __call__(self, x: Tensor) -> Tensor:
        """The rows of `x`, each spread over its node's neighbours."""
        if self.rows is None:
            return torch.zeros_like(x).index_add(0, self.target, self.weight * x[self.voter])
        return symmetric(self.rows, x)
