"""Noisy structures: from the stream's bits to block-diagonal batches of graphs."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.inject import Inject
from unswayed.sampling.inputs import Graph, pair_entries
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import TRIAL, SparseLayout
from unswayed.sampling.stream import Stream
from unswayed.sampling.threat import AllPairs, Pairs, Row
from unswayed.theory.noise import Flip, Noise


def noisy(clean: Tensor, flips: tuple[Tensor, Tensor]) -> Tensor:
    """bool[samples, entries]: the clean vector with the drawn entries flipped."""
    from_zero, from_one = flips
    return clean ^ (from_zero if from_zero is from_one else torch.where(clean, from_one, from_zero))


@dataclass(frozen=True, eq=False)
class Layout:
    """How one structure vector becomes a graph: entry e switches the pair (first[e], second[e]), `constant` stays.

    `unused` are entries that are drawn but never an edge: in a row, the target's own.
    """

    graph: Graph
    constant: Tensor
    first: Tensor
    second: Tensor
    clean: Tensor
    unused: int | Tensor | None = None

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

    def listed(self, present: Tensor) -> Tensor:
        """int64[2, edges] of graphs with these entries bool[graphs, entries]: what is constant, then by entry."""
        if self.unused is not None:
            present[:, self.unused] = False
        n, count = self.graph.num_nodes, len(present)
        sample, entry = present.nonzero(as_tuple=True)
        sample *= n
        one, other = self.first[entry] + sample, self.second[entry] + sample
        shift = (torch.arange(count, device=sample.device) * n).repeat_interleave(self.constant.shape[1])
        fixed = self.constant.repeat(1, count) + shift
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

    def size(self, question: Question) -> float:
        """Expected nodes plus edges of one noisy graph: what its cost follows."""
        ones = int(self.clean.sum())
        zeros = self.clean.numel() - ones
        expected = question.noise.expected(ones, zeros)
        return self.graph.num_nodes + self.constant.shape[1] + 2 * expected


def _joined(ends: Tensor, nodes: Tensor, count: int) -> Tensor:
    """bool[count]: the nodes connected with any of `nodes` by these edges."""
    joins = coo_array((np.ones(ends.shape[1]), (ends[0].numpy(), ends[1].numpy())), shape=(count, count))
    label = torch.from_numpy(connected_components(joins, directed=False)[1])
    return torch.isin(label, label[nodes])


def layout_of(question: Question, target: int) -> Layout | SparseLayout:
    """The layout of the graph that votes for the target at this position, on the question's device."""
    threat = question.threat
    if question.sparse:
        return SparseLayout.of(question)
    if isinstance(threat, Row):
        layout = _row_layout(threat, target)
    elif isinstance(threat, AllPairs | Pairs | Inject):
        layout = _pairs_layout(threat, target)
    else:
        raise Unsupported(f"{type(threat).__name__} has no noisy graphs to be asked about; use prove.")
    device = torch.device(question.device)
    if device.type == "cpu":
        return layout
    moved = {name: getattr(layout, name).to(device) for name in ("constant", "first", "second", "clean")}
    return Layout(layout.graph, unused=layout.unused, **moved)


def both_ways(pairs: Tensor, loops: Tensor) -> Tensor:
    """int64[2, 2m + loops]: each pair in both directions, then the self-loops."""
    return torch.cat([pairs, pairs.flip(0), loops.expand(2, -1)], dim=1)


def _row_layout(threat: Row, target: int) -> Layout:
    graph, node = threat.graph, int(threat.nodes[target])
    untouched = graph.pairs[:, (graph.pairs != node).all(dim=0)]
    everyone = torch.arange(graph.num_nodes)
    return Layout(
        graph=graph,
        constant=both_ways(untouched, graph.loops),
        first=torch.full_like(everyone, node),
        second=everyone,
        clean=threat.clean(target),
        unused=node,
    )


def _pairs_layout(threat: AllPairs | Pairs | Inject, target: int) -> Layout:
    graph = threat.graph_of(target)
    pairs = threat.pairs_of(target)
    fixed = graph.pairs[:, :0]
    if isinstance(threat, Pairs):
        fixed = graph.pairs[:, ~torch.isin(pair_entries(graph.pairs), pair_entries(pairs))]
    return Layout(
        graph=graph,
        constant=both_ways(fixed, graph.loops),
        first=pairs[0].contiguous(),
        second=pairs[1].contiguous(),
        clean=threat.clean(target),
    )


def groups_of(question: Question, targets: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Targets that one noisy graph votes for at once: all nodes of one graph under shared noise, else each alone."""
    threat = question.threat
    together = isinstance(threat, AllPairs | Pairs | Inject) and threat.nodes is not None and question.shared
    return [targets] if together and targets else [(target,) for target in targets]


def count_labels(labels: Tensor, classes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """int64[targets, classes] from labels int64[samples, targets]; -1 is counted nowhere."""
    width = labels.shape[1]
    slot = (labels + 1) + torch.arange(width, device=labels.device) * (classes + 1)
    table = torch.bincount(slot.flatten(), minlength=width * (classes + 1)).view(width, classes + 1)
    return table[:, 1:].cpu().numpy()
