"""Two layers of GCNConv with symmetric normalisation and a ReLU between them.

Attaching v to the target changes v's degree, hence what v sends to its own neighbours, so the state of an attached node
depends on the whole row. Written out for the target u with r = 1/sqrt(degree of u), the second layer needs

    Σ_v m_v κ_v² relu(P_v + r z_u),   P_v = Σ_{w∈N(v)} z_w / sqrt(degree of w) + loop_v κ_v z_v + b / κ_v.

With shared noise P is the same for all targets but for nodes within two hops of u, which are corrected separately.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unswayed.sampling.engines.cards import fused
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans import rowwise
from unswayed.sampling.engines.plans.layers import Symmetric, inverse_root
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.rewriting import LINEAR
from unswayed.sampling.engines.plans.steps import Plus
from unswayed.sampling.engines.rows.row import Prepared, near_steps
from unswayed.sampling.engines.rows.sums import Flips

UNCHANGED = (nn.Identity, *rowwise.DROPOUTS)  # in evaluation mode
STATES = {"cpu": 2**23, "cuda": 2**30}  # numbers of P held at a time


def coupling(plan: Steps) -> str:
    """'free' if no second layer reads a coupled first one, 'relu' for GCN-ReLU-GCN, 'coupled' for all else."""
    firsts = [i for i in near_steps(plan) if (layer := plan.steps[i].layer) is not None and layer.coupled]
    if not firsts:
        return "free"
    seconds = [i for i in plan.rounds if plan.steps[i].depth == 2]
    return "relu" if all(_chain(plan, i) is not None for i in seconds) else "coupled"


class Chain(NamedTuple):
    """Between two layers: the first one's position, its bias, and the linear maps behind the rectifier, last first."""

    first: int
    bias: Plus | None
    maps: tuple[Any, ...]


def _chain(plan: Steps, second: int) -> Chain | None:
    """What is between two layers, if it is a bias, a rectifier and linear maps without bias."""
    if not isinstance(plan.steps[second].layer, Symmetric):
        return None
    step, rectified, bias = plan.steps[second], False, None
    maps: list[Any] = []
    while len(step.inputs) == 1:
        place = step.inputs[0]
        step = plan.steps[place]
        if step.layer is not None:
            usual = rectified and isinstance(step.layer, Symmetric)
            return Chain(place, bias, tuple(maps)) if usual else None
        if step.run is torch.relu:
            rectified = True
        elif rectified and isinstance(step.run, Plus) and bias is None:
            bias = step.run
        elif not rectified and isinstance(step.run, LINEAR) and step.run.bias is None:
            maps.append(step.run)
        elif step.run is not rowwise.unchanged and type(step.run) not in UNCHANGED:
            return None
    return None


class Coupled:
    """The second layer's sum over attached nodes, for all targets of a chunk."""

    shift = None

    def __init__(self, known: Prepared, second: int, nodes: Tensor) -> None:
        chain = _chain(known.plan, second)
        assert chain is not None
        one, two = known.plan.steps[chain.first].layer, known.plan.steps[second].layer
        assert isinstance(one, Symmetric)
        assert isinstance(two, Symmetric)
        self.around, self.nodes, self.maps = known.around, nodes, chain.maps[::-1]
        self.z = known.sent[chain.first][0]
        bias = self.z.new_zeros(self.z.shape[1]) if chain.bias is None else chain.bias.owner.bias
        self.loop = one.loop(self.around.loops)
        degree, other = self.around.degree + self.loop, self.around.degree + two.loop(self.around.loops)
        self.clean_scale, scale = inverse_root(degree), (degree + 1).rsqrt()
        self.weight = scale * (other + 1).rsqrt()
        self.base = (self.loop * scale)[:, None] * self.z + bias / scale[:, None]
        # a clean neighbour of the target that stays attached keeps its degree
        kept = self.clean_scale
        self.kept_weight = kept * inverse_root(other)
        kept_base = (self.loop * kept)[:, None] * self.z + bias / kept.clamp_min(1e-30)[:, None]
        self.kept_more = kept_base - self.base
        # how much more than in the clean graph a node sends that is attached, and a clean neighbour that is detached
        self.flipped = scale - self.clean_scale
        self.detached = inverse_root(degree - 1) - self.clean_scale
        self.near = [self._around(node) for node in nodes]
        self.listed = _listed(self.nodes, self.near)

    def _around(self, node: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(neighbours of the node; nodes within two hops, itself last; for each edge at a neighbour: which neighbour, and the other end)."""
        _, neighbours = self.around.edges_of(node[None])
        source, sink = self.around.edges_of(neighbours)
        affected = torch.unique(torch.cat([neighbours, sink]))
        affected = torch.cat([affected[affected != node], node[None]])
        place = torch.full_like(self.around.degree, -1, dtype=torch.int64)
        place[affected] = torch.arange(affected.numel(), device=node.device)
        return neighbours, affected, source, place[sink]

    def __call__(self, flips: Flips, count: Tensor) -> Tensor:
        """[S, T, C]: the scaled messages of the attached nodes, added up."""
        size = max(1, room(STATES, self.z.device) // self.z.numel())
        hidden = [
            self._hidden(flips.from_zero[i : i + size], flips.from_one[i : i + size], count[i : i + size])
            for i in range(0, len(count), size)
        ]
        there = (count > 0)[..., None]  # what rounding left of a row that lost all its entries is no message
        sums = torch.cat(hidden) * there
        for linear in self.maps:
            sums = linear(sums)
        return sums

    def _hidden(self, common: Tensor, from_one: Tensor, count: Tensor) -> Tensor:
        """[S, T, F] before the second layer's linear map."""
        sent = torch.addcmul(self.clean_scale, common, self.flipped)
        states = self.around.spread(sent.T[..., None] * self.z[:, None]).transpose(0, 1).contiguous()
        states += self.base
        root = inverse_root(count + self.loop[self.nodes])
        threshold = root[..., None] * self.z[self.nodes]
        sums = fused.either(fused.rectified_sums, rectified_sums, states, common * self.weight, threshold)
        return fused.either(
            self._corrected_at_once, self._corrected, sums, common, from_one, states, threshold
        )

    def _corrected_at_once(self, sums: Tensor, *noisy: Tensor) -> Tensor:
        scales = (self.clean_scale, self.flipped, self.detached)
        known = (self.z, *scales, self.weight, self.kept_weight, self.kept_more)
        return fused.corrected(sums, noisy, self.listed, known)

    def _corrected(
        self, sums: Tensor, common: Tensor, from_one: Tensor, states: Tensor, threshold: Tensor
    ) -> Tensor:
        """The sums, with the nodes within two hops of each target put right, in place."""
        for t, node in enumerate(self.nodes):
            sums[:, t] += self._correction(common, from_one, states, threshold[:, t], node, *self.near[t])
        return sums

    def _correction(
        self,
        from_zero: Tensor,
        from_one: Tensor,
        states: Tensor,
        threshold: Tensor,
        node: Tensor,
        neighbours: Tensor,
        affected: Tensor,
        source: Tensor,
        sink: Tensor,
    ) -> Tensor:
        """[S, F]: the true terms of the nodes within two hops of the target, less what the common part had for them."""
        here = torch.searchsorted(affected[:-1], neighbours)
        zero, one = from_zero.index_select(1, neighbours), from_one.index_select(1, neighbours)
        # what each neighbour sends, detached or not, instead of what the common part let it send
        change = torch.addcmul(self.clean_scale[neighbours], one, self.detached[neighbours])
        change = change - torch.addcmul(self.clean_scale[neighbours], zero, self.flipped[neighbours])
        moved = change.index_select(1, source)[..., None] * self.z[neighbours[source]]
        target_sent = torch.addcmul(self.clean_scale[node], from_zero[:, node], self.flipped[node])
        kept = self.kept_more[neighbours] - (target_sent[:, None] * self.z[node])[:, None]
        weight = from_zero.index_select(1, affected) * self.weight[affected]
        right = weight.index_copy(1, here, (1 - one) * self.kept_weight[neighbours])
        right[:, -1] = 0
        wrong = states.index_select(1, affected) + threshold[:, None]
        both = torch.cat([wrong, wrong], 1).index_add_(1, sink, moved).index_add_(1, here, kept)
        return _weighted(torch.cat([right, -weight], 1), both.relu_())


def _listed(nodes: Tensor, near: list[tuple[Tensor, Tensor, Tensor, Tensor]]) -> tuple[Tensor, ...]:
    """What is near all targets in one list: targets; where the nodes affected by each begin, these nodes, and whether they are
    neighbours; where the changes that reach each of these begin, and the neighbours that send them."""
    starts = torch.tensor([0, *(len(affected) for _, affected, _, _ in near)]).cumsum(0)
    close, counts, sources = [], [], []
    for neighbours, affected, source, sink in near:
        order = sink.argsort(stable=True)
        close.append(torch.isin(affected, neighbours))
        counts.append(torch.bincount(sink, minlength=len(affected)))
        sources.append(neighbours[source[order]])
    count = torch.cat(counts)
    firsts = torch.cat([count.new_zeros(1), count.cumsum(0)])
    listed = (nodes, starts, torch.cat([affected for _, affected, _, _ in near]), torch.cat(close), firsts)
    return tuple(t.to(device=nodes.device, dtype=torch.int32) for t in (*listed, torch.cat(sources)))


def _weighted(weight: Tensor, states: Tensor) -> Tensor:
    """[S, F] from weights [S, A] and states [S, A, F]."""
    return torch.bmm(weight[:, None], states)[:, 0]


def rectified_sums(states: Tensor, weight: Tensor, threshold: Tensor) -> Tensor:
    """[S, T, F]: Σ_v weight[s, v] relu(states[s, v] + threshold[s, t])."""
    if states.is_cuda:
        return torch.stack(
            [_weighted(weight, (states + threshold[:, t, None]).relu_()) for t in range(threshold.shape[1])],
            dim=1,
        )
    low, high = threshold.amin((0, 1)), threshold.amax((0, 1))
    on = states.amin(0) + low > 0  # [n, F]: in every sample and for every target
    unclear = (states.amax(0) + high > 0) & ~on
    sums = _weighted(weight, states * on)[:, None] + (weight @ on.to(weight.dtype))[:, None] * threshold
    return sums + _unclear_sums(states, weight, threshold, unclear)


def _unclear_sums(states: Tensor, weight: Tensor, threshold: Tensor, unclear: Tensor) -> Tensor:
    """The part of the nodes and channels whose sign differs between samples or targets: max(x, -t) + t, one by one."""
    out = torch.zeros_like(threshold)
    node, channel = unclear.nonzero(as_tuple=True)
    place = node * states.shape[2] + channel
    flat = states.flatten(1)
    member = torch.nn.functional.one_hot(channel, states.shape[2]).to(states.dtype)
    for s in range(len(states) if len(node) else 0):
        weights = weight[s, node]
        kept = weights.nonzero()[:, 0]
        by_channel = (member[kept] * weights[kept, None]).T
        values, below = flat[s, place[kept]][:, None], -threshold[s].T
        larger = torch.maximum(values, below[channel[kept]])
        out[s] = (by_channel @ larger - by_channel.sum(1, keepdim=True) * below).T
    return out
