"""The part of a large graph that a recognised module can hear: of a node it says the same with the rest left out.

A module all of whose steps are known, none of which reads a whole graph or the degree of who speaks, computes the state of a node after
k rounds from edges within k hops. So one graph at a time costs what lies around a target, not what the graph holds.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.inputs import Graph
from unswayed.sampling.modes import evaluating
from unswayed.sampling.question import Question
from unswayed.theory.noise import AddDelete, Noise

LARGE = 2**20  # nodes plus edges: smaller graphs are asked about as a whole, whatever the module
ADDED = 2**10  # entries that a trial adds to a row of such a graph: half of all would be most of the graph


@dataclass(frozen=True)
class Nearby:
    """So many hops around a node decide what is said of it."""

    hops: int

    @classmethod
    def of(cls, question: Question) -> "Nearby | None":
        """What the question's module hears of its large graph; None where whole graphs are asked about."""
        threat, view = question.threat, question.threat.row_view()
        if view is None or threat.newcomers or threat.edge_function is not None:
            return None
        if view.graph.num_nodes + 2 * view.graph.pairs.shape[1] <= LARGE:
            return None
        try:
            # some hear farther when they are asked than when they are trained
            with evaluating(question.model):
                plan = recognise(question.model)
        except Unsupported:
            return None
        coupled = any(layer.coupled for layer in plan.rounds.values())
        return cls(plan.depth) if plan.local and not coupled else None

    def part(self, graph: Graph, edges: Tensor, nodes: Tensor) -> tuple[Graph, Tensor, Tensor]:
        """The graph, its edges and the nodes, renumbered, without what these nodes do not hear; the order stays."""
        heard = torch.zeros(graph.num_nodes, dtype=torch.bool, device=edges.device)
        heard[nodes] = True
        for _ in range(self.hops - 1):  # whose state, before the last round, takes all its edges
            heard[edges[:, heard[edges[0]] | heard[edges[1]]]] = True
        edges = edges[:, heard[edges[0]] | heard[edges[1]]]
        there = heard.clone()
        there[edges] = True
        number = there.cumsum(0) - 1
        bare = replace(graph, pairs=graph.pairs[:, :0], loops=graph.loops[:0])  # its edges are given apart
        return bare.part(there.cpu(), number.cpu()), number[edges], number[nodes]

    def rough(self, noise: Noise, entries: int) -> Noise:
        """Noise that changes half of what is there and adds as much as can be looked at."""
        return AddDelete(p_add=0 if noise.only_hides else min(0.5, ADDED / entries), p_delete=0.5)
