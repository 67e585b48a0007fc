"""How a structure vector becomes a graph: from drawn bits to block-diagonal batches."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from unswayed.sampling.inputs import Graph
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Flip, Noise

if TYPE_CHECKING:
    from unswayed.sampling.question import Question

TRIAL = 0x7E57  # the seed of structures that a classifier is tried on


def noisy(clean: Tensor, flips: tuple[Tensor, Tensor]) -> Tensor:
    """bool[samples, entries]: the clean vector with the drawn entries flipped."""
    from_zero, from_one = flips
    return clean ^ (from_zero if from_zero is from_one else torch.where(clean, from_one, from_zero))


@dataclass(frozen=True, eq=False)
class Layout:
    """How one structure vector becomes a graph: entry e switches the pair (first[e], second[e]), `constant` stays.

    `unused` are entries that are drawn but never an edge: in a row, the target's own. `one_way` entries are directed edges from
    first to second; the others are edges in both directions.
    """

    graph: Graph
    constant: Tensor
    first: Tensor
    second: Tensor
    clean: Tensor
    unused: int | Tensor | None = None
    one_way: bool = False

    @property
    def drawn(self) -> int:
        """How many words a sample takes."""
        return self.clean.numel()

    def edges(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """int64[2, edges]: the noisy graphs of these samples, block-diagonal, node i of sample b at b*n + i.

        The order within a graph never depends on the batch, so neither does any sum over neighbours.
        """
        return self.listed(noisy(self.clean, flips))

    def trial(self, noise: Noise, start: int, stop: int) -> Tensor:
        """int64[2, edges] of graphs to try a classifier on: any two of them differ in about half of all entries.

        In every second one no entry of a noisy graph is missing, so that a batch of noisy graphs has no more edges than
        as many of these, unless noise fills two thirds of all entries.
        """
        stream, device = Stream(TRIAL, "select"), self.clean.device
        half = stream.flips(start, stop, self.drawn, Flip(0.5), device=device)[0]
        drawn = stream.flips(start, stop, self.drawn, noise.stand_in, target=1, device=device)
        present = noisy(self.clean, drawn)
        denser = (torch.arange(start, stop, device=device) % 2 == 1)[:, None]
        return self.listed(torch.where(denser, present | half, present ^ half))

    def sampled(self, noise: Noise, start: int, stop: int) -> Tensor:
        """int64[2, edges] of graphs as the noise itself makes them, to try a classifier on."""
        stream, device = Stream(TRIAL, "select"), self.clean.device
        drawn = stream.flips(start, stop, self.drawn, noise.stand_in, target=2, device=device)
        return self.listed(noisy(self.clean, drawn))

    def listed(self, present: Tensor) -> Tensor:
        """int64[2, edges] of graphs with these entries bool[graphs, entries]: what is constant, then by entry."""
        if self.unused is not None:
            present[:, self.unused] = False
        n, count = self.graph.num_nodes, len(present)
        sample, entry = present.nonzero(as_tuple=True)
        sample *= n
        one, other = self.first[entry] + sample, self.second[entry] + sample
        fixed = self.constant
        if count != 1:  # a single graph is asked about often, and it may be large
            shift = (torch.arange(count, device=sample.device) * n).repeat_interleave(fixed.shape[1])
            fixed = fixed.repeat(1, count) + shift
        if self.one_way:
            return torch.cat([fixed, torch.stack([one, other])], dim=1)
        return torch.cat([fixed, torch.stack([torch.cat([one, other]), torch.cat([other, one])])], dim=1)

    def around(self, nodes: Tensor) -> tuple["Layout", Tensor]:
        """The same graphs without what no noise can ever join to these nodes, and the nodes' numbers in them.

        Exact for a network that may be asked about several graphs in one: the rest is such another graph.
        """
        ends = torch.cat([self.constant, torch.stack([self.first, self.second])], dim=1)
        keep = _joined(ends.cpu(), nodes.cpu(), self.graph.num_nodes)
        if bool(keep.all()):
            return self, nodes
        number = torch.where(keep, keep.cumsum(0) - 1, -1)
        there = number.to(nodes.device)
        constant, first = there[self.constant], there[self.first]
        near = replace(
            self,
            graph=self.graph.part(keep, number),
            constant=constant[:, constant[0] >= 0],
            first=first.clamp(min=0),
            second=there[self.second].clamp(min=0),
            unused=(first < 0).nonzero()[:, 0],
        )
        return near, there[nodes]

    def to(self, device: torch.device) -> "Layout":
        """The same on a device."""
        if device.type == "cpu":
            return self
        moved = {name: getattr(self, name).to(device) for name in ("constant", "first", "second", "clean")}
        return replace(self, **moved)

    def size(self, question: "Question") -> float:
        """Expected nodes plus edges of one noisy graph: what its cost follows."""
        ones = int(self.clean.sum())
        zeros = self.clean.numel() - ones
        expected = question.noise.expected(ones, zeros)
        return self.graph.num_nodes + self.constant.shape[1] + (1 if self.one_way else 2) * expected


def _joined(ends: Tensor, nodes: Tensor, count: int) -> Tensor:
    """bool[count]: the nodes connected with any of `nodes` by these edges."""
    joins = coo_array((np.ones(ends.shape[1]), (ends[0].numpy(), ends[1].numpy())), shape=(count, count))
    label = torch.from_numpy(connected_components(joins, directed=False)[1])
    return torch.isin(label, label[nodes])


def both_ways(pairs: Tensor, loops: Tensor) -> Tensor:
    """int64[2, 2m + loops]: each pair in both directions, then the self-loops."""
    return torch.cat([pairs, pairs.flip(0), loops.expand(2, -1)], dim=1)


def pairs_layout(graph: Graph, pairs: Tensor, clean: Tensor, fixed: Tensor | None = None) -> Layout:
    """Entry e switches the e-th of these pairs; the `fixed` pairs and the self-loops are always there."""
    constant = both_ways(graph.pairs[:, :0] if fixed is None else fixed, graph.loops)
    return Layout(graph, constant, pairs[0].contiguous(), pairs[1].contiguous(), clean)


def row_layout(graph: Graph, node: int, others: Tensor, clean: Tensor, unused: int | None = None) -> Layout:
    """Entry e switches the link between the node and the e-th of the others; every other edge is always there."""
    untouched = graph.pairs[:, (graph.pairs != node).all(dim=0)]
    return Layout(
        graph=graph,
        constant=both_ways(untouched, graph.loops),
        first=torch.full_like(others, node),
        second=others,
        clean=clean,
        unused=unused,
    )
