"""Message passing proper: what a node gets from its neighbours, once linear maps and networks are steps of their own.

Every layer is written down once for graphs in any arrangement (`over`: dense matrices, rows of one target, touched
surroundings). Two-layer models under the Row threat have sums that serve all samples at once; for these a layer also says
  near   the state of every node v given that v is attached to u, [B, n, F]: one value a pair (u, v) unless the layer is
         `coupled`, that is unless a neighbour's state depends on which other nodes are attached;
  payload and own   the state of u itself, from a sum of payloads over the attached nodes.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.surroundings import Surroundings


class Around:
    """Noisy graphs in one arrangement: senders have states, and receivers (the same nodes, or some of them) get new ones.

    Numbers about nodes have the leading dimensions of states and a last one of size 1: the senders' `degree`, self-loops apart,
    and `loops`, 1 where one has a self-loop, which no noise touches.
    """

    degree: Tensor

    def __init__(self, loops: Tensor, looped: bool) -> None:
        """`looped` says whether any sender has a self-loop."""
        self.loops, self.looped = loops, looped
        self.roots: dict[str, Tensor] = {}  # what layers have computed of the degrees, by name

    def total(self, z: Tensor) -> Tensor:
        """The sum of the senders' z over each receiver's neighbours."""
        raise NotImplementedError

    def scaled(self, z: Tensor, scale: Tensor, into: bool = False) -> tuple[Tensor, Tensor]:
        """The same of each sender's z times its scale, and what the receivers themselves would send; `into` z, if that helps."""
        z = scale * z
        return self.total(z), self.own(z)

    def at_once(self, z: Tensor, before: Tensor | None, loop: Tensor, after: Tensor | None) -> Tensor | None:
        """after · (Σ before · z over neighbours + loop · before · z), where there is a shorter way to all of it."""
        return None

    def largest(self, z: Tensor) -> Tensor:
        """The largest z of each receiver's neighbours and self-loop; 0 where it has none."""
        raise NotImplementedError

    def own(self, z: Tensor) -> Tensor:
        """What the receivers themselves have as senders: here every node receives."""
        return z

    def attend(self, layer: Any, sent: "Sent") -> Tensor:
        """[.., H, C]: the senders' values, weighed by `layer` for each receiver."""
        raise NotImplementedError


class Payload(NamedTuple):
    """What each attached node adds to the target's sum; `close` replaces `far` for the clean neighbours of the target.

    far is [n, k], the same for all targets, or [B, n, k] with `close` None. `shift` [B, H] is what attention weights were
    scaled by.
    """

    far: Tensor
    close: Tensor | None = None
    shift: Tensor | None = None


Sent = tuple[Tensor, ...]


class Layer:
    """One round of message passing."""

    coupled = False
    in_rows = True  # whether sums for two layers of the Row threat are known
    reads_sent = False  # whether degrees are those of leaving edges, where directions differ
    linear = False  # whether the state is a linear map of the senders' states, the same for all features

    def over(self, sent: "Sent", around: Around) -> Tensor:
        """The receivers' new states, from what the senders send; in memory that nothing else reads."""
        raise NotImplementedError

    def send(self, h: Tensor) -> Sent:
        """All the layer needs of each node's state, computed from that state alone; the message comes first."""
        return (h,)

    def at_few(self, h: Tensor, around: Around) -> Tensor:
        """The new states of receivers that are much fewer than the senders, whose states are h."""
        return self.over(self.send(h), around)

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """What `near` needs of the clean graph, whatever the target."""
        return sent

    def near(self, around: Surroundings, clean: Sent, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F]: states of attached nodes; `rows` bool[B, n] matters to coupled layers only."""
        raise NotImplementedError

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """From what all nodes send: [n, ...], or [B, n, ...] where their states depend on the target."""
        raise NotImplementedError

    def own(self, sums: Tensor, count: Tensor, sent: Sent, loops: Tensor, shift: Tensor | None) -> Tensor:
        """The new state of the targets, from the sum over the `count` attached nodes and what the targets send; `loops` is
        1 for targets with a self-loop."""
        raise NotImplementedError


class Sums(Layer):
    """The sum or mean over neighbours, the node's own self-loop and `loop` times the node itself."""

    linear = True

    def __init__(self, mean: bool = False, loop: Any = 0.0) -> None:
        self.mean, self._loop = mean, loop

    @property
    def loop(self) -> Any:
        """The weight of the node itself; read anew each time where it is trained."""
        return self._loop() if callable(self._loop) else self._loop

    def over(self, sent: Sent, around: Around) -> Tensor:
        """One sum over neighbours."""
        weight = around.own(around.loops) + self.loop
        after = 1 / (around.own(around.degree) + weight).clamp_min(1) if self.mean else None
        if (found := around.at_once(sent[0], None, weight, after)) is not None:
            return found
        total = around.total(sent[0])
        if around.looped or self._loop != 0.0:
            total = plus(total, weight * around.own(sent[0]))
        return total if after is None else times(total, after)

    def pulled(self, weight: Tensor, around: Around) -> Tensor:
        """How much each sender counts in a sum that counts the receivers by `weight`."""
        own = around.loops + self.loop
        weight = weight / (around.degree + own).clamp_min(1) if self.mean else weight
        pulled: Tensor = around.total(weight) + own * weight
        return pulled

    def clean(self, around: Surroundings, sent: Sent) -> Sent:
        """Messages; the aggregate of each node that gains the target (without its message), its scale, and of one that has it."""
        weight = around.loops + self.loop
        total = around.spread(sent[0]) + weight[:, None] * sent[0]
        if not self.mean:
            return sent[0], total, torch.ones_like(total[:, :1]), total
        count = (around.degree + weight)[:, None]
        scale, kept = 1 / (count + 1), 1 / count.clamp_min(1)
        return sent[0], scale * total, scale, kept * total

    def near(self, around: Surroundings, clean: Sent, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F]: v's neighbours, and the target if it is not one of them."""
        z, gained, scale, kept = clean
        total = torch.addcmul(gained, z[nodes][:, None], scale)
        targets, neighbours = around.edges_of(nodes)
        return total.index_put_((targets, neighbours), kept[neighbours])

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """The message itself."""
        return Payload(sent[0])

    def own(self, sums: Tensor, count: Tensor, sent: Sent, loops: Tensor, shift: Tensor | None) -> Tensor:
        """The sum or mean over attached nodes and loops."""
        weight = (loops + self.loop)[:, None]
        total = sums.add_(weight * sent[0])  # in place: nobody else reads the sums
        return total.div_((count[..., None] + weight).clamp_min(1)) if self.mean else total


class Symmetric(Layer):
    """Sums scaled by 1/sqrt(degree) at both ends: coupled, because an attached node's degree scales what it sends on.

    Self-loops count in the degree: one for every node with `loops="all"`, those that are there with "given", none with
    "none".
    """

    coupled = True
    linear = True

    def __init__(self, loops: str = "all", into: bool = False) -> None:
        """With `into`, nothing else reads what the senders send, and it may be scaled where it is."""
        self.loops, self.into = loops, into
        self.reads_sent = loops == "none"  # torch_geometric's Laplacian counts them

    def loop(self, loops: Tensor) -> Tensor:
        """The weight of each self-loop: an existing one is kept, a missing one may be added."""
        if self.loops == "given":
            return loops
        return torch.ones_like(loops) if self.loops == "all" else torch.zeros_like(loops)

    def root(self, around: Around) -> Tensor:
        """The senders' 1/sqrt(degree), computed once for all layers."""
        if self.loops not in around.roots:
            around.roots[self.loops] = inverse_root(around.degree + self.loop(around.loops))
        return around.roots[self.loops]

    def over(self, sent: Sent, around: Around) -> Tensor:
        """One sum over neighbours between two scalings."""
        z, root = sent[0], self.root(around)
        if (found := around.at_once(z, root, self.loop(around.loops), root)) is not None:
            return found
        total, own = around.scaled(z, root, self.into)
        if self.loops == "all":
            total = plus(total, own)
        elif self.loops == "given" and around.looped:
            total = plus(total, around.own(around.loops) * own)
        return times(total, around.own(root))

    def pulled(self, weight: Tensor, around: Around) -> Tensor:
        """The same sum: it is symmetric."""
        return self.over((weight,), around)

    def near(self, around: Surroundings, clean: Sent, nodes: Tensor, rows: Tensor | None) -> Tensor:
        """[B, n, F], from the degrees that the whole row implies."""
        assert rows is not None
        z, loop = clean[0], self.loop(around.loops)
        without = around.degree + loop - around.adjacent(nodes).to(z.dtype)
        scale = inverse_root(without + rows)
        # the target's message is added below
        scale[torch.arange(nodes.numel(), device=nodes.device), nodes] = 0
        kappa = (without + 1).rsqrt()
        root = inverse_root(rows.sum(1) + loop[nodes]).to(z.dtype)
        arrived = around.spread(scale.T[..., None] * z[:, None]).transpose(0, 1)
        total = arrived + (loop * kappa)[..., None] * z + (root[:, None] * z[nodes])[:, None]
        return kappa[..., None] * total

    def payload(self, around: Surroundings, sent: Sent, nodes: Tensor) -> Payload:
        """The message scaled by the sender's degree, which counts the target once."""
        z, degree = sent[0], around.degree + self.loop(around.loops)
        if z.dim() == 3:
            return Payload((degree + ~around.adjacent(nodes)).rsqrt()[..., None] * z)
        return Payload((degree + 1).rsqrt()[:, None] * z, inverse_root(degree)[:, None] * z)

    def own(self, sums: Tensor, count: Tensor, sent: Sent, loops: Tensor, shift: Tensor | None) -> Tensor:
        """The sum scaled by the target's noisy degree."""
        loop = self.loop(loops)
        root = inverse_root(count + loop)[..., None]
        return root * (sums + loop[:, None] * root * sent[0])


class Largest(Layer):
    """The largest of the neighbours' states, feature by feature; 0 where there is none."""

    in_rows = False

    def over(self, sent: Sent, around: Around) -> Tensor:
        """One comparison over neighbours."""
        return around.largest(sent[0])


def plus(total: Tensor, other: Tensor) -> Tensor:
    """The sum, written into `total` where no gradient needs it and it is not smaller."""
    return total.add_(other) if _has_room(total, other) else total + other


def times(total: Tensor, factor: Tensor) -> Tensor:
    """The product, written into `total` where no gradient needs it and it is not smaller."""
    return total.mul_(factor) if _has_room(total, factor) else total * factor


def _has_room(total: Tensor, other: Tensor) -> bool:
    whole = total.dim() >= other.dim() and all(a >= b for a, b in zip(total.shape, other.shape, strict=False))
    return whole and not torch.is_grad_enabled()


def inverse_root(degree: Tensor) -> Tensor:
    """1/sqrt(degree), and 0 for a node without any edge, as gcn_norm has it."""
    return torch.where(degree > 0, degree.clamp_min(1e-30).rsqrt(), 0.0)
