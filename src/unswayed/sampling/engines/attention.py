"""GATConv and GATv2Conv in the arrangements of `layers`.

Attention weights are exp(score - shift) for a shift that is the same for all nodes the softmax runs over, so numerator and
denominator are sums of payloads as long as the scores of the target are fixed: in a first layer they are.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.engines.layers import Layer, Payload
from unswayed.sampling.engines.surroundings import Surroundings

ATTENTION = (gnn.GATConv, gnn.GATv2Conv)


class Keys(NamedTuple):
    """What a node sends and how it scores: values [.., H, C]; as sender and as receiver [.., H, K]."""

    values: Tensor
    sender: Tensor
    receiver: Tensor


class AttentionLayer(Layer):
    """Attention over the attached nodes and, if the layer adds one, a self-loop."""

    attends = True

    def keys(self, h: Tensor) -> Keys:
        """Of all nodes at once; row-wise."""
        module, shape = self.module, (*h.shape[:-1], self.module.heads, self.module.out_channels)
        if type(module) is gnn.GATConv:
            values = module.lin(h).reshape(shape)
            sender = (values * module.att_src).sum(-1, keepdim=True)
            return Keys(values, sender, (values * module.att_dst).sum(-1, keepdim=True))
        sender = module.lin_l(h).reshape(shape)
        return Keys(sender, sender, sender if module.share_weights else module.lin_r(h).reshape(shape))

    def score(self, sender: Tensor, receiver: Tensor) -> Tensor:
        """[.., H]: the attention score before the softmax."""
        active = fn.leaky_relu(sender + receiver, self.module.negative_slope)
        return active.squeeze(-1) if type(self.module) is gnn.GATConv else (active * self.module.att).sum(-1)

    def loop(self, loops: Tensor) -> Tensor:
        """1 where the softmax includes the node itself."""
        return torch.ones_like(loops) if self.module.add_self_loops else loops

    def finish(self, mixed: Tensor, h: Tensor) -> Tensor:
        """Joins the heads [.., H, C] and adds residual and bias."""
        out = mixed.flatten(-2) if self.module.concat else mixed.mean(-2)
        if self.module.res is not None:
            out = out + self.module.res(h)
        return out if self.module.bias is None else out + self.module.bias

    def near(self, around: Surroundings, h: Tensor, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F]: the softmax over v's neighbours, reopened to let the target in where it is not one of them."""
        keys = self.keys(h)
        top, weight, mixed = self._clean(around, keys)
        score = self.score(keys.sender[nodes][:, None], keys.receiver)
        score = score.masked_fill(around.adjacent(nodes)[..., None], -torch.inf)
        shift = torch.maximum(top, score)
        keep, add = (top - shift).exp(), (score - shift).exp()
        numerator = keep[..., None] * mixed + add[..., None] * keys.values[nodes][:, None]
        return self.finish(numerator / (keep * weight + add)[..., None], h)

    def _clean(self, around: Surroundings, keys: Keys) -> tuple[Tensor, Tensor, Tensor]:
        """For every node: largest score, and denominator and numerator relative to it, over its clean neighbours."""
        to, sender = around.edge_index
        score = self.score(keys.sender[sender], keys.receiver[to])
        own = self.score(keys.sender, keys.receiver)
        loop = self.loop(around.loops)[:, None]
        top = own.masked_fill(loop == 0, torch.finfo(own.dtype).min)
        top = top.scatter_reduce(0, to[:, None].expand_as(score), score, "amax").detach()
        edge, self_ = (score - top[to]).exp(), loop * (own - top).clamp_max(0).exp()
        weight = self_.index_add(0, to, edge)
        mixed = (self_[..., None] * keys.values).index_add(0, to, edge[..., None] * keys.values[sender])
        return top, weight, mixed

    def payload(self, around: Surroundings, h: Tensor, nodes: Tensor) -> Payload:
        """[B, n, H(C+1)]: the weighted values and the weights themselves, for a first layer (h is [n, F])."""
        keys = self.keys(h)
        score = self.score(keys.sender, keys.receiver[nodes][:, None])
        weight = (score - self._shift(score)).exp()
        return Payload(torch.cat([weight[..., None] * keys.values, weight[..., None]], dim=-1).flatten(-2))

    def _shift(self, score: Tensor) -> Tensor:
        return score.detach().amax(dim=1, keepdim=True)

    def own(self, around: Surroundings, sums: Tensor, count: Tensor, h: Tensor, nodes: Tensor) -> Tensor:
        """From the payload's sums; h [B, F] are the targets' own states, the same in every sample."""
        raise NotImplementedError

    def own_first(self, around: Surroundings, sums: Tensor, h: Tensor, nodes: Tensor) -> Tensor:
        """The state of the targets after a first layer, from the sums of `payload` and all nodes' states h [n, F]."""
        keys = self.keys(h)
        shift = self._shift(self.score(keys.sender, keys.receiver[nodes][:, None])).squeeze(1)
        weight = (self.score(keys.sender[nodes], keys.receiver[nodes]) - shift).exp()
        weight = weight * self.loop(around.loops)[nodes, None]
        sums = sums.reshape(*sums.shape[:-1], self.module.heads, -1)
        numerator = sums[..., :-1] + weight[..., None] * keys.values[nodes]
        return self.finish(numerator / (sums[..., -1:] + weight[..., None]).clamp_min(1e-30), h[nodes])

    def own_second(
        self, around: Surroundings, near: Tensor, rows: Tensor, h: Tensor, nodes: Tensor
    ) -> Tensor:
        """The state of the targets after a second layer, from near [B, n, F], rows bool[B, n] and own states h [B, F]."""
        there, here = self.keys(near), self.keys(h)
        score = self.score(there.sender, here.receiver[:, None]).masked_fill(~rows[..., None], -torch.inf)
        own = self.score(here.sender, here.receiver)
        own = own.masked_fill(self.loop(around.loops)[nodes, None] == 0, torch.finfo(own.dtype).min)
        shift = torch.maximum(score.amax(dim=1), own).detach()
        weight, self_ = (score - shift[:, None]).exp(), (own - shift).exp()
        self_ = self_ * self.loop(around.loops)[nodes, None]
        numerator = torch.einsum("bvh,bvhc->bhc", weight, there.values) + self_[..., None] * here.values
        return self.finish(numerator / (weight.sum(1) + self_)[..., None].clamp_min(1e-30), h)

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """A masked softmax over each row of the adjacency matrices."""
        keys = self.keys(h)
        score = self.score(keys.sender[:, None], keys.receiver[:, :, None])
        mask = adjacency + torch.diag_embed(self.loop(loops))
        weight = score.masked_fill(mask[..., None] == 0, torch.finfo(score.dtype).min).softmax(dim=2)
        weight = weight * mask[..., None]  # a node without neighbours receives nothing
        return self.finish(torch.einsum("bijh,bjhc->bihc", weight, keys.values), h)


def attention_layer(module: Any, name: str) -> AttentionLayer:
    """The arrangements of a GATConv or GATv2Conv with settings that are all understood."""
    if module.edge_dim is not None or not isinstance(module.in_channels, int):
        raise Unsupported(f"The layer '{name}' uses edge features or is bipartite.")
    return AttentionLayer(module)
