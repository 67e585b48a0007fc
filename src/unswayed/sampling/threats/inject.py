"""Inject: the attacker makes up nodes of its own, with features of its choice, and links them to the graph."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, read_graph
from unswayed.sampling.layout import Layout, pairs_layout
from unswayed.sampling.reading import read_nodes
from unswayed.sampling.threats.base import Threat
from unswayed.theory.noise import Noise


class Inject(Threat):
    """The attacker adds fake nodes with any features, each with up to `links` links (None: any number); existing edges stay.

    A size counts fake nodes, and at most as many are spoken of as the graph has nodes.
    """

    kind = "inject"
    counts = "nodes"
    newcomers = True
    words = Words(
        unit="node",
        one="adds one fake node",
        many="adds up to {k} fake nodes",
        adds="adds up to {k} fake nodes",
        deletes="deletes nothing",
    )

    def __init__(self, data: Any, nodes: Any, links: int | None = None) -> None:
        if links is not None and (isinstance(links, bool) or not isinstance(links, int) or links < 1):
            raise InputError(
                f"links must be a whole number from 1 up, or None for any number, not {links!r}."
            )
        self.graph, self.links = read_graph(data), links
        self.nodes = read_nodes(nodes, self.graph.num_nodes, self.graph.names)
        self.targets = self.nodes.numpy()
        self.entries = np.full(len(self.nodes), self.graph.num_nodes, dtype=np.int64)
        self.ones = np.zeros(len(self.nodes), dtype=np.int64)

    @property
    def graphs(self) -> list[Graph]:
        """The one graph."""
        return [self.graph]

    def layout(self, target: int) -> Layout:
        """The honest edges, which noise may hide."""
        return pairs_layout(self.graph, self.graph.pairs, self.clean(target))

    def graph_of(self, target: int) -> Graph:
        """The graph in which every target is classified."""
        return self.graph

    def pairs_of(self, target: int) -> Tensor:
        """int64[2, edges]: the honest edges, which noise may hide."""
        return self.graph.pairs

    def clean(self, target: int) -> Tensor:
        """bool[edges]: all of them are there."""
        return torch.ones(self.graph.pairs.shape[1], dtype=torch.bool)

    def drawn(self, target: int) -> int:
        """One for every honest edge."""
        return self.graph.pairs.shape[1]

    def takes(self, noise: Noise) -> Noise:
        """The noise, told how many links a fake node may have; only noise that hides whole nodes says anything of them."""
        if self.kind not in noise.threats:
            raise InputError(
                f"Inject needs noise that hides nodes, such as Hide(nodes=0.5, edges=0.5), on the command line --hide 0.5/0.5, not {type(noise).__name__}."
            )
        return replace(noise, links=self.links)  # type: ignore[type-var]

    def digests(self) -> dict[str, str]:
        """The graph's hash, and the links that a fake node may have."""
        return {"graph": self.graph.digest(), "links": "any" if self.links is None else str(self.links)}
