"""The row engine: exact votes for two-layer models under row noise, by a few matrix products for all samples."""

from collections.abc import Callable, Iterator
from functools import cached_property

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.drawing import distinct
from unswayed.sampling.engines.asking.generic import part
from unswayed.sampling.engines.engine import Elsewhere, FastEngine, Read, Said, precision, spans
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.machine.cores import Cores, cores
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Layer, Payload, Sent
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.attended import Attended
from unswayed.sampling.engines.rows.coupled import Coupled, coupling
from unswayed.sampling.engines.rows.row import Prepared, own_states, row_plan
from unswayed.sampling.engines.rows.sorting import SortedSum
from unswayed.sampling.engines.rows.sums import CommonSum, Drawn, Flips, Near, TargetSum, ordinary
from unswayed.sampling.inputs import Graph
from unswayed.sampling.question import Question
from unswayed.theory.noise import Noise

Total = CommonSum | SortedSum | TargetSum | Attended | Coupled

# Numbers held at a time: noise of a span of samples (bits), payloads of a chunk of targets, the states of attached nodes
# from which they are made, and the noise of a chunk of samples as floats. KEPT: payloads that stay for the next block.
SPAN = {"cpu": 2**26, "cuda": 2**33}
PAYLOAD = {"cpu": 2**24, "cuda": 2**31}
NEAR = {"cpu": 2**20, "cuda": 2**29}
FLOATS = {"cpu": 2**21, "cuda": 2**30}
OWN = {"cpu": 2**20, "cuda": 2**30}
KEPT = {"cpu": 2**26, "cuda": 2**32}
HUGE = 2.0**13  # times the usual features: where two such cancel, rounding leaves a thousandth of a usual one
WILD = 8.0  # a clean neighbour that flips is subtracted again: what is left may be e^WILD times smaller


def uncoupled_plan(model: nn.Module) -> Steps:
    """The plan of a model of two layers whose sums over a row are known for all samples at once; otherwise Unsupported."""
    plan = row_plan(model)
    if coupling(plan) == "coupled":
        raise Unsupported(
            "Its first layer's states depend on the whole row, and no sum over a row knows them."
        )
    return plan


class RowEngine(FastEngine):
    """For `Row` and two known layers."""

    name = "row"
    graph: Graph | None = None
    plan_of = staticmethod(uncoupled_plan)

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """Only rows of a graph may be noisy, and no feature may drown the others."""
        if (view := question.threat.row_view()) is None:
            return Elsewhere("the threat is not Row")
        if view.graph.x is None:
            return "the graph has no features"
        if precision(question) is not torch.float64 and not ordinary(view.graph.x, HUGE):
            return "some features are so large beside the others that the order of sums decides, which depends on the clean row here"
        return None

    def _settle(self) -> None:
        view = self.question.threat.row_view()
        assert view is not None
        assert view.graph.x is not None
        self.nodes = view.nodes.to(self.device)
        self.kept: dict[tuple[int, ...], RowLogits] = {}
        if view.graph is not self.graph:
            self.graph, around = view.graph, (view.graph.edge_index, view.graph.num_nodes)
            with self.asking():
                self.known = Prepared(
                    row_plan(self.classifier.model),
                    Surroundings.of(*around, self.kind, self.device),
                    view.graph.x.to(device=self.device, dtype=self.kind),
                )
        self.safe = PlanEngine(self.question) if self._wild() else None

    def _wild(self) -> bool:
        """Whether what is counted and taken away again, or weighed on one scale for all rows, could drown the rest."""
        layers = [(self.known.plan.rounds[i], sent) for i, sent in self.known.sent.items()]
        if coupling(self.known.plan) == "relu" and not all(ordinary(sent[0]) for _, sent in layers):
            return True
        return any(isinstance(layer, Attention) and layer.spread(sent) > WILD for layer, sent in layers)

    @cached_property
    def width(self) -> int:
        """The number of columns that one target takes in the widest matrix product."""
        known, steps = self.known, self.known.plan.steps
        none = torch.zeros((1, known.around.n), dtype=torch.bool, device=self.device)
        near = known.near(self.nodes[:1], none)
        widths = [1]
        for i, layer in known.plan.rounds.items():
            if steps[i].depth == 2:  # attention holds values, and those times two kinds of weights
                width = layer.send(near[steps[i].inputs[0]])[0].numel() // known.around.n
                widths.append(4 * width if isinstance(layer, Attention) else width)
            elif isinstance(layer, Attention) and not SortedSum.suits(layer, known.sent[i]):
                widths.append(2 * known.sent[i][0][0].numel())
        return max(widths)

    def _forget(self) -> None:
        self.kept.clear()
        if self.safe is not None:
            self.safe._forget()

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        if self.safe is not None:
            with self.safe.asking():
                yield from self.safe._said(start, stop, asked, read, noise)
            return
        with cores(self.device) as on:
            for span in spans(start, stop, room(SPAN, self.device) / self.known.around.n):
                if self.question.shared:
                    drawn = self._draw(span, None, on, noise)
                    yield from ((span, *chunk) for chunk in self._chunks(drawn, asked, on, read))
                else:
                    for i, target in enumerate(asked):
                        drawn, back = self._draw(span, self.question.key_of(target), on, noise), None
                        if self.question.apart:
                            ones = self.known.around.edges_of(self.nodes[[target]])[1]
                            drawn, back = distinct(drawn, ones)
                        for _, said in self._chunks(drawn, (target,), on, read):
                            yield span, [i], said if back is None else said[back]

    def _draw(self, span: range, key: int | None, on: Cores, noise: Noise | None) -> Drawn:
        """On a CPU by as many threads as there are."""
        n, most = self.known.around.n, len(span) + 4
        parts = on.map(
            lambda some: self.question.flips(some.start, some.stop, n, key, noise),
            spans(span.start, span.stop, most if on.pool is None else FLOATS["cpu"] / n),
        )
        zero = torch.cat([zero for zero, _ in parts]) if len(parts) > 1 else parts[0][0]
        return zero, zero if parts[0][0] is parts[0][1] else torch.cat([one for _, one in parts])

    def _chunks(
        self, drawn: Drawn, asked: tuple[int, ...], on: Cores, read: Read
    ) -> Iterator[tuple[slice, Tensor]]:
        """(places of targets, what is read of them) of all that was drawn, a chunk of targets at a time."""
        size = self._targets_at_once()
        for begin in range(0, len(asked), size):
            group = asked[begin : begin + size]
            ask = self._asker(group)

            def say(some: Drawn, ask: Callable[[Drawn], Tensor] = ask) -> Tensor:
                return read(ask(some))

            yield slice(begin, begin + size), torch.cat(on.map(say, self._parts(drawn, len(group))))

    def _targets_at_once(self) -> int:
        return max(1, min(128, room(PAYLOAD, self.device) // (self.known.around.n * self.width)))

    def _parts(self, drawn: Drawn, targets: int) -> Iterator[Drawn]:
        """Chunks of samples whose floats, and whose states of the targets, fit the cache or the card."""
        floats, own = room(FLOATS, self.device), room(OWN, self.device)
        size = max(16, min(floats // self.known.around.n, own // (targets * self.known.width)))
        return (part(drawn, begin, begin + size) for begin in range(0, len(drawn[0]), size))

    def _asker(self, group: tuple[int, ...]) -> Callable[[Drawn], Tensor]:
        """A function from noise to the logits [S, T, C] of these targets; kept for the next block where there is room."""
        if group in self.kept:
            return self.kept[group]
        ask = RowLogits(self.known, self.nodes[list(group)])
        held = sum(map(len, self.kept)) + len(group)
        if held * self.known.around.n * self.width <= room(KEPT, self.device):
            self.kept[group] = ask
        return ask


class RowLogits:
    """The logits of a chunk of targets for any noise; everything that is the same for all samples is computed here."""

    def __init__(self, known: Prepared, nodes: Tensor) -> None:
        self.known, self.nodes, self.loops = known, nodes, known.around.loops[nodes]
        self.near = Near(known.around, nodes)
        self.degree = CommonSum(self.near, Payload(torch.ones_like(known.around.degree)[:, None]))
        self.sums: dict[int, Total] = {
            i: self._first(known.plan.rounds[i], sent) for i, sent in known.sent.items()
        }
        seconds = [i for i in known.plan.rounds if i not in known.sent]
        if coupling(known.plan) == "relu":
            self.sums.update((i, Coupled(known, i, nodes)) for i in seconds)
        elif seconds:
            self.sums.update(self._seconds(seconds))

    def _some(self, width: int) -> tuple[Tensor, ...]:
        """The targets, as many at a time as there is room for states of this width."""
        numbers = room(NEAR, self.nodes.device) // (self.known.around.n * width)
        return torch.split(self.nodes, max(1, numbers))

    def _first(self, layer: Layer, sent: Sent) -> CommonSum | SortedSum | TargetSum:
        """The sums of a first layer's payload."""
        if not isinstance(layer, Attention):
            return CommonSum(self.near, layer.payload(self.known.around, sent, self.nodes))
        if SortedSum.suits(layer, sent):
            return SortedSum(layer, sent, self.near)
        total = TargetSum(layer, self.known.around, self.near)
        for nodes in self._some(sent[0][0].numel()):
            total.fill(sent, nodes)
        return total

    def _seconds(self, seconds: list[int]) -> dict[int, TargetSum | Attended]:
        """The sums of second layers, from the states of attached nodes, a few targets at a time."""
        plan, around = self.known.plan, self.known.around
        found: dict[int, TargetSum | Attended] = {}
        for i in seconds:
            if isinstance(layer := plan.rounds[i], Attention):
                found[i] = Attended(layer, around, self.nodes)
            else:
                found[i] = TargetSum(layer, around, self.near)
        for nodes in self._some(self.known.width):
            near = self.known.near(nodes, None)
            for i, total in found.items():
                total.fill(plan.rounds[i].send(near[plan.steps[i].inputs[0]]), nodes)
        return found

    def __call__(self, drawn: Drawn) -> Tensor:
        """[S, T, C]."""
        flips = Flips.of(drawn, self.near, self.loops.dtype)
        count = self.degree(flips)[..., 0]

        def own(i: int, layer: Layer, targets: Sent) -> Tensor:
            total = self.sums[i]
            if isinstance(total, Attended):
                return total(drawn, flips, targets)
            sums = total(flips, count) if isinstance(total, Coupled) else total(flips)
            return layer.own(sums, count, targets, self.loops, total.shift)

        logits = own_states(self.known, self.nodes, own)
        return logits.expand(len(drawn[0]), *logits.shape[-2:])
