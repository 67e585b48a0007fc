"""What a plan computes for the nodes that are classified, from states that are the same in all samples and those that are not."""

from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.graphs.star import Spokeless, Star, Turned
from unswayed.sampling.engines.plans.layers import Sent
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.pulling import pulls_of
from unswayed.sampling.engines.plans.surroundings import Surroundings


class Planned:
    """A plan and its states before the first message passing: what is the same for all targets and samples."""

    def __init__(self, plan: Steps, x: Tensor) -> None:
        self.plan = plan
        self.pulls = pulls_of(plan)  # chains that are read backwards
        self.here, self.everywhere = plan.needed({i: pull.leaves for i, pull in self.pulls.items()})
        self.rest, self.sent = plan.begun(x)

    @property
    def width(self) -> int:
        """How many numbers one node sends in a first round, unless all rounds are read backwards."""
        pulled = {i for pull in self.pulls.values() for i in pull.chain}
        return max(
            (t[0].numel() for i, sent in self.sent.items() if i not in pulled for t in sent), default=1
        )


class StarLogits:
    """Logits of one node u from its noisy rows: states of all nodes, for some samples at a time.

    After a first round in which degrees do not couple, any other node has one of two states: attached to u, or not. Such
    `pairs` of states are computed once, and what a next round sends of them; a sample picks.
    """

    def __init__(self, known: Planned, constant: Surroundings, node: int) -> None:
        self.known, self.node, self.rest = known, node, Spokeless(constant, node)
        self.every = {i: h[None] for i, h in known.rest.items()}
        self.sent = {i: tuple(t[None] for t in sent) for i, sent in known.sent.items()}
        self.pairs: dict[int, Tensor] = {}
        self.sent_of_pairs: dict[int, Sent] = {}
        rows = torch.zeros((2, constant.n), dtype=torch.bool, device=constant.degree.device)
        rows[1] = torch.arange(constant.n, device=rows.device) != node
        self._find_pairs(Star(self.rest, rows))

    def _find_pairs(self, both: Star) -> None:
        states, steps = dict(self.every), self.known.plan.steps
        for i, step in enumerate(steps):
            free = step.kind == "rowwise" if step.layer is None else not step.layer.coupled
            if step.depth == 1 and free and i in self.known.everywhere and states.keys() >= set(step.inputs):
                states[i] = self.pairs[i] = self._state(i, states, both, self.sent.get(i))
        for i, layer in self.known.plan.rounds.items():
            if (source := steps[i].inputs[0]) in self.pairs:
                self.sent_of_pairs[i] = layer.send(self.pairs[source])

    def __call__(self, rows: Tensor) -> Tensor:
        """[S, C] from rows bool[S, n]."""
        star, plan, known = Star(self.rest, rows), self.known.plan, self.known
        every, kept = dict(self.every), {j for pull in known.pulls.values() for j in pull.leaves}
        here = {i: star.centre.own(h) for i, h in every.items()}
        for i, step in enumerate(plan.steps):
            if i in every or not (i in known.here or i in known.everywhere):
                continue
            if (i in known.everywhere and i not in self.pairs) or step.kind == "whole":
                if i not in self.sent_of_pairs:
                    self._complete(step.inputs, every, here, star)
                every[i] = self._state(i, every, star, self._sent(i, every, here, star))
                here[i] = star.centre.own(every[i])
            elif i in known.pulls:
                self._complete(tuple(known.pulls[i].leaves), every, here, star)
                here[i] = self._pulled(i, every, star)
            elif step.layer is None or i in self.sent or i in self.sent_of_pairs:
                here[i] = self._state(i, here, star.centre, self._sent(i, every, here, star))
            else:
                here[i] = step.layer.at_few(every[step.inputs[0]], star.centre)
            for j in step.inputs:  # memory that is still in the cache
                if plan.last_use[j] == i and j not in kept:
                    every.pop(j, None)
        out = here[len(plan.steps) - 1][:, 0]
        return out.expand(len(rows), out.shape[-1])

    def _complete(
        self, wanted: tuple[int, ...], every: dict[int, Tensor], here: dict[int, Tensor], star: Star
    ) -> None:
        """The states of all nodes after steps of which pairs are known."""
        for j in wanted:
            if j in self.pairs and j not in every:
                every[j] = star.picked(self.pairs[j], here[j])

    def _sent(self, i: int, every: dict[int, Tensor], here: dict[int, Tensor], star: Star) -> Sent | None:
        """What a round is sent by all nodes."""
        step = self.known.plan.steps[i]
        if step.layer is None or i in self.sent:
            return self.sent.get(i)
        source = step.inputs[0]
        if i not in self.sent_of_pairs:
            return step.layer.send(every[source])
        own = step.layer.send(here[source])
        return tuple(star.picked(*both) for both in zip(self.sent_of_pairs[i], own, strict=True))

    def _state(self, i: int, states: dict[int, Tensor], around: Any, sent: Sent | None) -> Tensor:
        """The state of `around`'s receivers after step i, from theirs and from what the senders send."""
        step = self.known.plan.steps[i]
        if step.layer is not None:
            assert sent is not None
            return step.layer.over(sent, around)
        assert step.run is not None
        more = [around.average] if step.kind == "whole" else []
        return step.run(*(states[j] for j in step.inputs), *more)

    def _pulled(self, i: int, every: dict[int, Tensor], star: Star) -> Tensor:
        """[S, 1, F]: the end of a chain of linear steps, from the weights that nodes have in it."""
        turned = Turned(star)
        start = torch.zeros_like(turned.mask)
        start[self.node] = 1
        parts = []
        for j, weight in self.known.pulls[i](start, turned).items():
            weights, one = weight[..., 0].T, len(every[j]) == 1
            parts.append((weights @ every[j][0])[:, None] if one else torch.bmm(weights[:, None], every[j]))
        return sum(parts[1:], parts[0])
