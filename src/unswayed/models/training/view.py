"""What training may see: the whole graph, or (inductive) the graph from which the test nodes are gone entirely."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError

PROTOCOLS = ("transductive", "inductive")


@dataclass(frozen=True, eq=False)
class View:
    """The part of a dataset that training sees; in an inductive one no test node, feature or edge is left.

    `train` and `val` number the nodes of `data`; `kept[i]` is node i's number in the dataset. `share` is how many of the
    dataset's nodes are left: about as many of a node's links are.
    """

    data: Data
    train: Tensor
    val: Tensor
    kept: Tensor
    share: float = 1.0

    def to(self, device: str) -> "View":
        """The same view on another device."""
        train, val, kept = (nodes.to(device) for nodes in (self.train, self.val, self.kept))
        return View(self.data.to(device), train, val, kept, self.share)


def view(dataset: Dataset, split: Split, protocol: str) -> View:
    """The view of a node dataset under `protocol`, "transductive" or "inductive"."""
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}.")
    data = dataset.graph
    seen = torch.ones(data.num_nodes, dtype=torch.bool)
    if protocol == "inductive":
        seen[split.test] = False
    kept = seen.nonzero()[:, 0]
    number = torch.full((data.num_nodes,), -1)
    number[kept] = torch.arange(len(kept))
    edges, _ = subgraph(kept, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
    visible = Data(x=data.x[kept], edge_index=edges, y=data.y[kept])
    share = len(kept) / max(data.num_nodes, 1)
    return View(visible, number[split.train], number[split.val], kept, share)


def alone(seen: View, learnt: Tensor, soft: Tensor | None = None) -> tuple[View, Tensor | None]:
    """(view, soft labels) of the nodes to be learnt and those that judge, without an edge: all that a model of features needs.

    `train` are the nodes to be learnt.
    """
    nodes = torch.unique(torch.cat([learnt, seen.val]))
    number = torch.full((len(seen.data.y),), -1, device=nodes.device)
    number[nodes] = torch.arange(len(nodes), device=nodes.device)
    bare = Data(x=seen.data.x[nodes], edge_index=seen.data.edge_index[:, :0], y=seen.data.y[nodes])
    view = View(bare, number[learnt], number[seen.val], seen.kept[nodes])
    return view, None if soft is None else soft.to(nodes.device)[nodes]
