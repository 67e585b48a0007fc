"""Rows of which a few links are kept: what a sample costs follows what it keeps, not the size of the graph.

Noise that keeps a few seats never attaches anybody new. So a target is looked at with its own neighbours alone, each with the state
that it has while attached; a sample gathers the few that are kept, and adds them up.
"""

import copy

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.attention import Attention
from unswayed.sampling.engines.layers import Layer, Sent
from unswayed.sampling.engines.obstacles import Elsewhere
from unswayed.sampling.engines.plan import Steps
from unswayed.sampling.engines.room import room, within_memory
from unswayed.sampling.engines.row import Prepared, own_states, row_plan
from unswayed.sampling.engines.row_coupled import coupling
from unswayed.sampling.engines.row_engine import OWN, RowEngine
from unswayed.sampling.engines.surroundings import Surroundings
from unswayed.sampling.question import Question
from unswayed.sampling.seats import kept_seats
from unswayed.theory.noise import Noise

REMEMBERED = 2**10  # targets whose surroundings stay for the next block


def free_plan(model: nn.Module) -> Steps:
    """The plan of a model of two layers in which a node's state depends on nobody else who is attached; otherwise Unsupported."""
    plan = row_plan(model)
    if coupling(plan) != "free":
        raise Unsupported("its first layer divides by the degrees of both ends of an edge")
    return plan


class KeptEngine(RowEngine):
    """For `Row` under `Keep` and two known layers."""

    name = "kept"
    plan_of = staticmethod(free_plan)

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """The noise must keep a few links of each row."""
        if question.noise.drawing != "seats":
            return Elsewhere("the noise keeps no fixed number of links")
        return super().unsuited(question)

    def _settle(self) -> None:
        super()._settle()
        self.near: dict[int, Gathered] = {}

    def _wild(self) -> bool:
        return False  # every sample has scores, and a scale, of its own

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = self._asked(targets)

        def ask() -> Tensor:
            with self.asking():
                return torch.cat([self._votes_of(target, start, stop) for target in asked], dim=1)

        return within_memory(self.device, ask, self.near.clear)

    def _votes_of(self, target: int, start: int, stop: int) -> Tensor:
        ask, options = self._gathered(target), self.question.noise.options()
        drawn = kept_seats(
            self.question.stream, start, stop, max(ask.degree, options["seats"]), options["kept"],
            target=self.question.key_of(target),
        )  # fmt: skip
        picks = torch.from_numpy(drawn).to(self.device).clamp(max=ask.degree)
        size = max(1, room(OWN, self.device) // (options["kept"] * self.known.width))
        return torch.cat([self.classifier.votes(ask(part)) for part in torch.split(picks, size)])

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        with self.asking():
            return torch.cat([self._answer(start, stop, target, noise) for target in targets], dim=1)

    def _answer(self, start: int, stop: int, target: int, noise: Noise | None) -> Tensor:
        ask, n, key = self._gathered(target), self.known.around.n, self.question.key_of(target)
        there = ~self.question.flips(start, stop, n, key, noise)[1][:, ask.columns[:-1]]
        number = torch.arange(ask.degree, device=self.device)
        order = torch.where(there, number, ask.degree).sort(dim=1).values
        return ask(torch.cat([order, order.new_full((len(order), 1), ask.degree)], dim=1))

    def _gathered(self, target: int) -> "Gathered":
        if target not in self.near:
            if len(self.near) >= REMEMBERED:
                self.near.clear()
            self.near[target] = Gathered(self.known, self.nodes[target])
        return self.near[target]


class Gathered:
    """The logits of one target for any choice among its neighbours; everything that is the same for all samples is computed here."""

    def __init__(self, known: Prepared, node: Tensor) -> None:
        _, neighbours = known.around.edges_of(node[None])
        self.columns, self.degree = torch.cat([neighbours, node[None]]), len(neighbours)
        self.node = torch.full_like(node[None], self.degree)  # the target comes last
        self.known = confined(known, self.columns, star(known.around, self.columns))
        near = self.known.near(self.node, None)
        self.loops = self.known.around.loops[self.node]
        self.tables = {i: self._table(i, near) for i in known.plan.convs}

    def _table(self, i: int, near: dict[int, Tensor]) -> Sent:
        """What each neighbour, and for nobody a row of zeros, contributes to the step i: [degree + 1, …]."""
        known, step = self.known, self.known.plan.steps[i]
        assert step.layer is not None
        first = step.depth == 1
        sent = known.sent[i] if first else step.layer.send(near[step.inputs[0]])
        if not isinstance(step.layer, Attention):
            payload = step.layer.payload(known.around, sent, self.node)
            sent = (payload.far if payload.close is None else payload.close,)
        tables = tuple((t if first else t[0]).clone() for t in sent)
        for table in tables:
            table[self.degree] = 0
        return tables

    def __call__(self, picks: Tensor) -> Tensor:
        """[S, 1, C], for each sample the neighbours int64[S, k] that are attached, ascending, `degree` for nobody."""
        known, there = self.known, picks < self.degree
        count = there.sum(dim=1, keepdim=True)

        def first(i: int, layer: Layer, targets: Sent) -> Tensor:
            if isinstance(layer, Attention):
                near = tuple(table[picks] for table in self.tables[i])
                return layer.own_attending(near, there, targets, self.loops)[:, None]
            sums = self.tables[i][0][picks].sum(dim=1, keepdim=True)
            return layer.own(sums, count.to(sums.dtype), targets, self.loops, None)

        def second(i: int, layer: Layer, targets: Sent) -> Tensor:
            attends = isinstance(layer, Attention)
            return first(i, layer, tuple(t[:, 0] for t in targets) if attends else targets)

        logits = own_states(known, self.node, first, second)
        return logits.expand(len(picks), *logits.shape[-2:])


def confined(known: Prepared, columns: Tensor, around: Surroundings) -> Prepared:
    """The same states at these nodes alone, with these surroundings in place of the graph."""
    here = copy.copy(known)
    here.rest = {i: t[columns] for i, t in known.rest.items()}
    here.sent = {i: tuple(t[columns] for t in sent) for i, sent in known.sent.items()}
    here.clean = {i: tuple(t[columns] for t in clean) for i, clean in known.clean.items()}
    here.around = around
    return here


def star(around: Surroundings, columns: Tensor) -> Surroundings:
    """The edges between the last of these nodes and all others; degrees and loops are those of the whole graph."""
    others = torch.arange(len(columns) - 1, device=columns.device)
    centre = torch.full_like(others, len(columns) - 1)
    edges = torch.stack([torch.cat([others, centre]), torch.cat([centre, others])])
    bare = Surroundings.of(edges, len(columns), around.degree.dtype, columns.device)
    return Surroundings(bare.edge_index, bare.adjacency, around.degree[columns], around.loops[columns])
