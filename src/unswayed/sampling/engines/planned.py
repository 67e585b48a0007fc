"""What a plan computes for the nodes that are classified, from states that are the same in all samples and those that are not."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.layers import Sent
from unswayed.sampling.engines.plan import Steps
from unswayed.sampling.engines.pulling import Pull, pulls_of
from unswayed.sampling.engines.star import Spokeless, Star
from unswayed.sampling.engines.surroundings import Surroundings


@dataclass(frozen=True)
class Demand:
    """Which steps are needed at the classified nodes, and which at all nodes; `pulls` are chains read backwards."""

    here: frozenset[int]
    everywhere: frozenset[int]
    pulls: dict[int, Pull]

    @classmethod
    def of(cls, plan: Steps, pulls: dict[int, Pull]) -> "Demand":
        """From the output back."""
        here, everywhere = {len(plan.steps) - 1}, set[int]()
        for i in reversed(range(len(plan.steps))):
            step = plan.steps[i]
            if i in here and i in pulls:
                everywhere |= pulls[i].leaves
            elif i in here and step.kind == "rowwise":
                here |= set(step.inputs)
            elif i in here and step.inputs:
                everywhere |= set(step.inputs)
            if i in everywhere:
                everywhere |= set(step.inputs)
        return cls(frozenset(here), frozenset(everywhere), pulls)


class Planned:
    """A plan and its states before the first message passing: what is the same for all targets and samples."""

    def __init__(self, plan: Steps, x: Tensor) -> None:
        self.plan = plan
        self.demand = Demand.of(plan, pulls_of(plan))
        self.rest: dict[int, Tensor] = {}
        self.sent: dict[int, Sent] = {}  # what goes into the first rounds
        for i, step in enumerate(plan.steps):
            if step.depth == 0 and step.kind in ("input", "rowwise"):
                self.rest[i] = step.run(*(self.rest[k] for k in step.inputs)) if step.run else x
            elif step.depth == 1 and step.layer is not None:
                self.sent[i] = step.layer.send(self.rest[step.inputs[0]])

    @property
    def width(self) -> int:
        """How many numbers one node sends in a first round, unless all rounds are read backwards."""
        pulled = {i for pull in self.demand.pulls.values() for i in pull.chain}
        return max(
            (t[0].numel() for i, sent in self.sent.items() if i not in pulled for t in sent), default=1
        )


class StarLogits:
    """Logits of one node from its noisy rows: states of all nodes, for some samples at a time."""

    def __init__(self, known: Planned, constant: Surroundings, node: int) -> None:
        self.known, self.node, self.rest = known, node, Spokeless(constant, node)

    def __call__(self, rows: Tensor) -> Tensor:
        """[S, C] from rows bool[S, n]."""
        star, steps, demand = Star(self.rest, rows), self.known.plan.steps, self.known.demand
        every: dict[int, Tensor] = {i: h[None] for i, h in self.known.rest.items()}
        here: dict[int, Tensor] = {i: star.centre.own(h) for i, h in every.items()}
        for i in range(len(steps)):
            if i in every:
                continue
            if i in demand.everywhere:
                every[i] = self._state(i, every, every, star, star)
                here[i] = star.centre.own(every[i])
            elif i in demand.here:
                here[i] = (
                    self._pulled(i, every, star) if i in demand.pulls else self._here(i, every, here, star)
                )
        out = here[len(steps) - 1][:, 0]
        return out.expand(len(rows), out.shape[-1])

    def _here(self, i: int, every: dict[int, Tensor], here: dict[int, Tensor], star: Star) -> Tensor:
        """The state of the classified node after a step that only it needs."""
        if self.known.plan.steps[i].kind == "whole":
            return star.centre.own(self._state(i, every, every, star, star))
        return self._state(i, every, here, star, star.centre)

    def _state(
        self, i: int, every: dict[int, Tensor], own: dict[int, Tensor], star: Star, around: Any
    ) -> Tensor:
        """The state of `around`'s receivers after step i; `own` holds theirs, `every` that of all nodes."""
        step = self.known.plan.steps[i]
        if step.layer is not None:
            sent = self.known.sent.get(i)
            sent = step.layer.send(every[step.inputs[0]]) if sent is None else tuple(t[None] for t in sent)
            return step.layer.over(sent, around)
        assert step.run is not None
        more = [star.average] if step.kind == "whole" else []
        return step.run(*(own[j] for j in step.inputs), *more)

    def _pulled(self, i: int, every: dict[int, Tensor], star: Star) -> Tensor:
        """[S, 1, F]: the end of a chain of linear steps, from the weights that nodes have in it."""
        start = torch.zeros_like(star.mask)
        start[:, self.node] = 1
        parts = []
        for j, weight in self.known.demand.pulls[i](start, star).items():
            weights = weight[..., 0]
            one = len(every[j]) == 1
            parts.append((weights @ every[j][0])[:, None] if one else torch.bmm(weights[:, None], every[j]))
        return sum(parts[1:], parts[0])
