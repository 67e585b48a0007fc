"""Threat models: which entries of the input an attacker may change, for which targets.

Each threat turns its input into structure vectors of zeros and ones. Everything else (node features, self-loops, labels,
training nodes) is constant, and nothing is promised if it changes.
"""

import copy
import hashlib
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.certificates.about import Words
from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, pair_entries, read_graph, read_graphs, update_hash
from unswayed.theory.noise import Noise

IntArray = npt.NDArray[np.int64]


class Threat:
    """What every threat model has: `targets`, and for each of them `entries` and `ones` of its structure vector."""

    kind: ClassVar[str]
    newcomers: ClassVar[bool] = (
        False  # whether an attack brings nodes of its own, which must not matter where unseen
    )
    words: Words = Words()  # how people speak of it; a class attribute, or one that depends on the instance
    targets: IntArray
    entries: IntArray
    ones: IntArray

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        low, high = int(self.entries.min()), int(self.entries.max())
        return f"{type(self).__name__}({len(self)} targets, {low if low == high else f'{low} to {high}'} entries each)"

    def clean(self, target: int) -> Tensor:
        """bool[entries]: the structure vector of the target at this position, before any noise."""
        raise NotImplementedError

    def drawn(self, target: int) -> int:
        """How many entries a sample of the noise has."""
        return int(self.entries[target])

    def takes(self, noise: Noise) -> Noise:
        """The noise as it is drawn for this threat; noise that is not made for it is refused."""
        if noise.threats and self.kind not in noise.threats:
            raise InputError(
                f"{type(noise).__name__} is noise for the threat {' or '.join(noise.threats)}, not for {self.kind}."
            )
        return noise

    def attacked(self, target: int, entries: Tensor) -> Self:
        """The target at this position alone, once these entries of its structure vector have been changed."""
        other = copy.copy(self)
        other.targets, other.entries = self.targets[[target]], self.entries[[target]]
        if getattr(self, "nodes", None) is not None:
            other.nodes = self.nodes[[target]]  # type: ignore[attr-defined]
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

    def describe(self) -> dict[str, Any]:
        """JSON-ready: kind, sizes, content hashes and words; but for the words, equal ones mean the same question."""
        targets = update_digest("targets", torch.from_numpy(self.targets))
        said = {"words": self.words.to_dict()}
        return {"kind": self.kind, "number": len(self), "targets": targets, **self.digests(), **said}


def update_digest(name: str, value: Tensor) -> str:
    """sha256 of one named tensor."""
    hashed = hashlib.sha256()
    update_hash(hashed, name, value)
    return hashed.hexdigest()


class Row(Threat):
    """The attacker rewires the target's own row: any edge between it and any other node, both directions at once.

    The structure vector of target u has one entry for every other node. Words are drawn for all n nodes, entry v for node
    v; the one at u itself is not used. `data` is the cleaned `Data`, `nodes` the targets as a tensor.
    """

    kind = "row"
    words = Words(
        unit="node",
        one="adds or deletes one of the node's links",
        many="adds or deletes up to {k} of the node's links",
        adds="adds up to {k} of the node's missing links",
        deletes="deletes up to {k} of the node's links",
    )

    def __init__(self, data: Any, nodes: Any) -> None:
        self.graph = read_graph(data)
        self.nodes = read_nodes(nodes, self.graph.num_nodes)
        self.targets = self.nodes.numpy()
        self.entries = np.full(len(self.nodes), self.graph.num_nodes - 1, dtype=np.int64)
        self.ones = self.graph.degrees()[self.nodes].numpy()

    @staticmethod
    def new(data: Any, x: Any, neighbours: Any) -> Threat:
        """The same for nodes that arrive: features and neighbour numbers of each, each taken alone."""
        from unswayed.sampling.arrivals import Arrivals

        return Arrivals(data, x, neighbours)

    @property
    def data(self) -> Any:
        """The cleaned graph as a torch_geometric Data: x, and edge_index in both directions, merged and sorted."""
        return to_data(self.graph)

    def clean(self, target: int) -> Tensor:
        """bool[n], the own entry included as False (it is drawn but not used)."""
        return self.row(int(self.nodes[target]))

    def row(self, node: int) -> Tensor:
        """bool[n]: the neighbours of any node."""
        row = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        first, second = self.graph.pairs
        row[second[first == node]] = True
        row[first[second == node]] = True
        return row

    def _change(self, target: int, entries: Tensor) -> None:
        node = self.nodes[0].expand(len(entries))
        self.graph = self.graph.toggled(
            torch.stack([torch.minimum(node, entries), torch.maximum(node, entries)])
        )

    def drawn(self, target: int) -> int:
        """One for every node, the target itself included (it is not used)."""
        return self.graph.num_nodes

    def digests(self) -> dict[str, str]:
        """The graph's hash."""
        return {"graph": self.graph.digest()}


class AllPairs(Threat):
    """The attacker may add or delete any edge: one entry for every pair of nodes.

    `AllPairs(graphs)` classifies each graph; `AllPairs(data, nodes)` classifies nodes of one graph, and one noisy graph
    votes for all of them at once. The pair i < j has entry j(j-1)/2 + i.
    """

    kind = "all-pairs"
    words = Words(
        unit="graph",
        one="adds or deletes one edge",
        many="adds or deletes up to {k} edges",
        adds="adds up to {k} of the missing edges",
        deletes="deletes up to {k} of the edges",
    )

    def __init__(self, data: Any, nodes: Any = None) -> None:
        if nodes is not None:
            self.words = replace(self.words, unit="node")
        self.graphs = read_graphs(data) if nodes is None else [read_graph(data)]
        self.nodes = None if nodes is None else read_nodes(nodes, self.graphs[0].num_nodes)
        count = len(self.graphs) if self.nodes is None else len(self.nodes)
        self.targets = np.arange(count) if self.nodes is None else self.nodes.numpy()
        sizes = np.array([graph.num_nodes for graph in self.graphs], dtype=np.int64)
        ones = np.array([graph.pairs.shape[1] for graph in self.graphs], dtype=np.int64)
        self.entries = np.broadcast_to(sizes * (sizes - 1) // 2, (count,)).copy()
        self.ones = np.broadcast_to(ones, (count,)).copy()

    def graph_of(self, target: int) -> Graph:
        """The graph in which the target at this position is classified."""
        return self.graphs[target if self.nodes is None else 0]

    def pairs_of(self, target: int) -> Tensor:
        """int64[2, entries]: the pair i < j of every entry, in order."""
        n = self.graph_of(target).num_nodes
        return torch.tril_indices(n, n, offset=-1).flip(0)

    def clean(self, target: int) -> Tensor:
        """bool[entries]: which pairs are edges."""
        vector = torch.zeros(int(self.entries[target]), dtype=torch.bool)
        vector[pair_entries(self.graph_of(target).pairs)] = True
        return vector

    def _change(self, target: int, entries: Tensor) -> None:
        place = target if self.nodes is None else 0
        self.graphs = [self.graphs[place].toggled(self.pairs_of(target)[:, entries])]

    def digests(self) -> dict[str, str]:
        """One hash over all graphs."""
        joined = "".join(graph.digest() for graph in self.graphs)
        return {"graph": hashlib.sha256(joined.encode()).hexdigest()}


class Pairs(Threat):
    """The attacker may change the listed node pairs only; every other edge is constant.

    With `nodes`, those nodes of the graph are classified; without, the graph as a whole is the one target. Entry e is the
    e-th pair of the list; a pair named twice, in either order, or a node paired with itself is refused.
    """

    kind = "pairs"
    words = Words(
        unit="graph",
        one="toggles one of the listed node pairs",
        many="toggles up to {k} of the listed node pairs",
        adds="adds up to {k} of the listed edges that are missing",
        deletes="deletes up to {k} of the listed edges",
    )

    def __init__(self, data: Any, pairs: Any, nodes: Any = None) -> None:
        if nodes is not None:
            self.words = replace(self.words, unit="node")
        self.graph = read_graph(data)
        self.graphs = [self.graph]
        self.pairs = read_pairs(pairs, self.graph.num_nodes)
        self.nodes = None if nodes is None else read_nodes(nodes, self.graph.num_nodes)
        self.targets = np.arange(1) if self.nodes is None else self.nodes.numpy()
        self.vector = torch.isin(pair_entries(self.pairs), pair_entries(self.graph.pairs))
        self.entries = np.full(len(self.targets), self.pairs.shape[1], dtype=np.int64)
        self.ones = np.full(len(self.targets), int(self.vector.sum()), dtype=np.int64)

    def graph_of(self, target: int) -> Graph:
        """The graph in which every target is classified."""
        return self.graph

    def pairs_of(self, target: int) -> Tensor:
        """int64[2, entries]: the listed pairs, each as i < j."""
        return self.pairs

    def clean(self, target: int) -> Tensor:
        """bool[entries]: which of the listed pairs are edges."""
        return self.vector

    def _change(self, target: int, entries: Tensor) -> None:
        self.graph = self.graph.toggled(self.pairs[:, entries])
        self.graphs, self.vector = [self.graph], self.vector.clone()
        self.vector[entries] ^= True

    def digests(self) -> dict[str, str]:
        """The hashes of the graph and of the list of pairs."""
        return {"graph": self.graph.digest(), "pairs": update_digest("pairs", self.pairs)}


class Bits(Threat):
    """The attacker may change any entry of a binary feature vector; `x` is bool[targets, n], one row a target.

    >>> Bits([[0, 1, 1], [1, 0, 0]]).ones
    array([2, 1])
    """

    kind = "bits"
    words = Words(
        unit="input",
        one="flips one entry of the input",
        many="flips up to {k} entries of the input",
        adds="sets up to {k} of the input's zeros",
        deletes="clears up to {k} of the input's ones",
    )

    def __init__(self, x: Any) -> None:
        values = torch.as_tensor(np.asarray(x.todense()) if hasattr(x, "todense") else x).detach().cpu()
        if values.ndim != 2 or values.shape[0] == 0:
            raise InputError(f"Bits needs x of shape [targets, n], not {tuple(values.shape)}.")
        if not bool(((values == 0) | (values == 1)).all()):
            raise InputError("Bits needs zeros and ones only; binarise the features first.")
        self.x = values.bool()
        self.targets = np.arange(len(values))
        self.entries = np.full(len(values), values.shape[1], dtype=np.int64)
        self.ones = self.x.sum(dim=1).numpy()

    def clean(self, target: int) -> Tensor:
        """bool[n]: the row of the target."""
        return self.x[target]

    def _change(self, target: int, entries: Tensor) -> None:
        self.x = self.x[[target]].clone()
        self.x[0, entries] ^= True

    def digests(self) -> dict[str, str]:
        """The hash of the whole matrix."""
        return {"bits": update_digest("bits", self.x)}


def to_data(graph: Graph) -> Any:
    """The clean graph as a torch_geometric Data with its node-level constants."""
    from torch_geometric.data import Data

    return Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **graph.extras)


def read_nodes(nodes: Any, num_nodes: int) -> Tensor:
    """int64[targets] from whole numbers or a boolean mask over all nodes; order is kept."""
    chosen: Tensor = torch.as_tensor(nodes).detach().cpu()
    chosen = chosen[None] if chosen.ndim == 0 else chosen
    if chosen.dtype == torch.bool:
        if chosen.shape != (num_nodes,):
            raise InputError(f"A mask over nodes needs length {num_nodes}, not {tuple(chosen.shape)}.")
        chosen = chosen.nonzero().flatten()
    if chosen.ndim != 1 or chosen.numel() == 0:
        raise InputError("nodes must name at least one node, as whole numbers or as a boolean mask.")
    if chosen.is_floating_point() or chosen.is_complex():
        raise InputError("nodes must be whole numbers or a boolean mask.")
    if chosen.dtype == torch.uint8:  # an old kind of mask, which would be read as nodes 0 and 1
        raise InputError(
            "nodes of type uint8 may be a mask or numbers; give a boolean mask or int64 numbers."
        )
    if int(chosen.min()) < 0 or int(chosen.max()) >= num_nodes:
        raise InputError(f"nodes must lie between 0 and {num_nodes - 1}.")
    return chosen.long().clone()


def read_pairs(pairs: Any, num_nodes: int) -> Tensor:
    """int64[2, m] with i < j, in the order given, from [m, 2] or a list of tuples; a [2, m] tensor with m != 2 too."""
    listed = torch.as_tensor(np.asarray(pairs) if not isinstance(pairs, Tensor) else pairs).detach().cpu()
    if listed.ndim == 2 and listed.shape[1] != 2 and listed.shape[0] == 2:
        listed = listed.T
    if (
        listed.ndim != 2
        or listed.shape[1] != 2
        or not len(listed)
        or listed.is_floating_point()
        or listed.dtype == torch.bool
    ):
        raise InputError("pairs must be a list of node pairs, shape [m, 2], at least one.")
    low, high = listed.long().min(dim=1).values, listed.long().max(dim=1).values
    if int(low.min()) < 0 or int(high.max()) >= num_nodes or bool((low == high).any()):
        raise InputError(f"Each pair must name two different nodes between 0 and {num_nodes - 1}.")
    result = torch.stack([low, high])
    if torch.unique(pair_entries(result)).numel() != result.shape[1]:
        raise InputError("A pair is named twice; each pair is one entry.")
    return result
