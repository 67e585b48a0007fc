"""Inject: the attacker makes up nodes of its own, with features of its choice, and links them to the graph."""

from typing import Any

import numpy as np

from unswayed.errors import InputError
from unswayed.sampling.inputs import read_graph
from unswayed.sampling.threat import Threat, read_nodes


class Inject(Threat):
    """The attacker adds fake nodes with any features, each with up to `links` links (None: any number); existing edges stay.

    A size counts fake nodes, and at most as many are spoken of as the graph has nodes.
    """

    kind = "inject"

    def __init__(self, data: Any, nodes: Any, links: int | None = None) -> None:
        if links is not None and (isinstance(links, bool) or not isinstance(links, int) or links < 1):
            raise InputError(
                f"links must be a whole number from 1 up, or None for any number, not {links!r}."
            )
        self.graph, self.links = read_graph(data), links
        self.nodes = read_nodes(nodes, self.graph.num_nodes)
        self.targets = self.nodes.numpy()
        self.entries = np.full(len(self.nodes), self.graph.num_nodes, dtype=np.int64)
        self.ones = np.zeros(len(self.nodes), dtype=np.int64)

    def digests(self) -> dict[str, str]:
        """The graph's hash, and the links that a fake node may have."""
        return {"graph": self.graph.digest(), "links": "any" if self.links is None else str(self.links)}
