"""Rows of large graphs to which few entries are added: what a sample costs follows what it changes, not the size of the graph.

Of all nodes only those matter that some sample attaches, each with the state that it has while attached to the target, and the target's
own neighbours. What is there is added up; nothing is counted first and taken away again.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.drawing import FewStream
from unswayed.sampling.engines.engine import Elsewhere, Read, Said, spans
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.layers import Layer, Sent
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.surroundings import Surroundings, compressed, entries_of
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.engines.rows.kept import Gathered, confined, free_plan, runs
from unswayed.sampling.engines.rows.row import Prepared, own_states
from unswayed.sampling.question import Question
from unswayed.theory.noise import Noise

DRAWN = {"cpu": 2**22, "cuda": 2**26}  # entries that are added in the samples held at a time
WORDS = {"cpu": 2**19, "cuda": 2**26}  # of noise for the targets' own neighbours that are drawn at a time
TOGETHER = 4  # targets for which the states of attached nodes are computed at a time …
NODES = {"cpu": 2**13, "cuda": 2**20}  # … and how many states


def few_plan(model: nn.Module) -> Steps:
    """The plan of a model of two layers of sums that do not couple; otherwise Unsupported."""
    plan = free_plan(model)
    if any(isinstance(layer, Attention) for layer in plan.rounds.values()):
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

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        each = self.question.noise.p_add * self.known.around.n, len(self.known.sent) * self.known.width / 8
        for span in spans(start, stop, room(DRAWN, self.device) / max(1.0, *each)):
            for place, logits in enumerate(self._logits(span, asked, noise or self.question.noise)):
                yield span, [place], read(logits)

    def _logits(self, span: range, asked: tuple[int, ...], noise: Noise) -> Iterator[Tensor]:
        """[S, 1, C] of one target after another."""
        stream, nodes = self.question.stream, self.nodes[list(asked)]
        assert isinstance(stream, FewStream)
        drawn = stream.added(span.start, span.stop, self.known.around.n, noise, self.device)
        common = Common(self.known, nodes, len(span), *drawn)
        for run in runs(self.known.around, nodes, room(WORDS, self.device) // len(span)):
            near = Gathered(self.known, nodes[run.start : run.stop])
            stayed = ~stream.lost(span.start, span.stop, near.columns[: near.nobody], noise)
            for place in run:
                yield Few(common, near, stayed, place, place - run.start)()


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
        self.together = max(1, min(TOGETHER, len(nodes)))
        split = torch.split(self.columns, max(1, room(NODES, entry.device) // self.together))
        self.parts = [unlinked(known, torch.cat([part, nodes])) for part in split]
        self.seconds: dict[int, tuple[int, Tensor]] = {}

    def _matrix(self, row: Tensor, column: Tensor, rows: int) -> Tensor:
        """[rows, columns]: 1 where a sample attaches a node."""
        return compressed(row, column, (rows, len(self.columns)), self.known.around.degree.dtype)

    def _far(self, i: int, sent: Sent) -> Tensor:
        """[columns, k]: what each of them sends in a first layer."""
        layer = self.known.plan.rounds[i]
        return layer.payload(self.known.around, sent, self.nodes[:1]).far[self.columns]

    def second(self, i: int, place: int) -> Tensor:
        """[columns, k]: what each of them sends to the target at this place once it is attached.

        Computed for a few targets at a time, so that what all of them read comes from memory once.
        """
        first = place - place % self.together
        if i not in self.seconds or self.seconds[i][0] != first:
            places = range(first, min(first + self.together, len(self.nodes)))
            self.seconds[i] = first, torch.cat([self._sent(i, part, places) for part in self.parts], dim=1)
        return self.seconds[i][1][place - first]

    def _sent(self, i: int, part: Prepared, places: range) -> Tensor:
        """[places, columns of the part, k]: the same of one part, in which the targets come last."""
        plan, width = self.known.plan, part.around.n - len(self.nodes)
        here = torch.arange(width + places.start, width + places.stop, device=self.columns.device)
        states = plan.rounds[i].send(part.near(here, None)[plan.steps[i].inputs[0]])
        return plan.rounds[i].payload(part.around, states, here).far[:, :width]

    def without(self, nodes: Tensor) -> tuple[Tensor, Tensor, dict[int, Tensor]]:
        """(columns of these nodes, how many each sample attaches of the others, sums over the others by step)."""
        out = self.number[nodes]
        out = out[out >= 0]
        never = torch.zeros(len(self.columns), dtype=torch.bool, device=out.device)
        never[out] = True
        wrong = never[self.column].nonzero()[:, 0]
        if not len(wrong):
            return out, self.count, self.sums
        rows, place = torch.unique_consecutive(self.sample[wrong], return_inverse=True)
        count = self.count.index_put((rows,), -torch.bincount(place), accumulate=True)
        which, column = entries_of(self.matrix, rows)
        kept = ~never[column]
        few = self._matrix(which[kept], column[kept], len(rows))
        return out, count, {i: self.sums[i].index_copy(0, rows, few @ far) for i, far in self.far.items()}


class Few:
    """The logits of one target in all samples of a span."""

    def __init__(self, common: Common, near: Gathered, stayed: Tensor, place: int, at: int) -> None:
        """`stayed` bool[S, neighbours]: which of those in `near` are still there; the target is at `place` of all, `at` of these."""
        self.common, self.near, self.place = common, near, place
        self.node, self.links = near.nodes[at : at + 1], near.links(at)
        self.loops = near.known.around.loops[self.node]
        self.stayed = stayed[:, self.links].to(common.known.around.degree.dtype)
        known = torch.cat([near.columns[self.links], near.columns[self.node]])
        self.out, added, self.sums = common.without(known)
        self.count = (added + self.stayed.sum(dim=1))[:, None]

    def __call__(self) -> Tensor:
        """[S, 1, C]."""
        logits = own_states(self.near.known, self.node, self._own)
        return logits.expand(self.common.samples, *logits.shape[-2:])

    def _own(self, i: int, layer: Layer, targets: Sent) -> Tensor:
        if i in self.sums:
            sums = self.sums[i]
        else:
            far = (
                self.common.second(i, self.place) if len(self.common.columns) else self.near.tables[i][0][:0]
            )
            sums = self.common.matrix @ far.index_fill_(0, self.out, 0.0)
        total = sums + self.stayed @ self.near.tables[i][0][self.links]
        return layer.own(total[:, None], self.count, targets, self.loops, None)


def unlinked(known: Prepared, columns: Tensor) -> Prepared:
    """The same states at these nodes alone, none of which is a neighbour of the target; only what `near` reads."""
    around, none, steps = known.around, known.around.edge_index[:, :0], known.plan.steps
    read = {k for i in known.near_steps if steps[i].layer is None for k in steps[i].inputs}
    bare = compressed(none[0], none[1], (len(columns), len(columns)), around.degree.dtype)
    here = copy.copy(known)
    here.rest, here.sent = {i: t for i, t in known.rest.items() if i in read}, {}
    return confined(here, columns, Surroundings(none, bare, around.degree[columns], around.loops[columns]))
