"""Scores of noisy structures for the search: logits where a model has them, differentiable where it is recognised.

A scorer answers for one target and many structure vectors at once. The search may use it freely: whether an attack
succeeds is decided by the judge alone.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.graphs.matrices import Matrices
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.row import Prepared, Replaced, row_plan
from unswayed.sampling.modes import evaluating
from unswayed.sampling.question import Question
from unswayed.sampling.structures import Layout, layout_of


class Scorer(Protocol):
    """Logits of one target for a stack of structure vectors."""

    affordable: int  # about how many vectors a step of the search may ask for

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, classes] from vectors [B, entries]: bool, or for a differentiable scorer floats between 0 and 1."""
        ...


class Scorers:
    """Makes the scorer of each target of a question; `obstacle` says why there are no gradients, None if there are.

    The question's model must be in evaluation mode while the scorers are used.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.obstacle: str | None = None
        self.plan: Steps | None = None
        try:
            with evaluating(question.model):
                self.plan = self._recognise()
        except Unsupported as error:
            self.obstacle = str(error)

    def _recognise(self) -> Steps:
        model, threat = self.question.model, self.question.threat
        if not isinstance(model, nn.Module) or threat.style == "bits":
            raise Unsupported("The classifier is not a torch module on graphs.")
        if (view := threat.row_view()) is not None:
            plan = row_plan(model)
            if any(isinstance(step.layer, Attention) and step.depth > 1 for step in plan.steps):
                raise Unsupported("A second layer of attention has no row gradient.")
            graph = view.graph
            assert graph.x is not None
            around = Surroundings.of(graph.edge_index, graph.num_nodes, graph.x.dtype)
            with torch.no_grad():
                self.prepared = Prepared(plan, around, graph.x)
            return plan
        if threat.nodes is not None:
            raise Unsupported("Nodes of a whole noisy graph have no dense form.")
        return recognise(model)

    def of(self, target: int) -> Scorer:
        """The scorer of the target at this position."""
        threat = self.question.threat
        if self.plan is None:
            return AskingScorer(self.question, target)
        if (view := threat.row_view()) is not None:
            return RowScorer(self.prepared, int(view.nodes[target]))
        return DenseScorer(self.plan, self.question, target)


class _OneTarget(Replaced):
    """Many rows of one target, whose neighbours' states are the same in all of them."""

    def sum(self, payload: Any) -> Tensor:
        """[B, k]: the payloads of the attached nodes, added up."""
        if payload.far.dim() == 3:
            total: Tensor = self.rows.to(payload.far.dtype) @ payload.far[0]
            return total
        return super().sum(payload)


class RowScorer:
    """Logits of a node with its row replaced; differentiable in the row."""

    def __init__(self, prepared: Prepared, node: int) -> None:
        self.prepared, self.node = prepared, node
        layers = [step.layer for step in prepared.plan.steps if step.layer is not None]
        self.alone = not any(layer.coupled for layer in layers)
        self.affordable = 1024 if self.alone else 256

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, classes]."""
        rows = vectors.to(self.prepared.around.degree.dtype)
        own = torch.arange(rows.shape[1]) == self.node
        rows = rows.masked_fill(own, 0.0)
        nodes = torch.full((1 if self.alone else len(rows),), self.node)
        kind = _OneTarget if self.alone else Replaced
        return kind(self.prepared, nodes, rows).forward()


class DenseScorer:
    """Logits of a small graph from its adjacency matrix; differentiable in every pair."""

    def __init__(self, plan: Steps, question: Question, target: int) -> None:
        layout = layout_of(question, target)
        assert isinstance(layout, Layout)
        graph, n = layout.graph, layout.graph.num_nodes
        assert graph.x is not None
        self.plan, self.x = plan, graph.x
        self.first, self.second = layout.first, layout.second
        constant = torch.zeros((n, n), dtype=graph.x.dtype)
        constant[layout.constant[0], layout.constant[1]] = 1
        self.loops = constant.diagonal().clone()[None]
        self.constant = constant - torch.diag(self.loops[0])
        self.affordable = min(1024, max(16, 2**21 // n**2))

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, classes]."""
        adjacency = self.constant.repeat(len(vectors), 1, 1)
        values = vectors.to(adjacency.dtype)
        place = torch.arange(len(vectors))[:, None]
        adjacency = adjacency.index_put((place, self.first, self.second), values)
        adjacency = adjacency.index_put((place, self.second, self.first), values)
        x = self.x.expand(len(vectors), *self.x.shape)
        around = Matrices(adjacency, self.loops)
        return self.plan.evaluate(
            x, lambda layer, h: layer.over(layer.send(h), around), around.pool, around.average
        )


class AskingScorer:
    """Asks the classifier itself: works for everything, slowly and without gradients; labels count as logits 1 and 0."""

    affordable = 64

    def __init__(self, question: Question, target: int) -> None:
        self.threat, self.target = question.threat, target
        self.classifier = Classifier(question.model, question.threat, question.classes)
        self.layout = None if self.threat.style == "bits" else layout_of(question, target)

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, classes]."""
        with self.classifier.evaluation():
            out = self._ask(vectors.bool())
        if out.is_floating_point():
            return out
        assert self.classifier.classes is not None
        seen = torch.nn.functional.one_hot(out.clamp(min=0), self.classifier.classes) * (out >= 0)[:, None]
        return seen.float()

    def _ask(self, vectors: Tensor) -> Tensor:
        if self.layout is None:
            return self.classifier.bits(vectors)
        graph, clean = self.layout.graph, self.layout.clean
        answers = []
        for vector in vectors:  # one by one: whether a module may be asked in batches is not known here
            flips = (vector ^ clean)[None]
            answers.append(self.classifier.logits(graph, graph.x, self.layout.edges((flips, flips)), 1))
        nodes = self.threat.nodes
        place = 0 if nodes is None else int(nodes[self.target])
        return torch.stack([answer[place] for answer in answers])
