"""The generic engine: any classifier, asked about block-diagonal batches of noisy graphs exactly as it is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.sampling import soundness
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.batching import fastest, give_up, is_out_of_memory
from unswayed.sampling.engines.firstlayer import FirstLayer
from unswayed.sampling.engines.gathering import indexing
from unswayed.sampling.inputs import Graph
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout, sample_numbers
from unswayed.sampling.structures import Layout, count_labels, groups_of, layout_of, noisy
from unswayed.sampling.threat import AllPairs, Bits, Pairs, Row

IntArray = npt.NDArray[np.int64]
Flips = tuple[Tensor, Tensor]

SPAN = 2**26  # bits of noise held at a time
SPARSE_SPAN = 2**12  # samples whose numbers stand for noise that is drawn batch by batch
CHANGED = 64  # entries in which the second structure that a classifier is tried on differs on purpose
TRIED = 32  # rows of bits that a classifier is tried on, alone and together
DENSE_TRIAL = 2**20  # entries up to which a trial draws every one of them
UNTIMED = 32  # samples up to which finding a batch size costs more than it saves


class GenericEngine:
    """Asks the classifier itself about every noisy structure; whatever it answers is what gets counted."""

    name: ClassVar[str] = "generic"

    def __init__(self, question: Question) -> None:
        self.question = question
        self.device = torch.device(question.device)
        self.classifier = Classifier(
            question.model, question.threat, question.classes, question.device, question.dtype
        )
        self.first_layer = FirstLayer(self.classifier.model)
        self.budget: float | None = None  # nodes plus edges of a batch, once timed
        self.tried = 0  # samples there were when it was timed: with many more, larger batches may be faster
        self._features: tuple[Graph, Tensor] | None = None
        self._repeated: tuple[Graph, int, Tensor] | None = None
        self._near: dict[tuple[int, ...], tuple[Layout, Tensor]] = {}
        self.restricts = False
        self._check()
        assert self.classifier.classes is not None
        self.classes: int = self.classifier.classes

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of samples start .. stop - 1 for the targets at these positions."""
        asked = tuple(range(len(self.question.threat))) if targets is None else tuple(targets)
        counts = np.zeros((len(asked), self.classes), dtype=np.int64)
        place = {target: i for i, target in enumerate(asked)}
        with self.classifier.evaluation():
            for low, high in self._spans(start, stop):
                shared: Flips | None = None
                for group in groups_of(self.question, asked):
                    if self.question.shared and shared is None:
                        widest = max(self._drawn(target) for target in asked)
                        shared = self._draw(low, high, widest, None)
                    rows = [place[target] for target in group]
                    counts[rows] += self._count_group(low, high, group, shared)
        return counts

    def answers(self, start: int, stop: int, targets: tuple[int, ...]) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from (labels: without the last dimension)."""
        with self.classifier.evaluation():
            groups = groups_of(self.question, targets)
            return torch.cat([self._answer_group(start, stop, group) for group in groups], dim=1)

    def _answer_group(self, start: int, stop: int, group: tuple[int, ...]) -> Tensor:
        flips = self._draw(start, stop, self._drawn(group[0]), self.question.key_of(group[0]))
        return self._in_batches(*self._place(group), flips, partial(self._answers, self.classifier))

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        widest = SPAN // SPARSE_SPAN if self.question.sparse else int(self.question.threat.entries.max()) + 1
        step = max(4, SPAN // widest // 4 * 4)
        for low in range(start, stop, step):
            yield low, min(low + step, stop)

    def _drawn(self, target: int) -> int:
        """Words a sample takes: a row draws one for the target itself too; a sparse sample is drawn later."""
        threat = self.question.threat
        if self.question.sparse:
            return 1
        return int(threat.entries[target]) + isinstance(threat, Row)

    def _draw(self, low: int, high: int, entries: int, key: int | None) -> Flips:
        question = self.question
        if question.sparse:
            return sample_numbers(low, high)
        return question.stream.flips(low, high, entries, question.noise, target=key, device=self.device)

    def _count_group(self, low: int, high: int, group: tuple[int, ...], shared: Flips | None) -> IntArray:
        width = self._drawn(group[0])
        if shared is None:
            flips = self._draw(low, high, width, self.question.key_of(group[0]))
        else:
            flips = (shared[0][:, :width], shared[1][:, :width])
            flips = (flips[0], flips[0]) if shared[0] is shared[1] else flips
        if isinstance(self.question.threat, Bits):
            return count_labels(self._ask_bits(group[0], flips), self.classes)
        return count_labels(self._in_batches(*self._place(group), flips, self._ask), self.classes)

    def _place(self, group: tuple[int, ...]) -> tuple[Layout | SparseLayout, Tensor | None]:
        """The graph that votes for these targets, cut down to what can matter to them, and where they are in it."""
        nodes = self._nodes(group)
        if not self.restricts or nodes is None:
            return layout_of(self.question, group[0]), nodes
        if group not in self._near:
            layout = layout_of(self.question, group[0])
            assert isinstance(layout, Layout)
            self._near[group] = layout.around(nodes)
        return self._near[group]

    def _in_batches(
        self,
        layout: Layout | SparseLayout,
        nodes: Tensor | None,
        flips: Flips,
        ask: Callable[[Layout | SparseLayout, Flips, Tensor | None], Tensor],
    ) -> Tensor:
        """What `ask` says of all these samples, as many at a time as is fastest, fewer where memory runs out."""
        size = self._batch_size(layout, flips, nodes)
        said, begin = [], 0
        while begin < len(flips[0]):
            try:
                said.append(ask(layout, part(flips, begin, begin + size), nodes))
                begin += size
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if size == 1:
                    raise give_up() from error
                size //= 2
                self.budget, self.tried = size * layout.size(self.question), len(flips[0])
        return torch.cat(said)

    def _nodes(self, group: tuple[int, ...]) -> Tensor | None:
        threat = self.question.threat
        nodes = threat.nodes if isinstance(threat, Row | AllPairs | Pairs) else None
        return None if nodes is None else nodes[list(group)].to(self.device)

    def _ask(self, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None) -> Tensor:
        """int64[samples, targets]: the labels of these noisy graphs."""
        return self.classifier.votes(self._answers(self.classifier, layout, flips, nodes))

    def _answers(
        self, classifier: Classifier, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None
    ) -> Tensor:
        """Checked answers [samples, targets, classes] (labels: without the last dimension)."""
        count = len(flips[0])
        graph = layout.graph
        features, repeated = self._constant(graph), self._repeat(graph, count)
        first_layer = self.first_layer if classifier is self.classifier else FirstLayer(None)
        with first_layer.known(features, repeated, count), indexing(classifier.model, self.device):
            out = classifier.logits(graph, repeated, layout.edges(flips), count)
        if nodes is None:
            return out[:, None]
        return out.view(count, graph.num_nodes, *out.shape[1:])[:, nodes]

    def _constant(self, graph: Graph) -> Tensor | None:
        """The graph's features on the device, moved there once."""
        if graph.x is None:
            return None
        if self._features is None or self._features[0] is not graph:
            kind = self.question.dtype if graph.x.is_floating_point() else None
            self._features = (graph, graph.x.to(device=self.device, dtype=kind))
        return self._features[1]

    def _repeat(self, graph: Graph, count: int) -> Tensor | None:
        """The features of `count` copies of the graph; kept while the size stays, since the first layer seldom reads it."""
        if (x := self._constant(graph)) is None:
            return None
        kept = self._repeated
        if kept is None or kept[0] is not graph or kept[1] < count or kept[2]._version != 0:
            self._repeated = kept = (graph, count, x.repeat(count, *[1] * (x.ndim - 1)))
        return kept[2][: count * graph.num_nodes]  # a smaller last batch needs no copy of its own

    def _ask_bits(self, target: int, flips: Flips) -> Tensor:
        rows = noisy(self.question.threat.clean(target).to(self.device), flips)
        size = self.question.batch_size or max(1, 2**22 // max(1, rows.shape[1]))
        size = size if self.classifier.batched else 1
        parts = [self.classifier.votes(self.classifier.bits(chunk)) for chunk in torch.split(rows, size)]
        return torch.cat(parts)[:, None]

    def _batch_size(self, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None) -> int:
        """How many noisy graphs go into one call."""
        if not self.classifier.batched:
            return 1
        if self.question.batch_size is not None:
            return self.question.batch_size
        drawn, cost = len(flips[0]), layout.size(self.question)
        if self.budget is None or self._too_few_were_tried(drawn, cost):
            if drawn <= UNTIMED:
                width = 1 if layout.graph.x is None else layout.graph.x[0].numel()
                few, room = (8, 2**27) if self.device.type == "cpu" else (64, 2**31)
                return max(
                    1, min(few, int(room / (cost * width)))
                )  # messages as wide as the features must fit
            best = fastest(lambda size: self._time(layout, part(flips, 0, size), nodes), self.device, drawn)
            self.budget, self.tried = best * cost, drawn
        return max(1, min(drawn, int(self.budget / cost)))

    def _too_few_were_tried(self, drawn: int, cost: float) -> bool:
        """Whether the batch size was found among few samples, took most of them, and could now be larger."""
        assert self.budget is not None
        return drawn > 2 * self.tried and 2 * round(self.budget / cost) >= self.tried

    def _time(self, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None) -> None:
        self._ask(layout, flips, nodes)

    def _check(self) -> None:
        """Refuse an unsound classifier, and find out whether it may be asked about several graphs at once."""
        soundness.check_modules(self.classifier)
        with self.classifier.evaluation():
            if isinstance(self.question.threat, Bits):
                self._check_bits()
            else:
                self._check_graphs()

    def _check_bits(self) -> None:
        drawn = self._draw(0, TRIED, self._drawn(0), self.question.key_of(0))
        rows = noisy(self.question.threat.clean(0).to(self.device), second_changed(drawn))

        def alone(classifier: Classifier, i: int) -> Tensor:
            return classifier.bits(rows[i : i + 1])

        first = soundness.check_repeatable(self.classifier, alone)
        answers = [first, *(alone(self.classifier, i) for i in range(1, TRIED))]
        soundness.check_batching(self.classifier, answers, lambda: self.classifier.bits(rows))

    def _check_graphs(self) -> None:
        target = int(self.question.threat.entries.argmax())  # a graph of one node would show nothing
        layout, flips = self._trial(target)
        soundness.check_edge_data(self.classifier, layout.graph)
        nodes = self._nodes((target,))

        def alone(classifier: Classifier, i: int) -> Tensor:
            return self._answers(classifier, layout, part(flips, i, i + 1), nodes)

        if self.classifier.style == "dense":
            self._find_dense_form(alone)
        first = soundness.check_repeatable(self.classifier, alone)
        answers = [first, alone(self.classifier, 1)]
        soundness.check_batching(
            self.classifier, answers, lambda: self._answers(self.classifier, layout, flips, nodes)
        )
        self.restricts = self._may_restrict(layout, nodes, flips, torch.cat(answers))

    def _may_restrict(
        self, layout: Layout | SparseLayout, nodes: Tensor | None, flips: Flips, answers: Tensor
    ) -> bool:
        """Whether parts of the graph that listed pairs never join to a target can be left out: a network that sees no
        `batch` treats them as it treats the other graphs of a batch, and says the same without them."""
        ours = self.classifier
        listed = isinstance(self.question.threat, Pairs) and isinstance(layout, Layout) and nodes is not None
        separate = ours.batched and ours.style == "edges" and not ours.takes_batch
        if not (listed and separate and isinstance(ours.model, torch.nn.Module)):
            return False
        near, there = layout.around(nodes)  # type: ignore[union-attr, arg-type]
        said = self._answers(ours, near, flips, there)
        return said.shape == answers.shape and torch.allclose(
            said.double(), answers.double(), rtol=1e-4, atol=1e-4, equal_nan=True
        )

    def _trial(self, target: int) -> tuple[Layout | SparseLayout, Flips]:
        """Two structures to try the classifier on, made to differ: under little noise two samples may be equal."""
        question, key = self.question, self.question.key_of(target)
        if question.sparse and question.threat.entries[target] > DENSE_TRIAL:
            return layout_of(question, target), sample_numbers(0, 2)
        layout = layout_of(replace(question, draws="dense"), target)
        drawn = question.stream.flips(0, 2, layout.drawn, question.noise, target=key, device=self.device)
        return layout, second_changed(drawn)

    def _find_dense_form(self, alone: object) -> None:
        """A dense module is asked about one graph as [n, F], [n, n] where it takes that, else as a batch of one."""
        try:
            alone(self.classifier, 0)  # type: ignore[operator]
        except Exception:  # whatever a module raises on a shape it does not take
            self.classifier.one_by_one_form = "stacked"


def part(flips: Flips, begin: int, end: int) -> Flips:
    """The rows begin .. end - 1 of both; still one tensor where they were one."""
    from_zero, from_one = flips
    first = from_zero[begin:end]
    return first, (first if from_one is from_zero else from_one[begin:end])


def second_changed(flips: Flips) -> Flips:
    """The flips with the first entries of the second sample turned round, so that it is not the first sample."""
    for flip in flips[:1] if flips[0] is flips[1] else flips:
        flip[1, :CHANGED].logical_not_()
    return flips
