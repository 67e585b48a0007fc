"""Attention and gates: neighbours whose weight depends on both ends.

Attention weights are exp(score - shift) for a shift that is the same for all nodes the softmax runs over, so numerator and
denominator are sums of payloads as long as the scores of the target are fixed: in a first layer they are.
"""

from typing import Any

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor

from unswayed.sampling.engines.plans.layers import Around, Layer, Payload, Sent
from unswayed.sampling.engines.plans.surroundings import Surroundings


class Gated(Layer):
    """ResGatedGraphConv's sum: every feature of a neighbour counts by a sigmoid of both ends; each feature is a head."""

    in_rows = False
    normalised = False
    per_head = None

    def __init__(self, module: Any) -> None:
        self.module = module

    def send(self, h: Tensor) -> Sent:
        """(values, sender key, receiver key), each [.., C, 1]."""
        module = self.module
        return module.lin_value(h)[..., None], module.lin_query(h)[..., None], module.lin_key(h)[..., None]

    def score(self, sender: Tensor, receiver: Tensor) -> Tensor:
        """[.., C]: the logarithm of the weight."""
        return fn.logsigmoid((sender + receiver).squeeze(-1))

    def loop(self, loops: Tensor) -> Tensor:
        """1 where the node itself is one of its neighbours."""
        return loops

    def over(self, sent: Sent, around: Around) -> Tensor:
        """The gated sum over neighbours."""
        return around.attend(self, sent).squeeze(-1)


class Attention(Layer):
    """GATConv, GATv2Conv and TransformerConv (without its root): a softmax over the attached nodes and, if the layer adds
    one, a self-loop.

    A node sends values [.., H, C], its key as sender and as receiver [.., H, K], and what the residual adds.
    """

    normalised = True

    def __init__(self, module: Any) -> None:
        self.module, self.kind = module, type(module)

    def send(self, h: Tensor) -> Sent:
        """(values, sender key, receiver key, residual and bias)."""
        module, shape = self.module, (*h.shape[:-1], self.module.heads, self.module.out_channels)
        if self.kind is gnn.TransformerConv:
            parts = (
                linear(h).reshape(shape) for linear in (module.lin_value, module.lin_key, module.lin_query)
            )
            return *parts, h.new_zeros(1).expand(*h.shape[:-1], 1)
        width = module.out_channels * (module.heads if module.concat else 1)
        extra = h.new_zeros(width) if module.bias is None else module.bias
        extra = extra.expand(*h.shape[:-1], width) if module.res is None else extra + module.res(h)
        if self.kind is gnn.GATConv:
            weight = module.lin.weight.view(module.heads, module.out_channels, -1)
            both = torch.cat([module.att_src, module.att_dst])  # keys are linear in the state, too
            keys = fn.linear(h, torch.einsum("khc,hcf->khf", both, weight).flatten(0, 1))
            sender, receiver = keys.view(*keys.shape[:-1], 2, module.heads, 1).unbind(-3)
            return module.lin(h).reshape(shape), sender, receiver, extra
        sender = module.lin_l(h).reshape(shape)
        receiver = sender if module.share_weights else module.lin_r(h).reshape(shape)
        return sender, sender, receiver, extra

    def score(self, sender: Tensor, receiver: Tensor, att: Tensor | None = None) -> Tensor:
        """[..]: the attention score before the softmax, of keys [.., K]; `att` is [.., K] where it goes by head."""
        if self.kind is gnn.TransformerConv:
            dot: Tensor = (sender * receiver).sum(-1) / self.module.out_channels**0.5
            return dot
        active = fn.leaky_relu(sender + receiver, self.module.negative_slope)
        if self.kind is gnn.GATConv:
            return active.squeeze(-1)
        return (active * (self.module.att if att is None else att)).sum(-1)

    def spread(self, sent: Sent) -> float:
        """How far apart two scores of one receiver can be at most."""
        reach = (sent[1].amax(0) - sent[1].amin(0)).detach()
        if self.kind is gnn.TransformerConv:
            reach = (reach * sent[2].detach().abs().amax(0)).sum(-1) / self.module.out_channels**0.5
            return float(reach.max())
        reach = reach * max(1.0, abs(self.module.negative_slope))
        if self.kind is gnn.GATConv:
            return float(reach.max())
        return float((reach * self.module.att.detach().abs()).sum(-1).max())

    def bound(self, sent: Sent) -> float:
        """At least the size of every score."""
        module, sender, receiver = self.module, float(sent[1].abs().max()), float(sent[2].abs().max())
        if self.kind is gnn.TransformerConv:
            return float(sender * receiver * module.out_channels**0.5)
        reach = (sender + receiver) * max(1.0, abs(module.negative_slope))
        return float(reach if self.kind is gnn.GATConv else reach * module.att.abs().sum(-1).max())

    @property
    def per_head(self) -> Tensor | None:
        """[H, K]: what scores take besides both ends."""
        return self.module.att[0] if self.kind is gnn.GATv2Conv else None

    @property
    def splits(self) -> bool:
        """Whether exp(score) is e^a e^b or e^(ca) e^(cb) by the sign of a + b, and always the larger of both."""
        return self.kind is gnn.GATConv and 0 <= self.module.negative_slope <= 1

    def loop(self, loops: Tensor) -> Tensor:
        """1 where the softmax includes the node itself."""
        return torch.ones_like(loops) if getattr(self.module, "add_self_loops", False) else loops

    def finish(self, mixed: Tensor, extra: Tensor | float) -> Tensor:
        """Joins the heads [.., H, C] and adds residual and bias."""
        return (mixed.flatten(-2) if self.module.concat else mixed.mean(-2)) + extra

    def over(self, sent: Sent, around: Around) -> Tensor:
        """One softmax over neighbours."""
        return self.finish(around.attend(self, sent[:3]), around.own(sent[3]))

    def at_few(self, h: Tensor, around: Around) -> Tensor:
        """GATConv's weights add up the states themselves; the linear map comes after, where there are few."""
        module = self.module
        if self.kind is not gnn.GATConv or module.heads > 1:
            return super().at_few(h, around)
        sender = (h @ (module.att_src[0] @ module.lin.weight)[0])[..., None, None]
        own = around.own(h)
        receiver = (own @ (module.att_dst[0] @ module.lin.weight)[0])[..., None, None]
        mixed = around.attend(self, (h[:, :, None], sender, receiver.expand(-1, h.shape[1], -1, -1)))
        extra = 0.0 if module.bias is None else module.bias
        return self.finish(module.lin(mixed), extra if module.res is None else extra + module.res(own))

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """For every node what it sends, and over its clean neighbours: largest score, denominator and numerator relative to it."""
        values, sender, receiver, _ = sent
        to, by = around.edge_index
        score, own = self.score(sender[by], receiver[to]), self.score(sender, receiver)
        loop = self.loop(around.loops)[:, None]
        top = own.masked_fill(loop == 0, torch.finfo(own.dtype).min)
        top = top.scatter_reduce(0, to[:, None].expand_as(score), score, "amax").detach()
        edge, self_ = (score - top[to]).exp(), loop * (own - top).clamp_max(0).exp()
        weight = self_.index_add(0, to, edge)
        mixed = (self_[..., None] * values).index_add(0, to, edge[..., None] * values[by])
        return *sent, top, weight, mixed

    def near(self, around: Surroundings, clean: Sent, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F]: the softmax over v's neighbours, reopened to let the target in where it is not one of them."""
        values, sender, receiver, extra, top, weight, mixed = clean
        score = self.score(sender[nodes][:, None], receiver)
        score = score.masked_fill(around.adjacent(nodes)[..., None], -torch.inf)
        shift = torch.maximum(top, score)
        keep, add = (top - shift).exp(), (score - shift).exp()
        total = keep * weight + add
        keep, add = (keep / total)[..., None], (add / total)[..., None]
        return self.finish(torch.addcmul(keep * mixed, add, values[nodes][:, None]), extra)

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """[B, n, H(C+1)]: the weighted values and the weights themselves, for a first layer."""
        values, sender, receiver, _ = sent
        score = self.score(sender, receiver[nodes][:, None])
        shift = score.detach().amax(dim=1)
        weight = (score - shift[:, None]).exp()[..., None]
        return Payload(torch.cat([weight * values, weight], dim=-1).flatten(-2), shift=shift)

    def own(self, sums: Tensor, count: Tensor, sent: Sent, loops: Tensor, shift: Tensor | None) -> Tensor:
        """The targets' state after a first layer, from the sums of the payload that was scaled by `shift`."""
        assert shift is not None
        values, sender, receiver, extra = sent
        weight = (self.score(sender, receiver) - shift).exp() * self.loop(loops)[:, None]
        if not getattr(self.module, "add_self_loops", False):
            sums = sums * (count > 0)[..., None]  # what rounding left of a row that lost all its entries
        sums = sums.reshape(*sums.shape[:-1], self.module.heads, -1)
        return self.mix(sums[..., :-1], sums[..., -1], weight, values, extra)

    def mix(self, numerator: Tensor, weights: Tensor, loop: Tensor, values: Tensor, extra: Tensor) -> Tensor:
        """Closes the softmax with the target itself; a target without any weight receives nothing."""
        numerator = numerator + loop[..., None] * values
        return self.finish(numerator / (weights + loop).clamp_min(1e-30)[..., None], extra)

    def own_attending(self, near: Sent, rows: Tensor, sent: Sent, loops: Tensor) -> Tensor:
        """The targets' state after a second layer, where their scores differ from row to row."""
        values, sender, receiver, extra = sent
        loop = self.loop(loops)[:, None]
        score = self.score(near[1], receiver[:, None]).masked_fill(~rows[..., None], -torch.inf)
        own = self.score(sender, receiver).masked_fill(loop == 0, torch.finfo(score.dtype).min)
        shift = torch.maximum(score.amax(dim=1), own).detach()
        weight = (score - shift[:, None]).exp()
        values_near = near[0]  # one for all rows, if they are rows of one target
        if len(values_near) == 1:
            numerator = torch.einsum("bvh,vhc->bhc", weight, values_near[0])
        else:
            numerator = torch.einsum("bvh,bvhc->bhc", weight, values_near)
        return self.mix(numerator, weight.sum(1), (own - shift).exp() * loop, values, extra)
