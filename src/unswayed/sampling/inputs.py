"""Whatever holds a graph, read into one clean form.

Accepted: a torch_geometric `Data` (also a `Batch`, a dataset or a list of `Data` where several graphs are asked for), a networkx
graph, a scipy sparse or dense adjacency matrix, and the tuple `(adjacency, features)`.
"""

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from unswayed.errors import InputError
from unswayed.sampling.graph import NAMES, Graph, pair_entries, update_hash

__all__ = [
    "NAMES",
    "Graph",
    "checked_names",
    "pair_entries",
    "read_arcs",
    "read_graph",
    "read_graphs",
    "unpacked",
    "update_hash",
]


def read_arcs(source: Any) -> tuple[Graph, Tensor]:
    """The nodes and self-loops of a directed graph, without edges, and its edges int64[2, m], each once, sorted by their ends."""
    if isinstance(source, tuple) and len(source) == 2 and _is_matrix(source[0]):
        parts, ends = _adjacency_parts(*source)
    elif _is_matrix(source):
        parts, ends = _adjacency_parts(source, None)
    elif hasattr(source, "edge_index") and hasattr(source, "num_nodes") and not _is_dataset(source):
        parts, ends = _pyg_parts(source)
    elif hasattr(source, "is_directed") and hasattr(source, "adjacency"):
        parts, ends = _networkx_parts(source)
    else:
        raise _unreadable(source)
    n = parts["num_nodes"]
    edges = checked_edges(n, ends)
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
    if hasattr(source, "edge_index") and hasattr(source, "num_nodes") and not _is_dataset(source):
        return _from_pyg(source)
    if hasattr(source, "is_directed") and hasattr(source, "adjacency"):
        return _from_networkx(source)
    raise _unreadable(source)


def unpacked(source: Any) -> Any:
    """The graphs of a PyG `Batch` or dataset (or of a part of one) as a list, of one graph the graph; whatever else there is as it is."""
    if hasattr(source, "to_data_list") and getattr(source, "batch", None) is not None:
        return source.to_data_list()
    if _is_dataset(source):
        return source[0] if len(source) == 1 else [source[place] for place in range(len(source))]
    return source


def read_graphs(source: Any) -> list[Graph]:
    """Several clean graphs from a list, a `Batch`, a PyG dataset, or one graph alone; what is listed twice is one graph."""
    source = unpacked(source)
    many = isinstance(source, Sequence) and not (
        isinstance(source, tuple)
        and len(source) == 2
        and _is_matrix(source[0])
        and not _is_square(source[1], source[0])
    )
    sources = list(source) if many else [source]  # held, so that no two of them have one id
    read = {id(item): read_graph(item) for item in sources}
    if not read:
        raise InputError("There is no graph in the list.")
    return [read[id(item)] for item in sources]


def _is_dataset(source: Any) -> bool:
    """Whether it holds several graphs, though it may answer like one, by joining them all."""
    return isinstance(source, TorchDataset) and isinstance(source, Sized)


def _unreadable(source: Any) -> InputError:
    """What to give instead."""
    if hasattr(source, "edge_types"):
        return InputError(
            "A HeteroData has several kinds of nodes and edges; name the relation that is attacked: "
            "threat = Relation(data, relation, nodes), then poll(threat.asking(module), threat, noise)."
        )
    hint = ""
    if hasattr(source, "columns"):
        hint = " (a table of edges: networkx.from_pandas_edgelist, or unswayed.datasets.read_csv for files)"
    elif hasattr(source, "get") and hasattr(source, "num_classes"):
        hint = " (a dataset holds several graphs: take one of them, as in dataset[0])"
    return InputError(
        f"A graph cannot be read from {type(source).__name__}{hint}; give a torch_geometric Data, a networkx graph, "
        "an adjacency matrix, or (adjacency, features)."
    )


def _is_matrix(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray | Tensor) or (hasattr(value, "tocoo") and hasattr(value, "shape"))
    return is_array and len(value.shape) == 2


def _is_square(value: Any, like: Any) -> bool:
    """Whether a pair of matrices can only be two adjacencies: the second is a sparse square one."""
    return hasattr(value, "tocoo") and value.shape[0] == value.shape[1] and value.shape != like.shape


def checked_edges(num_nodes: int, edge_index: Any) -> Tensor:
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
    edges = checked_edges(num_nodes, edge_index)
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
        "names": checked_names(getattr(data, NAMES, None), n),
        "edge_data": edge_data,
        "left_out": tuple(name for name in names if name not in edge_data and name not in extras),
        "kind": "" if _is_plain(type(data)) else type(data).__name__,
    }
    return {"num_nodes": n, "x": _features(data.x, n), "extras": extras, **rest}, data.edge_index


def checked_names(given: Any, num_nodes: int) -> tuple[Any, ...]:
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
        hint = "; if these are features and edges, give them as torch_geometric's Data(x=x, edge_index=edge_index)"
        listed = 2 in (n, 0 if x is None else len(x))
        raise InputError(
            f"An adjacency matrix must be square, not {tuple(adjacency.shape)}{hint if listed else ''}."
        )
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
            "The adjacency matrix has values other than 0 and 1, and an edge is there or not: give (adjacency != 0), "
            "and a model that reads weights gets them by the threat's edge_attr=."
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
    """Node i is the i-th node of the graph's own order, and called what the graph calls it; the features are the node attribute `x`."""
    place = {node: i for i, node in enumerate(graph)}
    ends = [(place[u], place[v]) for u, v in graph.edges()]
    on_edges = {f"edge {name}" for _, _, attributes in graph.edges(data=True) for name in attributes}
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    x = _attribute_x(graph)
    both = edges if graph.is_directed() else np.concatenate([edges, edges[::-1]], axis=1)
    names = () if list(place) == list(range(len(place))) else tuple(place)
    told = {"x": _features(x, len(place)), "edge_data": tuple(sorted(on_edges)), "names": names}
    return {"num_nodes": len(place), **told}, both


def _attribute_x(graph: Any) -> Any:
    """float32[n, features] of the nodes' attribute `x`, None where no node has one; refused where they are not all alike."""
    rows = {node: attributes.get("x") for node, attributes in graph.nodes(data=True)}
    if all(row is None for row in rows.values()):
        return None
    kinds: dict[Any, Any] = {}
    for node, row in rows.items():
        if row is None:
            raise InputError(
                f"Node {node!r} has no attribute 'x' and others have; give one to every node or to none."
            )
        try:
            numbers = np.asarray(row, dtype=np.float32).reshape(-1)
        except (TypeError, ValueError):
            raise InputError(
                f"The attribute 'x' of node {node!r} is not a list of numbers: {row!r}."
            ) from None
        kinds.setdefault(len(numbers), node)
        if len(kinds) > 1:
            (few, one), (many, other) = kinds.items()
            raise InputError(
                f"Nodes need equally many numbers in their attribute 'x', and {one!r} has {few}, {other!r} has {many}."
            )
        rows[node] = numbers
    return np.stack(list(rows.values()))
