"""What every threat model has, and the views of it that engines ask for.

A threat turns its input into structure vectors of zeros and ones, and says by itself how noisy versions of them become
graphs, which targets they vote for together, and how people speak of it. Everything else (node features, self-loops,
labels, training nodes) is constant, and nothing is promised if it changes.
"""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.certificates.presenting import plural
from unswayed.errors import InputError, Unsupported
from unswayed.sampling.inputs import Graph, update_hash
from unswayed.sampling.layout import Layout
from unswayed.theory.noise import KINDS, Noise

MOST_NAMES = 20_000  # nodes whose names are all kept with the votes
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowView:
    """The links of one node of one graph at a time: entry v switches the link between the target and node v."""

    graph: Graph
    nodes: Tensor


class Threat:
    """What every threat model has: `targets`, and for each of them `entries` and `ones` of its structure vector."""

    kind: ClassVar[str]
    counts: ClassVar[str] = "entries"  # what a size counts: entries of the structure vector, or "nodes"
    newcomers: ClassVar[bool] = (
        False  # whether an attack brings nodes of its own, which must not matter where unseen
    )
    words: Words = Words()  # how people speak of it; a class attribute, or one that depends on the instance
    style: ClassVar[str | None] = (
        None  # "bits" where rows of bits are asked about; None: graphs, as the classifier takes them
    )
    undirected: ClassVar[bool] = (
        True  # whether an entry is an edge in both directions, as proofs and attacks take it
    )
    parts: ClassVar[bool] = (
        False  # whether the entries may leave parts of the graph out of every target's reach
    )
    nodes: Tensor | None = (
        None  # where each target is in its graph; None where a whole graph, or row, is classified
    )
    targets: IntArray
    entries: IntArray
    ones: IntArray

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        low, high = int(self.entries.min()), int(self.entries.max())
        span = f"{low} to {high} entries" if low < high else f"{low} {'entry' if low == 1 else 'entries'}"
        return f"{type(self).__name__}({plural(len(self), 'target')}, {span} each)"

    def clean(self, target: int) -> Tensor:
        """bool[entries]: the structure vector of the target at this position, before any noise."""
        raise NotImplementedError

    def layout(self, target: int) -> Layout:
        """How the structure vector of the target at this position becomes a graph."""
        raise Unsupported(f"{type(self).__name__} has no noisy graphs to be asked about; use prove.")

    @property
    def together(self) -> bool:
        """Whether one noisy graph is the same for all targets, and can vote for all of them."""
        return self.nodes is not None

    @property
    def edge_function(self) -> Any:
        """What makes attributes for the edges of its graph; None where edges have none."""
        graph = getattr(self, "graph", None) or next(iter(getattr(self, "graphs", [])), None)
        return None if graph is None else graph.edge_attr

    def row_view(self) -> RowView | None:
        """The threat as rows of one graph, for engines that know rows; None where it is not that."""
        return None

    def rows_apart(self) -> "Sequence[Threat] | None":
        """The targets one by one, each a row of a graph of its own; None where it is not that."""
        return None

    def graphs_view(self) -> list[Graph] | None:
        """The graphs that are classified, one a target, where every pair of nodes is an entry; None where it is not that."""
        return None

    def whole_view(self) -> Graph | None:
        """The one graph whose nodes are classified, where every pair is an entry; None where it is not that."""
        return None

    def free(self, target: int) -> Tensor:
        """int64: the drawn entries that an attacker may change."""
        return torch.arange(self.drawn(target))

    def drawn(self, target: int) -> int:
        """How many entries a sample of the noise has."""
        return int(self.entries[target])

    def takes(self, noise: Noise) -> Noise:
        """The noise as it is drawn for this threat; noise that is not made for it is refused."""
        if noise.threats and self.kind not in noise.threats:
            raise InputError(
                f"{type(noise).__name__} is noise for the threat {' or '.join(noise.threats)}, not for {self.kind}."
            )
        if noise.counts != self.counts:  # what a law says of changed entries says nothing of nodes
            fit = [kind.__name__ for kind in KINDS.values() if self.kind in kind.threats]
            raise InputError(
                f"{type(self).__name__} counts {self.counts}, and {type(noise).__name__} says nothing of them; use {' or '.join(fit)}."
            )
        return noise

    def asks(self, model: Any) -> Any:
        """The model as it is asked about this threat's graphs."""
        return model

    def attacked(self, target: int, entries: Tensor) -> Self:
        """The target at this position alone, once these entries of its structure vector have been changed."""
        other = copy.copy(self)
        other.targets, other.entries = self.targets[[target]], self.entries[[target]]
        if self.nodes is not None:
            other.nodes = self.nodes[[target]]
        other._change(target, entries)
        other.ones = np.array([int(other.clean(0).sum())])
        return other

    def _change(self, target: int, entries: Tensor) -> None:
        """Change these entries of what was the target at this position of the threat that this is a copy of."""
        raise NotImplementedError

    def digests(self) -> dict[str, str]:
        """sha256 of each part of the content."""
        raise NotImplementedError

    def constants(self) -> str:
        """sha256 of everything else that `forward(data)` can read: labels, masks, positions."""
        graphs = getattr(self, "graphs", None) or [getattr(self, "graph", None)]
        joined = "".join(graph.constants() for graph in graphs if graph is not None)
        return hashlib.sha256(joined.encode()).hexdigest()

    def called(self) -> dict[int, str]:
        """What nodes (or inputs) are called, by number: all of them, or the targets where there are very many; {} for numbers."""
        graph = getattr(self, "graph", None) or next(iter(getattr(self, "graphs", [])), None)
        if graph is None or not graph.names or self.nodes is None:
            return {}
        wanted = range(len(graph.names)) if len(graph.names) <= MOST_NAMES else self.targets.tolist()
        return {int(node): str(graph.names[node]) for node in wanted if node < len(graph.names)}

    def _named(self) -> dict[str, Any]:
        names = self.called()
        return {"names": {str(number): name for number, name in names.items()}} if names else {}

    def describe(self) -> dict[str, Any]:
        """JSON-ready: kind, sizes, content hashes and words; but for the words, equal ones mean the same question."""
        targets = update_digest("targets", torch.from_numpy(self.targets))
        said = {"words": {**self.words.to_dict(), **self._named()}}
        counts = {} if self.counts == "entries" else {"counts": self.counts}
        return {
            "kind": self.kind,
            "number": len(self),
            "targets": targets,
            **counts,
            **self.digests(),
            **said,
        }


def update_digest(name: str, value: Tensor) -> str:
    """sha256 of one named tensor."""
    hashed = hashlib.sha256()
    update_hash(hashed, name, value)
    return hashed.hexdigest()
