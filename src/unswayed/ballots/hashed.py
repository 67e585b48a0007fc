"""Hashed: any model, asked on separate parts of the graph, so that one changed edge moves one vote.

The group of an edge is a fixed mixture of its ends' numbers, never of degrees or of anything else that another edge could
move. Every group is asked alone, on the CPU, with its edges in one order, so that a group without a changed edge is handed
exactly the same tensors before and after an attack and gives exactly the same answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.ballots.claims import check_order, check_unseen
from unswayed.ballots.links import NO_NODES
from unswayed.ballots.one_graph import OneGraph, check_alone, check_reads_sources
from unswayed.ballots.unaltered import check_unaltered
from unswayed.certificates.hashed import HashedProofs
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, UnsoundModel, Unsupported
from unswayed.sampling.inputs import Graph
from unswayed.sampling.threats import Threat

IntArray = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Progress = Callable[[int, int], None]  # (groups done, groups)

BY = ("edges", "nodes")
MOST_GROUPS = 1_000_000
CHANGED = (
    "The model gave two labels for one and the same graph, the second after others had been asked about; remove what it remembers or draws, "
    "or what lets its classes tie."
)


def mixed(first: Any, second: Any = 0) -> Words:
    """uint64: the two numbers (each below 2³²) mixed by the finaliser of splitmix64; the same on every machine for ever.

    >>> mixed(3, 5).item()
    9934920466147959510
    """
    word = (np.asarray(first).astype(np.uint64) << np.uint64(32)) | np.asarray(second).astype(np.uint64)
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is meant
        word = word + np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ (word >> np.uint64(31)))


class Hashed(nn.Module):
    """A vote of `groups` answers of one model, each on the edges of one group: K changed edges change at most K votes.

    In evaluation mode `forward` counts votes: float[rows, classes], NaN in a row for which no group had an answer; ties go
    to the lower class. All nodes and features are present in every group. In training mode it asks the model on one group
    drawn at random, so that an ordinary training loop trains on what the vote will show it.

    `by="nodes"` groups directed edges by their source, and K counts nodes: fake ones, or existing ones with any features
    and any edges, the target itself excepted. A group is then handed only the nodes from which the target can be reached.
    `classes` is needed where the model answers labels instead of logits.
    """

    def __init__(
        self, model: Any, groups: int = 30, by: str = "edges", *, classes: int | None = None
    ) -> None:
        super().__init__()
        if isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= MOST_GROUPS:
            raise InputError(f"groups must be a whole number from 1 to {MOST_GROUPS:,}, not {groups!r}.")
        if by not in BY:
            raise InputError(f"by must be one of {', '.join(BY)}, not {by!r}.")
        if not callable(model):
            raise InputError(f"Hashed needs a model that can be called, not {type(model).__name__}.")
        self.model = model
        self.groups, self.by, self.classes = groups, by, classes
        if by == "nodes":
            check_reads_sources(model)

    def extra_repr(self) -> str:
        """The settings."""
        return f"groups={self.groups}, by={self.by!r}"

    def group_of(self, edge_index: Any) -> IntArray:
        """int64[edges]: the group of each edge, from node numbers alone; a self-loop belongs to all and is called −1."""
        first, second = np.asarray(torch.as_tensor(edge_index).cpu())
        pair = (np.minimum(first, second), np.maximum(first, second)) if self.by == "edges" else (first,)
        group = (mixed(*pair) % np.uint64(self.groups)).astype(np.int64)
        return np.where(first == second, -1, group)

    def subgraph(self, edge_index: Tensor, group: int) -> Tensor:
        """int64[2, edges of the group]: these edges and all self-loops, in the order of `edge_index`."""
        of = self.group_of(edge_index)
        return edge_index[:, torch.from_numpy((of == group) | (of < 0)).to(edge_index.device)]

    def forward(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Votes per row; several graphs, told apart by `batch`, are asked one at a time, each with its own numbers."""
        if self.training:
            group = int(torch.randint(self.groups, ()))
            named = {} if batch is None or not self.asked().takes_batch else {"batch": batch}
            return self.model(x, self.subgraph(edge_index, group), **named)  # type: ignore[no-any-return]
        asked = self.asked()
        counts = torch.cat([self.votes(asked, *graph) for graph in separate(x, edge_index, batch)])
        silent = counts.sum(dim=1, keepdim=True) == 0
        return counts.float().masked_fill(silent, torch.nan).to(edge_index.device)

    def asked(self) -> OneGraph:
        """The model as it is asked: one graph a call, in evaluation mode, on the CPU."""
        return OneGraph(self.model, self.classes)

    def votes(
        self,
        asked: OneGraph,
        graph: Graph,
        edges: Tensor,
        nodes: Tensor | None = None,
        progress: Progress | None = None,
    ) -> Tensor:
        """int64[rows, classes]: how many groups say each class of these nodes (None: of every row the model answers)."""
        ask, said = self._labels_by_nodes if self.by == "nodes" else OneGraph.say, []
        with asked.evaluation():
            for part in self.parts(edges):
                said.append(ask(asked, graph, part, nodes))
                if progress is not None:
                    progress(len(said), self.groups)
        return torch.stack([(torch.stack(said) == c).sum(dim=0) for c in range(asked.known_classes)], dim=1)

    def prove_under(self, threat: Threat, progress: Progress | None = None) -> HashedProofs:
        """What the vote proves of every target of this threat; refused where an attack could reach several groups by one change."""
        check_unaltered(self, "forward", "votes", "parts", "group_of", "asked")
        self._check_threat(threat)
        check_order(self, threat)
        check_unseen(self, threat)  # every group would go by those links
        asked, counts = self.asked(), []
        asks = list(questions(threat))
        first = max((graph for graph, _ in asks), key=lambda graph: graph.pairs.shape[1])
        part = next(self.parts(first.edge_index))
        check_alone(asked, first, first.edge_index, part)
        before = asked.everyone(first, part)
        for graph, nodes in asks:
            counts.append(self.votes(asked, graph, graph.edge_index, nodes, progress))
            if nodes is None and len(counts[-1]) != 1:
                raise UnsoundModel("To classify graphs, the model must give one row for a graph.")
        if not torch.equal(before, asked.everyone(first, part)):
            raise UnsoundModel(CHANGED)
        about = About(
            targets=threat.targets,
            entries=threat.entries,
            ones=threat.ones,
            classes=asked.known_classes,
            threat=threat.describe(),
        )
        return HashedProofs.of_counts(torch.cat(counts).numpy(), self.groups, self.by, about)

    def _check_threat(self, threat: Threat) -> None:
        """Edges for groups of edges, nodes for groups of nodes."""
        if not hasattr(threat, "graph") and not hasattr(threat, "graphs"):
            raise InputError(
                "Hashed models vote over groups of edges, and this threat is not about a graph; use poll."
            )
        if threat.counts == "nodes" and threat.kind != "inject":
            raise Unsupported(
                f"{type(threat).__name__} leaves edges alone, and groups say nothing of nodes that lie; use poll with Mask."
            )
        brings_nodes = threat.kind == "inject"
        if brings_nodes and self.by == "edges":
            raise InputError(
                'One fake node may bring edges of every group, so groups of edges prove nothing about it; use by="nodes".'
            )
        if not brings_nodes and self.by == "nodes":
            raise InputError(
                'by="nodes" counts nodes, so its threat is us.Inject; for changed edges use by="edges".'
            )

    def parts(self, edges: Tensor) -> Iterator[Tensor]:
        """The edges of each group, self-loops in all of them."""
        of = torch.from_numpy(self.group_of(edges))
        return (edges[:, (of == group) | (of < 0)] for group in range(self.groups))

    @staticmethod
    def _labels_by_nodes(asked: OneGraph, graph: Graph, edges: Tensor, nodes: Tensor | None) -> Tensor:
        """Each target alone with the nodes it can hear from: nothing else reaches the model, not even by its rounding."""
        heard = Hearing(graph, edges)
        wanted = torch.arange(graph.num_nodes) if nodes is None else nodes
        return torch.cat([asked.say(*heard.around(int(node))) for node in wanted])


def questions(threat: Any) -> Iterator[tuple[Graph, Tensor | None]]:
    """Every graph that the model is asked about, with the nodes to be classified in it; None for the graph as a whole."""
    if threat.kind != "row-new":
        for graph in getattr(threat, "graphs", None) or [threat.graph]:
            # the module itself is given features and edges alone: a model that reads anything else must not be proved by it
            yield replace(graph, extras={}, left_out=(*graph.left_out, *graph.extras)), threat.nodes
        return
    for target, linked in enumerate(threat.neighbours):  # each who arrives is node n of a graph of its own
        old: Graph = threat.graph
        links = torch.stack([linked, torch.full_like(linked, old.num_nodes)])
        pairs = torch.cat([old.pairs, links], dim=1)  # the new ones come last in the order of entries too
        yield replace(threat.joined(target), pairs=pairs), torch.tensor([old.num_nodes])


class Hearing:
    """Who can be heard by whom along directed edges."""

    def __init__(self, graph: Graph, edges: Tensor) -> None:
        from scipy.sparse import csr_array

        self.graph, self.edges = graph, edges
        source, target = edges.numpy()
        shape = (graph.num_nodes, graph.num_nodes)
        self.backward = csr_array((np.ones(len(source), dtype=np.int8), (target, source)), shape=shape)

    def around(self, node: int) -> tuple[Graph, Tensor, Tensor]:
        """The graph of the nodes that this one hears, itself included, the edges among them, and its place there."""
        from scipy.sparse.csgraph import breadth_first_order

        heard = np.sort(breadth_first_order(self.backward, node, return_predecessors=False))
        keep = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        keep[torch.from_numpy(heard).long()] = True
        number = keep.cumsum(0) - 1
        inside = keep[self.edges[0]] & keep[self.edges[1]]
        bare = replace(self.graph, pairs=self.edges[:, :0], loops=self.edges[0, :0])
        return bare.part(keep, number), number[self.edges[:, inside]], number[node][None]


def separate(x: Tensor | None, edge_index: Tensor, batch: Tensor | None) -> Iterator[tuple[Graph, Tensor]]:
    """Each graph of a batch by itself on the CPU, its nodes numbered from 0, its directed edges merged and sorted."""
    edges = edge_index.detach().cpu().long()  # narrower numbers would wrap around
    sizes = [_number_of_nodes(x)] if batch is None else torch.bincount(batch.detach().cpu()).tolist()
    if batch is not None and bool((batch[1:] < batch[:-1]).any()):
        raise InputError("Hashed needs the nodes of each graph side by side in the batch.")
    start = 0
    for size in sizes:
        own = edges[:, (edges[0] >= start) & (edges[0] < start + size)] - start
        if own.numel() and (int(own.min()) < 0 or int(own.max()) >= size):
            raise InputError("An edge joins two graphs of the batch, so their answers would not be separate.")
        code = torch.unique(own[0] * size + own[1])
        yield _bare(size, x, start), torch.stack([code // size, code % size])
        start += size


def _bare(size: int, x: Tensor | None, start: int) -> Graph:
    """Nodes and features without edges."""
    none = torch.empty((2, 0), dtype=torch.int64)
    return Graph(size, none, none[0], None if x is None else x[start : start + size].detach().cpu())


def _number_of_nodes(x: Tensor | None) -> int:
    if x is None:
        raise InputError(NO_NODES)
    return len(x)
