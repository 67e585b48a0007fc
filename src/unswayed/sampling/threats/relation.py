"""Relation: one relation of a graph with several kinds of nodes and edges is attacked, by name; all the rest is fixed."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from unswayed.errors import InputError
from unswayed.sampling.layout import Layout
from unswayed.sampling.relations import AskedByRelation, EdgeType, Kinds, mirrored, refuse_unnamed_mirrors
from unswayed.sampling.threats.directed import Directed

ENDS = ("in", "out")


class Relation(Directed):
    """The attacker adds or deletes edges of one relation at the target: one entry for every node at its other end.

    `relation` is an edge type of the HeteroData, (source type, name, destination type). `nodes` are numbers of its destination type,
    and edges "in"to them may change; with `links="out"` they are of its source type. Where the reverse edges are stored as a
    relation of their own, `reverse` names it, and it follows every change; a relation that holds every edge both ways is its own
    reverse. All other relations and all features are fixed.

    Ask a module `forward(x_dict, edge_index_dict)` by `poll(threat.asking(module), threat, noise)`.
    """

    kind = "relation"

    def __init__(
        self,
        data: Any,
        relation: EdgeType,
        nodes: Any,
        links: str = "in",
        *,
        reverse: EdgeType | None = None,
    ) -> None:
        self.relation: EdgeType = _known(data, relation, "relation")
        self.reverse: EdgeType | None = None
        if reverse is not None:
            self.reverse = mirrored(data, self.relation, _known(data, reverse, "reverse"))
        refuse_unnamed_mirrors(data, self.relation, self.reverse)
        if links not in ENDS:
            raise InputError(f"links must be one of {', '.join(ENDS)}, not {links!r}.")
        self.kinds, self.hetero = Kinds.of(data), data
        source, name, destination = self.relation
        own, other = (destination, source) if links == "in" else (source, destination)
        self.own_kind, self.others = own, self.kinds.numbers(other)
        arcs = data[self.relation].edge_index
        shift = torch.tensor([[self.kinds.first(source)], [self.kinds.first(destination)]])
        one = Data(x=torch.zeros(self.kinds.total, 1), edge_index=arcs + shift)
        one.node_names = self.kinds.names()
        super().__init__(one, self.kinds.place(own, nodes), links)
        way = "both ways at" if self.reverse == self.relation else "into" if links == "in" else "out of"
        where = f'"{name}" {way} the {own}'
        self.words = replace(
            self.words,
            one=f"adds or deletes one edge {where}",
            many=f"adds or deletes up to {{k}} edges {where}",
            adds=f"adds up to {{k}} of the missing edges {where}",
            deletes=f"deletes up to {{k}} of the edges {where}",
        )

    def ends(self, target: int) -> Tensor:
        """int64[2, drawn]: source and destination of every entry, in order of the node at the other end."""
        own = torch.full_like(self.others, int(self.nodes[target]))
        return torch.stack([self.others, own] if self.links == "in" else [own, self.others])

    def layout(self, target: int) -> Layout:
        """The edges at the target are noisy, and where the way back is in the same list it is not there by itself."""
        found = super().layout(target)
        if self.reverse != self.relation:
            return found
        first, second = found.constant
        own = (first != second) & torch.isin(
            self._code(found.constant), self._code(self.ends(target).flip(0))
        )
        return replace(found, constant=found.constant[:, ~own])

    def asks(self, model: Any) -> Any:
        """The model, refused if it was made to be asked about another relation or graph, or about none."""
        parts = model.modules() if isinstance(model, nn.Module) else ()
        told = [part for part in parts if isinstance(part, AskedByRelation)]
        if isinstance(model, nn.Module) and not told:
            raise InputError(
                "A module knows nothing of relations by itself; ask it through the threat: poll(threat.asking(module), threat, noise)."
            )
        about = self.hetero, self.relation, self.reverse, self.own_kind
        if not all(part.knows(*about) for part in told):
            raise InputError(
                "This module asks about another relation, or another graph, than the threat's; make it with the asking of the threat "
                "that is polled: poll(threat.asking(module), threat, noise)."
            )
        return model

    def asking(self, model: nn.Module) -> AskedByRelation:
        """The module as a classifier of this threat's graph; its answers for the targets' kind of node are what counts."""
        return AskedByRelation(model, self.hetero, self.kinds, self.relation, self.reverse, self.own_kind)


def _known(data: Any, relation: EdgeType, what: str) -> EdgeType:
    if not isinstance(data, HeteroData):
        raise InputError(f"Relation takes a HeteroData, not {type(data).__name__}; other graphs have Row.")
    told = tuple(relation) if isinstance(relation, (tuple, list)) else relation
    called = [kind for kind in data.edge_types if kind[1] == told]
    if len(called) == 1:
        return called[0]  # type: ignore[no-any-return]
    if told not in data.edge_types:
        known = ", ".join(map(str, data.edge_types))
        raise InputError(f"The {what} {told!r} is none of this graph's relations; choose from {known}.")
    return told  # type: ignore[return-value]
