"""Intercept: the attacker rewrites the features of existing nodes; no edge changes."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, read_graph
from unswayed.sampling.layout import Layout, pairs_layout
from unswayed.sampling.reading import read_nodes
from unswayed.sampling.threats.base import Threat
from unswayed.theory.interception import noticed, reach
from unswayed.theory.noise import Noise

Floats = npt.NDArray[np.float64]
FARTHEST = 4  # hops: beyond, paths are too many to count
TOGETHER = 64  # targets whose paths are counted at a time


class Intercept(Threat):
    """The attacker rewrites the features of some nodes, at will; edges stay. A size counts nodes that lie.

    The model is asked about the surroundings of each target, in which features more than `hops` away are masked: give the number
    of the model's message-passing layers, and that changes nothing. `own=False` takes the target itself for honest.
    """

    kind = "intercept"
    counts = "nodes"
    words = Words(
        unit="node",
        one="rewrites the features of one node",
        many="rewrites the features of up to {k} nodes",
        adds="rewrites the features of up to {k} nodes",
        deletes="deletes nothing",
    )
    together = False  # each target is asked about in surroundings of its own

    def __init__(self, data: Any, nodes: Any, hops: int = 2, *, own: bool = True) -> None:
        if isinstance(hops, bool) or not isinstance(hops, int) or not 1 <= hops <= FARTHEST:
            raise InputError(f"hops must be a whole number from 1 to {FARTHEST}, not {hops!r}.")
        self.graph, self.hops, self.own = read_graph(data), hops, bool(own)
        if self.graph.x is None:
            raise InputError("The graph has no features, so there are none to rewrite.")
        if not own:
            others = {name: text.replace("node", "other node") for name, text in self.words.to_dict().items()}
            self.words = Words(**{**others, "unit": "node"})
        self.joins = _adjacency(self.graph)
        chosen = read_nodes(nodes, self.graph.num_nodes, self.graph.names)
        self.targets = chosen.numpy()
        self.nodes = torch.zeros(len(chosen), dtype=torch.int64)  # each is the first of its own surroundings
        self.entries = np.full(len(chosen), self.graph.num_nodes - (not self.own), dtype=np.int64)
        self.ones = np.zeros(len(chosen), dtype=np.int64)
        self._known: dict[int, Layout] = {}

    def asks(self, model: Any) -> Any:
        """The model, shown no more than it may see."""
        from unswayed.sampling.masked import Masked

        return model if isinstance(model, Masked) else Masked(model, self.hops)

    def layout(self, target: int) -> Layout:
        """The edges around the target, which noise may delete, and a mask for every node, which noise may put on."""
        if target not in self._known:
            self._known[target] = self._layout(int(self.targets[target]))
        return self._known[target]

    def _layout(self, node: int) -> Layout:
        hops = _hops(self.joins, node, self.hops + 1)
        others = np.flatnonzero((hops > 0) & (hops <= self.hops + 1))
        number = np.full(len(hops), -1)
        number[[node, *others]] = np.arange(len(others) + 1)
        first, second = self.graph.pairs.numpy()
        near = np.minimum(hops[first], hops[second]) <= self.hops  # farther edges reach nobody in sight
        around = torch.from_numpy(np.stack([number[first[near]], number[second[near]]]))
        size = len(others) + 1
        masks = torch.stack([torch.arange(size), torch.full((size,), size)])
        clean = torch.cat(
            [torch.ones(around.shape[1], dtype=torch.bool), torch.zeros(size, dtype=torch.bool)]
        )
        pairs = torch.cat([around, masks], dim=1)
        return pairs_layout(self._surroundings([node, *others.tolist()], number), pairs, clean)

    def _surroundings(self, nodes: list[int], number: npt.NDArray[np.int64]) -> Graph:
        """These nodes in this order, without edges, and one more that stands for the mask."""
        assert self.graph.x is not None
        x, loops = self.graph.x[nodes], torch.from_numpy(number)[self.graph.loops]
        return Graph(
            num_nodes=len(nodes) + 1,
            pairs=self.graph.pairs[:, :0],
            loops=loops[loops >= 0],
            x=torch.cat([x, torch.zeros_like(x[:1])]),
        )

    def clean(self, target: int) -> Tensor:
        """bool[edges + nodes]: every edge is there, and no mask."""
        return self.layout(target).clean

    def drawn(self, target: int) -> int:
        """One for every edge around the target, and one for every node."""
        return len(self.clean(target))

    def noticed(self, noise: Noise) -> Floats:
        """float[targets, k+1]: upper bounds on the probability that any of k nodes that lie is seen at the target.

        The last column is that of all nodes, or one half and more.
        """
        options = self.takes(noise).options()
        masked, deleted = Fraction(options["features"]), Fraction(options["edges"])
        rows = [row for part in self._paths() for row in self._seen(*part, masked, deleted)]
        met = np.concatenate([noticed(row[None]) for row in rows])
        done = ((met >= 0.5) | (met == met[:, -1:])).all(axis=0)
        return met[:, : int(done.argmax()) + 1]

    def _seen(
        self, nodes: npt.NDArray[np.int64], paths: npt.NDArray[np.int64], masked: Fraction, deleted: Fraction
    ) -> Floats:
        seen = reach(paths, masked, deleted)
        seen[np.arange(len(nodes)), nodes] = np.nextafter(float(1 - masked), 2) if self.own else 0
        return seen

    def _paths(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """(targets, int64[targets, n, hops]: the paths of 1, 2, … edges from every node to each of them)."""
        for begin in range(0, len(self.targets), TOGETHER):
            nodes = self.targets[begin : begin + TOGETHER]
            yield nodes, paths_to(self.joins, nodes, self.hops)

    def digests(self) -> dict[str, str]:
        """The graph's hash, how far a target sees, and whether it may lie itself."""
        return {"graph": self.graph.digest(), "hops": str(self.hops), "own": str(self.own)}


def _adjacency(graph: Graph) -> csr_array:
    first, second = (end.numpy() for end in graph.pairs)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return coo_array((np.ones(len(ends[0]), dtype=np.int64), ends), shape=(graph.num_nodes,) * 2).tocsr()


def _hops(joins: csr_array, node: int, most: int) -> npt.NDArray[np.int64]:
    """int64[n]: how many edges away each node is; `most` + 1 where it is farther."""
    hops = np.full(joins.shape[0], most + 1)
    hops[node], near = 0, np.array([node])
    for hop in range(1, most + 1):
        beyond = np.unique(joins[near].indices)
        near = beyond[hops[beyond] > hop]
        hops[near] = hop
    return hops


def paths_to(joins: csr_array, nodes: npt.NDArray[np.int64], hops: int) -> npt.NDArray[np.int64]:
    """int64[targets, n, hops]: walks of 1, 2, … edges between each target and every node that never turn back at once.

    Up to three edges, between different nodes, these are the paths that meet no node twice; of more edges there are at least as many.

    >>> paths_to(coo_array(([1, 1, 1, 1, 1, 1], ([0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1]))).tocsr(), np.array([0]), 2)[0].tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    degree = np.asarray(joins.sum(axis=1)).reshape(-1, 1)
    start = np.zeros((joins.shape[0], len(nodes)), dtype=np.int64)
    start[nodes, np.arange(len(nodes))] = 1
    walks = [start, joins @ start]
    for hop in range(2, hops + 1):
        back = degree if hop == 2 else degree - 1
        walks.append(joins @ walks[-1] - back * walks[-2])
    return np.stack(walks[1:], axis=-1).transpose(1, 0, 2)
