"""The generic engine: any classifier, asked about block-diagonal batches of noisy graphs exactly as it is."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from unswayed.sampling.classifier import Classifier
from unswayed.sampling.drawing import distinct
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.checked import Checked, Flips
from unswayed.sampling.engines.engine import spans
from unswayed.sampling.engines.machine.batching import fastest, give_up
from unswayed.sampling.engines.machine.room import Share
from unswayed.sampling.memory import is_out_of_memory
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout
from unswayed.sampling.structures import Layout, groups_of, noisy
from unswayed.sampling.threads import threads
from unswayed.theory.noise import Noise

SPAN = 2**26  # bits of noise held at a time
SPARSE_SPAN = 2**12  # samples whose numbers stand for noise that is drawn batch by batch
UNTIMED = 32  # samples up to which finding a batch size costs more than it saves


class GenericEngine(Checked):
    """Asks the classifier itself about every noisy structure; whatever it answers is what gets counted."""

    name = "generic"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.budget: float | None = None  # nodes plus edges of a batch, once timed
        self.share = Share()  # of a batch that fits into memory
        self.tried = 0  # samples there were when it was timed: with many more, larger batches may be faster
        self._check()
        assert self.classifier.classes is not None
        self.classes: int = self.classifier.classes

    @property
    def threads(self) -> str:
        """What the classifier's threads were timed to."""
        return self.classifier.threads.words

    def ask(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """The labels; the classifier times its threads batch by batch, and everything around it is small work for one."""
        with threads(1):
            return self.labels(start, stop, targets)

    @property
    def rate(self) -> float | None:
        """By the time that one graph took alone, while the classifier was checked."""
        if self.device.type != "cpu" or not self.alone.seconds:
            return None
        asked = tuple(range(len(self.question.threat)))
        return 1 / (self.alone.seconds * len(groups_of(self.question, asked)))

    def _settle(self) -> None:
        self.alone, self._near = Alone(self.question, self.classifier), {}

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = self._asked(targets)
        said = torch.empty((stop - start, len(asked)), dtype=torch.int64, device=self.device)
        place = {target: i for i, target in enumerate(asked)}
        with self.classifier.evaluation():
            for span in self._spans(start, stop):
                low, high = span.start, span.stop
                shared: Flips | None = None
                for group in groups_of(self.question, asked):
                    if self.question.shared and shared is None:
                        widest = max(self._drawn(target) for target in asked)
                        shared = self._draw(low, high, widest, None)
                    columns = [place[target] for target in group]
                    said[low - start : high - start, columns] = self._label_group(low, high, group, shared)
        return said

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from (labels: without the last dimension)."""
        with self.classifier.evaluation():
            groups = groups_of(self.question, targets)
            return torch.cat([self._answer_group(start, stop, group, noise) for group in groups], dim=1)

    def _answer_group(self, start: int, stop: int, group: tuple[int, ...], noise: Noise | None) -> Tensor:
        flips = self._draw(start, stop, self._drawn(group[0]), self.question.key_of(group[0]), noise)
        return self._in_batches(*self._place(group), flips, partial(self._answers, self.classifier))

    def _spans(self, start: int, stop: int) -> Iterator[range]:
        everyone = range(len(self.question.threat))
        widest = SPAN // SPARSE_SPAN if self.question.sparse else max(map(self._drawn, everyone))
        return spans(start, stop, SPAN / max(widest, 1))

    def _drawn(self, target: int) -> int:
        """Words a sample takes; a sparse sample is drawn later."""
        return 1 if self.question.sparse else self.question.threat.drawn(target)

    def _label_group(self, low: int, high: int, group: tuple[int, ...], shared: Flips | None) -> Tensor:
        width = self._drawn(group[0])
        if shared is None:
            flips = self._draw(low, high, width, self.question.key_of(group[0]))
        else:
            flips = (shared[0][:, :width], shared[1][:, :width])
            flips = (flips[0], flips[0]) if shared[0] is shared[1] else flips
        if self.classifier.style == "bits":
            return self._ask_bits(group[0], flips)
        back: Tensor | None = None
        if self.question.apart:
            flips, back = distinct(
                flips, self.question.threat.clean(group[0]).nonzero()[:, 0].to(self.device)
            )
        said = self._in_batches(*self._place(group), flips, self._ask)
        return said if back is None else said[back]

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
            some = max(1, int(size * self.share.part))
            try:
                some = self._trust(some, len(flips[0]), layout)
                said.append(ask(layout, part(flips, begin, begin + some), nodes))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if some == 1:
                    raise give_up() from error
                self.share.fell_short()
            else:
                begin += some
                self.share.went_well()
        return torch.cat(said)

    def _ask(self, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None) -> Tensor:
        """int64[samples, targets]: the labels of these noisy graphs."""
        said = self.classifier.votes(self._answers(self.classifier, layout, flips, nodes))
        self.tick(said.numel())
        return said

    def _answers(
        self, classifier: Classifier, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None
    ) -> Tensor:
        """Checked answers [samples, targets, classes] (labels: without the last dimension)."""
        return self._about(classifier, layout.graph, layout.edges(flips), len(flips[0]), nodes)

    def _ask_bits(self, target: int, flips: Flips) -> Tensor:
        rows = noisy(self.question.threat.clean(target).to(self.device), flips)
        size = self.question.batch_size or max(1, 2**22 // max(1, rows.shape[1]))
        size = self._trust_rows(min(size, len(rows)))
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
                # messages as wide as the features must fit
                return max(1, min(few, int(room / (cost * width))))
            best = fastest(lambda size: self._time(layout, part(flips, 0, size), nodes), self.device, drawn)
            self.budget, self.tried = best * cost, drawn
        return max(1, min(drawn, int(self.budget / cost)))

    def _too_few_were_tried(self, drawn: int, cost: float) -> bool:
        """Whether the batch size was found among few samples, took most of them, and could now be larger."""
        assert self.budget is not None
        return drawn > 2 * self.tried and 2 * round(self.budget / cost) >= self.tried

    def _time(self, layout: Layout | SparseLayout, flips: Flips, nodes: Tensor | None) -> None:
        self.classifier.votes(self._answers(self.classifier, layout, flips, nodes))


def part(flips: Flips, begin: int, end: int) -> Flips:
    """The rows begin .. end - 1 of both; still one tensor where they were one."""
    from_zero, from_one = flips
    first = from_zero[begin:end]
    return first, (first if from_one is from_zero else from_one[begin:end])
