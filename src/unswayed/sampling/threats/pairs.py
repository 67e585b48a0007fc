"""AllPairs and Pairs: the attacker adds or deletes edges between any nodes, or between those that are listed."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.edge_function import Function, with_attributes
from unswayed.sampling.inputs import Graph, pair_entries, read_graph, read_graphs
from unswayed.sampling.layout import Layout, pairs_layout
from unswayed.sampling.reading import read_nodes, read_pairs
from unswayed.sampling.threats.base import Threat, update_digest


class AllPairs(Threat):
    """The attacker may add or delete any edge: one entry for every pair of nodes.

    `AllPairs(graphs)` classifies each graph; `AllPairs(data, nodes)` classifies nodes of one graph, and one noisy graph
    votes for all of them at once. The pair i < j has entry j(j-1)/2 + i. `edge_attr(i, j)` makes the attributes of any edge of one graph.
    """

    kind = "all-pairs"
    words = Words(
        unit="graph",
        one="adds or deletes one edge",
        many="adds or deletes up to {k} edges",
        adds="adds up to {k} of the missing edges",
        deletes="deletes up to {k} of the edges",
    )

    def __init__(self, data: Any, nodes: Any = None, *, edge_attr: Function | None = None) -> None:
        if nodes is not None:
            self.words = replace(self.words, unit="node")
        self.graphs = read_graphs(data) if nodes is None else [read_graph(data)]
        if edge_attr is not None:
            self.graphs = [_only(self.graphs, data, edge_attr)]
        self.nodes = (
            None if nodes is None else read_nodes(nodes, self.graphs[0].num_nodes, self.graphs[0].names)
        )
        count = len(self.graphs) if self.nodes is None else len(self.nodes)
        self.targets = _numbered(self.graphs) if self.nodes is None else self.nodes.numpy()
        sizes = np.array([graph.num_nodes for graph in self.graphs], dtype=np.int64)
        ones = np.array([graph.pairs.shape[1] for graph in self.graphs], dtype=np.int64)
        self.entries = np.broadcast_to(sizes * (sizes - 1) // 2, (count,)).copy()
        self.ones = np.broadcast_to(ones, (count,)).copy()

    def layout(self, target: int) -> Layout:
        """Every pair is noisy; only self-loops are constant."""
        return pairs_layout(self.graph_of(target), self.pairs_of(target), self.clean(target))

    def graphs_view(self) -> list[Graph] | None:
        """The graphs, where they are what is classified."""
        return self.graphs if self.nodes is None else None

    def whole_view(self) -> Graph | None:
        """The graph, where its nodes are what is classified."""
        return None if self.nodes is None else self.graphs[0]

    def graph_of(self, target: int) -> Graph:
        """The graph in which the target at this position is classified."""
        return self.graphs[target if self.nodes is None else 0]

    def pairs_of(self, target: int) -> Tensor:
        """int64[2, entries]: the pair i < j of every entry, in order."""
        n = self.graph_of(target).num_nodes
        return torch.tril_indices(n, n, offset=-1).flip(0)

    def clean(self, target: int) -> Tensor:
        """bool[entries]: which pairs are edges."""
        vector = torch.zeros(int(self.entries[target]), dtype=torch.bool)
        vector[pair_entries(self.graph_of(target).pairs)] = True
        return vector

    def _change(self, target: int, entries: Tensor) -> None:
        place = target if self.nodes is None else 0
        self.graphs = [self.graphs[place].toggled(self.pairs_of(target)[:, entries])]

    def digests(self) -> dict[str, str]:
        """One hash over all graphs."""
        joined = "".join(graph.digest() for graph in self.graphs)
        return {"graph": hashlib.sha256(joined.encode()).hexdigest()}


def _numbered(graphs: list[Graph]) -> npt.NDArray[np.int64]:
    """The place of every graph in the list; of one that is listed again, the first."""
    first: dict[int, int] = {}
    return np.array([first.setdefault(id(graph), place) for place, graph in enumerate(graphs)], np.int64)


def _only(graphs: list[Graph], data: Any, edge_attr: Function) -> Graph:
    """The one graph with attributes: a function of node numbers does not know which graph they are of."""
    if len(graphs) != 1:
        raise InputError(
            "edge_attr is a function of the nodes of one graph; certify several graphs one by one."
        )
    return with_attributes(graphs[0], data, edge_attr)


class Pairs(Threat):
    """The attacker may change the listed node pairs only; every other edge is constant.

    With `nodes`, those nodes of the graph are classified; without, the graph as a whole is the one target. Entry e is the
    e-th pair of the list; a pair named twice, in either order, or a node paired with itself is refused.
    """

    kind = "pairs"
    parts = True
    words = Words(
        unit="graph",
        one="toggles one of the listed node pairs",
        many="toggles up to {k} of the listed node pairs",
        adds="adds up to {k} of the listed edges that are missing",
        deletes="deletes up to {k} of the listed edges",
    )

    def __init__(
        self, data: Any, pairs: Any, nodes: Any = None, *, edge_attr: Function | None = None
    ) -> None:
        if nodes is not None:
            self.words = replace(self.words, unit="node")
        self.graph = with_attributes(read_graph(data), data, edge_attr)
        self.graphs = [self.graph]
        self.pairs = read_pairs(pairs, self.graph.num_nodes, self.graph.names)
        self.nodes = None if nodes is None else read_nodes(nodes, self.graph.num_nodes, self.graph.names)
        self.targets = np.arange(1) if self.nodes is None else self.nodes.numpy()
        self.vector = torch.isin(pair_entries(self.pairs), pair_entries(self.graph.pairs))
        self.entries = np.full(len(self.targets), self.pairs.shape[1], dtype=np.int64)
        self.ones = np.full(len(self.targets), int(self.vector.sum()), dtype=np.int64)

    def layout(self, target: int) -> Layout:
        """The listed pairs are noisy, all other edges constant."""
        listed = torch.isin(pair_entries(self.graph.pairs), pair_entries(self.pairs))
        return pairs_layout(self.graph, self.pairs, self.vector, self.graph.pairs[:, ~listed])

    def graph_of(self, target: int) -> Graph:
        """The graph in which every target is classified."""
        return self.graph

    def pairs_of(self, target: int) -> Tensor:
        """int64[2, entries]: the listed pairs, each as i < j."""
        return self.pairs

    def clean(self, target: int) -> Tensor:
        """bool[entries]: which of the listed pairs are edges."""
        return self.vector

    def _change(self, target: int, entries: Tensor) -> None:
        self.graph = self.graph.toggled(self.pairs[:, entries])
        self.graphs, self.vector = [self.graph], self.vector.clone()
        self.vector[entries] ^= True

    def digests(self) -> dict[str, str]:
        """The hashes of the graph and of the list of pairs."""
        return {"graph": self.graph.digest(), "pairs": update_digest("pairs", self.pairs)}
