"""Row: the attacker rewires the target's own row."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.sampling.edge_function import Function, with_attributes
from unswayed.sampling.inputs import read_graph
from unswayed.sampling.layout import Layout, row_layout
from unswayed.sampling.reading import read_nodes, to_data
from unswayed.sampling.threats.base import RowView, Threat


class Row(Threat):
    """The attacker rewires the target's own row: any edge between it and any other node, both directions at once.

    The structure vector of target u has one entry for every other node. Words are drawn for all n nodes, entry v for node
    v; the one at u itself is not used. `data` is the cleaned `Data`, `nodes` the targets as a tensor. `edge_attr(i, j)` makes the
    attributes of edges from the numbers of their ends, so that any pair has some; without it, edge attributes are refused.
    """

    kind = "row"
    words = Words(
        unit="node",
        one="adds or deletes one of the node's links",
        many="adds or deletes up to {k} of the node's links",
        adds="adds up to {k} of the node's missing links",
        deletes="deletes up to {k} of the node's links",
    )

    nodes: Tensor
    together = False  # each target has a graph of its own: its row alone is noisy

    def __init__(self, data: Any, nodes: Any, *, edge_attr: Function | None = None) -> None:
        self.graph = with_attributes(read_graph(data), data, edge_attr)
        self.nodes = read_nodes(nodes, self.graph.num_nodes, self.graph.names)
        self.targets = self.nodes.numpy()
        self.entries = np.full(len(self.nodes), self.graph.num_nodes - 1, dtype=np.int64)
        self.ones = self.graph.degrees()[self.nodes].numpy()

    @staticmethod
    def new(data: Any, x: Any, neighbours: Any) -> Threat:
        """The same for nodes that arrive: features and neighbour numbers of each, each taken alone."""
        from unswayed.sampling.threats.arrivals import Arrivals

        return Arrivals(data, x, neighbours)

    @property
    def data(self) -> Any:
        """The cleaned graph as a torch_geometric Data: x, and edge_index in both directions, merged and sorted."""
        return to_data(self.graph)

    def clean(self, target: int) -> Tensor:
        """bool[n], the own entry included as False (it is drawn but not used)."""
        return self.row(int(self.nodes[target]))

    def layout(self, target: int) -> Layout:
        """The target's links are noisy, all other edges constant."""
        node, everyone = int(self.nodes[target]), torch.arange(self.graph.num_nodes)
        return row_layout(self.graph, node, everyone, self.clean(target), unused=node)

    def row_view(self) -> RowView:
        """The graph and the targets."""
        return RowView(self.graph, self.nodes)

    def free(self, target: int) -> Tensor:
        """All but the target's own."""
        everyone = torch.arange(self.graph.num_nodes)
        return everyone[everyone != self.nodes[target]]

    def row(self, node: int) -> Tensor:
        """bool[n]: the neighbours of any node."""
        row = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        first, second = self.graph.pairs
        row[second[first == node]] = True
        row[first[second == node]] = True
        return row

    def _change(self, target: int, entries: Tensor) -> None:
        node = self.nodes[0].expand(len(entries))
        self.graph = self.graph.toggled(
            torch.stack([torch.minimum(node, entries), torch.maximum(node, entries)])
        )

    def drawn(self, target: int) -> int:
        """One for every node, the target itself included (it is not used)."""
        return self.graph.num_nodes

    def digests(self) -> dict[str, str]:
        """The graph's hash."""
        return {"graph": self.graph.digest()}
