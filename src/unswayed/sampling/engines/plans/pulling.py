"""Linear propagation backwards: what one node hears through many rounds is a weighted sum over nodes.

Where the classified node's output is a chain of linear sums (APPNP, SGC, TAG, Chebyshev), the weights of all nodes in it
are found by going back from that node, one number a node instead of one a feature; the states are read once.
"""

import operator
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.plans.layers import plus
from unswayed.sampling.engines.plans.plan import Step, Steps
from unswayed.sampling.engines.plans.steps import Blend


def _shares(step: Step) -> tuple[float, ...] | None:
    """What each input counts for in a step that is linear and the same for all features; None for any other."""
    run: Any = step.run
    if isinstance(run, Blend):
        return run.a, run.b
    if run in (torch.add, operator.add, plus) and len(step.inputs) == 2:
        return 1.0, 1.0
    return (-1.0,) if run in (torch.neg, operator.neg) else None


class Pull:
    """The chain of linear steps that ends in the step `last`; `leaves` are the steps whose states it reads."""

    def __init__(self, plan: Steps, last: int) -> None:
        self.plan, self.last = plan, last
        self.chain: list[int] = []
        wanted, leaves = {last}, set()
        for i in reversed(range(last + 1)):
            if i in wanted:
                step = plan.steps[i]
                linear = step.layer is not None and step.layer.linear
                if step.depth and (linear or _shares(step) is not None):
                    self.chain.append(i)
                    wanted.update(step.inputs)
                else:
                    leaves.add(i)
        self.leaves = frozenset(leaves)
        self.rounds = sum(plan.steps[i].layer is not None for i in self.chain)

    def __call__(self, start: Tensor, around: Any) -> dict[int, Tensor]:
        """The weights [n, S, 1] of each leaf's states in what `start` weighs of the last step's."""
        weights = {self.last: start}
        for i in self.chain:
            step, weight = self.plan.steps[i], weights.pop(i)
            if step.layer is not None:
                _add(weights, step.inputs[0], step.layer.pulled(weight, around))  # type: ignore[attr-defined]
            else:
                for j, share in zip(step.inputs, _shares(step) or (), strict=True):
                    _add(weights, j, share * weight)
        return weights


def _add(weights: dict[int, Tensor], i: int, weight: Tensor) -> None:
    weights[i] = weights[i] + weight if i in weights else weight


def pulls_of(plan: Steps) -> dict[int, Pull]:
    """The chains of at least two rounds that end where only classified nodes are read, by their last step."""
    found: dict[int, Pull] = {}
    for i, step in enumerate(plan.steps):
        if i in plan.used - plan.everywhere and (step.layer is not None or _shares(step) is not None):
            pull = Pull(plan, i)
            if pull.rounds > 1:
                found = {j: p for j, p in found.items() if j not in pull.chain} | {i: pull}
    return found
