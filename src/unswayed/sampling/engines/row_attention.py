"""A second layer of attention for many samples of one target at a time."""

import torch
import torch_geometric.nn as gnn
from torch import Tensor

from unswayed.sampling.engines.attention import AttentionLayer
from unswayed.sampling.engines.layers import Sent
from unswayed.sampling.engines.row_sums import Drawn, Flips
from unswayed.sampling.engines.surroundings import Surroundings

ELEMENTS = {"cpu": 2**18, "cuda": 2**28}  # scores held at a time where they are computed one by one
SPREAD = 60.0  # e^-60 is far from underflow in float32, so products of exponentials keep their precision


class Attended:
    """The state of the targets after a second attention layer, exactly, for each sample's own scores.

    exp(leaky(a + b)) is e^a e^b where a + b > 0 and e^(ca) e^(cb) elsewhere. A target's a moves little from sample to
    sample, so for most nodes the sign is the same in all samples of a chunk: those go into one matrix product, and only
    the others are computed one by one.
    """

    def __init__(self, layer: AttentionLayer, around: Surroundings, nodes: Tensor) -> None:
        self.layer, self.around, self.nodes = layer, around, nodes
        self.near: list[Sent] = []

    def fill(self, sent: Sent) -> None:
        """Take what the attached nodes of the next targets send, [B, n, ...]."""
        self.near += [tuple(t[b] for t in sent[:2]) for b in range(sent[0].shape[0])]

    def __call__(self, drawn: Drawn, flips: Flips, targets: Sent) -> Tensor:
        """[S, T, F], from what the targets send in each sample, [S, T, ...]."""
        out = []
        for t in range(self.nodes.numel()):
            own = tuple(part[:, t] for part in targets)
            scores = self.near[t][1]
            if self.nodes.is_cuda or type(self.layer.module) is not gnn.GATConv or not _moderate(scores, own):
                out.append(self._one_by_one(drawn, t, own))
            else:
                out.append(self._by_sign(drawn, flips, t, own))
        return torch.stack(out, dim=1)

    def _one_by_one(self, drawn: Drawn, t: int, own: Sent) -> Tensor:
        node, (values, scores) = self.nodes[t], self.near[t]
        rows = drawn.attached(self.around, node)
        size = max(1, ELEMENTS[rows.device.type] // scores.numel())
        near = (values[None], scores[None])
        return torch.cat(
            [
                self.layer.own_attending(
                    self.around,
                    near,
                    rows[i : i + size],
                    tuple(p[i : i + size] for p in own),
                    node.expand(len(rows[i : i + size])),
                )
                for i in range(0, len(rows), size)
            ]
        )

    def _by_sign(self, drawn: Drawn, flips: Flips, t: int, own: Sent) -> Tensor:
        values, sender, receiver, extra = own
        node, (near, scores) = self.nodes[t], self.near[t]
        _, neighbours = self.around.edges_of(node[None])
        shift = scores[..., 0].amax(0)
        heads = [
            self._head(
                drawn, flips, node, neighbours, near[:, h], scores[:, h, 0], receiver[:, h, 0], shift[h]
            )
            for h in range(near.shape[1])
        ]
        sums = torch.stack(heads, dim=1)
        slope = self.layer.module.negative_slope
        top = _leaky(receiver[..., 0] + shift, slope)
        loop = (self.layer.score(sender, receiver) - top).exp() * self.layer.loop(self.around.loops)[node]
        return self.layer.mix(sums[..., :-1], sums[..., -1], loop, values, extra)

    def _head(
        self,
        drawn: Drawn,
        flips: Flips,
        node: Tensor,
        neighbours: Tensor,
        values: Tensor,
        b: Tensor,
        a: Tensor,
        shift: Tensor,
    ) -> Tensor:
        """[S, C + 1]: weighted values and weights, all scaled by exp(-leaky(a + shift))."""
        slope = self.layer.module.negative_slope
        low, high = a.aminmax()
        positive, negative = b > -low, b < -high
        either = ~(positive | negative)
        either[neighbours] = True
        either[node] = False
        payload = torch.cat([values, torch.ones_like(b)[:, None]], dim=1)
        keep = (~either).to(b.dtype)
        keep[node] = 0
        up = (keep * positive * (b - shift).exp())[:, None] * payload
        down = (keep * negative * (slope * (b - shift)).exp())[:, None] * payload
        fixed = flips.from_zero @ torch.cat([up, down], dim=1)
        width, base = payload.shape[1], a + shift
        top = _leaky(base, slope)
        total = (base - top).exp()[:, None] * fixed[:, :width]
        total += (slope * base - top).exp()[:, None] * fixed[:, width:]
        columns = either.nonzero()[:, 0]
        if columns.numel():
            weight = (_leaky(a[:, None] + b[columns], slope) - top[:, None]).exp_()
            total += (weight * self._bits(drawn, columns, neighbours)) @ payload[columns]
        return total

    def _bits(self, drawn: Drawn, columns: Tensor, neighbours: Tensor) -> Tensor:
        """bool[S, columns]: whether these nodes are attached; the target is not among them."""
        bits = drawn.from_zero.index_select(1, columns)
        where = torch.isin(columns, neighbours)
        bits[:, where] = ~drawn.from_one.index_select(1, columns[where])
        return bits


def _leaky(x: Tensor, slope: float) -> Tensor:
    return torch.nn.functional.leaky_relu(x, slope)


def _moderate(scores: Tensor, own: Sent) -> bool:
    """Whether no attention weight can get lost in rounding next to another."""
    return bool(scores.max() - scores.min() < SPREAD and own[1].max() - scores.max() < SPREAD)
