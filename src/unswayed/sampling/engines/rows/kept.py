"""Rows of which a few links are kept: what a sample costs follows what it keeps, not the size of the graph.

Noise that keeps a few seats never attaches anybody new. So a target is looked at with its own neighbours alone, each with the state
that it has while attached; a sample gathers the few that are kept, and adds them up.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, pad

from unswayed.errors import Unsupported
from unswayed.sampling.engines.engine import Elsewhere, Read, Said, spans
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Layer, Sent
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.coupled import coupling
from unswayed.sampling.engines.rows.engine import OWN, RowEngine
from unswayed.sampling.engines.rows.row import Prepared, own_states, row_plan
from unswayed.sampling.question import Question
from unswayed.sampling.seats import kept_by_each
from unswayed.theory.noise import Noise

NEIGHBOURS = 2**14  # of all targets that are looked at together
REMEMBERED = 8  # lists of targets whose surroundings stay for the next block


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
        self.near: dict[tuple[int, ...], Gathered] = {}

    def _wild(self) -> bool:
        return False  # every sample has scores, and a scale, of its own

    def _forget(self) -> None:
        self.near.clear()

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        kept = self.question.noise.options()["kept"]
        for part in runs(self.known.around, self.nodes[list(asked)], NEIGHBOURS):
            run = asked[part.start : part.stop]
            ask = self._gathered(run)
            answers = max(1, room(OWN, self.device) // (self.known.width * (kept if ask.attends else 1)))
            size = max(1, answers // max(1, stop - start))
            for span in spans(start, stop, answers):
                for low in range(0, len(run), size):
                    places = range(low, min(low + size, len(run)))
                    here = slice(part.start + low, part.start + places.stop)
                    yield span, here, read(self._logits(ask, run, places, span))

    def _logits(self, ask: "Gathered", run: tuple[int, ...], places: range, span: range) -> Tensor:
        """[span, places, C] of the targets at these places of a run."""
        options, degree = self.question.noise.options(), ask.degree[places.start : places.stop]
        drawn = kept_by_each(
            self.question.stream, span.start, span.stop,
            [max(number, options["seats"]) for number in degree.tolist()], options["kept"],
            [self.question.key_of(run[place]) for place in places],
        )  # fmt: skip
        return ask(ask.picked(torch.from_numpy(drawn).to(self.device), places), places)

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from, by rows that may keep any number of links."""
        with self.asking():
            return torch.cat([self._answer(start, stop, target, noise) for target in targets], dim=1)

    def _answer(self, start: int, stop: int, target: int, noise: Noise | None) -> Tensor:
        ask, n, key = self._gathered((target,)), self.known.around.n, self.question.key_of(target)
        there = ~self.question.flips(start, stop, n, key, noise)[1][:, ask.columns[:-1]]
        number = torch.arange(ask.nobody, device=self.device)
        order = torch.where(there, number, ask.nobody).sort(dim=1).values
        return ask(pad(order, (0, 1), value=ask.nobody)[:, None], range(1))

    def _gathered(self, run: tuple[int, ...]) -> "Gathered":
        if run not in self.near:
            if len(self.near) >= REMEMBERED:
                self.near.clear()
            self.near[run] = Gathered(self.known, self.nodes[list(run)])
        return self.near[run]


class Gathered:
    """The logits of some targets for any choice among their neighbours; what is the same for all samples is computed here.

    A neighbour that is attached has the state that it has in the clean graph, whichever of the targets it belongs to: all of
    them are looked at as the neighbours of one.
    """

    def __init__(self, known: Prepared, nodes: Tensor) -> None:
        which, neighbours = known.around.edges_of(nodes)
        self.columns, self.nobody = torch.cat([neighbours, nodes]), len(neighbours)
        self.degree = torch.bincount(which, minlength=len(nodes))
        self.first = self.degree.cumsum(0) - self.degree  # of each target's neighbours
        # the targets come last
        self.nodes = torch.arange(self.nobody, len(self.columns), device=nodes.device)
        self.known = confined(known, self.columns, star(known.around, self.columns))
        near = self.known.near(self.nodes[-1:], None)
        self.tables = {i: self._table(i, layer, near) for i, layer in known.plan.rounds.items()}
        self.attends = any(isinstance(layer, Attention) for layer in known.plan.rounds.values())

    def _table(self, i: int, layer: Layer, near: dict[int, Tensor]) -> Sent:
        """What each neighbour, and for nobody a row of zeros, contributes to the step i: [neighbours + 1, …]."""
        known, step = self.known, self.known.plan.steps[i]
        first = step.depth == 1
        sent = known.sent[i] if first else layer.send(near[step.inputs[0]])
        if not isinstance(layer, Attention):
            payload = layer.payload(known.around, sent, self.nodes[-1:])
            sent = (payload.far if payload.close is None else payload.close,)
        tables = tuple((t if first else t[0])[: self.nobody + 1].clone() for t in sent)
        for table in tables:
            table[self.nobody] = 0
        return tables

    def links(self, at: int) -> slice:
        """The rows of one target's neighbours."""
        begin = int(self.first[at])
        return slice(begin, begin + int(self.degree[at]))

    def picked(self, drawn: Tensor, places: range) -> Tensor:
        """The rows of the tables for seats int64[S, places, k]: those beyond a target's neighbours are nobody's."""
        first, degree = (t[places.start : places.stop, None] for t in (self.first, self.degree))
        return torch.where(drawn < degree, drawn + first, self.nobody)

    def __call__(self, picks: Tensor, places: range) -> Tensor:
        """[S, places, C], for each sample and target the rows int64[S, places, k] that are attached, ascending."""
        nodes = self.nodes[places.start : places.stop]
        there, loops = picks < self.nobody, self.known.around.loops[nodes]
        count = there.sum(dim=-1)

        def own(i: int, layer: Layer, targets: Sent) -> Tensor:
            if not isinstance(layer, Attention):
                sums = embedding_bag(picks.flatten(0, 1), self.tables[i][0], mode="sum")
                sums = sums.view(*picks.shape[:2], sums.shape[-1])
                return layer.own(sums, count.to(sums.dtype), targets, loops, None)
            if i in self.known.sent:  # the same in all samples
                targets = tuple(t.expand(len(picks), *t.shape) for t in targets)
            near = tuple(table[picks.flatten(0, 1)] for table in self.tables[i])
            targets = tuple(t.flatten(0, 1) for t in targets)
            said = layer.own_attending(near, there.flatten(0, 1), targets, loops.repeat(len(picks)))
            return said.view(*picks.shape[:2], said.shape[-1])

        logits = own_states(self.known, nodes, own)
        return logits.expand(len(picks), *logits.shape[-2:])


def runs(around: Surroundings, nodes: Tensor, most: int) -> Iterator[range]:
    """These nodes, in runs that have few neighbours together."""
    starts = around.adjacency.crow_indices()
    sizes = (starts[nodes + 1] - starts[nodes] + 1).cumsum(0) // max(1, most)
    begin = 0
    for number in torch.unique_consecutive(sizes, return_counts=True)[1].tolist():
        yield range(begin, begin + number)
        begin += number


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
