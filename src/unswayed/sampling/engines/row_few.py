"""Rows of large graphs to which few entries are added: what a sample costs follows what it changes, not the size of the graph.

Of all nodes only those matter that some sample attaches, each with the state that it has while attached to the target, and the target's
own neighbours. What is there is added up; nothing is counted first and taken away again.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.drawing import FewStream
from unswayed.sampling.engines.attention import Attention
from unswayed.sampling.engines.engine import spans
from unswayed.sampling.engines.layers import Layer, Sent
from unswayed.sampling.engines.obstacles import Elsewhere
from unswayed.sampling.engines.plan import Steps
from unswayed.sampling.engines.room import room, within_memory
from unswayed.sampling.engines.row import Prepared, own_states
from unswayed.sampling.engines.row_engine import RowEngine
from unswayed.sampling.engines.row_kept import Gathered, confined, free_plan
from unswayed.sampling.engines.surroundings import Surroundings, compressed
from unswayed.sampling.question import Question
from unswayed.theory.noise import Noise

DRAWN = {"cpu": 2**22, "cuda": 2**26}  # entries that are added in the samples held at a time
NODES = {"cpu": 2**13, "cuda": 2**20}  # attached nodes whose states are computed at a time


def few_plan(model: nn.Module) -> Steps:
    """The plan of a model of two layers of sums that do not couple; otherwise Unsupported."""
    plan = free_plan(model)
    if any(isinstance(step.layer, Attention) for step in plan.steps):
        raise Unsupported("it attends")
    return plan


class FewEngine(RowEngine):
    """For `Row`, few additions and two known layers."""

    name = "few"

    plan_of = staticmethod(few_plan)

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """The noise must be drawn by what changes."""
        few = question.few
        return super().unsuited(question) if few else Elsewhere("the noise is not drawn by what changes")

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = self._asked(targets)
        each = self.question.noise.p_add * self.known.around.n, len(self.known.sent) * self.known.width / 8

        def ask() -> Tensor:
            held = spans(start, stop, room(DRAWN, self.device) / max(1.0, *each))
            parts = [torch.cat(list(self._votes_of(span, asked)), dim=1) for span in held]
            return torch.cat(parts) if parts else torch.zeros((0, len(asked)), dtype=torch.int64)

        return within_memory(self.device, ask, lambda: None)

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        return torch.cat(list(self._logits(start, stop, targets, noise)), dim=1)

    def _votes_of(self, span: range, asked: tuple[int, ...]) -> Iterator[Tensor]:
        for logits in self._logits(span.start, span.stop, asked):
            yield self.classifier.votes(logits)
            self.tick(len(span))

    def _logits(
        self, start: int, stop: int, asked: tuple[int, ...], noise: Noise | None = None
    ) -> Iterator[Tensor]:
        """[S, 1, C] of one target after another."""
        stream, noise = self.question.stream, noise or self.question.noise
        assert isinstance(stream, FewStream)
        with self.asking():
            drawn = stream.added(start, stop, self.known.around.n, noise, self.device)
            nodes = self.nodes[list(asked)]
            common = Common(self.known, nodes, stop - start, *drawn)
            for place, node in enumerate(nodes):
                near = Gathered(self.known, node)
                lost = stream.lost(start, stop, near.columns[:-1], noise)
                yield Few(common, near, ~lost, place)()


class Common:
    """What the samples of a span attach, whoever the target is."""

    def __init__(self, known: Prepared, nodes: Tensor, samples: int, sample: Tensor, entry: Tensor) -> None:
        self.known, self.nodes, self.samples = known, nodes, samples
        there = torch.zeros(known.around.n, dtype=torch.bool, device=entry.device)
        there[entry] = True
        self.columns = there.nonzero()[:, 0]
        self.number = torch.where(there, there.cumsum(0) - 1, -1)  # of each node among the columns
        self.sample, self.column = sample, self.number[entry]
        self.count = torch.bincount(sample, minlength=samples)
        self.matrix = self._matrix(sample, self.column, samples)
        self.far = {i: self._far(i, sent) for i, sent in known.sent.items()}
        self.sums = {i: self.matrix @ far for i, far in self.far.items()}
        split = torch.split(self.columns, room(NODES, entry.device))
        self.parts = [unlinked(known, torch.cat([part, nodes])) for part in split]

    def _matrix(self, row: Tensor, column: Tensor, rows: int) -> Tensor:
        """[rows, columns]: 1 where a sample attaches a node."""
        return compressed(row, column, (rows, len(self.columns)), self.known.around.degree.dtype)

    def _far(self, i: int, sent: Sent) -> Tensor:
        """[columns, k]: what each of them sends in a first layer."""
        layer = self.known.plan.steps[i].layer
        assert layer is not None
        return layer.payload(self.known.around, sent, self.nodes[:1]).far[self.columns]

    def second(self, i: int, place: int) -> Tensor:
        """[columns, k]: what each of them sends to the target at this place once it is attached."""
        step, others = self.known.plan.steps[i], len(self.nodes)
        assert step.layer is not None
        sent = []
        for part in self.parts:
            width = part.around.n - others
            here = torch.tensor([width + place], device=self.columns.device)
            states = step.layer.send(part.near(here, None)[step.inputs[0]])
            sent.append(step.layer.payload(part.around, states, here).far[0, :width])
        return torch.cat(sent)

    def without(self, nodes: Tensor) -> tuple[Tensor, Tensor, dict[int, Tensor]]:
        """(columns of these nodes, how many each sample attaches of the others, sums over the others by step)."""
        out = self.number[nodes]
        out = out[out >= 0]
        never = torch.zeros(len(self.columns), dtype=torch.bool, device=out.device)
        never[out] = True
        wrong = never[self.column]
        if not bool(wrong.any()):
            return out, self.count, self.sums
        rows, place = torch.unique(self.sample[wrong], return_inverse=True)
        count = self.count.index_put((rows,), -torch.bincount(place), accumulate=True)
        again = torch.full_like(self.count, -1)
        again[rows] = torch.arange(len(rows), device=rows.device)
        kept = (again[self.sample] >= 0) & ~wrong
        few = self._matrix(again[self.sample[kept]], self.column[kept], len(rows))
        return out, count, {i: self.sums[i].index_copy(0, rows, few @ far) for i, far in self.far.items()}


class Few:
    """The logits of one target in all samples of a span."""

    def __init__(self, common: Common, near: Gathered, stayed: Tensor, place: int) -> None:
        """`stayed` bool[S, degree]: which of the target's neighbours are still there."""
        self.common, self.near, self.place = common, near, place
        self.stayed = stayed.to(common.known.around.degree.dtype)
        self.out, added, self.sums = common.without(near.columns)
        self.count = (added + stayed.sum(dim=1)).to(self.stayed.dtype)[:, None]

    def __call__(self) -> Tensor:
        """[S, 1, C]."""
        logits = own_states(self.near.known, self.near.node, self._first, self._second)
        return logits.expand(self.common.samples, *logits.shape[-2:])

    def _first(self, i: int, layer: Layer, targets: Sent) -> Tensor:
        return self._own(i, layer, targets, self.sums[i])

    def _second(self, i: int, layer: Layer, targets: Sent) -> Tensor:
        far = self.common.second(i, self.place) if len(self.common.columns) else self.near.tables[i][0][:0]
        return self._own(i, layer, targets, self.common.matrix @ far.index_fill(0, self.out, 0.0))

    def _own(self, i: int, layer: Layer, targets: Sent, sums: Tensor) -> Tensor:
        total = sums + self.stayed @ self.near.tables[i][0][:-1]
        return layer.own(total[:, None], self.count, targets, self.near.loops, None)


def unlinked(known: Prepared, columns: Tensor) -> Prepared:
    """The same states at these nodes alone, none of which is a neighbour of the target."""
    around, none = known.around, known.around.edge_index[:, :0]
    bare = compressed(none[0], none[1], (len(columns), len(columns)), around.degree.dtype)
    return confined(known, columns, Surroundings(none, bare, around.degree[columns], around.loops[columns]))
