"""Small networks and the generic engine that asks them."""

import torch
from torch import nn
from torch_geometric.nn import GCNConv, global_mean_pool

from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.theory.noise import Flip

FEATURES, CLASSES, NODES = 5, 3, 12


def engine(model, threat, **rest):
    return GenericEngine(Question(model, threat, Flip(0.7), **rest))


class Node(nn.Module):
    """Two graph convolutions with something in between."""

    def __init__(self, between=None, cached=False):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = GCNConv(FEATURES, 8, cached=cached), GCNConv(8, CLASSES, cached=cached)
        self.between = between or nn.ReLU()

    def forward(self, x, edge_index):
        return self.second(self.between(self.first(x, edge_index)), edge_index)


class Pooled(Node):
    def forward(self, x, edge_index, batch):
        return global_mean_pool(super().forward(x, edge_index), batch)
