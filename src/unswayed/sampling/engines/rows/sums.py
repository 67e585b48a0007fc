"""Sums over the attached nodes, for many samples of many targets at once.

With noise ε shared by all targets, the row of u is s_u ⊕ ε: one matrix product, with the 0/1 matrix of ε, serves all targets
but for the few clean neighbours of each, which are there unless they flip. Only what is there is ever added: a clean
neighbour that was counted and taken away again would leave its rounding behind, and if it is large, much of it.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.layers import Layer, Payload, Sent
from unswayed.sampling.engines.plans.surroundings import Surroundings

# bool[S, n]: which entries flip where they are 0, and where they are 1 (may be one tensor)
Drawn = tuple[Tensor, Tensor]
# How many times as large as usual a node's payload may be where it is counted and taken away again: in single precision what
# rounding leaves of it is then some millionths of a usual payload.
RANGE = 32.0
TOGETHER = {"cpu": 8, "cuda": 128}  # targets whose clean neighbours are corrected by one small product


def ordinary(payload: Tensor, times: float = RANGE) -> bool:
    """Whether no node sends [n, ...] more than so many times what the middle one of those that send anything does."""
    size = payload.detach().abs().flatten(1).amax(1)
    size = size[size > 0]
    return not size.numel() or float(size.max()) <= times * float(size.median())


class Near:
    """The targets and their clean neighbours, the only nodes that count otherwise for one target than for the next.

    Targets go by blocks, each with columns for its own targets and their neighbours; a node may have one in several blocks.
    """

    def __init__(self, around: Surroundings, nodes: Tensor) -> None:
        self.nodes = nodes
        self.targets, self.neighbours = around.edges_of(nodes)
        self.size = size = TOGETHER[nodes.device.type]
        self.spans = [(low, min(low + size, nodes.numel())) for low in range(0, nodes.numel(), size)]
        self.block_of = torch.arange(nodes.numel(), device=nodes.device) // size
        self.columns = [self._columns(*span) for span in self.spans]
        self.every = torch.cat(self.columns)

    def _columns(self, low: int, high: int) -> Tensor:
        """The nodes of one block, in rising order."""
        here = (self.targets >= low) & (self.targets < high)
        columns: Tensor = torch.unique(torch.cat([self.neighbours[here], self.nodes[low:high]]))
        return columns

    def edges(self, block: int) -> tuple[Tensor, Tensor, Tensor]:
        """(which edges of all, their columns, their targets) of one block."""
        low, high = self.spans[block]
        here = ((self.targets >= low) & (self.targets < high)).nonzero()[:, 0]
        return here, torch.searchsorted(self.columns[block], self.neighbours[here]), self.targets[here] - low

    def own(self, block: int) -> tuple[Tensor, Tensor]:
        """(the columns of one block's targets, these targets)."""
        low, high = self.spans[block]
        place = torch.searchsorted(self.columns[block], self.nodes[low:high])
        return place, torch.arange(high - low, device=place.device)

    def stayed(self, due: Tensor) -> list[Tensor]:
        """For each block [c, T, k]: what a clean neighbour counts for while it stays; `due` [E, k] by edges."""
        return [self._stayed(block, due) for block in range(len(self.spans))]

    def _stayed(self, block: int, due: Tensor) -> Tensor:
        low, high = self.spans[block]
        here, column, target = self.edges(block)
        matrix = due.new_zeros((self.columns[block].numel(), high - low, due.shape[1]))
        matrix[column, target] = due[here]
        return matrix

    def added(self, block: int, far: Tensor) -> Tensor:
        """[c, T, k]: what a block's nodes count for where they are new: the target itself and its neighbours never are."""
        low, high = self.spans[block]
        matrix = far[self.columns[block]][:, None].repeat(1, high - low, 1)
        matrix[self.edges(block)[1:]] = 0.0
        matrix[self.own(block)] = 0.0
        return matrix

    def elsewhere(self, far: Tensor) -> Tensor:
        """[columns, blocks, k]: what each of these nodes, by its first column, counts for in blocks that it is not of."""
        node, at = torch.unique(self.every, return_inverse=True)
        block = torch.repeat_interleave(
            torch.arange(len(self.spans)), torch.tensor([len(columns) for columns in self.columns])
        ).to(at.device)
        counted = far[node][:, None].repeat(1, len(self.spans), 1)
        counted[at, block] = 0.0
        first = torch.full_like(node, len(at)).scatter_reduce_(
            0, at, torch.arange(len(at), device=at.device), "amin"
        )
        return counted.new_zeros((len(at), *counted.shape[1:])).index_copy_(0, first, counted)

    def of(self, drawn: Drawn, dtype: torch.dtype) -> "NearFlips":
        """Gathered once for all sums of a chunk."""
        zero, one = (flips.index_select(1, self.every) for flips in drawn)
        return NearFlips(zero.to(dtype), (~one).to(dtype), [len(columns) for columns in self.columns])


@dataclass(frozen=True)
class NearFlips:
    """The columns near the targets, [S, columns]: whether a 0 flips, and whether a 1 stays; `sizes` by blocks."""

    added: Tensor
    stayed: Tensor
    sizes: list[int]

    def add_to(self, sums: Tensor, columns: Tensor, matrices: list[Tensor]) -> Tensor:
        """The sums [S, T, k] with the products of each block's columns and its matrix [c, T, k] added, in place."""
        flat, begin = sums.flatten(1), 0
        for block, matrix in zip(torch.split(columns, self.sizes, dim=1), matrices, strict=True):
            end = begin + matrix[0].numel()
            flat[:, begin:end].addmm_(block, matrix.flatten(1))
            begin = end
        return sums


@dataclass(frozen=True)
class Flips:
    """The same as numbers: 0.0 or 1.0, [S, n], and the columns near the targets; cast once for all sums of a chunk."""

    from_zero: Tensor
    from_one: Tensor
    near: NearFlips

    @classmethod
    def of(cls, drawn: Drawn, near: Near, dtype: torch.dtype) -> "Flips":
        """The casts of what was drawn."""
        zero = drawn[0].to(dtype)
        return cls(zero, zero if drawn[0] is drawn[1] else drawn[1].to(dtype), near.of(drawn, dtype))

    @cached_property
    def columns(self) -> Tensor:
        """[n, S]: `from_zero` with the samples of one entry side by side, where entries are to be picked out."""
        return self.from_zero.T.contiguous()


class CommonSum:
    """Sums of payloads [n, k] that are the same for all targets, but for the clean neighbours of each.

    Nodes that are no target and no neighbour of one are added up once for all; the others once for each block of targets,
    without those of the block itself; and those for each of its targets.
    """

    shift = None

    def __init__(self, near: Near, payload: Payload) -> None:
        far, close = payload.far, payload.far if payload.close is None else payload.close
        self.block_of = near.block_of
        self.far = far.index_fill(0, near.every, 0.0)
        self.elsewhere = near.elsewhere(far)
        self.added = [near.added(block, far) for block in range(len(near.spans))]
        self.stayed = near.stayed(close[near.neighbours])

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        near = flips.near
        common = (near.added @ self.elsewhere.flatten(1)).view(-1, *self.elsewhere.shape[1:])
        common += (flips.from_zero @ self.far)[:, None]
        sums = near.add_to(common.index_select(1, self.block_of), near.added, self.added)
        return near.add_to(sums, near.stayed, self.stayed)


class TargetSum:
    """Sums of payloads that differ from target to target: [n, T, k], filled target by target."""

    def __init__(self, layer: Layer, around: Surroundings, near: Near) -> None:
        self.layer, self.around, self.near, self.nodes = layer, around, near, near.nodes
        self.matrix: Tensor | None = None
        self.staying: list[Tensor] = []
        self.close: list[Tensor] = []
        self.shifts: list[Tensor] = []

    @cached_property
    def shift(self) -> Tensor | None:
        """What the weights of a first layer of attention were scaled by."""
        return torch.cat(self.shifts) if self.shifts else None

    def fill(self, sent: Sent, nodes: Tensor) -> None:
        """Take the payloads [B, n, k] of the next B targets, from what all nodes send."""
        payload, _, shift = self.layer.payload(self.around, sent, nodes)
        if shift is not None:
            self.shifts.append(shift)
        n, width = payload.shape[1:]
        if self.matrix is None:
            self.matrix, self.filled = payload.new_empty((n, self.nodes.numel(), width)), 0
        targets, neighbours = self.around.edges_of(nodes)
        self.close.append(payload[targets, neighbours])
        block = self.matrix[:, self.filled : self.filled + nodes.numel()]
        block.copy_(payload.transpose(0, 1))
        block[neighbours, targets] = 0.0
        block[nodes, torch.arange(nodes.numel(), device=nodes.device)] = 0.0
        self.filled += nodes.numel()
        if self.filled == self.nodes.numel():
            self.staying = self.near.stayed(torch.cat(self.close))

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        assert self.matrix is not None
        sums = (flips.from_zero @ self.matrix.flatten(1)).view(-1, *self.matrix.shape[1:])
        return flips.near.add_to(sums, flips.near.stayed, self.staying)
