"""What several experiments' tests share: a small graph to work on, and what every row of results must say."""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

FIELDS = {
    "dataset", "task", "model", "recipe", "protocol", "threat", "alpha", "samples", "seed", "bounds", "test_targets",
    "clean_accuracy", "floor", "accuracy_edgeless", "certified_accuracy", "seconds", "device", "command", "commit",
}  # fmt: skip


def communities(nodes: int) -> Data:
    """Two communities whose features say something, but not all, of the class."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(nodes) % 2
    x = torch.randn(nodes, 6, generator=generator) * 0.7
    x[:, 0] += 2.0 * y
    ends = torch.randint(0, nodes, (2, 400), generator=generator)
    alike = y[ends[0]] == y[ends[1]]
    return Data(x=x, y=y, edge_index=to_undirected(ends[:, alike & (ends[0] != ends[1])]))
