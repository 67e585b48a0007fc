"""The classifier itself, asked about one noisy graph (or row) at a time: what every faster way is held against."""

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.asking.nearby import Nearby
from unswayed.sampling.engines.engine import classifier_of
from unswayed.sampling.engines.machine.cores import full_precision
from unswayed.sampling.engines.machine.room import with_patience
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.ways import way
from unswayed.sampling.inputs import Graph
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout, sample_numbers
from unswayed.sampling.structures import Layout, layout_of, noisy
from unswayed.theory.noise import Noise

LATEST = 2  # draws that are kept: a probe asks about the same noise around several targets


class Features:
    """The features of the graph that was last asked about, on the device, moved there once."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._kept: tuple[Graph, Tensor] | None = None

    def of(self, graph: Graph) -> Tensor | None:
        """Those of this graph."""
        if graph.x is None:
            return None
        kept = self._kept
        if kept is None or kept[0] is not graph:
            kind = self.question.dtype if graph.x.is_floating_point() else None
            self._kept = kept = (graph, graph.x.to(device=self.question.device, dtype=kind))
        return kept[1]


class Lent:
    """Copies of features that several answers read, and whether any of them wrote to one."""

    def __init__(self) -> None:
        self._copies: list[tuple[Tensor, Tensor]] = []

    def of(self, features: Tensor) -> Tensor:
        """A copy, the same for the same features, as a tensor of its own each time."""
        if not self._copies or self._copies[-1][0] is not features:
            self._copies.append((features, features.clone()))
        return self._copies[-1][1].detach()

    @property
    def spoilt(self) -> bool:
        """Whether a copy was written to, by what torch counts or by what is in it."""
        return any(copy._version or not _same(copy, features) for features, copy in self._copies)


def _same(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())


class Alone:
    """One answer at a time, from a batch of one: no answer is remembered, rewritten or shared.

    Nothing is left out either, but of a large graph what a recognised module cannot hear (see `nearby`).
    """

    def __init__(self, question: Question, classifier: Classifier | None = None) -> None:
        self.question, self.device = question, torch.device(question.device)
        self.classifier = classifier or classifier_of(question)
        self.nearby = Nearby.of(question)
        self.seconds: float | None = None  # that one graph takes, the best so far
        self._layout: tuple[int, Layout | SparseLayout] | None = None
        self._features = Features(question)
        self._lent: Lent | None = None
        self._drawn: dict[Any, tuple[Tensor, Tensor]] = {}
        if classifier is None and self.classifier.style == "dense":
            find_form(self.classifier, lambda: self.answer(0, 0))
        if self.nearby is not None and not self.as_traced:
            self.nearby = None

    @cached_property
    def as_traced(self) -> bool:
        """Whether a call takes the way through the module's own code that a trace of it shows; not where there is none."""
        model = self.classifier.model
        try:
            with self.classifier.evaluation():
                shown = way(model, lambda: recognise(model))
        except Unsupported:
            return False
        return shown == way(model, lambda: self.answer(0, 0))

    def answer(self, sample: int, target: int, noise: Noise | None = None) -> Tensor:
        """The answer to one sample for the target at this position: logits [classes], or a label without dimensions."""
        with self.classifier.evaluation(), full_precision():
            if self.classifier.style == "bits":
                return self.classifier.bits(self._row(sample, target, noise))[0]
            layout = self.layout(target)
            edges = layout.edges(self._flips(layout, sample, target, noise))
            return self.about(self.classifier, layout.graph, edges, self.node(target))

    def answers(self, samples: range, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes], or labels without the last dimension.

        One copy of the features does for all of them, unless an answer has written to it.
        """

        def ask() -> Tensor:
            rows = [torch.stack([self.answer(s, t, noise) for s in samples]) for t in targets]
            return torch.stack(rows, dim=1)

        self._lent = Lent()
        try:
            said = ask()
            spoilt = self._lent.spoilt
        finally:
            self._lent = None
        return ask() if spoilt else said

    def about(self, classifier: Classifier, graph: Graph, edges: Tensor, node: Tensor | None) -> Tensor:
        """The answer to one graph with these edges; at these nodes of it, where nodes are classified."""
        if self.nearby is not None and node is not None:
            graph, edges, node = self.nearby.part(graph, edges, node)
        begin = time.perf_counter()
        out = with_patience(self.device, lambda: classifier.logits(graph, self._constant(graph), edges, 1))
        took = time.perf_counter() - begin
        self.seconds = took if self.seconds is None else min(took, self.seconds)
        return out[0] if node is None else out[node]

    def node(self, target: int) -> Tensor | None:
        """The node that is classified for the target at this position; None where it is the whole graph."""
        nodes = self.question.threat.nodes
        return None if nodes is None else nodes[target].to(self.device)

    def layout(self, target: int) -> Layout | SparseLayout:
        """The layout of the graph that votes for this target; the last one is kept."""
        which = 0 if self.question.threat.together else target
        if self._layout is None or self._layout[0] != which:
            self._layout = (which, layout_of(self.question, which))
        return self._layout[1]

    def _flips(
        self, layout: Layout | SparseLayout, sample: int, target: int, noise: Noise | None
    ) -> tuple[Tensor, Tensor]:
        if isinstance(layout, SparseLayout):
            return sample_numbers(sample, sample + 1)
        return self._draw(sample, layout.drawn, target, noise)

    def _draw(
        self, sample: int, entries: int, target: int, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        wanted = (sample, entries, self.question.key_of(target), noise or self.question.noise)
        if wanted not in self._drawn:
            if len(self._drawn) == LATEST:
                self._drawn.clear()
            self._drawn[wanted] = self.question.flips(sample, sample + 1, *wanted[1:])
        return self._drawn[wanted]

    def _row(self, sample: int, target: int, noise: Noise | None) -> Tensor:
        clean = self.question.threat.clean(target).to(self.device)
        return noisy(clean, self._draw(sample, clean.numel(), target, noise))

    def _constant(self, graph: Graph) -> Tensor | None:
        """A copy of the graph's features on the device: whatever the classifier does to it, the next answer has another, or asks again."""
        if (x := self._features.of(graph)) is None:
            return None
        return x.clone() if self._lent is None else self._lent.of(x)


def find_form(classifier: Classifier, ask: Callable[[], object]) -> None:
    """A dense module is asked about one graph as [n, F], [n, n] where it takes that, else as a batch of one."""
    try:
        ask()
    except Exception:  # whatever a module raises on a shape it does not take
        classifier.one_by_one_form = "stacked"
