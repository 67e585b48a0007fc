"""Noisy versions of one whole graph from the sparse stream: what a batch costs follows its edges, not its pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.sampling.inputs import Graph, pair_entries
from unswayed.sampling.layout import TRIAL
from unswayed.sampling.question import Question
from unswayed.sampling.sparse import SparseStream, pair_of
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise

STEPS, SHIFT = (7919, 7907, 7901, 7883, 7879), 104_729


def sample_numbers(start: int, stop: int) -> tuple[Tensor, Tensor]:
    """What stands for the flips of these samples until their edges are asked for: their numbers, in the same shape."""
    numbers = torch.arange(start, stop)[:, None]
    return numbers, numbers


def noisy_edges(graph: Graph, clean: Tensor, stream: Stream, noise: Noise, start: int, stop: int) -> Tensor:
    """int64[2, edges]: noisy versions of the graph, block-diagonal; `clean` lists its pairs' entries, ascending."""
    n = graph.num_nodes
    drawn = SparseStream(stream).ones(start, stop, n * (n - 1) // 2, clean, noise, device=clean.device)
    return listed(graph, *drawn, stop - start)


def listed(graph: Graph, sample: Tensor, entry: Tensor, count: int) -> Tensor:
    """int64[2, edges] of `count` graphs with these entries, by sample and entry, on their device.

    First the self-loops, then the pairs by entry in one direction, then in the other.
    """
    n, device = graph.num_nodes, entry.device
    first, second = pair_of(entry)
    one, other = first + sample * n, second + sample * n
    shift = torch.arange(count, device=device)[:, None] * n
    loops = (graph.loops.to(device) + shift).flatten()
    return torch.stack([torch.cat([loops, one, other]), torch.cat([loops, other, one])])


@dataclass(frozen=True, eq=False)
class SparseLayout:
    """How sample numbers become noisy versions of the graph of `AllPairs(data, nodes)`; stands in for a dense layout."""

    question: Question
    graph: Graph
    clean: Tensor  # the entries that are 1, ascending
    drawn: int = 1  # one number stands for a whole sample

    @classmethod
    def of(cls, question: Question) -> "SparseLayout":
        """The layout of the question's one graph, on its device."""
        graph = question.threat.whole_view()
        assert graph is not None
        return cls(question, graph, pair_entries(graph.pairs).to(question.device))

    @property
    def entries(self) -> int:
        """How many pairs of nodes there are."""
        return self.graph.num_nodes * (self.graph.num_nodes - 1) // 2

    def edges(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """int64[2, edges]: the noisy graphs of consecutive samples, block-diagonal, node i of sample b at b*n + i.

        The order within a graph never depends on the batch, so neither does any sum over neighbours.
        """
        start = int(flips[0][0, 0])
        question = self.question
        return noisy_edges(
            self.graph, self.clean, question.stream, question.noise, start, start + len(flips[0])
        )

    def trial(self, noise: Noise, start: int, stop: int) -> Tensor:
        """int64[2, edges] of graphs to try a classifier on: noisy ones with every entry moved elsewhere.

        Each is wired as none of the others is; every second one has the noisy edges too, so that no batch of the same
        number of noisy graphs has more.
        """
        stream, entries = Stream(TRIAL, "select"), self.entries
        drawn = SparseStream(stream).ones(start, stop, entries, self.clean, noise, device=self.clean.device)
        sample, entry = drawn
        step = next((prime for prime in STEPS if entries % prime), 1)  # coprime, so that no two entries meet
        moved = sample * entries + (entry * step + (start + sample) * SHIFT) % entries
        stay = (start + sample) % 2 == 1
        key = torch.unique(torch.cat([moved, (sample * entries + entry)[stay]]))
        return listed(self.graph, key // entries, key % entries, stop - start)

    def sampled(self, noise: Noise, start: int, stop: int) -> Tensor:
        """int64[2, edges] of graphs as the noise itself makes them, to try a classifier on."""
        return noisy_edges(self.graph, self.clean, Stream(TRIAL, "train"), noise, start, stop)

    def size(self, question: Question) -> float:
        """Expected nodes plus edges of one noisy graph: what its cost follows."""
        ones = len(self.clean)
        expected = ones * (1 - question.noise.p_delete) + (self.entries - ones) * question.noise.p_add
        return self.graph.num_nodes + len(self.graph.loops) + 2 * expected
