"""The plan engine: exact votes for recognised models of any depth, where noise changes some links of one graph.

All arithmetic that is the same in all samples is done once, and what differs is done for many samples at a time, in one of
three arrangements: a star (the links of one node, states of all nodes), the surroundings that a sample touches, or those that
listed links may touch in any sample.
"""

import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.drawing import distinct
from unswayed.sampling.engines.asking.generic import part
from unswayed.sampling.engines.engine import Elsewhere, FastEngine, Read, Said, spans
from unswayed.sampling.engines.graphs.planned import Planned, StarLogits
from unswayed.sampling.engines.graphs.switched import SwitchedLogits
from unswayed.sampling.engines.graphs.touched import Tables, touched_logits
from unswayed.sampling.engines.machine.cores import cores
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.rewriting import lifted, settled, sunk
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.inputs import Graph
from unswayed.sampling.question import Question
from unswayed.sampling.structures import Layout, groups_of, layout_of, noisy
from unswayed.theory.noise import Noise

Flips = tuple[Tensor, Tensor]
SPAN = {"cpu": 2**26, "cuda": 2**32}  # bits of noise held at a time
KEPT = {"cpu": 2**26, "cuda": 2**30}  # numbers of graphs that stay for the next block
COPIES = 16  # of its edges that one target keeps, about
STATES = {"cpu": 2**17 * 3 // 2, "cuda": 2**28}  # numbers of states of one step held at a time
NEAR = 64  # nodes that a sample is reckoned to touch
MANY = 256  # samples whose surroundings are computed at a time, at most
TIMED = 24  # samples that both arrangements are timed on


def node_plan(model: nn.Module) -> Steps:
    """The plan of a model that classifies nodes, arranged for answers at few of them; otherwise Unsupported."""
    plan = settled(sunk(lifted(recognise(model))))
    if any(step.kind == "pool" for step in plan.steps):
        raise Unsupported("It pools nodes; the plan engine classifies nodes.")
    return plan


class PlanEngine(FastEngine):
    """For `Row` and `Pairs`, and known layers."""

    name = "plan"
    chosen: str = ""  # the arrangement that was fastest
    tried: int = 0  # samples that all were timed on

    graph: Graph | None = None
    plan_of = staticmethod(node_plan)

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """Only the links of one node, or listed ones, may be noisy, and all of their noise must be drawn."""
        threat = question.threat
        listed = threat.row_view() is not None or threat.parts
        if threat.nodes is None or not listed or not threat.undirected:
            return Elsewhere("the threat is not Row, or Pairs with nodes")
        if question.sparse:
            return "only the changes of the noise are drawn, and it knows whole rows"
        if layout_of(question, 0).graph.x is None:
            return "the graph has no features"
        known = isinstance(question.model, nn.Module) and threat.row_view() is None
        if known and not node_plan(question.model).local:
            return "a norm reads all nodes at once, and pairs may touch any of them"
        return None

    def _settle(self) -> None:
        self.threat, self.kept = self.question.threat, dict[tuple[int, ...], Asker]()
        assert self.threat.nodes is not None
        self.nodes = self.threat.nodes
        graph = layout_of(self.question, 0).graph
        if graph is self.graph:
            return
        assert graph.x is not None
        self.graph = graph
        self.__dict__.pop("tables", None)
        with self.asking():
            plan = node_plan(self.classifier.model)
            self.known = Planned(plan, graph.x.to(device=self.device, dtype=self.kind))

    def _forget(self) -> None:
        self.kept.clear()

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        words = max((self.threat.drawn(target) for target in asked), default=1)
        question, place = self.question, {target: i for i, target in enumerate(asked)}
        for span in spans(start, stop, room(SPAN, self.device) / words):
            draw = partial(question.flips, span.start, span.stop, noise=noise)
            shared = draw(words, None) if question.shared else None
            for together in groups_of(question, asked):
                group = tuple(sorted(together, key=lambda target: int(self.nodes[target])))
                width = self.threat.drawn(group[0])
                drawn = shared or draw(width, question.key_of(group[0]))
                logits = self._ask(group, (drawn[0][:, :width], drawn[1][:, :width]))
                yield span, [place[target] for target in group], read(logits)

    def _ask(self, group: tuple[int, ...], flips: Flips) -> Tensor:
        """[S, T, C]; equal rows of a target whose noise only hides are asked about once."""
        back: Tensor | None = None
        if self.question.apart:
            ones = self.threat.clean(group[0]).nonzero()[:, 0].to(self.device)
            flips, back = distinct(flips, ones)
        ask = self._asker(group)
        way, size = self._way(ask, flips)
        chunks = [part(flips, i, i + size) for i in range(0, len(flips[0]), size)]
        with cores(self.device) as on:
            said = torch.cat(on.map(way, chunks))
        return said if back is None else said[back]

    def _way(self, ask: "Asker", flips: Flips) -> tuple[Callable[[Flips], Tensor], int]:
        """How these samples are asked about, and how many at a time: what was fastest so far."""
        ways, few = self._ways(ask), part(flips, 0, TIMED)
        if len(ways) > 1 and len(few[0]) > 2 * self.tried:  # the more samples, the surer
            spent = {name: min(_seconds(*way, few) for _ in range(2)) for name, way in ways.items()}
            self.chosen, self.tried = min(spent, key=spent.__getitem__), len(few[0])
        return ways.get(self.chosen) or next(iter(ways.values()))

    def _ways(self, ask: "Asker") -> dict[str, tuple[Callable[[Flips], Tensor], int]]:
        """Every arrangement that these targets allow, and how many samples it takes at a time."""
        states, width = room(STATES, self.device), self.known.width
        ways: dict[str, tuple[Callable[[Flips], Tensor], int]] = {}
        if ask.centred:
            star = max(1, states // (ask.layout.graph.num_nodes * width))
            sizes = [2 * star, 4 * star, 6 * star] if star < TIMED // 3 + 1 else [star]
            ways |= {f"star, {size}": (ask.by_star, size) for size in sizes}
        if self.known.plan.local:
            near = NEAR * max(4, ask.nodes.numel()) * width
            ways["touched"] = ask.by_touch, max(1, min(MANY, states * 5 // near))
            if not ask.centred:
                ways["switched"] = ask.switched, max(1, min(MANY, states * 8 // ask.switched.width))
        return ways

    @cached_property
    def tables(self) -> Tables:
        """The clean graph, which is the same for all targets, and its states."""
        layout = layout_of(self.question, 0)
        assert isinstance(layout, Layout)
        edges = layout.listed(layout.clean[None].clone())
        around = Surroundings.of(edges, layout.graph.num_nodes, self.kind, self.device)
        return Tables(self.known, around)

    def _asker(self, group: tuple[int, ...]) -> "Asker":
        """What answers for these targets; kept for the next block where there is room."""
        if group not in self.kept:
            ask = Asker(self, group)
            if (len(self.kept) + 1) * COPIES * ask.layout.constant.numel() > room(KEPT, self.device):
                return ask
            self.kept[group] = ask
        return self.kept[group]


def _seconds(way: Callable[[Flips], Tensor], size: int, flips: Flips) -> float:
    """Processor seconds of asking about these samples, `size` at a time; a card is waited for."""
    clock = time.perf_counter if flips[0].is_cuda else time.process_time
    begin = clock()
    for i in range(0, len(flips[0]), size):
        way(part(flips, i, i + size)).sum().item()
    return clock() - begin


class Asker:
    """Answers for targets that one noisy graph votes for, by ascending nodes, in any arrangement."""

    def __init__(self, engine: PlanEngine, group: tuple[int, ...]) -> None:
        layout = layout_of(engine.question, group[0])
        assert isinstance(layout, Layout)
        self.engine, self.layout = engine, layout
        self.nodes = engine.nodes[list(group)].to(engine.device)

    @cached_property
    def centred(self) -> bool:
        """Whether the noisy links are the only target's, and all of them: no link of it stays as it is."""
        if self.nodes.numel() != 1 or not bool((self.layout.first == self.nodes).all()):
            return False
        one, other = self.layout.constant
        return not bool((((one == self.nodes) | (other == self.nodes)) & (one != other)).any())

    @cached_property
    def constant(self) -> Surroundings:
        """The links that no noise touches."""
        n, engine = self.layout.graph.num_nodes, self.engine
        return Surroundings.of(self.layout.constant, n, engine.kind, engine.device)

    @cached_property
    def star(self) -> StarLogits:
        """States of all nodes."""
        return StarLogits(self.engine.known, self.constant, int(self.nodes))

    @cached_property
    def switched(self) -> SwitchedLogits:
        """States of what may change in any sample."""
        return SwitchedLogits(self.engine.tables, self.layout, self.constant, self.nodes)

    def by_star(self, flips: Flips) -> Tensor:
        """[S, 1, C]."""
        rows = present = noisy(self.layout.clean, flips)
        if not self.in_order:
            rows = present.new_zeros((len(present), self.layout.graph.num_nodes))
            rows[:, self.layout.second] = present
        rows[:, int(self.nodes)] = False
        return self.star(rows)[:, None]

    @cached_property
    def in_order(self) -> bool:
        """Whether entry v is the link to node v, for all nodes."""
        everyone = torch.arange(self.layout.graph.num_nodes, device=self.nodes.device)
        return torch.equal(self.layout.second, everyone)

    def by_touch(self, flips: Flips) -> Tensor:
        """[S, T, C]; what it needs is made when it is first asked."""
        return touched_logits(self.engine.tables, self.layout, self.nodes, flips)
