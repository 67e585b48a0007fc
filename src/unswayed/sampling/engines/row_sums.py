"""Sums over the attached nodes, for many samples of many targets at once.

With noise ε shared by all targets, the row of u is s_u ⊕ ε: one matrix product, with the 0/1 matrix of ε, serves all targets
but for the few clean neighbours of each, which are there unless they flip. Only what is there is ever added: a clean
neighbour that was counted and taken away again would leave its rounding behind, and if it is large, much of it.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.layers import Payload
from unswayed.sampling.engines.surroundings import Surroundings

# How many times as large as usual a node's payload may be where it is counted and taken away again: in single precision what
# rounding leaves of it is then some millionths of a usual payload.
RANGE = 32.0
TOGETHER = {"cpu": 8, "cuda": 128}  # targets whose clean neighbours are corrected by one small product


def ordinary(payload: Tensor) -> bool:
    """Whether no node sends [n, ...] more than RANGE times what the middle one of those that send anything does."""
    size = payload.detach().abs().flatten(1).amax(1)
    size = size[size > 0]
    return not size.numel() or float(size.max()) <= RANGE * float(size.median())


@dataclass(frozen=True)
class Drawn:
    """Which entries flip in each of S samples: bool[S, n] where they are 0, and where they are 1 (may be one tensor)."""

    from_zero: Tensor
    from_one: Tensor

    @property
    def alike(self) -> bool:
        """Whether zeros and ones flip together."""
        return self.from_zero is self.from_one

    def part(self, begin: int, end: int) -> "Drawn":
        """Samples begin .. end - 1 of these."""
        zero = self.from_zero[begin:end]
        return Drawn(zero, zero if self.alike else self.from_one[begin:end])

    def attached(self, around: Surroundings, node: Tensor) -> Tensor:
        """bool[S, n]: the noisy row of one node."""
        rows = self.from_zero.clone()
        _, neighbours = around.edges_of(node[None])
        rows[:, neighbours] = ~self.from_one[:, neighbours]
        rows[:, node] = False
        return rows


class Near:
    """The targets and their clean neighbours, the only nodes that count otherwise for one target than for the next.

    Targets go by blocks, each with the columns of its own targets and their neighbours.
    """

    def __init__(self, around: Surroundings, nodes: Tensor) -> None:
        self.nodes = nodes
        self.targets, self.neighbours = around.edges_of(nodes)
        self.special = torch.unique(torch.cat([self.neighbours, nodes]))
        size = TOGETHER[nodes.device.type]
        self.spans = [(low, min(low + size, nodes.numel())) for low in range(0, nodes.numel(), size)]
        self.columns = [self._columns(*span) for span in self.spans]
        self.sizes = [columns.numel() for columns in self.columns]
        self.every = self.special[torch.cat(self.columns)]  # the nodes of all columns, block by block

    def _columns(self, low: int, high: int) -> Tensor:
        """The columns of one block, as places among the special nodes."""
        here = (self.targets >= low) & (self.targets < high)
        own = torch.unique(torch.cat([self.neighbours[here], self.nodes[low:high]]))
        return torch.searchsorted(self.special, own)

    def edges(self, block: int) -> tuple[Tensor, Tensor, Tensor]:
        """(which edges of all, their columns, their targets) of one block."""
        low, high = self.spans[block]
        here = ((self.targets >= low) & (self.targets < high)).nonzero()[:, 0]
        place = torch.searchsorted(self.special, self.neighbours[here])
        return here, torch.searchsorted(self.columns[block], place), self.targets[here] - low

    def of(self, drawn: Drawn, dtype: torch.dtype) -> "NearFlips":
        """Gathered once for all sums of a chunk."""
        zero = drawn.from_zero.index_select(1, self.every)
        one = zero if drawn.alike else drawn.from_one.index_select(1, self.every)
        added, stayed = (torch.split(kind.to(dtype), self.sizes, dim=1) for kind in (zero, ~one))
        special = drawn.from_zero.index_select(1, self.special).to(dtype)
        return NearFlips(special, list(zip(added, stayed, strict=True)))


@dataclass(frozen=True)
class NearFlips:
    """The special columns: whether a 0 flips, [S, special]; for each block that again and whether a 1 stays, [S, c]."""

    added: Tensor
    blocks: list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Flips:
    """The same as numbers: 0.0 or 1.0, [S, n], and the columns near the targets; cast once for all sums of a chunk."""

    from_zero: Tensor
    from_one: Tensor
    near: NearFlips

    @classmethod
    def of(cls, drawn: Drawn, near: Near, dtype: torch.dtype) -> "Flips":
        """The casts of what was drawn."""
        zero = drawn.from_zero.to(dtype)
        return cls(zero, zero if drawn.alike else drawn.from_one.to(dtype), near.of(drawn, dtype))

    @cached_property
    def columns(self) -> Tensor:
        """[n, S]: `from_zero` with the samples of one entry side by side, where entries are to be picked out."""
        return self.from_zero.T.contiguous()


class Staying:
    """Sums over the clean neighbours of each target that do not flip: what is there is added, nothing is taken away."""

    def __init__(self, near: Near, due: Tensor) -> None:
        """`due` [E, k]: what each clean neighbour counts for, in the order of the edges."""
        self.near, self.matrices = near, []
        for block, (low, high) in enumerate(near.spans):
            here, column, target = near.edges(block)
            matrix = due.new_zeros((near.columns[block].numel(), high - low, due.shape[1]))
            matrix[column, target] = due[here]
            self.matrices.append(matrix)

    def add_to(self, sums: Tensor, flips: NearFlips) -> Tensor:
        """The sums [S, T, k] with these added to them, in place."""
        flat, begin = sums.flatten(1), 0
        for (_, stayed), matrix in zip(flips.blocks, self.matrices, strict=True):
            end = begin + matrix[0].numel()
            flat[:, begin:end].addmm_(stayed, matrix.flatten(1))
            begin = end
        return sums


class CommonSum:
    """Sums of payloads [n, k] that are the same for all targets, but for the clean neighbours of each.

    Nodes that are no target and no neighbour of one are added up once for all; the others once for each block of targets,
    without those of the block itself; and those for each of its targets.
    """

    def __init__(self, near: Near, payload: Payload) -> None:
        far, close = payload.far, payload.close
        self.spans, self.count = near.spans, near.nodes.numel()
        self.staying = None if close is None else Staying(near, close[near.neighbours])
        self.far = far.index_fill(0, near.special, 0.0)
        self.elsewhere = far[near.special][:, None].repeat(1, len(near.spans), 1)
        for block, columns in enumerate(near.columns):
            self.elsewhere[columns, block] = 0.0
        self.own = [far[near.special[columns]] for columns in near.columns]
        self.masks = [self._masks(near, block, far.dtype) for block in range(len(near.spans))]

    def _masks(self, near: Near, block: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Two [T, c] for a block: where a flip from 0 attaches a node, and where a 1 that stays does, by `far`."""
        low, high = near.spans[block]
        columns = near.columns[block]
        added = torch.ones((high - low, columns.numel()), dtype=dtype, device=columns.device)
        _, column, target = near.edges(block)
        added[target, column] = 0.0
        stayed = torch.zeros_like(added)
        stayed[target, column] = 1.0 if self.staying is None else 0.0
        own = torch.searchsorted(near.special[columns], near.nodes[low:high])
        added[torch.arange(high - low, device=own.device), own] = 0.0
        return added, stayed

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        common = (flips.near.added @ self.elsewhere.flatten(1)).view(-1, *self.elsewhere.shape[1:])
        common += (flips.from_zero @ self.far)[:, None]
        sums = common.new_empty((len(common), self.count, common.shape[2]))
        for block, (zero, one) in enumerate(flips.near.blocks):
            (added, stayed), (low, high) = self.masks[block], self.spans[block]
            rows = zero[:, None] * added  # of these columns, target by target
            if self.staying is None:
                rows.addcmul_(one[:, None], stayed)
            torch.add(rows @ self.own[block], common[:, block, None], out=sums[:, low:high])
        return sums if self.staying is None else self.staying.add_to(sums, flips.near)


class Degrees:
    """How many nodes are attached to each target: whole numbers, so that nothing is lost by taking away."""

    def __init__(self, near: Near, dtype: torch.dtype) -> None:
        shape = (near.special.numel(), near.nodes.numel())
        self.added = torch.zeros(shape, dtype=dtype, device=near.nodes.device)
        place = torch.searchsorted(near.special, near.neighbours)
        self.added[place, near.targets] = -1.0
        own = torch.searchsorted(near.special, near.nodes)
        self.added[own, torch.arange(near.nodes.numel(), device=own.device)] = -1.0
        self.stayed = Staying(near, self.added.new_ones((near.neighbours.numel(), 1)))

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T]."""
        total = flips.from_zero.sum(dim=1, keepdim=True)
        count = total + flips.near.added @ self.added
        return self.stayed.add_to(count[..., None], flips.near)[..., 0]


class TargetSum:
    """Sums of payloads that differ from target to target: [n, T, k], filled target by target."""

    def __init__(self, around: Surroundings, near: Near) -> None:
        self.around, self.near, self.nodes = around, near, near.nodes
        self.matrix: Tensor | None = None
        self.staying: Staying | None = None
        self.close: list[Tensor] = []

    def fill(self, payload: Tensor) -> None:
        """Take the payloads [B, n, k] of the next B targets."""
        n, width = payload.shape[1:]
        if self.matrix is None:
            self.matrix, self.filled = payload.new_empty((n, self.nodes.numel(), width)), 0
        nodes = self.nodes[self.filled : self.filled + payload.shape[0]]
        targets, neighbours = self.around.edges_of(nodes)
        self.close.append(payload[targets, neighbours])
        block = self.matrix[:, self.filled : self.filled + nodes.numel()]
        block.copy_(payload.transpose(0, 1))
        block[neighbours, targets] = 0.0
        block[nodes, torch.arange(nodes.numel(), device=nodes.device)] = 0.0
        self.filled += nodes.numel()
        if self.filled == self.nodes.numel():
            self.staying = Staying(self.near, torch.cat(self.close))

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        assert self.matrix is not None
        assert self.staying is not None
        sums = (flips.from_zero @ self.matrix.flatten(1)).view(-1, *self.matrix.shape[1:])
        return self.staying.add_to(sums, flips.near)
