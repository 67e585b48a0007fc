"""Directed: the attacker adds or deletes directed edges; an entry is an ordered pair of nodes."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.edge_function import Function, with_attributes
from unswayed.sampling.inputs import read_arcs
from unswayed.sampling.layout import Layout
from unswayed.sampling.reading import read_nodes
from unswayed.sampling.threats.base import Threat, update_digest

LINKS = ("in", "out", "own", "all")


class Directed(Threat):
    """The attacker adds or deletes directed edges: one entry for every ordered pair of nodes that `links` names.

    `links`: "in", edges from any other node into the target; "out", from the target to any other; "own", both kinds; "all", between any
    two nodes of the graph, and then one noisy graph votes for all targets. An edge and its reverse are two entries. The edge v → u is
    `edge_index[:, e] = (v, u)`, along which torch_geometric's layers carry v's message to u.
    """

    kind = "directed"
    undirected = False
    words = Words(
        unit="node",
        one="adds or deletes one directed edge",
        many="adds or deletes up to {k} directed edges",
        adds="adds up to {k} of the missing directed edges",
        deletes="deletes up to {k} of the directed edges",
    )

    nodes: Tensor

    def __init__(
        self, data: Any, nodes: Any, links: str = "in", *, edge_attr: Function | None = None
    ) -> None:
        if links not in LINKS:
            raise InputError(f"links must be one of {', '.join(LINKS)}, not {links!r}.")
        bare, self.arcs = read_arcs(data)
        self.graph, self.links = with_attributes(bare, data, edge_attr), links
        self.nodes = read_nodes(nodes, self.graph.num_nodes, self.graph.names)
        self.targets = self.nodes.numpy()
        if links != "all":
            self.words = replace(self.words, **_OWN[links])
        self._count()

    def _count(self) -> None:
        self.entries = np.array([len(self.free(i)) for i in range(len(self.nodes))], dtype=np.int64)
        self.ones = np.array([int(self.clean(i).sum()) for i in range(len(self.nodes))], dtype=np.int64)

    @property
    def together(self) -> bool:
        """Whether any edge is noisy, so that one noisy graph is the same for all targets."""
        return self.links == "all"

    def ends(self, target: int) -> Tensor:
        """int64[2, drawn]: source and destination of every entry, in order; those of a node with itself are never used."""
        n = self.graph.num_nodes
        everyone, own = torch.arange(n), torch.full((n,), int(self.nodes[target]))
        into, out = torch.stack([everyone, own]), torch.stack([own, everyone])
        if self.links == "all":
            return torch.stack([torch.arange(n * n) // n, torch.arange(n * n) % n])
        return {"in": into, "out": out, "own": torch.cat([into, out], dim=1)}[self.links]

    def _code(self, arcs: Tensor) -> Tensor:
        return arcs[0] * self.graph.num_nodes + arcs[1]

    def clean(self, target: int) -> Tensor:
        """bool[drawn]: which of the ordered pairs are edges."""
        there: Tensor = torch.isin(self._code(self.ends(target)), self._code(self.arcs))
        return there

    def drawn(self, target: int) -> int:
        """One for every ordered pair, a node with itself included (it is not used)."""
        return self.ends(target).shape[1]

    def free(self, target: int) -> Tensor:
        """All but those of a node with itself."""
        ends = self.ends(target)
        return (ends[0] != ends[1]).nonzero()[:, 0]

    def layout(self, target: int) -> Layout:
        """These ordered pairs are noisy, all other edges constant."""
        ends = self.ends(target)
        fixed = self.arcs[:, ~torch.isin(self._code(self.arcs), self._code(ends))]
        return Layout(
            graph=self.graph,
            constant=torch.cat([fixed, self.graph.loops.expand(2, -1)], dim=1),
            first=ends[0].contiguous(),
            second=ends[1].contiguous(),
            clean=self.clean(target),
            unused=(ends[0] == ends[1]).nonzero()[:, 0],
            one_way=True,
        )

    def _change(self, target: int, entries: Tensor) -> None:
        changed = self.ends(0)[:, entries]
        gone = torch.isin(self._code(self.arcs), self._code(changed))
        fresh = ~torch.isin(self._code(changed), self._code(self.arcs))
        arcs = torch.cat([self.arcs[:, ~gone], changed[:, fresh]], dim=1)
        self.arcs = arcs[:, torch.argsort(self._code(arcs))]

    def digests(self) -> dict[str, str]:
        """The hashes of the nodes and of the directed edges, and which of them may change."""
        arcs = update_digest("arcs", self.arcs)
        return {"graph": self.graph.digest(), "arcs": arcs, "links": self.links}


_OWN = {
    links: {
        "one": f"adds or deletes one edge {where}",
        "many": f"adds or deletes up to {{k}} edges {where}",
        "adds": f"adds up to {{k}} of the missing edges {where}",
        "deletes": f"deletes up to {{k}} of the edges {where}",
    }
    for links, where in {
        "in": "into the node",
        "out": "out of the node",
        "own": "into or out of the node",
    }.items()
}
