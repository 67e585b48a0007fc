"""The exact output for a node whose row is replaced, without building the graph.

An attached node v sees "its own neighbourhood plus u" whatever else is attached (see `layers.near`), so two layers need
three kinds of state only: of every node without structure, of every node given that it is attached, and of the target.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.weak import WeakTensorKeyDictionary

from unswayed.errors import InputError, Unsupported
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Layer, Payload, Sent
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.rewriting import lifted
from unswayed.sampling.engines.plans.surroundings import Surroundings

# How many numbers the states of attached nodes may take at once: a core's cache, or some of a card's memory. Not the memory
# that happens to be free: gradients are added chunk by chunk, and equal seeds must give equal weights.
TRAINING_CHUNK = {"cpu": 2**20, "cuda": 2**28}


def row_plan(model: nn.Module) -> Steps:
    """The plan of a model that classifies nodes with at most two rounds of message passing; otherwise Unsupported."""
    plan = lifted(recognise(model))
    for step in plan.steps:
        if step.kind in ("pool", "whole"):
            raise Unsupported(f"The step '{step.name}' reads all nodes at once, as no sum over a row does.")
        if step.layer is not None and not step.layer.in_rows:
            raise Unsupported(f"The layer '{step.name}' is no sum over a row.")
        if step.depth > 2:
            raise Unsupported(
                f"The layer '{step.name}' is a third round of message passing; the row engine knows two."
            )
    return plan


class Prepared:
    """What does not depend on the targets: structure-free states, messages, and clean aggregates of the first layers."""

    def __init__(self, plan: Steps, around: Surroundings, x: Tensor) -> None:
        self.plan, self.around = plan, around
        self.near_steps = near_steps(plan)
        self.rest, self.sent = plan.begun(x)
        firsts = self.sent.keys() & self.near_steps
        self.clean = {i: plan.rounds[i].clean(around, self.sent[i]) for i in firsts}

    @property
    def width(self) -> int:
        """How many numbers the states of one attached node take at most."""
        return max((max(t[0].numel() for t in sent) for sent in self.sent.values()), default=1)

    def near(self, nodes: Tensor, rows: Tensor | None) -> dict[int, Tensor]:
        """The states of depth 1 at attached nodes, for the steps that a second layer reads."""
        near: dict[int, Tensor] = {}
        for i in sorted(self.near_steps):
            step = self.plan.steps[i]
            if step.layer is not None:
                near[i] = step.layer.near(self.around, self.clean[i], nodes, rows)
            elif step.run is not None:
                near[i] = step.run(*(near[k] if k in near else self.rest[k] for k in step.inputs))
        return near


@dataclass(frozen=True)
class Replaced:
    """Targets `nodes` [B] with `rows` bool[B, n] in place of their clean rows."""

    prepared: Prepared
    nodes: Tensor
    rows: Tensor

    def sum(self, payload: Payload) -> Tensor:
        """[B, k]: the payloads of the attached nodes, added up."""
        weight = self.rows.to(payload.far.dtype)
        if payload.far.dim() == 3:
            return torch.bmm(weight[:, None], payload.far)[:, 0]
        if payload.close is None:
            return weight @ payload.far
        clean = self.prepared.around.adjacent(self.nodes)
        return (weight * ~clean) @ payload.far + (weight * clean) @ payload.close

    def forward(self) -> Tensor:
        """[B, C]: the plan's output for the targets."""
        known, around = self.prepared, self.prepared.around
        near, loops = known.near(self.nodes, self.rows), around.loops[self.nodes]

        def own(i: int, layer: Layer, targets: Sent) -> Tensor:
            first = i in known.sent
            others = known.sent[i] if first else layer.send(near[known.plan.steps[i].inputs[0]])
            if isinstance(layer, Attention):
                others = tuple(t[None] for t in others) if first else others
                return layer.own_attending(others, self.rows, targets, loops)
            payload = layer.payload(around, others, self.nodes)
            count = self.rows.sum(1).to(targets[0].dtype)
            return layer.own(self.sum(payload), count, targets, loops, payload.shift)

        return own_states(known, self.nodes, own)


Own = Callable[[int, Layer, Sent], Tensor]


def own_states(known: Prepared, nodes: Tensor, after: Own) -> Tensor:
    """The output at the targets; `after` gives their state after the message-passing step i, from what they themselves send.

    Structure-free states are [B, F]; the others may have samples in front.
    """
    own: dict[int, Tensor] = {}
    for i, step in enumerate(known.plan.steps):
        if i in known.rest:
            own[i] = known.rest[i][nodes]
        elif i in known.sent:
            own[i] = after(i, known.plan.rounds[i], tuple(t[nodes] for t in known.sent[i]))
        elif step.layer is not None:
            own[i] = after(i, step.layer, step.layer.send(own[step.inputs[0]]))
        elif step.run is not None:
            own[i] = step.run(*(own[k] for k in step.inputs))
    return own[len(known.plan.steps) - 1]


def near_steps(plan: Steps) -> set[int]:
    """The steps of depth 1 whose state at attached nodes a second layer reads."""
    wanted: set[int] = set()
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        if (step.depth == 2 and step.layer is not None) or (i in wanted and step.layer is None):
            wanted |= {j for j in step.inputs if plan.steps[j].depth == 1}
    return wanted


_plans: WeakKeyDictionary[nn.Module, dict[bool, Steps]] = WeakKeyDictionary()
_surroundings = WeakTensorKeyDictionary()  # edge_index -> Surroundings


def row_logits(model: nn.Module, data: Any, nodes: Tensor, rows: Tensor) -> Tensor:
    """The model's exact output [B, C] for each node when its row (both directions) is replaced by `rows` bool[B, n].

    Differentiable in the parameters. In training mode dropout acts on the states that are computed here (a fresh mask for
    every target and attached node, none inside attention) and batch norm uses its stored statistics. Memory and time
    grow with B times n times the hidden width, not with the number of edges in the rows.
    """
    if rows.dtype != torch.bool or rows.shape != (nodes.numel(), data.x.shape[0]):
        raise InputError("rows must be bool[len(nodes), number of nodes].")
    plans = _plans.setdefault(model, {})
    if model.training not in plans:
        plans[model.training] = row_plan(model)
    if data.edge_index not in _surroundings:
        _surroundings[data.edge_index] = Surroundings.of(
            data.edge_index, data.x.shape[0], data.x.dtype, data.x.device
        )
    around = _surroundings[data.edge_index]
    rows = rows.index_put((torch.arange(nodes.numel(), device=nodes.device), nodes), rows.new_zeros(()))
    known = Prepared(plans[model.training], around, data.x)
    size = max(1, TRAINING_CHUNK[rows.device.type] // (known.around.n * known.width))
    parts = [
        _remembering_nothing(known, nodes[i : i + size], rows[i : i + size])
        for i in range(0, nodes.numel(), size)
    ]
    return torch.cat(parts)


def _remembering_nothing(known: Prepared, nodes: Tensor, rows: Tensor) -> Tensor:
    """The targets' outputs; what the gradient needs is computed again, in cache, rather than kept in memory."""
    if not torch.is_grad_enabled():
        return Replaced(known, nodes, rows).forward()
    result: Tensor = checkpoint(lambda: Replaced(known, nodes, rows).forward(), use_reentrant=False)
    return result
