"""Noisy graphs as lists of edges: B graphs with the same edges side by side, states [B, n, ...] (or [1, n, ...])."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.layers import Around, Sent
from unswayed.sampling.engines.plans.surroundings import begins, csr, stretches


class Edges:
    """Directed edges by receiver: receiver r has the edges starts[r] .. starts[r + 1] - 1, from these senders."""

    def __init__(self, starts: Tensor, senders: Tensor, count: int) -> None:
        self.starts, self.senders, self.count = starts, senders, count
        self.receivers = starts.numel() - 1
        self.of: Tensor | None = None  # which edge of the nodes each is, where heads of nodes are joined
        self._blocks: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}
        self._heads: dict[int, Edges] = {}
        self._plain: dict[tuple[int, torch.dtype], Tensor] = {}

    @cached_property
    def to(self) -> Tensor:
        """The receiver of every edge."""
        number = torch.arange(self.receivers, device=self.starts.device)
        return torch.repeat_interleave(number, self.starts.diff())

    def some(self, here: Tensor) -> "Edges":
        """Only the edges where bool[edges] is true."""
        return Edges(begins(here.long())[self.starts], self.senders[here], self.count)

    def matrix(self, blocks: int, values: Tensor, shared: bool = False) -> Tensor:
        """As many copies of the edges, with a value for every edge of every copy: block-diagonal, or with `shared` senders."""
        if (blocks, shared) not in self._blocks:
            number = torch.arange(blocks, device=self.starts.device)[:, None]
            starts = (self.starts[1:] + number * self.senders.numel()).flatten()
            columns = (self.senders + number * (0 if shared else self.count)).flatten()
            small = columns.numel() < 2**31 and blocks * self.count < 2**31
            kind = torch.int32 if small else torch.int64  # wider ones would be narrowed anew in every product
            self._blocks[blocks, shared] = torch.cat([starts.new_zeros(1), starts]).to(kind), columns.to(kind)
        shape = (blocks * self.receivers, self.count if shared else blocks * self.count)
        return csr(*self._blocks[blocks, shared], values, shape)

    def total(self, z: Tensor, onto: Tensor | None = None) -> Tensor:
        """[B, receivers, F]: the sum of the senders' z at each receiver; with `onto`, written over it, and with it added."""
        if z.is_cuda or z.shape[-1] == 1:  # one matrix for any number of samples
            total = self.wide(z.transpose(0, 1).contiguous()).transpose(0, 1)
            return total.contiguous() if onto is None else onto.add_(total)
        return self._product(self._ones(len(z), z), z, onto, len(z))

    def _product(self, matrix: Tensor, values: Tensor, onto: Tensor | None, blocks: int) -> Tensor:
        """[B, receivers, C], in memory of its own or onto what is there."""
        values = values.reshape(-1, values.shape[-1])
        if onto is not None and not onto.is_cuda:  # saves two passes over the result
            onto.view(-1, onto.shape[-1]).addmm_(matrix, values)
            return onto
        product = (matrix @ values).view(blocks, self.receivers, values.shape[-1])
        return product if onto is None else onto.add_(product)

    def wide(self, z: Tensor) -> Tensor:
        """[receivers, B, F], from [n, B, F]: samples side by side make one product."""
        return (self._ones(1, z) @ z.flatten(1)).view(self.receivers, *z.shape[1:])

    def _ones(self, blocks: int, like: Tensor) -> Tensor:
        """The matrix in which every edge counts 1."""
        if (blocks, like.dtype) not in self._plain:
            ones = like.new_ones(blocks * self.senders.numel())
            self._plain[blocks, like.dtype] = self.matrix(blocks, ones)
        return self._plain[blocks, like.dtype]

    def weighed(self, weight: Tensor, values: Tensor, onto: Tensor | None = None) -> Tensor:
        """[B, receivers, C]: the senders' values [B or 1, n, C], added up by weights [B, edges], and `onto` as above."""
        matrix = self.matrix(len(weight), weight.flatten(), len(values) == 1)
        return self._product(matrix, values, onto, len(weight))

    def split(self, heads: int) -> "Edges":
        """The edges between heads of nodes: head h of node v is number v * heads + h and hears the same head of others."""
        if heads == 1:
            return self
        if heads not in self._heads:
            count = self.starts.diff().repeat_interleave(heads)
            to, edge = stretches(self.starts[:-1].repeat_interleave(heads), count)
            split = Edges(begins(count), self.senders[edge] * heads + to % heads, self.count * heads)
            split.of = edge
            self._heads[heads] = split
        return self._heads[heads]

    def largest(self, values: Tensor) -> Tensor:
        """[..., receivers, k]: the largest of what each receiver's edges carry, [..., edges, k]; the least number there is
        where it has none."""
        least = values.new_full(
            (*values.shape[:-2], self.receivers, values.shape[-1]), torch.finfo(values.dtype).min
        )
        return least.scatter_reduce_(-2, self.to[:, None].expand_as(values), values, "amax")


class Listed(Around):
    """B graphs with the same edges, of which some may be missing; receivers are the senders at the positions `at`, or all."""

    def __init__(
        self,
        edges: Edges,
        degree: Tensor,
        loops: Tensor,
        at: Tensor | None = None,
        there: Tensor | None = None,
        looped: bool | None = None,
    ) -> None:
        """`degree` and `loops` are [B or 1, n, 1]; `there` [B, edges] is 1 where an edge is there, None where all are."""
        super().__init__(loops, bool(loops.any()) if looped is None else looped)
        self.edges, self.at, self.there, self.degree = edges, at, there, degree

    def total(self, z: Tensor) -> Tensor:
        """One sparse product."""
        return self.edges.total(z) if self.there is None else self.edges.weighed(self.there, z)

    def scaled(self, z: Tensor, scale: Tensor, into: bool = False) -> tuple[Tensor, Tensor]:
        """Where all samples send the same, their scales go into the weights of edges."""
        if self.there is None or len(z) > 1:
            z = z.mul_(scale) if into and len(z) == len(scale) > 1 else scale * z  # new memory costs most
            return self.total(z), self.own(z)
        weight = self.there * picked(scale, self.edges.senders)[..., 0]
        return self.edges.weighed(weight, z), self.own(scale) * self.own(z)

    def own(self, z: Tensor) -> Tensor:
        """The receivers among the senders."""
        return z if self.at is None else z.index_select(1, self.at)

    def largest(self, z: Tensor) -> Tensor:
        """Over edges and loops."""
        return self._tops(z) * (self.own(self.degree) + self.own(self.loops) > 0)

    def _tops(self, z: Tensor) -> Tensor:
        """The same, with the least number there is where a receiver has none."""
        top = self.edges.largest(_where_there(z.index_select(1, self.edges.senders), self.there))
        return torch.where(self.own(self.loops) > 0, torch.maximum(top, self.own(z)), top)

    def attend(self, layer: Any, sent: Sent) -> Tensor:
        """A softmax over edges and the node itself."""
        weighing = Weighing(layer, sent, self)
        return weighing.closed(weighing.sums())


def _where_there(values: Tensor, there: Tensor | None) -> Tensor:
    """What edges carry, [B, edges, k], with the least number there is on missing ones."""
    least = torch.finfo(values.dtype).min
    return values if there is None else torch.where(there[..., None] > 0, values, least)


def picked(states: Tensor, index: Tensor) -> Tensor:
    """[B, index, k] of states [B, n, k]; numbers are picked from whole rows, which is faster than one by one."""
    if states.shape[-1] > 1:
        return states.index_select(1, index)
    return states[..., 0].index_select(1, index)[..., None]


class Weighing:
    """Weights of neighbours that depend on both ends: exp(score), or gates. Every head of a node is a node here.

    Where scores are FAR from 0, each receiver's are measured from its largest, `top`, so that no weight overflows.
    """

    FAR = 60.0  # e^±60 and sums of many are far from the ends of float32

    def __init__(self, layer: Any, sent: Sent, around: Listed) -> None:
        self.heads = sent[0].shape[2]
        self.values, self.sender, self.receiver = (t.flatten(1, 2) for t in sent)  # [B, n H, ...]
        if layer.normalised:  # the last column adds up the weights
            self.values = torch.cat([self.values, torch.ones_like(self.values[..., :1])], dim=-1)
        self.layer, self.edges = layer, around.edges.split(self.heads)
        self.at = None
        if around.at is not None:
            head = torch.arange(self.heads, device=around.at.device)
            self.at = (around.at[:, None] * self.heads + head).flatten()
            self.receiver = picked(self.receiver, self.at)
        self.loop = self.by_head(layer.loop(around.own(around.loops)))
        self.own = self.score(self._here(self.sender), self.receiver)
        self.edge = self.score(
            picked(self.sender, self.edges.senders), picked(self.receiver, self.edges.to), self.edges.to
        )
        self.there = around.there
        if self.there is not None and self.edges.of is not None:
            self.there = self.there.index_select(1, self.edges.of)
        self.top: Tensor | None = None
        if layer.normalised and not layer.bound(sent) < self.FAR:
            top = self.edges.largest(_where_there(self.edge, self.there))
            self.top = torch.where(self.loop > 0, torch.maximum(top, self.own), top)

    def by_head(self, numbers: Tensor) -> Tensor:
        """[B, n H, 1] of numbers [B, n, 1]."""
        return numbers if self.heads == 1 else numbers.repeat_interleave(self.heads, dim=1)

    def _here(self, states: Tensor) -> Tensor:
        return states if self.at is None else picked(states, self.at)

    def score(self, sender: Tensor, receiver: Tensor, of: Tensor | None = None) -> Tensor:
        """[B, m, 1]: of heads at both ends; `of` says which receiver each is about, otherwise all in order."""
        if self.layer.per_head is None:
            score: Tensor = self.layer.score(sender, receiver)
        else:
            place = torch.arange(receiver.shape[1], device=receiver.device) if of is None else of
            score = self.layer.score(sender, receiver, self.layer.per_head[place % self.heads])
        return score[..., None]

    def weight(self, score: Tensor, top: Tensor | None) -> Tensor:
        """Of these scores."""
        return score.exp() if top is None else (score - top).exp_()

    def sums(self) -> Tensor:
        """[B, receivers, C (+ 1)] over edges and the node itself: weighted values, and weights."""
        top = self.top
        weight = self.weight(self.edge, None if top is None else picked(top, self.edges.to))[..., 0]
        weight = weight if self.there is None else self.only(weight, self.there)
        own = self.only(self.weight(self.own, top), self.loop) * self._here(self.values)
        alike = own.shape[0] == len(weight)
        return self.edges.weighed(weight, self.values, own if alike else own.repeat(len(weight), 1, 1))

    def only(self, weight: Tensor, there: Tensor) -> Tensor:
        """The weights of what is there; those of what is not may be infinite if they are measured from others."""
        return weight * there if self.top is None else torch.where(there > 0, weight, 0.0)

    def closed(self, sums: Tensor) -> Tensor:
        """[B, receivers, H, C]: weighted means, 0 where there is nothing; gates are only added up."""
        if self.layer.normalised:
            sums = sums[..., :-1] / sums[..., -1:].clamp_min(1e-30)
        return sums.view(len(sums), -1, self.heads, sums.shape[-1])
