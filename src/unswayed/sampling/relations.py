"""Graphs with several kinds of nodes and edges, asked as one graph in which a single relation is drawn."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from unswayed.errors import InputError
from unswayed.sampling.reading import read_nodes

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Kinds:
    """All nodes of all kinds, numbered one kind after the other."""

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, data: HeteroData) -> "Kinds":
        """The kinds of a graph; each needs features, or says how many nodes it has."""
        counts = [(kind, data[kind].num_nodes) for kind in data.node_types]
        unsaid = [kind for kind, count in counts if count is None or "x" not in data[kind]]
        if unsaid:
            raise InputError(f"Nodes of kind {unsaid[0]!r} have no features; set data[{unsaid[0]!r}].x.")
        return cls(tuple(counts))

    @property
    def total(self) -> int:
        """How many nodes there are."""
        return sum(count for _, count in self.counts)

    def count(self, kind: str) -> int:
        """How many nodes of a kind there are."""
        return dict(self.counts)[kind]

    def first(self, kind: str) -> int:
        """The number of a kind's first node."""
        names = [name for name, _ in self.counts]
        return sum(count for _, count in self.counts[: names.index(kind)])

    def numbers(self, kind: str) -> Tensor:
        """int64[count]: the numbers of a kind's nodes."""
        return torch.arange(self.count(kind)) + self.first(kind)

    def place(self, kind: str, nodes: Any) -> Tensor:
        """The numbers of these nodes of a kind, which are given by their own numbers or as a mask."""
        return read_nodes(nodes, self.count(kind), ()) + self.first(kind)

    def names(self) -> list[str]:
        """What each node is called."""
        return [f"{kind} {i}" for kind, count in self.counts for i in range(count)]


def mirrored(data: HeteroData, relation: EdgeType, reverse: EdgeType) -> EdgeType:
    """The reverse, if it holds every edge of the relation the other way round, and nothing else."""
    if not _mirror(data, relation, reverse):
        raise InputError(f"{reverse} does not hold the edges of {relation} the other way round.")
    return reverse


def refuse_unnamed_mirrors(data: HeteroData, relation: EdgeType, reverse: EdgeType | None) -> None:
    """A relation that mirrors the attacked one would keep what an attacker deletes, unless it follows; it may be its own mirror."""
    for other in data.edge_types:
        empty = other == relation and not data[relation].edge_index.numel()
        if other != reverse and not empty and _mirror(data, relation, other):
            raise InputError(
                f"{other} holds the edges of {relation} the other way round; give reverse={other}, so that it follows."
            )


def _mirror(data: HeteroData, relation: EdgeType, other: EdgeType) -> bool:
    if (other[0], other[2]) != (relation[2], relation[0]):
        return False
    there, back = data[relation].edge_index, data[other].edge_index.flip(0)
    return bool(torch.equal(torch.unique(there, dim=1), torch.unique(back, dim=1)))


class AskedByRelation(nn.Module):
    """A module `forward(x_dict, edge_index_dict)`, asked as `forward(x, edge_index)` about the edges of one relation.

    Several noisy graphs may come at once, side by side; features and all other relations are then repeated as often.
    """

    def __init__(
        self,
        model: nn.Module,
        data: HeteroData,
        kinds: Kinds,
        relation: EdgeType,
        reverse: EdgeType | None,
        answers: str,
    ) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise InputError(f"asking takes a module forward(x_dict, edge_index_dict), not {model!r}.")
        _refuse_edge_data(data)
        self.model, self.kinds, self.relation, self.reverse, self.answers = (
            model, kinds, relation, reverse, answers,
        )  # fmt: skip
        self.fixed = [kind for kind in data.edge_types if kind not in (relation, reverse)]
        for i, (kind, _) in enumerate(kinds.counts):
            self.register_buffer(f"x_{i}", data[kind].x.clone())
        for i, fixed in enumerate(self.fixed):
            self.register_buffer(f"edges_{i}", data[fixed].edge_index.clone())

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of every node; those of other kinds than the targets' are zero, and are never asked for."""
        kinds, copies = self.kinds, len(x) // self.kinds.total
        features = {
            kind: self.get_buffer(f"x_{i}").repeat(copies, 1) for i, (kind, _) in enumerate(kinds.counts)
        }
        edges = {
            fixed: self._repeated(self.get_buffer(f"edges_{i}"), fixed, copies)
            for i, fixed in enumerate(self.fixed)
        }
        source, _, destination = self.relation
        drawn = torch.stack([self._local(edge_index[0], source), self._local(edge_index[1], destination)])
        edges[self.relation] = drawn
        if self.reverse == self.relation:  # both ways in one list, each once and in an order of its own
            edges[self.relation] = torch.unique(torch.cat([drawn, drawn.flip(0)], dim=1), dim=1)
        elif self.reverse is not None:
            edges[self.reverse] = drawn.flip(0)
        out = self.model(features, edges)
        said = out[self.answers] if isinstance(out, dict) else out
        everyone = said.new_zeros((copies, kinds.total, *said.shape[1:]))
        first = kinds.first(self.answers)
        count = kinds.count(self.answers)
        everyone[:, first : first + count] = said.unflatten(0, (copies, count))
        scores: Tensor = everyone.flatten(0, 1)
        return scores

    def knows(self, data: HeteroData, relation: EdgeType, reverse: EdgeType | None, answers: str) -> bool:
        """Whether it asks about this relation of this graph: its features and its other relations are kept here."""
        told = (self.relation, self.reverse, self.answers) == (relation, reverse, answers)
        fixed = [kind for kind in data.edge_types if kind not in (relation, reverse)]
        if not told or self.kinds != Kinds.of(data) or self.fixed != fixed:
            return False
        held = [(f"x_{i}", data[kind].x) for i, (kind, _) in enumerate(self.kinds.counts)]
        held += [(f"edges_{i}", data[kind].edge_index) for i, kind in enumerate(fixed)]
        return all(_same(self.get_buffer(name).cpu(), value.cpu()) for name, value in held)

    def _local(self, numbers: Tensor, kind: str) -> Tensor:
        """Numbers among all nodes of all copies, as numbers among the copies' nodes of a kind."""
        copy, inside = numbers // self.kinds.total, numbers % self.kinds.total
        return copy * self.kinds.count(kind) + inside - self.kinds.first(kind)

    def _repeated(self, edges: Tensor, kind: EdgeType, copies: int) -> Tensor:
        """The same edges in every copy."""
        step = torch.tensor([self.kinds.count(kind[0]), self.kinds.count(kind[2])], device=edges.device)
        shift = torch.arange(copies, device=edges.device)[:, None] * step
        return (edges.T[None] + shift[:, None]).reshape(-1, 2).T


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal, numbers that are none among them, in whichever precision one of them is kept."""
    other = other.to(one.dtype)
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


def _refuse_edge_data(data: HeteroData) -> None:
    for kind in data.edge_types:
        extra = [name for name in ("edge_attr", "edge_weight") if name in data[kind]]
        if extra:
            raise InputError(
                f"Edges of {kind} have {extra[0]}, which a module asked by relation cannot read; leave it out of the data."
            )
