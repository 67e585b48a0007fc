"""Whatever holds a graph, read into one clean form: simple undirected pairs, self-loops apart, features constant.

Accepted: a torch_geometric `Data` (also a `Batch` or a list of `Data` where several graphs are asked for), a networkx
graph, a scipy sparse or dense adjacency matrix, and the tuple `(adjacency, features)`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unswayed.errors import InputError

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
    flat = value.reshape(-1)
    hashed.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")


def pair_entries(pairs: Tensor) -> Tensor:
    """The entry number j(j-1)/2 + i of each pair i < j; a small graph's entries are a prefix of a larger one's."""
    return pairs[1] * (pairs[1] - 1) // 2 + pairs[0]


def read_arcs(source: Any) -> tuple[Graph, Tensor]:
    """The nodes and self-loops of a directed graph, without edges, and its edges int64[2, m], each once, sorted by their ends."""
    if isinstance(source, tuple) and len(source) == 2 and _is_matrix(source[0]):
        parts, ends = _adjacency_parts(*source)
    elif _is_matrix(source):
        parts, ends = _adjacency_parts(source, None)
    elif hasattr(source, "edge_index") and hasattr(source, "num_nodes"):
        parts, ends = _pyg_parts(source)
    elif hasattr(source, "is_directed") and hasattr(source, "adjacency"):
        parts, ends = _networkx_parts(source)
    else:
        raise _unreadable(source)
    n = parts["num_nodes"]
    edges = _checked_edges(n, ends)
    code = torch.unique((edges[0] * n + edges[1])[edges[0] != edges[1]])
    loops = torch.unique(edges[0, edges[0] == edges[1]])
    return Graph(**parts, pairs=edges[:, :0], loops=loops), torch.stack([code // n, code % n])


def read_graph(source: Any) -> Graph:
    """One clean graph; directed input is refused, duplicate edges merge, self-loops are kept apart."""
    if isinstance(source, Graph):
        return source
    if isinstance(source, tuple) and len(source) == 2 and _is_matrix(source[0]):
        return _from_adjacency(*source)
    if _is_matrix(source):
        return _from_adjacency(source, None)
    if hasattr(source, "edge_index") and hasattr(source, "num_nodes"):
        return _from_pyg(source)
    if hasattr(source, "is_directed") and hasattr(source, "adjacency"):
        return _from_networkx(source)
    raise _unreadable(source)


def read_graphs(source: Any) -> list[Graph]:
    """Several clean graphs from a list, a `Batch`, a PyG dataset, or one graph alone."""
    if hasattr(source, "to_data_list"):
        source = (
            source.to_data_list() if hasattr(source, "num_graphs") and source.batch is not None else [source]
        )
    many = isinstance(source, Sequence) and not (
        isinstance(source, tuple)
        and len(source) == 2
        and _is_matrix(source[0])
        and not _is_square(source[1], source[0])
    )
    graphs = [read_graph(item) for item in source] if many else [read_graph(source)]
    if not graphs:
        raise InputError("There is no graph in the list.")
    return graphs


def _unreadable(source: Any) -> InputError:
    """What to give instead."""
    if hasattr(source, "edge_types"):
        return InputError(
            "A HeteroData has several kinds of nodes and edges; give a Data with the edge_index of the relation that is attacked, "
            "and let the module hold the others, which stay as they are."
        )
    tables = (
        " (a table of edges: networkx.from_pandas_edgelist, or unswayed.datasets.read_csv for files)"
        if hasattr(source, "columns")
        else ""
    )
    return InputError(
        f"A graph cannot be read from {type(source).__name__}{tables}; give a torch_geometric Data, a networkx graph, "
        "an adjacency matrix, or (adjacency, features)."
    )


def _is_matrix(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray | Tensor) or (hasattr(value, "tocoo") and hasattr(value, "shape"))
    return is_array and len(value.shape) == 2


def _is_square(value: Any, like: Any) -> bool:
    """Whether a pair of matrices can only be two adjacencies: the second is a sparse square one."""
    return hasattr(value, "tocoo") and value.shape[0] == value.shape[1] and value.shape != like.shape


def _checked_edges(num_nodes: int, edge_index: Any) -> Tensor:
    """int64[2, edges] between nodes that exist."""
    edges = torch.as_tensor(edge_index).cpu()
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise InputError(f"edge_index must hold whole numbers in shape [2, edges], not {tuple(edges.shape)}.")
    edges = edges.as_subclass(Tensor).long()
    if num_nodes < 1:
        raise InputError("The graph has no nodes.")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= num_nodes):
        raise InputError(
            f"An edge names node {int(edges.max())} or below 0, but the graph has {num_nodes} nodes."
        )
    return edges


def _clean(num_nodes: int, edge_index: Any, **rest: Any) -> Graph:
    """Check and canonicalise an edge list in both directions."""
    edges = _checked_edges(num_nodes, edge_index)
    loops = torch.unique(edges[0, edges[0] == edges[1]])
    code = edges[0] * num_nodes + edges[1]
    upward = torch.unique(code[edges[0] < edges[1]])
    downward = torch.unique((edges[1] * num_nodes + edges[0])[edges[0] > edges[1]])
    if not torch.equal(upward, downward):
        raise InputError(
            "The graph is directed: some edge has no counterpart in the other direction; "
            "certify it as such with Directed(data, nodes), or make it undirected first (torch_geometric.utils.to_undirected)."
        )
    pairs = torch.stack([upward // num_nodes, upward % num_nodes])
    return Graph(num_nodes, pairs[:, torch.argsort(pair_entries(pairs))], loops, **rest)


def _features(value: Any, num_nodes: int) -> Tensor | None:
    """Constant node features: float tensors and integer ids as they are, everything else as float32."""
    if value is None:
        return None
    if hasattr(value, "todense"):
        value = np.asarray(value.todense())
    if isinstance(value, Tensor) and value.layout != torch.strided:
        value = value.to_dense()
    keep = isinstance(value, Tensor) and value.dtype not in (torch.bool, torch.uint8)
    x: Tensor = torch.as_tensor(value).detach().cpu()
    if x.ndim == 0 or x.shape[0] != num_nodes:
        raise InputError(f"The features have shape {tuple(x.shape)}, but the graph has {num_nodes} nodes.")
    return (x if keep else x.float()).contiguous()


def _from_pyg(data: Any) -> Graph:
    parts, edges = _pyg_parts(data)
    return _clean(parts.pop("num_nodes"), edges, **parts)


def _pyg_parts(data: Any) -> tuple[dict[str, Any], Any]:
    """The parts of a Graph beside its edges, and the edges."""
    if data.edge_index is None or isinstance(data.edge_index, dict):
        raise InputError("The Data has no edge_index; one homogeneous graph with an edge_index is needed.")
    n = data.num_nodes
    known = {"x", "edge_index", "batch", "ptr", "num_nodes"}
    names = [str(name) for name in data.keys() if str(name) not in known]  # noqa: SIM118 (Data is no mapping)
    edge_data = tuple(name for name in names if name.startswith("edge_") and data[name] is not None)
    extras = {
        name: data[name].detach().cpu()
        for name in names
        if name not in edge_data
        and isinstance(data[name], Tensor)
        and data[name].ndim
        and data[name].shape[0] == n
        if name != "y" or n > 1
    }
    rest: dict[str, Any] = {
        "names": _names(getattr(data, NAMES, None), n),
        "edge_data": edge_data,
        "left_out": tuple(name for name in names if name not in edge_data and name not in extras),
        "kind": "" if _is_plain(type(data)) else type(data).__name__,
    }
    return {"num_nodes": n, "x": _features(data.x, n), "extras": extras, **rest}, data.edge_index


def _names(given: Any, num_nodes: int) -> tuple[Any, ...]:
    """What a Data calls its nodes, one different name for each."""
    names = () if given is None else tuple(given.tolist() if hasattr(given, "tolist") else given)
    if given is not None and (len(names) != num_nodes or len(set(names)) != num_nodes):
        raise InputError(
            f"{NAMES} must hold a different name for each of the {num_nodes} nodes; it holds {len(set(names))} of {len(names)}."
        )
    return names


def _is_plain(kind: type) -> bool:
    """Whether the class, its mixins included, is torch_geometric's own (its batches are made by a metaclass)."""
    own = [
        base for base in kind.__mro__ if base.__module__.partition(".")[0] not in ("torch_geometric", "abc")
    ]
    return all(base.__module__ in ("builtins", "typing", "collections.abc") for base in own)


def _from_adjacency(adjacency: Any, x: Any) -> Graph:
    parts, edges = _adjacency_parts(adjacency, x)
    return _clean(parts.pop("num_nodes"), edges, **parts)


def _adjacency_parts(adjacency: Any, x: Any) -> tuple[dict[str, Any], Any]:
    n = adjacency.shape[0]
    if adjacency.shape != (n, n):
        raise InputError(f"An adjacency matrix must be square, not {tuple(adjacency.shape)}.")
    if hasattr(adjacency, "tocoo"):
        entries = adjacency.tocoo()
        rows, columns, values = entries.row, entries.col, entries.data
    else:
        if isinstance(adjacency, Tensor):
            dense = adjacency.to_dense() if adjacency.layout != torch.strided else adjacency
            adjacency = dense.detach().cpu().numpy()
        rows, columns = np.nonzero(adjacency)
        values = adjacency[rows, columns]
    if not np.all((values == 0) | (values == 1)):
        raise InputError(
            "The adjacency matrix has values other than 0 and 1; weighted edges cannot be smoothed."
        )
    edges = np.stack([rows, columns])[:, np.asarray(values) != 0].astype(np.int64)
    return {"num_nodes": n, "x": _features(x, n)}, edges


def _from_networkx(graph: Any) -> Graph:
    if graph.is_directed():
        raise InputError(
            "The networkx graph is directed; certify it as such with Directed(graph, nodes), or make it undirected first "
            "(graph.to_undirected())."
        )
    parts, edges = _networkx_parts(graph)
    return _clean(parts.pop("num_nodes"), edges, **parts)


def _networkx_parts(graph: Any) -> tuple[dict[str, Any], Any]:
    """Node i is the i-th node of the graph's own order, and called what the graph calls it; the features are the node attribute
    `x` where all have one."""
    place = {node: i for i, node in enumerate(graph)}
    ends = [(place[u], place[v]) for u, v in graph.edges()]
    on_edges = {f"edge {name}" for _, _, attributes in graph.edges(data=True) for name in attributes}
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    rows = [attributes.get("x") for _, attributes in graph.nodes(data=True)]
    x = (
        None
        if any(row is None for row in rows)
        else np.asarray(rows, dtype=np.float32).reshape(len(rows), -1)
    )
    both = edges if graph.is_directed() else np.concatenate([edges, edges[::-1]], axis=1)
    names = () if list(place) == list(range(len(place))) else tuple(place)
    told = {"x": _features(x, len(place)), "edge_data": tuple(sorted(on_edges)), "names": names}
    return {"num_nodes": len(place), **told}, both
