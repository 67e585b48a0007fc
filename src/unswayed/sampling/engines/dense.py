"""The dense engine: exact votes for graph classifiers when every pair of nodes is noisy, by batched adjacency matrices."""

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines import philox_triton
from unswayed.sampling.engines.cores import cores, full_precision
from unswayed.sampling.engines.counting import Counting
from unswayed.sampling.engines.matrices import Matrices
from unswayed.sampling.engines.obstacles import Elsewhere
from unswayed.sampling.engines.plan import Steps
from unswayed.sampling.engines.recognise import recognise
from unswayed.sampling.engines.rewriting import diagonal, frozen
from unswayed.sampling.engines.room import room, within_memory
from unswayed.sampling.inputs import Graph, pair_entries
from unswayed.sampling.question import Question
from unswayed.sampling.structures import noisy
from unswayed.theory.noise import Noise

# of one chunk: rows of states, and numbers of its adjacency matrices; a few times a core's cache, where the cost of calling
# an operation and of leaving the cache balance, or some of a card's memory
ROWS = {"cpu": 6144, "cuda": 2**22}
NUMBERS = {"cpu": 2**20, "cuda": 2**28}
SPAN = {"cpu": 2**26, "cuda": 2**31}  # bits of noise held at a time
SHARES = 4  # runs of samples for each worker, so that none waits long for another
FEWEST = 64  # samples of a run at the least


def graph_plan(model: nn.Module) -> Steps:
    """The plan of a model that reads out whole graphs; otherwise Unsupported."""
    plan = recognise(model)
    pooled: list[bool] = []
    for step in plan.steps:
        inputs = {pooled[i] for i in step.inputs}
        if len(inputs) > 1 or (step.kind in ("conv", "pool", "whole") and True in inputs):
            raise Unsupported(f"The step '{step.name}' mixes states of nodes and of whole graphs.")
        pooled.append(step.kind == "pool" or True in inputs)
    if not pooled[-1]:
        raise Unsupported("The module's output is not pooled over the nodes of each graph.")
    return plan


class DenseEngine(Counting):
    """Gives the generic engine's votes, but for logits that tie within rounding, for `AllPairs(graphs)`.

    Every graph has chunks of samples of its own size, so that graphs of 4 and of 600 nodes both fill the cache.
    """

    name: ClassVar[str] = "dense"

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if the model is understood step by step, otherwise the obstacle in words."""
        graphs = question.threat.graphs_view()
        if graphs is None:
            return Elsewhere("the threat is not AllPairs(graphs)")
        if not isinstance(question.model, nn.Module):
            return "the classifier is not a torch module"
        if any(graph.x is None for graph in graphs):
            return "a graph has no features"
        try:
            graph_plan(question.model)
        except Unsupported as obstacle:
            return str(obstacle)
        return None

    def __init__(self, question: Question) -> None:
        graphs = question.threat.graphs_view()
        assert graphs is not None
        self.question, self.threat, self.graphs = question, question.threat, graphs
        self.device = torch.device(question.device)
        if self.device.type == "cuda":
            philox_triton.register()
        self.classifier = Classifier(
            question.model, question.threat, question.classes, question.device, question.dtype
        )
        with self.classifier.evaluation():
            self.plan = frozen(graph_plan(self.classifier.model))
        parameters = self.classifier.model.parameters()
        self.kind = question.dtype or next((p.dtype for p in parameters), torch.float32)
        self.known: dict[int, Noisy] = {}
        self.places: dict[int, Tensor] = {}
        self.classes = self.answers(0, 1, (0,)).shape[-1]

    def _settle(self) -> None:
        graphs = self.question.threat.graphs_view()
        assert graphs is not None
        self.threat, self.graphs, self.known, self.places = self.question.threat, graphs, {}, {}

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = tuple(range(len(self.threat))) if targets is None else tuple(targets)
        widest = max(1, int(self.threat.entries[list(asked)].max(initial=0)))
        workers = torch.get_num_threads() if self.device.type == "cpu" else 1

        def ask() -> Tensor:
            spans = _spans(start, stop, room(SPAN, self.device) // widest // workers, workers)
            with self.classifier.evaluation(), torch.no_grad(), full_precision(), cores(self.device) as on:
                none = torch.empty((0, len(asked)), dtype=torch.int64, device=self.device)
                return torch.cat([none, *on.map(lambda span: self._label_span(asked, widest, span), spans)])

        return within_memory(self.device, ask, self.known.clear)

    def _label_span(self, asked: tuple[int, ...], widest: int, span: range) -> Tensor:
        """The labels of these samples: each worker draws the noise of its own, and a card is waited for once."""
        shared = self._draw(span, widest, None) if self.question.shared else None
        labels = torch.empty((len(span), len(asked)), dtype=torch.int64, device=self.device)
        for i, target in enumerate(asked):
            graph = self._noisy(target)
            drawn = shared or self._draw(span, graph.entries, self.question.key_of(target))
            labels[:, i] = self._labels(graph, drawn)
        return labels

    def _labels(self, graph: "Noisy", drawn: tuple[Tensor, Tensor]) -> Tensor:
        """int64[samples]: the labels of one graph's noisy versions, by chunks of about equal size."""
        chunks = -(-len(drawn[0]) // self._samples(graph.n))
        size = -(-len(drawn[0]) // chunks)
        zero = torch.split(drawn[0][:, : graph.entries], size)
        one = zero if drawn[0] is drawn[1] else torch.split(drawn[1][:, : graph.entries], size)
        return torch.cat([self.classifier.votes(graph.logits(pair)) for pair in zip(zero, one, strict=True)])

    def _samples(self, n: int) -> int:
        """How many noisy versions of a graph of n nodes are asked about at once."""
        return max(1, min(room(ROWS, self.device) // n, room(NUMBERS, self.device) // n**2))

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        with self.classifier.evaluation(), torch.no_grad(), full_precision():
            said = [self._answer_one(range(start, stop), target, noise) for target in targets]
            return torch.stack(said, dim=1)

    def _answer_one(self, span: range, target: int, noise: Noise | None) -> Tensor:
        graph = self._noisy(target)
        return graph.logits(self._draw(span, graph.entries, self.question.key_of(target), noise))

    def _draw(
        self, span: range, entries: int, key: int | None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        question = self.question
        return question.stream.flips(
            span.start, span.stop, entries, noise or question.noise, target=key, device=self.device
        )

    def _noisy(self, target: int) -> "Noisy":
        """Built once a graph; graphs of equal size share what is large."""
        if target not in self.known:
            graph, n = self.graphs[target], self.graphs[target].num_nodes
            if n not in self.places:
                self.places[n] = _places(n, self.device)
            self.known[target] = Noisy(self.plan, graph, self.places[n], self.kind, self.device)
        return self.known[target]


def _spans(start: int, stop: int, longest: int, workers: int) -> list[range]:
    """The samples in runs that start at multiples of four, several for each worker where there are enough samples."""
    size = -(-(stop - start) // (SHARES * workers)) if workers > 1 else stop - start
    size = max(4, min(longest, max(size, FEWEST)) // 4 * 4)
    edges = [start, *range(start // size * size + size, stop, size), stop]
    return [range(low, high) for low, high in pairwise(edges) if low < high]


def _places(n: int, device: torch.device) -> Tensor:
    """int64[n * n]: the entry of each pair in both directions; n(n-1)/2, one past the last, for a node and itself."""
    low = torch.tril_indices(n, n, offset=-1)
    place = torch.full((n, n), n * (n - 1) // 2)
    place[low[0], low[1]] = place[low[1], low[0]] = torch.arange(low.shape[1])
    return place.flatten().to(device)


class Noisy:
    """One graph and what is the same for all its noisy versions."""

    def __init__(
        self, plan: Steps, graph: Graph, places: Tensor, kind: torch.dtype, device: torch.device
    ) -> None:
        assert graph.x is not None
        n = graph.num_nodes
        self.plan, self.n, self.entries = plan, n, n * (n - 1) // 2
        self.x = graph.x.to(device=device, dtype=kind)
        self.clean = torch.zeros(self.entries, dtype=torch.bool, device=device)
        self.clean[pair_entries(graph.pairs).to(device)] = True
        looped, own = graph.loops.to(device), diagonal(plan)
        self.loops = torch.zeros((1, n), dtype=kind, device=device)
        self.loops[0, looped] = 1
        self.looped = bool(len(looped))
        self.places = places
        self.ends = [0.0] if own is None else [own, own + 1]  # values after the last entry
        if own is not None and len(looped):
            self.places = places.index_fill(0, looped * (n + 1), self.entries + 1)

    def adjacency(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, n, n]: the noisy graphs, with what the plan's layers expect on the diagonal."""
        vectors = noisy(self.clean, flips)
        values = self.x.new_empty((len(vectors), self.entries + len(self.ends)))
        # whole numbers convert several times faster than truth values
        values[:, : self.entries] = vectors.view(torch.uint8)
        for i, end in enumerate(self.ends):
            values[:, self.entries + i] = end
        return values.index_select(1, self.places).view(-1, self.n, self.n)

    def logits(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, C] of the graphs with these entries flipped."""
        around = Matrices(self.adjacency(flips), self.loops, self.looped)
        out = self.plan.evaluate(
            self.x[None], lambda layer, h: layer.over(layer.send(h), around), around.pool, around.average
        )
        return out.expand(len(around.adjacency), out.shape[-1])
