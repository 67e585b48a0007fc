"""OneGraph: a classifier asked about one graph at a time on the CPU, and the checks that its answers are those of one function."""

from typing import Any

from torch import Tensor, nn

from unswayed.errors import UnsoundModel, Unsupported
from unswayed.sampling import soundness
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.inputs import Graph


class OneGraph(Classifier):
    """A classifier that gets one graph a call, on the CPU where sums have one order; a row a node, or one row a graph."""

    def __init__(self, model: Any, classes: int | None = None) -> None:
        super().__init__(model, None, classes, "cpu")  # type: ignore[arg-type]  # no threat: not bits, nothing noisy

    @property
    def known_classes(self) -> int:
        """How many classes there are; known once something was asked."""
        assert self.classes is not None
        return self.classes

    def shaped(self, out: Any, rows: int) -> Tensor:
        """The checked answer with as many rows as the model gave: it may speak of nodes or of the graph."""
        if isinstance(out, Tensor) and out.ndim:
            columns = 1 if out.is_floating_point() else 0
            rows = out.shape[-1 - columns] if out.ndim > columns else 1
        return super().shaped(out, rows)

    def answer(self, graph: Graph, edges: Tensor) -> Tensor:
        """The raw answer on the graph's nodes and features with these edges."""
        return self.logits(graph, graph.x, edges, 1)

    def say(self, graph: Graph, edges: Tensor, nodes: Tensor | None = None) -> Tensor:
        """int64[rows]: the labels of these nodes (None: of every row), −1 for no answer."""
        said = self.votes(self.answer(graph, edges))
        if nodes is None:
            return said
        if len(said) != graph.num_nodes:
            raise UnsoundModel(
                f"The classifier gave {len(said)} rows for a graph of {graph.num_nodes} nodes; to classify nodes it must give one a node."
            )
        return said[nodes]

    def everyone(self, graph: Graph, edges: Tensor) -> Tensor:
        """What is said of every row, in evaluation mode."""
        with self.evaluation():
            return self.say(graph, edges)


def check_alone(asked: OneGraph, graph: Graph, edges: Tensor, part: Tensor) -> None:
    """Refuse a model whose answers depend on anything but the graph: caches, random numbers, state, edge attributes."""
    soundness.check_modules(asked)
    soundness.check_edge_data(asked, graph)
    shown = (part, edges)
    with asked.evaluation():
        soundness.check_repeatable(asked, lambda who, i: OneGraph.answer(who, graph, shown[i]))  # type: ignore[arg-type]


def check_reads_sources(model: Any) -> None:
    """Refuse a model that is not known to be made of layers which read a node's incoming edges, and of steps on each node alone."""
    from unswayed.sampling.engines.plans.recognise import recognise

    try:
        steps = recognise(model).steps if isinstance(model, nn.Module) else None
    except Unsupported as obstacle:
        raise UnsoundModel(
            f'by="nodes" needs a model whose nodes read their incoming edges only, and this one is not known to be such: '
            f'{obstacle} Use by="edges", which takes any model.'
        ) from obstacle
    if steps is not None and any(step.layer is not None and step.layer.reads_sent for step in steps):
        raise UnsoundModel(
            'by="nodes": a layer of this model reads how many edges leave a node; use by="edges".'
        )
    if steps is None or any(step.kind in ("pool", "whole") for step in steps):
        raise UnsoundModel(
            'by="nodes" needs a torch module for nodes without pooling over the graph; use by="edges", which takes any model.'
        )
