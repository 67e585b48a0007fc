"""Noisy graphs as dense adjacency matrices: small graphs with every pair noisy."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.layers import Around


class Matrices(Around):
    """Symmetric adjacency matrices [B, N, N] without loops; states are [B, N, F], or [1, N, F] where all samples agree."""

    def __init__(self, adjacency: Tensor, loops: Tensor, looped: bool = True) -> None:
        super().__init__(loops[..., None], looped)
        self.adjacency = adjacency

    @cached_property
    def degree(self) -> Tensor:  # type: ignore[override]
        """[B, N, 1]."""
        return self.adjacency.sum(-1, keepdim=True)

    def total(self, z: Tensor) -> Tensor:
        """One batched product; states that are the same in all samples need one product only."""
        return self.adjacency @ z[0] if len(z) == 1 else torch.bmm(self.adjacency, z)

    def largest(self, z: Tensor) -> Tensor:
        """Over the last but one dimension of [B, N, N, F], a feature at a time."""
        there = (self.adjacency + torch.diag_embed(self.loops[..., 0])) > 0
        least = torch.finfo(z.dtype).min
        tops = [torch.where(there, z[:, None, :, f], least).amax(-1) for f in range(z.shape[-1])]
        return torch.stack(tops, dim=-1) * there.any(-1, keepdim=True)

    def attend(self, layer: Any, sent: tuple[Tensor, ...]) -> Tensor:
        """A masked softmax (or the gates themselves) over each row of the matrices."""
        values, sender, receiver = (t.expand(len(self.adjacency), *t.shape[1:]) for t in sent)
        score = layer.score(sender[:, None], receiver[:, :, None])
        mask = (self.adjacency + torch.diag_embed(layer.loop(self.loops)[..., 0]))[..., None]
        if layer.normalised:
            score = score.masked_fill(mask == 0, torch.finfo(score.dtype).min).softmax(dim=2)
        else:
            score = score.exp()
        # a node without neighbours receives nothing
        return torch.einsum("bijh,bjhc->bihc", score * mask, values)

    def average(self, h: Tensor) -> Tensor:
        """[B, 1, F]: the mean over the nodes of each graph."""
        return h.mean(-2, keepdim=True)

    def pool(self, kind: str, h: Tensor, gate: Tensor | None = None) -> Tensor:
        """[B, F]: the readout of each graph; `gate` weighs its nodes by a softmax."""
        if gate is not None:
            return (gate.softmax(-2) * h).sum(-2)
        if kind == "max":
            return h.amax(-2)
        return h.sum(-2) if kind == "sum" else h.mean(-2)
