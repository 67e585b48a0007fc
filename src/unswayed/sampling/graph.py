"""A graph in one clean form: simple undirected pairs, self-loops apart, features constant."""

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from unswayed.sampling.edge_function import EdgeFunction

NAMES = "node_names"  # the attribute of a Data that says what its nodes are called


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple undirected graph with constant node features.

    `pairs` is int64[2, m] with i < j, sorted by entry number j(j-1)/2 + i; `loops` the nodes that carry a self-loop,
    which is constant structure and no entry; `extras` further constants with one row a node, for `forward(data)`;
    `edge_data` the names of edge attributes that the source carried and that were left out, `left_out` those of everything
    else that was; `kind` the source's class where it is not torch_geometric's own and may answer by code of its own; `names`
    what the source calls its nodes, where it does not number them from 0; `edge_attr` what makes attributes for any pair.
    """

    num_nodes: int
    pairs: Tensor
    loops: Tensor
    x: Tensor | None = None
    extras: dict[str, Tensor] = field(default_factory=dict)
    edge_data: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    kind: str = ""
    names: tuple[Any, ...] = ()
    edge_attr: "EdgeFunction | None" = None

    @property
    def edge_index(self) -> Tensor:
        """int64[2, 2m + loops]: both directions of every pair, then the self-loops, sorted by source and target."""
        both = torch.cat([self.pairs, self.pairs.flip(0), self.loops.expand(2, -1)], dim=1)
        return both[:, torch.argsort(both[0] * max(self.num_nodes, 1) + both[1])]

    def part(self, keep: Tensor, number: Tensor) -> "Graph":
        """The graph of the kept nodes under their new numbers; no edge may leave them."""
        return Graph(
            num_nodes=int(keep.sum()),
            pairs=number[self.pairs[:, keep[self.pairs[0]]]],
            loops=number[self.loops[keep[self.loops]]],
            x=None if self.x is None else self.x[keep],
            extras={name: value[keep] for name, value in self.extras.items()},
            edge_data=self.edge_data,
            left_out=self.left_out,
            kind=self.kind,
            edge_attr=None if self.edge_attr is None else self.edge_attr.part(keep),
        )

    def toggled(self, pairs: Tensor) -> "Graph":
        """The graph with each of these pairs i < j added where it is missing and deleted where it is there."""
        gone = torch.isin(pair_entries(self.pairs), pair_entries(pairs))
        fresh = ~torch.isin(pair_entries(pairs), pair_entries(self.pairs))
        changed = torch.cat([self.pairs[:, ~gone], pairs[:, fresh]], dim=1)
        return replace(self, pairs=changed[:, torch.argsort(pair_entries(changed))])

    def degrees(self) -> Tensor:
        """int64[n]: neighbours of each node other than itself."""
        return torch.bincount(self.pairs.flatten(), minlength=self.num_nodes)

    def digest(self) -> str:
        """sha256 of structure and features; labels and masks, which only `forward(data)` could read, are `constants`."""
        hashed = hashlib.sha256(str(self.num_nodes).encode())
        for name, value in (("pairs", self.pairs), ("loops", self.loops), ("x", self.x)):
            if value is not None:
                update_hash(hashed, name, value)
        if self.edge_attr is not None:
            hashed.update(self.edge_attr.digest().encode())
        return hashed.hexdigest()

    def constants(self) -> str:
        """sha256 of the extras."""
        hashed = hashlib.sha256()
        for name in sorted(self.extras):
            update_hash(hashed, name, self.extras[name])
        return hashed.hexdigest()


def update_hash(hashed: Any, name: str, value: Tensor) -> None:
    """Feed a named tensor's type, shape and content to a running hash."""
    value = value.detach().cpu()
    if value.layout != torch.strided:
        value = value.to_sparse().coalesce()
        update_hash(hashed, f"{name} {tuple(value.shape)} at", value.indices())
        value = value.values()
    value = value.contiguous()
    hashed.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
    flat = value.flatten().as_strided((value.numel(),), (1,))  # one number out of many still has their stride
    hashed.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")


def pair_entries(pairs: Tensor) -> Tensor:
    """The entry number j(j-1)/2 + i of each pair i < j; a small graph's entries are a prefix of a larger one's."""
    return pairs[1] * (pairs[1] - 1) // 2 + pairs[0]
