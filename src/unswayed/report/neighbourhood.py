"""What the page needs to draw a target's surroundings, small enough to travel inside the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

NEAR = 24  # neighbours drawn around one node; the page says how many more there are
LARGEST = 150  # nodes drawn of one graph
BUDGET = 150_000  # numbers embedded for all pictures together: about one megabyte


def pictures(data: Any, targets: npt.NDArray[np.int64]) -> dict[str, Any] | None:
    """The surroundings of every target as plain lists, or None where there is no graph to draw.

    One graph: `near` maps each drawn node to its first neighbours, `degree` to how many it has, `label` to its class.
    A list of graphs: `graphs` has the edges of each target, `nodes` their sizes. Pictures beyond the budget are left
    out, the targets that come last first.
    """
    if data is None:
        return None
    if isinstance(data, Sequence):
        return _graphs(data, targets)
    return _nodes(data, targets) if getattr(data, "edge_index", None) is not None else None


def _nodes(data: Any, targets: npt.NDArray[np.int64]) -> dict[str, Any]:
    neighbours = _adjacency(np.asarray(data.edge_index), int(data.num_nodes))
    near: dict[int, list[int]] = {}
    spent = 0
    for node in _with_neighbours(targets.tolist(), neighbours):
        if spent > BUDGET:
            break
        if node not in near:
            near[node] = neighbours[node][:NEAR].tolist()
            spent += len(near[node]) + 2
    seen = sorted(set(near) | {other for others in near.values() for other in others})
    labels = getattr(data, "y", None)
    known = np.asarray(labels).reshape(-1) if labels is not None else np.full(int(data.num_nodes), -1)
    return {
        "kind": "nodes",
        "near": {str(node): others for node, others in near.items()},
        "degree": {str(node): len(neighbours[node]) for node in near},
        "label": {str(node): int(known[node]) for node in seen},
    }


def _with_neighbours(targets: list[int], neighbours: list[npt.NDArray[np.int64]]) -> list[int]:
    """All targets first, so that a tight budget costs second rings before it costs pictures."""
    return targets + [int(other) for node in targets for other in neighbours[node][:NEAR]]


def _adjacency(edges: npt.NDArray[np.int64], nodes: int) -> list[npt.NDArray[np.int64]]:
    proper = np.unique(edges[:, edges[0] != edges[1]], axis=1) if edges.size else edges.reshape(2, 0)
    ends = np.searchsorted(proper[0], np.arange(nodes + 1))
    return [proper[1, ends[node] : ends[node + 1]] for node in range(nodes)]


def _graphs(graphs: Sequence[Any], targets: npt.NDArray[np.int64]) -> dict[str, Any]:
    edges, nodes, spent = [], [], 0
    for place in range(len(targets)):
        graph = graphs[place] if len(graphs) == len(targets) else graphs[int(targets[place])]
        pairs = np.asarray(graph.edge_index)
        pairs = (
            np.unique(pairs[:, (pairs[0] < pairs[1]) & (pairs[1] < LARGEST)], axis=1) if pairs.size else pairs
        )
        spent += pairs.size
        edges.append(pairs.T.reshape(-1).tolist() if spent <= BUDGET else None)
        nodes.append(int(graph.num_nodes))
    return {"kind": "graphs", "graphs": edges, "nodes": nodes, "largest": LARGEST}
