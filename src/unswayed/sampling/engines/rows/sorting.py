"""A first layer of attention for all targets at once, without a matrix of weights for each of them.

exp(leaky(a + b)) is e^a e^b where a + b > 0 and e^(ca) e^(cb) elsewhere, a being the target's score and b the sender's. With
the nodes in the order of b, a target needs the sum of e^b g over those beyond its own -a and that of e^(cb) g over the
others. So the sums over the stretches between the -a of all targets are enough: every node is in one of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Sent
from unswayed.sampling.engines.rows.sums import Flips, Near, ordinary

# Clean neighbours are taken out of a sum that they are part of, so none may outweigh another node by more than e^UNLIKE, nor
# have values so much larger than usual that its rounding would show.
UNLIKE = 4.0
# nodes up to which a card takes less time for one large product than for launching a small one for each stretch
DENSE = 2**13


@dataclass(frozen=True)
class _Head:
    """One head: nodes in the order of b, their payloads by stretch, and where each target cuts."""

    order: Tensor
    stretches: list[tuple[int, int]]
    payload: Tensor  # [2(C + 1), n] in that order: e^b (g, 1), then e^(cb) (g, 1)
    cut: Tensor  # the number of stretches before each target's -a
    scale: Tensor  # [2, T, 1, 1]: e^a and e^(ca), relative to the largest weight

    def __call__(self, flips: Tensor) -> Tensor:
        """[T, C + 1, S], from flips [n, S]."""
        mixed, width = flips.index_select(0, self.order), len(self.payload) // 2
        sums = flips.new_zeros((len(self.stretches) + 2, 2 * width, flips.shape[1]))
        for i, (begin, end) in enumerate(self.stretches, start=1):
            torch.mm(self.payload[:, begin:end], mixed[begin:end], out=sums[i])
        beyond = sums[1:, :width].flip(0).cumsum(0).flip(0)
        before = sums[:-1, width:].cumsum(0)
        return self.scale[0] * beyond[self.cut] + self.scale[1] * before[self.cut]


class SortedSum:
    """The sums of `Attention.payload` over the attached nodes, [S, T, H(C + 1)], and the shift they are scaled by.

    All flipped entries are added up first; those of the target and of its clean neighbours are taken away again.
    """

    def __init__(self, layer: Attention, sent: Sent, near: Near) -> None:
        values, sender, receiver, _ = sent
        slope, nodes = layer.module.negative_slope, near.nodes
        top = sender.amax(0)[:, 0]
        self.shift = layer.score(top[:, None], receiver[nodes])
        self.heads = [
            _head(values[:, h], sender[:, h, 0], receiver[nodes, h, 0], top[h], slope)
            for h in range(values.shape[1])
        ]

        def weighed(targets: Tensor, others: Tensor) -> Tensor:
            score = layer.score(sender[others], receiver[nodes[targets]])
            weight = (score - self.shift[targets]).exp()[..., None]
            return torch.cat([weight * values[others], weight], dim=-1).flatten(1)

        due = weighed(near.targets, near.neighbours)
        self.stayed = near.stayed(due)
        self.taken = near.stayed(-due)
        own = torch.split(weighed(torch.arange(len(nodes), device=nodes.device), nodes), near.size)
        for block, counted in enumerate(own):
            self.taken[block][near.own(block)] = -counted

    @staticmethod
    def suits(layer: Attention, sent: Sent) -> bool:
        """Whether the layer's scores have this form and are so close together that nothing is lost in rounding."""
        values = sent[0]
        few = values.is_cuda and len(values) <= DENSE
        return not few and layer.splits and layer.spread(sent) < UNLIKE and ordinary(values)

    def __call__(self, flips: Flips) -> Tensor:
        """[S, T, H(C + 1)]."""
        heads = torch.stack([head(flips.columns) for head in self.heads], dim=1)
        sums = heads.permute(3, 0, 1, 2).flatten(2).contiguous()
        near = flips.near
        return near.add_to(near.add_to(sums, near.added, self.taken), near.stayed, self.stayed)


def _head(values: Tensor, b: Tensor, a: Tensor, top: Tensor, slope: float) -> _Head:
    b, order = b.sort()
    cuts = torch.searchsorted(b, -a, right=True)
    ends = torch.unique(cuts[(cuts > 0) & (cuts < b.numel())]).tolist()
    stretches = list(zip([0, *ends], [*ends, b.numel()], strict=True))
    cut = torch.searchsorted(torch.tensor([end for _, end in stretches], device=a.device), cuts, right=True)
    payload = torch.cat([values[order], torch.ones_like(b)[:, None]], dim=1).T
    weights = [(b - top).exp() * payload, (slope * (b - top)).exp() * payload]
    base = a + top
    largest = torch.nn.functional.leaky_relu(base, slope)
    scale = torch.stack([(base - largest).exp(), (slope * base - largest).exp()])[..., None, None]
    return _Head(order, stretches, torch.cat(weights), cut, scale)
