"""Sums over the attached nodes, for many samples of many targets at once.

With noise ε shared by all targets, the row of u is s_u ⊕ ε, so Σ_v m_v g_v = Σ_{v∈N(u)} g_v + Σ_v ε_v (1 − 2 s_uv) g_v:
one matrix product, with the 0/1 matrix of ε, serves all targets. Where 1-entries flip with another probability than
0-entries, the few clean neighbours are corrected separately.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.layers import Payload
from unswayed.sampling.engines.surroundings import Surroundings

TOGETHER = {"cpu": 8, "cuda": 128}  # targets whose clean neighbours are corrected by one small product


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


@dataclass(frozen=True)
class Flips:
    """The same as numbers: 0.0 or 1.0, [S, n]; cast once for all sums of a chunk."""

    from_zero: Tensor
    from_one: Tensor

    @classmethod
    def of(cls, drawn: Drawn, dtype: torch.dtype) -> "Flips":
        """The casts of what was drawn."""
        zero = drawn.from_zero.to(dtype)
        return cls(zero, zero if drawn.alike else drawn.from_one.to(dtype))

    @cached_property
    def columns(self) -> Tensor:
        """[n, S]: `from_zero` with the samples of one entry side by side, where entries are to be picked out."""
        return self.from_zero.T.contiguous()


PayloadOf = Callable[[Tensor, Tensor], Tensor]  # [E, k], from places of targets and other nodes, both [E]


class Corrections:
    """What puts a sum over all flipped entries right: clean neighbours count unless they flip, the target never does."""

    def __init__(
        self, around: Surroundings, nodes: Tensor, added: PayloadOf, due: PayloadOf, alike: bool
    ) -> None:
        """`added` says what the sum counts for a flipped entry, `due` what a clean neighbour should count for."""
        self.alike, size = alike, TOGETHER[nodes.device.type]
        places = torch.arange(nodes.numel(), device=nodes.device)
        self.blocks = [self._block(around, nodes, part, added, due) for part in torch.split(places, size)]

    def _block(
        self, around: Surroundings, nodes: Tensor, part: Tensor, added: PayloadOf, due: PayloadOf
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(columns, what a flip from zero adds there, what one from one adds, what no flip at all adds)."""
        targets, neighbours = around.edges_of(nodes[part])
        far, close = added(part[targets], neighbours), due(part[targets], neighbours)
        columns, place = torch.unique(torch.cat([neighbours, nodes[part]]), return_inverse=True)
        shape = (columns.numel(), part.numel(), far.shape[1])
        from_zero, from_one = far.new_zeros(shape), far.new_zeros(shape)
        here = place[: neighbours.numel()]
        from_zero[here, targets] = -far
        from_zero[place[neighbours.numel() :], part - part[0]] = -added(part, nodes[part])
        from_one[here, targets] = -close
        constant = far.new_zeros(shape[1:]).index_add_(0, targets, close)
        if self.alike:
            from_zero += from_one
        return columns, from_zero.flatten(1), from_one.flatten(1), constant

    def __call__(self, flips: Flips, sums: Tensor) -> Tensor:
        """[S, T, k]: the sums over all flipped entries, corrected."""
        parts = torch.split(sums, TOGETHER[sums.device.type], dim=1)
        return torch.cat(
            [part + self._corrected(flips, *block) for part, block in zip(parts, self.blocks, strict=True)],
            dim=1,
        )

    def _corrected(
        self, flips: Flips, columns: Tensor, from_zero: Tensor, from_one: Tensor, constant: Tensor
    ) -> Tensor:
        fix = flips.from_zero.index_select(1, columns) @ from_zero
        if not self.alike:
            fix = fix + flips.from_one.index_select(1, columns) @ from_one
        return fix.view(-1, *constant.shape) + constant


class CommonSum:
    """Sums of payloads [n, k] that are the same for all targets, but for the clean neighbours of each."""

    def __init__(self, around: Surroundings, payload: Payload, nodes: Tensor, alike: bool) -> None:
        self.far, self.count = payload.far, nodes.numel()
        close = payload.far if payload.close is None else payload.close
        self.corrections = Corrections(
            around, nodes, lambda _, others: payload.far[others], lambda _, others: close[others], alike
        )

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        common = (flips.from_zero @ self.far)[:, None]
        return self.corrections(flips, common.expand(-1, self.count, -1))


class TargetSum:
    """Sums of payloads that differ from target to target: [n, T, k], filled target by target."""

    def __init__(self, around: Surroundings, nodes: Tensor, alike: bool) -> None:
        self.around, self.nodes, self.alike = around, nodes, alike
        self.matrix: Tensor | None = None

    def fill(self, begin: int, payload: Tensor) -> None:
        """Take the payloads [B, n, k] of the targets begin .. begin + B - 1."""
        n, width = payload.shape[1:]
        count = self.nodes.numel()
        if self.matrix is None:
            self.matrix = payload.new_empty((n, count, width))
            self.constant = payload.new_zeros((count, width))
            self.edges = self.around.edges_of(self.nodes)
            self.close = payload.new_zeros((self.edges[0].numel(), width))
        nodes = self.nodes[begin : begin + payload.shape[0]]
        targets, neighbours = self.around.edges_of(nodes)
        close = payload[targets, neighbours]
        self.constant.index_add_(0, targets + begin, close)
        self.close[(self.edges[0] >= begin) & (self.edges[0] < begin + nodes.numel())] = close
        block = self.matrix[:, begin : begin + payload.shape[0]]
        block.copy_(payload.transpose(0, 1))
        block[neighbours, targets] = -close if self.alike else 0.0
        block[nodes, torch.arange(nodes.numel(), device=nodes.device)] = 0.0

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, k]."""
        assert self.matrix is not None
        sums = (flips.from_zero @ self.matrix.flatten(1)).view(-1, *self.constant.shape) + self.constant
        if not self.alike:
            targets, neighbours = self.edges
            lost = flips.from_one.index_select(1, neighbours)[..., None] * self.close
            sums.index_add_(1, targets, lost, alpha=-1)
        return sums
