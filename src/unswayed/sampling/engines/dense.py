"""The dense engine: exact votes for graph classifiers when every pair of nodes is noisy, by batched adjacency matrices."""

from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines import philox_triton
from unswayed.sampling.engines.cores import Cores, cores, full_precision
from unswayed.sampling.engines.layers import Layer
from unswayed.sampling.engines.recognise import Plan, recognise
from unswayed.sampling.inputs import Graph, pair_entries
from unswayed.sampling.question import Question
from unswayed.sampling.structures import count_labels
from unswayed.sampling.threat import AllPairs

IntArray = npt.NDArray[np.int64]

NUMBERS = {
    "cpu": 2**18,
    "cuda": 2**28,
}  # of the widest tensor of a chunk: a core's cache, or some of a card's memory
SPAN = {"cpu": 2**26, "cuda": 2**31}  # bits of noise held at a time


def graph_plan(model: nn.Module) -> Plan:
    """The plan of a model that reads out whole graphs; otherwise Unsupported."""
    plan = recognise(model)
    pooled: list[bool] = []
    for step in plan.steps:
        inputs = {pooled[i] for i in step.inputs}
        if len(inputs) > 1 or (step.kind in ("conv", "pool") and True in inputs):
            raise Unsupported(f"The step '{step.name}' mixes states of nodes and of whole graphs.")
        pooled.append(step.kind == "pool" or True in inputs)
    if not pooled[-1]:
        raise Unsupported("The module's output is not pooled over the nodes of each graph.")
    return plan


class DenseEngine:
    """Gives the generic engine's votes, but for logits that tie within rounding, for `AllPairs(graphs)`.

    Every graph has chunks of samples of its own size, so that graphs of 4 and of 600 nodes both fill the cache.
    """

    name: ClassVar[str] = "dense"

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if the model is understood step by step, otherwise the obstacle in words."""
        threat = question.threat
        if not isinstance(threat, AllPairs) or threat.nodes is not None:
            return "the threat is not AllPairs(graphs)"
        if not isinstance(question.model, nn.Module):
            return "the classifier is not a torch module"
        if any(graph.x is None for graph in threat.graphs):
            return "a graph has no features"
        try:
            graph_plan(question.model)
        except Unsupported as obstacle:
            return str(obstacle)
        return None

    def __init__(self, question: Question) -> None:
        assert isinstance(question.threat, AllPairs)
        self.question, self.threat, self.device = question, question.threat, torch.device(question.device)
        if self.device.type == "cuda":
            philox_triton.register()
        self.classifier = Classifier(
            question.model, question.threat, question.classes, question.device, question.dtype
        )
        with self.classifier.evaluation():
            self.plan = graph_plan(self.classifier.model)
        parameters = self.classifier.model.parameters()
        self.kind = question.dtype or next((p.dtype for p in parameters), torch.float32)
        with self.classifier.evaluation(), torch.no_grad():
            first = Noisy(self.plan, self.threat.graphs[0], self.kind, self.device)
            self.classes = int(
                first.logits(torch.zeros((1, first.entries), device=self.device) > 0).shape[-1]
            )

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of samples start .. stop - 1 for the targets at these positions."""
        asked = tuple(range(len(self.threat))) if targets is None else tuple(targets)
        counts = np.zeros((len(asked), self.classes), dtype=np.int64)
        widest = max(1, int(self.threat.entries[list(asked)].max(initial=0)))
        span = max(4, SPAN[self.device.type] // widest // 4 * 4)
        with self.classifier.evaluation(), torch.no_grad(), full_precision(), cores(self.device) as on:
            for low in range(start, stop, span):
                high = min(low + span, stop)
                shared = self._draw(low, high, widest, None) if self.question.shared else None
                for i, target in enumerate(asked):
                    entries = int(self.threat.entries[target])
                    drawn = shared or self._draw(low, high, entries, self.question.key_of(target))
                    counts[i] += self._count_one(drawn, target, on)
        return counts

    def answers(self, start: int, stop: int, targets: tuple[int, ...]) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        with self.classifier.evaluation(), torch.no_grad(), full_precision():
            return torch.stack([self._answer_one(start, stop, target) for target in targets], dim=1)

    def _answer_one(self, start: int, stop: int, target: int) -> Tensor:
        noisy = Noisy(self.plan, self.threat.graphs[target], self.kind, self.device)
        return noisy.logits(
            noisy.vectors(*self._draw(start, stop, noisy.entries, self.question.key_of(target)))
        )

    def _draw(self, low: int, high: int, entries: int, key: int | None) -> tuple[Tensor, Tensor]:
        question = self.question
        return question.stream.flips(low, high, entries, question.noise, target=key, device=self.device)

    def _count_one(self, drawn: tuple[Tensor, Tensor], target: int, on: Cores) -> IntArray:
        noisy = Noisy(self.plan, self.threat.graphs[target], self.kind, self.device)
        parts = [
            (
                drawn[0][i : i + noisy.samples, : noisy.entries],
                drawn[1][i : i + noisy.samples, : noisy.entries],
            )
            for i in range(0, len(drawn[0]), noisy.samples)
        ]
        labels = on.map(partial(self._votes, noisy), parts)
        counts: IntArray = count_labels(torch.cat(labels)[:, None], self.classes)[0]
        return counts

    def _votes(self, noisy: "Noisy", flips: tuple[Tensor, Tensor]) -> Tensor:
        return self.classifier.votes(noisy.logits(noisy.vectors(*flips)))


class Noisy:
    """One graph and what is the same for all its noisy versions."""

    def __init__(self, plan: Plan, graph: Graph, kind: torch.dtype, device: torch.device) -> None:
        assert graph.x is not None
        n = graph.num_nodes
        self.plan, self.n, self.entries = plan, n, n * (n - 1) // 2
        self.x = graph.x.to(device=device, dtype=kind)
        self.clean = torch.zeros(self.entries, dtype=torch.bool, device=device)
        self.clean[pair_entries(graph.pairs).to(device)] = True
        pairs = torch.tril_indices(n, n, offset=-1).flip(0)
        place = torch.full((n, n), self.entries)
        place[pairs[0], pairs[1]] = place[pairs[1], pairs[0]] = pair_entries(pairs)
        self.place = place.flatten().to(device)
        self.loops = torch.zeros((1, n), dtype=kind, device=device)
        self.loops[0, graph.loops.to(device)] = 1
        self.samples = max(1, NUMBERS[device.type] // (n * max(n, WIDTH)))

    def vectors(self, from_zero: Tensor, from_one: Tensor) -> Tensor:
        """bool[S, entries]: the noisy structure vectors."""
        return torch.where(self.clean, ~from_one, from_zero)

    def logits(self, vectors: Tensor) -> Tensor:
        """[S, C] of the graphs with these structure vectors."""
        padded = torch.cat([vectors, vectors.new_zeros((len(vectors), 1))], dim=1).to(self.x.dtype)
        adjacency = padded.index_select(1, self.place).view(-1, self.n, self.n)

        def conv(layer: Layer, h: Tensor) -> Tensor:
            return layer.dense(h, adjacency, self.loops)

        out = self.plan.evaluate(self.x[None], conv, _pool)
        return out.expand(len(vectors), out.shape[-1])


WIDTH = 64  # features a node's state is taken to have when chunks are sized


def _pool(kind: str, h: Tensor) -> Tensor:
    if kind == "max":
        return h.amax(-2)
    return h.sum(-2) if kind == "sum" else h.mean(-2)
