"""Links: who speaks to whom. A graph's pairs as directed links voter → target, sorted by target."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.inputs import Graph, read_graph

# asked without features and batch: what the edges name would be another graph once the last node's edges are gone
NO_NODES = (
    "Without features nobody says how many nodes there are, since some may have no edge: give batch too, as in "
    "model(None, edge_index, torch.zeros(n, dtype=torch.int64))."
)


@dataclass(frozen=True, eq=False)
class Links:
    """Both directions of every pair of a graph with `nodes` nodes: int64[2m] `voter` and `target`, sorted by target, voter.

    `names` are what the graph calls its nodes, where it does not number them from 0.
    """

    nodes: int
    voter: Tensor
    target: Tensor
    x: Tensor | None = None
    names: tuple[Any, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Links":
        """The links of anything that holds a graph; merged, without self-loops, both directions."""
        if isinstance(data, Links):
            return data
        graph: Graph = read_graph(data)
        code = codes(graph.pairs, graph.num_nodes)
        return cls(graph.num_nodes, code % graph.num_nodes, code // graph.num_nodes, graph.x, graph.names)

    def to(self, device: Any) -> "Links":
        """The same on a device."""
        x = None if self.x is None else self.x.to(device)
        return replace(self, voter=self.voter.to(device), target=self.target.to(device), x=x)

    def without(self, nodes: Tensor) -> "Links":
        """The same graph without any link of these nodes."""
        gone = torch.zeros(self.nodes, dtype=torch.bool, device=self.voter.device)
        gone[nodes] = True
        stays = ~gone[self.voter] & ~gone[self.target]
        return replace(self, voter=self.voter[stays], target=self.target[stays])

    @property
    def codes(self) -> Tensor:
        """int64[2m], sorted: target · n + voter."""
        return self.target * self.nodes + self.voter

    def starts(self) -> Tensor:
        """int64[n + 1]: where each target's links begin."""
        return torch.searchsorted(self.target, torch.arange(self.nodes + 1, device=self.target.device))


def in_one_order(names: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether two graphs' nodes stand in the same places, as far as their names tell; () are the numbers from 0, or nobody knows.

    >>> in_one_order((2, 0, 1), ()), in_one_order(("a", "b"), ()), in_one_order(("a", "b"), ("b", "a"))
    (False, True, False)
    """
    if names and others:
        return list(map(str, names)) == list(map(str, others))
    return not out_of_place(names or others)


def out_of_place(names: tuple[Any, ...]) -> bool:
    """Whether names are the numbers from 0, as numbers or as text, in another order than theirs.

    >>> out_of_place((2, 0, 1)), out_of_place(("1", "0")), out_of_place(("0", "1")), out_of_place((1, 2))
    (True, True, False, False)
    """
    named, numbers = list(map(str, names)), list(map(str, range(len(names))))
    return named != numbers and set(named) == set(numbers)


def codes(edge_index: Tensor, nodes: int) -> Tensor:
    """int64, sorted: target · n + voter of both directions of every edge, merged, without self-loops.

    In a batch of graphs with `nodes` nodes each, the target keeps its number in the batch and the voter has its own graph's.
    """
    first, second = edge_index.long()  # narrower numbers would wrap around
    apart = first != second
    first, second = first[apart], second[apart]
    both = torch.cat([first * nodes + second % nodes, second * nodes + first % nodes])
    merged: Tensor = torch.unique(both)
    return merged
