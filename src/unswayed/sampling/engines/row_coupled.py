"""Two layers of GCNConv with symmetric normalisation and a ReLU between them.

Attaching v to the target changes v's degree, hence what v sends to its own neighbours, so the state of an attached node
depends on the whole row. Written out for the target u with r = 1/sqrt(degree of u), the second layer needs

    Σ_v m_v κ_v² relu(P_v + r z_u),   P_v = Σ_{w∈N(v)} z_w / sqrt(degree of w) + loop_v κ_v z_v + b / κ_v.

With shared noise P is the same for all targets but for nodes within two hops of u, which are put right apart.
"""

import torch
from torch import Tensor, nn

from unswayed.sampling.engines import rowwise
from unswayed.sampling.engines.layers import SymmetricGCN, inverse_root
from unswayed.sampling.engines.recognise import Plan
from unswayed.sampling.engines.row import Prepared, near_steps
from unswayed.sampling.engines.row_sums import Flips

UNCHANGED = (nn.Identity, *rowwise.DROPOUTS)  # in evaluation mode
STATES = {"cpu": 2**23, "cuda": 2**30}  # numbers of P held at a time
CHUNK = 2**18  # numbers compared at a time on a CPU


def coupling(plan: Plan) -> str:
    """'free' if no second layer reads a coupled first one, 'relu' for GCN-ReLU-GCN, 'coupled' for all else."""
    firsts = [i for i in near_steps(plan) if (layer := plan.steps[i].layer) is not None and layer.coupled]
    if not firsts:
        return "free"
    seconds = [i for i in plan.convs if plan.steps[i].depth == 2]
    if all(_first_of(plan, i) is not None for i in seconds):
        return "relu"
    return "coupled"


def _first_of(plan: Plan, second: int) -> int | None:
    """The GCNConv whose rectified output this GCNConv reads, if there is nothing else between them."""
    if not isinstance(plan.steps[second].layer, SymmetricGCN):
        return None
    step, place, rectified = plan.steps[second], second, False
    while len(step.inputs) == 1:
        place = step.inputs[0]
        step = plan.steps[place]
        if step.layer is not None:
            return place if rectified and isinstance(step.layer, SymmetricGCN) else None
        rectified = rectified or step.run is torch.relu
        if step.run not in (torch.relu, rowwise.unchanged) and type(step.run) not in UNCHANGED:
            return None
    return None


class Coupled:
    """The second layer's sum over attached nodes, for all targets of a chunk."""

    def __init__(self, known: Prepared, second: int, nodes: Tensor) -> None:
        first = _first_of(known.plan, second)
        assert first is not None
        one, two = known.plan.steps[first].layer, known.plan.steps[second].layer
        assert isinstance(one, SymmetricGCN)
        assert isinstance(two, SymmetricGCN)
        self.around, self.nodes, self.two = known.around, nodes, two
        self.z = known.sent[first][0]
        bias = self.z.new_zeros(self.z.shape[1]) if one.module.bias is None else one.module.bias
        self.loop = one.loop(self.around.loops)
        degree, other = self.around.degree + self.loop, self.around.degree + two.loop(self.around.loops)
        self.clean_scale, self.scale = inverse_root(degree), (degree + 1).rsqrt()
        self.weight = self.scale * (other + 1).rsqrt()
        self.base = (self.loop * self.scale)[:, None] * self.z + bias / self.scale[:, None]
        # a clean neighbour of the target that stays attached keeps its degree
        kept = inverse_root(degree)
        self.kept_weight = kept * inverse_root(other)
        self.kept_base = (self.loop * kept)[:, None] * self.z + bias / kept.clamp_min(1e-30)[:, None]
        # a clean neighbour that is detached sends 1/sqrt(degree - 1), where the common part has 1/sqrt(degree + 1)
        self.detached = inverse_root(degree - 1) - self.scale
        self.near = [self._around(node) for node in nodes]

    def _around(self, node: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(neighbours of the node, the nodes within two hops and itself last, which of those each neighbour touches)."""
        _, neighbours = self.around.edges_of(node[None])
        to, by = self.around.edges_of(neighbours)
        affected = torch.unique(torch.cat([neighbours, by]))
        affected = torch.cat([affected[affected != node], node[None]])
        place = torch.full_like(self.around.degree, -1, dtype=torch.int64)
        place[affected] = torch.arange(affected.numel(), device=node.device)
        touch = self.z.new_zeros((neighbours.numel(), affected.numel()))
        touch[to, place[by]] = 1
        return neighbours, affected, touch

    def __call__(self, flips: Flips, count: Tensor) -> Tensor:
        """[S, T, C]: the scaled messages of the attached nodes, added up."""
        size = max(1, STATES[self.z.device.type] // self.z.numel())
        hidden = [
            self._hidden(
                Flips(flips.from_zero[i : i + size], flips.from_one[i : i + size]), count[i : i + size]
            )
            for i in range(0, len(count), size)
        ]
        return self.two.send(torch.cat(hidden))[0]

    def _hidden(self, flips: Flips, count: Tensor) -> Tensor:
        """[S, T, F] before the second layer's linear map."""
        common = flips.from_zero
        sent = torch.addcmul(self.clean_scale, common, self.scale - self.clean_scale)
        states = self.around.spread(sent.T[..., None] * self.z[:, None]).transpose(0, 1).contiguous()
        states += self.base
        root = inverse_root(count + self.loop[self.nodes])
        threshold = root[..., None] * self.z[self.nodes]
        sums = rectified_sums(states, common * self.weight, threshold)
        for t, node in enumerate(self.nodes):
            sums[:, t] += self._correction(flips, states, threshold[:, t], node, *self.near[t])
        return sums

    def _correction(
        self,
        flips: Flips,
        states: Tensor,
        threshold: Tensor,
        node: Tensor,
        neighbours: Tensor,
        affected: Tensor,
        touch: Tensor,
    ) -> Tensor:
        """[S, F]: the true terms of the nodes within two hops of the target, less what the common part had for them."""
        common = states[:, affected]
        bits = flips.from_zero[:, affected]
        wrong = _weighted(bits * self.weight[affected], torch.relu(common + threshold[:, None]))
        here = torch.searchsorted(affected[:-1], neighbours)
        zero, one = flips.from_zero[:, neighbours], flips.from_one[:, neighbours]
        # what each neighbour sends, detached or not, instead of what the common part let it send
        change = torch.addcmul(self.clean_scale[neighbours], one, self._when_detached(neighbours))
        change = change - torch.addcmul(self.clean_scale[neighbours], zero, self._when_flipped(neighbours))
        moved = change @ (touch[..., None] * self.z[neighbours][:, None]).flatten(1)
        right = common + moved.view(common.shape)
        target_sent = torch.addcmul(
            self.clean_scale[node], flips.from_zero[:, node], self._when_flipped(node)
        )
        right[:, here] += (self.kept_base - self.base)[neighbours] - (target_sent[:, None] * self.z[node])[
            :, None
        ]
        weight = bits * self.weight[affected]
        weight[:, here] = (1 - one) * self.kept_weight[neighbours]
        weight[:, -1] = 0
        return _weighted(weight, torch.relu(right + threshold[:, None])) - wrong

    def _when_flipped(self, nodes: Tensor) -> Tensor:
        return (self.scale - self.clean_scale)[nodes]

    def _when_detached(self, nodes: Tensor) -> Tensor:
        return (self.detached + self.scale - self.clean_scale)[nodes]


def _weighted(weight: Tensor, states: Tensor) -> Tensor:
    """[S, F] from weights [S, A] and states [S, A, F]."""
    return torch.bmm(weight[:, None], states)[:, 0]


def rectified_sums(states: Tensor, weight: Tensor, threshold: Tensor) -> Tensor:
    """[S, T, F]: Σ_v weight[s, v] relu(states[s, v] + threshold[s, t]), by relu(x + t) = max(x, -t) + t."""
    if states.is_cuda:
        return torch.stack(
            [
                _weighted(weight, torch.relu(states + threshold[:, t, None]))
                for t in range(threshold.shape[1])
            ],
            dim=1,
        )
    out = torch.empty_like(threshold)
    flat, size = threshold.flatten(1), max(1, CHUNK // threshold[0].numel())
    room = states.new_empty((size, *threshold.shape[1:]))
    for s in range(len(states)):
        attached = weight[s].nonzero()[:, 0]
        values, weights, below = states[s, attached], weight[s, attached], -threshold[s]
        total = flat[s] * weights.sum()
        for i in range(0, len(values), size):
            part = values[i : i + size, None]
            larger = torch.maximum(part, below, out=room[: len(part)])
            total += weights[i : i + size] @ larger.flatten(1)
        out[s] = total.view_as(threshold[s])
    return out
