"""Receptive fields: which edges the answer for a node can depend on, where noise and attacker only delete."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array

from unswayed.errors import InputError, Unsupported
from unswayed.sampling.inputs import Graph, read_graph
from unswayed.sampling.modes import evaluating
from unswayed.sampling.reading import read_nodes

if TYPE_CHECKING:
    from unswayed.sampling.question import Question


class Sight(NamedTuple):
    """How far a network sees: its rounds of message passing, and whether one divides by the degrees of both ends."""

    layers: int
    degrees: bool


def sight(model: Any, question: "Question | None" = None) -> Sight:
    """How far this module sees when it is asked, where every step is known; refused with the reason where not, or where it sees all.

    What torch.fx is shown is not always what a call does: with a `question` about the module, one must take the same way.
    """
    from unswayed.sampling.engines.asking.alone import Alone
    from unswayed.sampling.engines.plans.recognise import recognise

    with evaluating(model):  # some see farther when they are asked than when they are trained
        plan = recognise(model)
    if question is not None and not Alone(question).as_traced:
        raise Unsupported("A call takes another way through the module's code than torch.fx.")
    if not plan.local:
        raise Unsupported("A step of this module reads all nodes of the graph, so every edge counts for all.")
    reads = any(layer.coupled or layer.reads_sent for layer in plan.rounds.values())
    return Sight(plan.depth, reads)


class Fields(list[npt.NDArray[np.int64]]):
    """What each node sees, which nodes these are, by their places in the graph, and how many pairs and edges that has."""

    def __init__(
        self, seen: Iterable[npt.NDArray[np.int64]], nodes: npt.NDArray[np.int64], graph: Graph
    ) -> None:
        super().__init__(seen)
        self.nodes = nodes
        self.counts = graph.num_nodes * (graph.num_nodes - 1) // 2, graph.pairs.shape[1]


def receptive_fields(data: Any, nodes: Any, layers: int, *, degrees: bool = False) -> Fields:
    """For each node the edges, by number, that a network of so many rounds of message passing can see from it.

    These are the edges with an end within `layers` − 1 hops; within `layers` hops with `degrees=True`, for layers that
    divide by the degrees of both ends (GCN). A network with global parts (pooling, a virtual node, graph norm) sees every edge.
    """
    if isinstance(layers, bool) or not isinstance(layers, int) or layers < 0:
        raise InputError(f"layers must be a whole number from 0 up, not {layers!r}.")
    graph = read_graph(data)
    listed = np.array(nodes) if isinstance(nodes, np.ndarray) else nodes  # torch would warn of a frozen array
    chosen, n = read_nodes(listed, graph.num_nodes, graph.names), graph.num_nodes
    first, second = (end.numpy() for end in graph.pairs)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    joins = coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(n, n)).tocsr()
    if not layers:  # a network without any reads a node's own features alone
        return Fields((np.empty(0, dtype=np.int64) for _ in chosen), chosen.numpy(), graph)
    near = torch.zeros((len(chosen), n), dtype=torch.bool)
    near[torch.arange(len(chosen)), chosen] = True
    reached = near.numpy()
    for _ in range(layers if degrees else layers - 1):
        reached = reached | np.asarray((joins @ reached.T).T, dtype=bool)
    return Fields((np.flatnonzero(row[first] | row[second]) for row in reached), chosen.numpy(), graph)
