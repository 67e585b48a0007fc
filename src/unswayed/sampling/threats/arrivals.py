"""Arrivals: nodes that are not in the graph yet, each known by its features and its neighbours, each taken alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, read_graph
from unswayed.sampling.layout import Layout, row_layout
from unswayed.sampling.reading import looks_like_mask, numbered
from unswayed.sampling.threats.base import RowView, Threat, update_digest
from unswayed.sampling.threats.row import Row


class Arrivals(Threat):
    """The attacker rewires the links of a node that arrives: any of them to any node of the graph, which stays as it is.

    Made by `Row.new(data, x, neighbours)`: `x` has one row an arrival (None on graphs without features), `neighbours` for each the
    numbers of the nodes it is linked to. An arrival's structure vector has one entry for every node of the graph; its number is n + i.
    """

    kind = "row-new"
    words = Row.words
    nodes: Tensor
    together = False  # each arrives alone

    def __init__(self, data: Any, x: Any, neighbours: Sequence[Any]) -> None:
        self.graph = read_graph(data)
        self.neighbours = [
            read_neighbours(numbered(row, self.graph.names), self.graph.num_nodes) for row in neighbours
        ]
        if not self.neighbours:
            raise InputError("Row.new needs at least one node that arrives.")
        self.x = read_features(x, self.graph, len(self.neighbours))
        n, count = self.graph.num_nodes, len(self.neighbours)
        self.targets = n + np.arange(count)
        self.entries = np.full(count, n, dtype=np.int64)
        self.ones = np.array([len(row) for row in self.neighbours], dtype=np.int64)
        self.nodes = torch.full((count,), n)  # where each is in the graph that it alone has joined

    def joined(self, target: int) -> Graph:
        """The graph with this arrival as its last node, not linked yet; what else is known of nodes is not known of it."""
        graph = self.graph
        x = None if graph.x is None or self.x is None else torch.cat([graph.x, self.x[[target]]])
        unknown = (*graph.left_out, *graph.extras)
        return replace(graph, num_nodes=graph.num_nodes + 1, x=x, extras={}, left_out=unknown)

    def layout(self, target: int) -> Layout:
        """The arrival's links are noisy, all edges of the graph constant."""
        everyone = torch.arange(self.graph.num_nodes)
        return row_layout(self.joined(target), self.graph.num_nodes, everyone, self.clean(target))

    def rows_apart(self) -> "Apart":
        """Each arrival in the graph that it alone has joined."""
        return Apart(self)

    def row_view(self) -> RowView | None:
        """The graph that one arrival has joined, links and all; None where there are several."""
        if len(self) > 1:
            return None
        graph, row = self.joined(0), self.neighbours[0]
        links = torch.stack([row, torch.full_like(row, self.graph.num_nodes)])
        linked = replace(graph, pairs=torch.cat([graph.pairs, links], dim=1))  # in order: it is the last node
        return RowView(linked, self.nodes)

    def _change(self, target: int, entries: Tensor) -> None:
        row = self.clean(target)
        row[entries] ^= True
        self.neighbours = [row.nonzero()[:, 0]]
        self.x = None if self.x is None else self.x[[target]]

    def row(self, node: int) -> Tensor:
        """bool[n]: the neighbours of an arrival, by its own number."""
        return self.clean(int(np.flatnonzero(self.targets == node)[0]))

    def clean(self, target: int) -> Tensor:
        """bool[n]: the nodes that the arrival is linked to."""
        row = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        row[self.neighbours[target]] = True
        return row

    def called(self) -> dict[int, str]:
        """Nodes by their names, and those who arrive as "new 0", "new 1", …: their numbers may be names of others."""
        if not self.graph.names:
            return {}
        borne, places, word = set(self.graph.names), (self.targets - self.graph.num_nodes).tolist(), "new"
        while any(f"{word} {place}" in borne for place in places):
            word = f"very {word}"
        news = {self.graph.num_nodes + place: f"{word} {place}" for place in places}
        return super().called() | news

    def digests(self) -> dict[str, str]:
        """The hashes of the graph, of the features and of the links of those who arrive."""
        links = torch.cat([_numbered(i, row) for i, row in enumerate(self.neighbours)])
        told = {} if self.x is None else {"arriving features": update_digest("x", self.x)}
        return {
            "graph": self.graph.digest(),
            "arriving links": update_digest("links", links),
            **told,
        }


class Apart(Sequence[Threat]):
    """Arrivals one by one, each made when it is asked for."""

    def __init__(self, everyone: Arrivals) -> None:
        self.everyone = everyone

    def __len__(self) -> int:
        return len(self.everyone)

    def __getitem__(self, target: Any) -> Any:
        return self.everyone.attacked(target, torch.zeros(0, dtype=torch.int64))


def _numbered(target: int, row: Tensor) -> Tensor:
    """int64[degree, 2]: the target's position beside each of its neighbours."""
    return torch.stack([torch.full_like(row, target), row], dim=1)


def read_neighbours(row: Any, nodes: int) -> Tensor:
    """int64, sorted: the numbers of an arrival's neighbours, each once."""
    listed: Tensor = torch.as_tensor(row)
    if listed.numel() and (listed.is_floating_point() or listed.dtype == torch.bool or listed.ndim != 1):
        raise InputError("neighbours must be a list of node numbers for each node that arrives.")
    if looks_like_mask(listed, nodes):
        raise InputError(
            f"Neighbours are {nodes:,} zeros and ones, one for each node: a mask, it seems; give the numbers of the nodes, such as "
            "mask.nonzero()[:, 0]."
        )
    listed = torch.from_numpy(np.unique(listed.long().cpu().numpy()))
    if listed.numel() and not 0 <= int(listed[0]) <= int(listed[-1]) < nodes:
        raise InputError(f"A neighbour must be a node of the graph, between 0 and {nodes - 1}.")
    return listed


def read_features(x: Any, graph: Graph, count: int) -> Tensor | None:
    """The features of those who arrive, as wide as the graph's."""
    if graph.x is None:
        return None
    if x is None:
        raise InputError("The graph has features, so those who arrive need theirs too: one row each.")
    try:
        told = torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError("The features of those who arrive must be numbers, one row each.") from error
    if told.shape != (count, *graph.x.shape[1:]):
        raise InputError(
            f"{count} {'node arrives' if count == 1 else 'nodes arrive'}, so their features must have shape {(count, *graph.x.shape[1:])}, not "
            f"{tuple(told.shape)}."
        )
    rows = told.detach().cpu().to(graph.x.dtype)
    if not graph.x.is_floating_point() and not torch.equal(rows.to(told.dtype), told.detach().cpu()):
        raise InputError(
            "The graph's features are whole numbers, and those who arrive have others, which would be cut; make the graph's features "
            "floating numbers (data.x.float())."
        )
    return rows
