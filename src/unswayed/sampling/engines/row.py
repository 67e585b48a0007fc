"""The exact output for a node whose row is replaced, without building the graph.

An attached node v sees "its own neighbourhood plus u" whatever else is attached (DESIGN: `layers.near`), so two layers need
three kinds of state only: of every node without structure, of every node given that it is attached, and of the target.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from unswayed.errors import InputError, Unsupported
from unswayed.sampling.engines.attention import AttentionLayer
from unswayed.sampling.engines.layers import Layer, Payload
from unswayed.sampling.engines.recognise import Plan, recognise
from unswayed.sampling.engines.surroundings import Surroundings


def row_plan(model: nn.Module) -> Plan:
    """The plan of a model that classifies nodes with at most two rounds of message passing; otherwise Unsupported."""
    plan = recognise(model)
    for step in plan.steps:
        if step.kind == "pool":
            raise Unsupported(f"The readout '{step.name}' pools nodes; the row engine classifies nodes.")
        if step.depth > 2:
            raise Unsupported(
                f"The layer '{step.name}' is a third round of message passing; the row engine knows two."
            )
    return plan


@dataclass(frozen=True)
class Replaced:
    """Targets `nodes` [B] with `rows` bool[B, n] in place of their clean rows."""

    around: Surroundings
    nodes: Tensor
    rows: Tensor

    def sum(self, payload: Payload) -> Tensor:
        """[B, k]: the payloads of the attached nodes, added up."""
        weight = self.rows.to(payload.far.dtype)
        if payload.far.dim() == 3:
            return torch.bmm(weight[:, None], payload.far)[:, 0]
        if payload.close is None:
            return weight @ payload.far
        clean = self.around.adjacent(self.nodes)
        return (weight * ~clean) @ payload.far + (weight * clean) @ payload.close

    def own(self, layer: Layer, first: bool, h: Tensor, own: Tensor) -> Tensor:
        """The targets' state after `layer`: h are the other nodes' states ([n, F], or near), `own` the targets'."""
        if isinstance(layer, AttentionLayer) and not first:
            return layer.own_second(self.around, h, self.rows, own, self.nodes)
        sums = self.sum(layer.payload(self.around, h, self.nodes))
        if isinstance(layer, AttentionLayer):
            return layer.own_first(self.around, sums, h, self.nodes)
        count = self.rows.sum(1).to(h.dtype)
        return layer.own(self.around, sums, count, own, self.nodes)

    def forward(self, plan: Plan, x: Tensor) -> Tensor:
        """[B, C]: the plan's output for the targets."""
        rest: dict[int, Tensor] = {}
        near: dict[int, Tensor] = {}
        own: dict[int, Tensor] = {}
        needs_near = near_steps(plan)
        for i, step in enumerate(plan.steps):
            j = step.inputs[0] if step.inputs else -1
            if step.depth == 0:
                rest[i] = step.run(*(rest[k] for k in step.inputs)) if step.run else x
                own[i] = rest[i][self.nodes]
            elif step.layer is not None:
                first = step.depth == 1
                own[i] = self.own(step.layer, first, rest[j] if first else near[j], own[j])
                if i in needs_near:
                    near[i] = step.layer.near(self.around, rest[j], self.nodes, self.rows)
            else:
                assert step.run is not None
                own[i] = step.run(*(own[k] for k in step.inputs))
                if i in needs_near:
                    near[i] = step.run(*(near.get(k, rest.get(k)) for k in step.inputs))
        return own[len(plan.steps) - 1]


def near_steps(plan: Plan) -> set[int]:
    """The steps of depth 1 whose state at attached nodes a second layer reads."""
    wanted: set[int] = set()
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        if (step.depth == 2 and step.layer is not None) or (i in wanted and step.layer is None):
            wanted |= {j for j in step.inputs if plan.steps[j].depth == 1}
    return wanted


_plans: WeakKeyDictionary[nn.Module, dict[bool, Plan]] = WeakKeyDictionary()
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
    own_entry = torch.zeros_like(rows).index_put_(
        (torch.arange(nodes.numel(), device=nodes.device), nodes),
        torch.ones((), dtype=torch.bool, device=rows.device),
    )
    return Replaced(around, nodes, rows & ~own_entry).forward(plans[model.training], data.x)
