"""A second layer of attention for many samples of several targets at a time."""

from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.cards import fused
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Sent
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.sums import Drawn, Flips

ELEMENTS = {"cpu": 2**18, "cuda": 2**28}  # scores held at a time where they are computed one by one
GROUP = {"cpu": 8, "cuda": 128}  # targets whose sums are one matrix product
SPREAD = 60.0  # e^-60 is far from underflow in float32, so products of exponentials keep their precision


class Attended:
    """The state of the targets after a second attention layer, exactly, for each sample's own scores.

    exp(leaky(a + b)) is e^a e^b where a + b > 0 and e^(ca) e^(cb) elsewhere. A target's a moves little from sample to
    sample, so for most nodes the sign is the same in all samples of a chunk: those go into one matrix product, and only
    the others are computed one by one.
    """

    def __init__(self, layer: Attention, around: Surroundings, nodes: Tensor) -> None:
        self.layer, self.around, self.nodes = layer, around, nodes
        self.near: list[Sent] = []
        self.signs: Signs | None = None

    def fill(self, sent: Sent, nodes: Tensor) -> None:
        """Take what the attached nodes of the next targets send, [B, n, ...]."""
        self.near += [tuple(t[b] for t in sent[:2]) for b in range(len(nodes))]
        complete = len(self.near) == self.nodes.numel()
        if complete and self.layer.splits and _moderate(self.near):
            self.signs = Signs(self.layer, self.around, self.nodes, self.near)

    def __call__(self, drawn: Drawn, flips: Flips, targets: Sent) -> Tensor:
        """[S, T, F], from what the targets send in each sample, [S, T, ...]."""
        if self.signs is not None:
            return self.signs(flips, targets)
        states = [
            self._one_by_one(drawn, t, tuple(part[:, t] for part in targets))
            for t in range(self.nodes.numel())
        ]
        return torch.stack(states, dim=1)

    def _one_by_one(self, drawn: Drawn, t: int, own: Sent) -> Tensor:
        node, (values, scores) = self.nodes[t], self.near[t]
        rows = drawn[0].clone()
        _, neighbours = self.around.edges_of(node[None])
        rows[:, neighbours] = ~drawn[1][:, neighbours]
        rows[:, node] = False
        size = max(1, room(ELEMENTS, rows.device) // scores.numel())
        near, loops = (values[None], scores[None]), self.around.loops[node, None]
        parts = zip(*(torch.split(part, size) for part in (rows, *own)), strict=True)
        said = [self.layer.own_attending(near, some, tuple(mine), loops) for some, *mine in parts]
        return torch.cat(said)


class Signs:
    """Scores by sign: the weighted sums of nodes whose sign is known are one matrix product for a group of targets."""

    def __init__(self, layer: Attention, around: Surroundings, nodes: Tensor, near: list[Sent]) -> None:
        self.layer, self.slope = layer, layer.module.negative_slope
        self.clean = around.adjacent(nodes)  # they flip the other way, so they always go one by one
        self.loop = layer.loop(around.loops)[nodes, None]
        self.nodes = nodes
        self.values = torch.stack([_with_weight(values) for values, _ in near])
        self.scores = torch.stack([scores[..., 0].T for _, scores in near])
        self.shift = self.scores.amax(-1)
        above = self.scores - self.shift[..., None]
        scale = torch.stack([above.exp(), (self.slope * above).exp()], dim=1)
        scale.masked_fill_(self.clean[:, None, None], 0.0)
        scale[torch.arange(nodes.numel(), device=nodes.device), ..., nodes] = 0.0
        self.payload = scale[:, :, :, None] * self.values[:, None]  # [T, 2, H, C + 1, n]

    def __call__(self, flips: Flips, targets: Sent) -> Tensor:
        """[S, T, F]."""
        values, sender, receiver, extra = targets
        own = self.layer.score(sender, receiver)
        own = own.masked_fill(self.loop == 0, torch.finfo(own.dtype).min)
        a = receiver[..., 0]
        top = torch.maximum(self._leaky(a + self.shift), own)
        if a.is_cuda:

            def in_groups(a: Tensor, top: Tensor, zero: Tensor, one: Tensor) -> Tensor:
                return self._in_groups(Flips(zero, one, flips.near), a, top)

            sums = fused.either(self._at_once, in_groups, a, top, flips.from_zero, flips.from_one)
        else:
            sums = self._in_groups(flips, a, top)
        sums = sums.permute(3, 0, 1, 2)
        return self.layer.mix(sums[..., :-1], sums[..., -1], (own - top).exp() * self.loop, values, extra)

    def _at_once(self, a: Tensor, top: Tensor, zero: Tensor, one: Tensor) -> Tensor:
        return fused.attended(a, top, zero, one, self.listed, self.slope)

    @cached_property
    def listed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Which nodes are neighbours (1) or the target (2), scores, and values, as a card's kernel reads them."""
        kind = self.clean.to(torch.int32)
        kind[torch.arange(self.nodes.numel(), device=kind.device), self.nodes] = 2
        return kind, self.scores.contiguous(), self.values.transpose(2, 3).contiguous()

    def _in_groups(self, flips: Flips, a: Tensor, top: Tensor) -> Tensor:
        """[T, H, C + 1, S]."""
        size = GROUP[a.device.type]
        return torch.cat([self._sums(flips, a, top, i, i + size) for i in range(0, a.shape[1], size)])

    def _sums(self, flips: Flips, a: Tensor, top: Tensor, begin: int, end: int) -> Tensor:
        """[G, H, C + 1, S]: weighted values and weights of the targets begin .. end - 1, scaled by exp(-top)."""
        a, top, scores = a[:, begin:end], top[:, begin:end], self.scores[begin:end]
        sign = torch.stack([scores > -a.amin(0)[..., None], scores < -a.amax(0)[..., None]], dim=1)
        payload = self.payload[begin:end] * sign[:, :, :, None]
        fixed = payload.flatten(0, 3) @ flips.columns
        base = a + self.shift[begin:end]
        grown = torch.stack([base - top, self.slope * base - top]).exp().permute(2, 0, 3, 1)
        sums = (fixed.view(*payload.shape[:-1], -1) * grown[:, :, :, None]).sum(1)
        unknown = ~sign.any(1) | self.clean[begin:end, None]
        unknown[torch.arange(len(unknown), device=a.device), :, self.nodes[begin:end]] = False
        for t in range(len(sums)):
            for h in range(sums.shape[1]):
                columns = unknown[t, h].nonzero()[:, 0]
                sums[t, h] += self._single(flips, begin + t, h, columns, a[:, t, h], top[:, t, h])
        return sums

    def _single(self, flips: Flips, t: int, h: int, columns: Tensor, a: Tensor, top: Tensor) -> Tensor:
        """[C + 1, S]: the same for a few nodes, each score by itself."""
        total = a.new_zeros((self.values.shape[2], len(a)))
        for some in torch.split(columns, max(1, room(ELEMENTS, a.device) // len(a))):
            flipped = flips.columns.index_select(0, some)
            near = self.clean[t, some].nonzero()[:, 0]
            flipped[near] = 1 - flips.from_one.index_select(1, some[near]).T
            score = self._leaky(self.scores[t, h, some][:, None] + a)
            total += self.values[t, h][:, some] @ score.sub_(top).exp_().mul_(flipped)
        return total

    def _leaky(self, x: Tensor) -> Tensor:
        return torch.nn.functional.leaky_relu(x, self.slope)


def _with_weight(values: Tensor) -> Tensor:
    """[H, C + 1, n] from [n, H, C]: the weights themselves are summed like values of 1."""
    return torch.cat([values, torch.ones_like(values[..., :1])], dim=-1).permute(1, 2, 0)


def _moderate(near: list[Sent]) -> bool:
    """Whether no attention weight can get lost in rounding next to another."""
    spread = torch.stack([scores.max() - scores.min() for _, scores in near])
    return bool(spread.max() < SPREAD)
