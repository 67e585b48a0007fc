"""Noisy versions of one graph that differ in the links of one node u alone, at all nodes at once.

What no noise touches, the graph without the links of u, is one list of edges for all samples; the links of u are a star: u
sends one message to every attached node, and gets one sum over them. Nothing that is not there is ever added and taken
away again, so the numbers are a function of the noisy row alone.
"""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.cards import fused
from unswayed.sampling.engines.graphs.edges import Edges, Listed, Weighing
from unswayed.sampling.engines.plans.layers import Around, Sent
from unswayed.sampling.engines.plans.surroundings import Surroundings


class Spokeless:
    """The graph without the links of one node, as it is in all samples."""

    def __init__(self, around: Surroundings, node: int) -> None:
        self.node = node
        self.edges = Edges(around.adjacency.crow_indices(), around.adjacency.col_indices(), around.n)
        self.degree, self.loops = around.degree[:, None], around.loops[:, None]
        self.looped = bool(around.loops.any())

    @cached_property
    def ordered(self) -> tuple[Tensor, Tensor, Tensor]:
        """(receivers by the number of their senders, where these begin, all senders), as a card's kernel reads them."""
        order = self.edges.starts.diff().argsort(descending=True, stable=True)
        order, starts, senders = (t.to(torch.int32) for t in (order, self.edges.starts, self.edges.senders))
        return order, starts, senders


class Star(Listed):
    """S samples of the links of one node; states are [S, n, ...], or [1, n, ...] where all samples agree."""

    def __init__(self, rest: Spokeless, rows: Tensor) -> None:
        """`rows` bool[S, n]: the attached nodes, u itself never among them."""
        self.rest, self.node, self.mask = rest, rest.node, rows.to(rest.degree.dtype)[..., None]
        super().__init__(rest.edges, rest.degree + self.mask, rest.loops[None], looped=rest.looped)
        self.degree[:, self.node] = self.mask.sum(1)
        self.centre = Centre(self)

    def total(self, z: Tensor) -> Tensor:
        """One sparse product and the star."""
        spokes = self.mask * z[:, self.node, None]
        alike = len(z) == len(spokes)
        total = self.edges.total(z, spokes) if alike else spokes.add_(self.edges.total(z))
        total[:, self.node] = self.centre.total(z)[:, 0]
        return total

    def at_once(self, z: Tensor, before: Tensor | None, loop: Tensor, after: Tensor | None) -> Tensor | None:
        """after · (Σ before · z over neighbours + loop · before · z) on a card, where every pass over memory counts."""
        if not z.is_cuda:
            return None
        before = torch.ones_like(self.mask) if before is None else before
        after = torch.ones_like(before[:1]) if after is None else after
        return fused.either(self._by_kernel, self._by_parts, z, self.mask, before, after, loop)

    def _by_parts(self, z: Tensor, mask: Tensor, before: Tensor, after: Tensor, loop: Tensor) -> Tensor:
        z = before * z
        total = self.edges.total(z, mask * z[:, self.node, None])
        total[:, self.node] = torch.bmm(mask.transpose(1, 2), z)[:, 0]
        return total.add_(loop * z).mul_(after)

    def _by_kernel(self, z: Tensor, mask: Tensor, before: Tensor, after: Tensor, loop: Tensor) -> Tensor:
        weight, out = (mask * before)[..., 0], z.new_empty((len(mask), *z.shape[1:]))
        numbers = (z, mask[..., 0], before[..., 0], after[..., 0], loop[0, :, 0])
        fused.joined(out, *numbers, self.rest.ordered, self.node)
        centre = weight @ z[0] if len(z) == 1 else torch.bmm(weight[:, None], z)[:, 0]
        own = loop[:, self.node] * before[:, self.node] * z[:, self.node]
        out[:, self.node] = (centre + own) * after[:, self.node]
        return out

    def largest(self, z: Tensor) -> Tensor:
        """Over the edges that stay, the loops and the star."""
        top = self._tops(z)
        top = torch.where(self.mask > 0, torch.maximum(top, z[:, self.node, None]), top)
        top = top * (self.degree + self.loops > 0)
        top[:, self.node] = self.centre.largest(z)[:, 0]
        return top

    def attend(self, layer: Any, sent: Sent) -> Tensor:
        """A softmax over the edges that stay, the node itself and the star."""
        weighing, u, heads = Weighing(layer, sent, self), self.node, sent[0].shape[2]
        attached, n = weighing.by_head(self.mask), self.mask.shape[1]
        spoke = weighing.score(sent[1][:, u].repeat(1, n, 1), weighing.receiver)
        if weighing.top is not None:
            weighing.top = torch.maximum(
                weighing.top, torch.where(attached > 0, spoke, torch.finfo(spoke.dtype).min)
            )
        spoke = weighing.only(weighing.weight(spoke, weighing.top), attached)
        values = weighing.values[:, None, u * heads : (u + 1) * heads]  # of u: to all attached nodes
        sums = weighing.sums()
        sums, spoke = sums.view(len(sums), n, heads, -1), spoke.view(len(spoke), n, heads, 1)
        mixed = weighing.closed(torch.addcmul(sums, spoke, values).flatten(1, 2))
        mixed[:, u] = self.centre.attend(layer, sent)[:, 0]
        return mixed

    def picked(self, pairs: Tensor, centre: Tensor) -> Tensor:
        """[S, n, ...]: of `pairs` [2, n, ...] the second where a node is attached, the first elsewhere; u's own at u."""
        if pairs.stride(1) == 0:  # the same for all nodes
            return pairs[:1]
        if pairs.is_cuda:  # it picks rows of a few numbers slowly
            mask = self.mask.view(*self.mask.shape[:2], *[1] * (pairs.dim() - 2))
            out = torch.where(mask > 0, pairs[1], pairs[0])
        else:  # numbers are picked faster than rows
            flat = pairs.flatten() if pairs[0, 0].numel() == 1 else pairs.flatten(0, 1)
            out = flat.index_select(0, self.places).view(len(self.mask), *pairs.shape[1:])
        out[:, self.node] = centre[:, 0]
        return out

    @cached_property
    def places(self) -> Tensor:
        """int64[S n]: where in a pair of states those of each sample's nodes are."""
        n = self.mask.shape[1]
        number = torch.arange(n, device=self.mask.device)
        return (self.mask[..., 0].long() * n + number).flatten()

    def average(self, h: Tensor) -> Tensor:
        """[S, 1, F]: the mean over all nodes."""
        return h.mean(1, keepdim=True)


class Turned(Around):
    """The same samples side by side, for numbers of nodes [n, S, 1] instead of states: one wide product for all of them."""

    def __init__(self, star: Star) -> None:
        super().__init__(star.loops.transpose(0, 1).contiguous(), star.looped)
        self.edges, self.node = star.edges, star.node
        self.mask, self.degree = (t.transpose(0, 1).contiguous() for t in (star.mask, star.degree))

    def total(self, z: Tensor) -> Tensor:
        """One sparse product and the star."""
        total = self.edges.wide(z)
        total.addcmul_(self.mask, z[self.node])
        total[self.node] = (self.mask * z).sum(0)
        return total


class Centre(Around):
    """The same samples where u alone receives: states of receivers are [S, 1, ...]."""

    def __init__(self, star: Star) -> None:
        super().__init__(star.loops, star.looped)
        self.star, self.degree, self.roots = star, star.degree, star.roots  # of every sender

    def total(self, z: Tensor) -> Tensor:
        """[S, 1, F]: the sum over the attached nodes."""
        return self._weighed(self.star.mask[..., 0], z)

    def _weighed(self, weight: Tensor, z: Tensor) -> Tensor:
        return (weight @ z[0])[:, None] if len(z) == 1 else torch.bmm(weight[:, None], z)

    def scaled(self, z: Tensor, scale: Tensor, into: bool = False) -> tuple[Tensor, Tensor]:
        """Scales go into the weights of nodes."""
        return self._weighed((self.star.mask * scale)[..., 0], z), self.own(scale) * self.own(z)

    def own(self, z: Tensor) -> Tensor:
        """[S or 1, 1, ...] of u."""
        return z[:, self.star.node, None]

    def largest(self, z: Tensor) -> Tensor:
        """[S, 1, F]."""
        top = torch.where(self.star.mask > 0, z, torch.finfo(z.dtype).min).amax(1, keepdim=True)
        top = torch.where(self.own(self.loops) > 0, torch.maximum(top, self.own(z)), top)
        return top * (self.own(self.degree) + self.own(self.loops) > 0)

    def attend(self, layer: Any, sent: Sent) -> Tensor:
        """[S, 1, H, C]."""
        (values, sender, receiver), u, heads = sent, self.star.node, sent[0].shape[2]  # [B, n, H, ...]
        score = layer.score(sender, receiver[:, u, None]).flatten(1)  # [B, n H]
        attached = self.star.mask[..., 0].repeat_interleave(heads, 1)
        own, loop = score[:, None, u * heads : (u + 1) * heads], layer.loop(self.loops)[:, u, None]
        top = score.new_zeros(())
        if layer.normalised and not layer.bound(sent) < Weighing.FAR:
            score = torch.where(attached > 0, score, torch.finfo(score.dtype).min)
            top = score.view(len(score), -1, heads).amax(1, keepdim=True)
            top = torch.where(loop > 0, torch.maximum(top, own), top)
            score = score - top.expand(-1, values.shape[1], -1).flatten(1)
        weight = (score.exp() * attached).view(len(attached), -1, heads)
        own = torch.where(loop > 0, (own - top).exp(), 0.0)
        numerator = torch.addcmul(_by_head(weight, values), own[..., None], values[:, u, None])
        if layer.normalised:
            numerator = numerator / (weight.sum(1, keepdim=True) + own).clamp_min(1e-30)[..., None]
        return numerator


def _by_head(weight: Tensor, values: Tensor) -> Tensor:
    """[S, 1, H, C]: values [B, n, H, C] added up by weights [S, n, H], by products that mix heads and leave that out."""
    heads = values.shape[2]
    mixed = torch.matmul(weight.transpose(1, 2), values.flatten(2))
    mixed = mixed.view(len(weight), heads, heads, -1)
    return mixed.diagonal(dim1=1, dim2=2).transpose(1, 2)[:, None]
