"""What the page needs to draw a target's surroundings, small enough to travel inside the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified

NEAR = 24  # neighbours drawn around one node; the page says how many more there are
LARGEST = 150  # nodes drawn of one graph
ATTACKS = 2_000  # targets whose attack is looked for, the weakest first
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


def with_attacks(
    picture: dict[str, Any] | None, data: Any, certs: Certified, order: npt.NDArray[np.int64]
) -> dict[str, Any] | None:
    """The pictures with an attack that is known to succeed on each target drawn in, as far as one is known.

    Of a node `attack` lists the other ends of its changed links, of a graph the ends of its changed pairs; None where no
    attack is known or it does not fit the picture.
    """
    if picture is None:
        return None
    of_nodes = picture["kind"] == "nodes"
    found = [_attack(certs, int(place), of_nodes) for place in order[:ATTACKS]]
    if of_nodes and (labels := getattr(data, "y", None)) is not None:
        known = np.asarray(labels).reshape(-1)
        picture["label"].update({str(end): int(known[end]) for ends in found for end in ends or ()})
    return {**picture, "attack": found}


def _attack(certs: Certified, position: int, of_nodes: bool) -> list[int] | None:
    entries = certs.known_attack(position)
    if entries is None or len(entries) > NEAR:
        return None
    pairs = [certs.about.ends(position, int(entry)) for entry in entries]
    own = int(certs.targets[position])
    if any(pair is None or (of_nodes and own not in pair) for pair in pairs):
        return None
    ends = [end for pair in pairs if pair is not None for end in pair]
    return [end for end in ends if end != own] if of_nodes else ends


def simple_edges(edges: npt.NDArray[np.int64], nodes: int) -> npt.NDArray[np.int64]:
    """The distinct edges without loops, both ways, sorted by source and then by target."""
    both = np.concatenate([edges, edges[::-1]], axis=1)
    kept = both[:, both[0] != both[1]].astype(np.int64)
    keys = np.unique(kept[0] * nodes + kept[1])
    return np.stack([keys // nodes, keys % nodes])


def _nodes(data: Any, targets: npt.NDArray[np.int64]) -> dict[str, Any]:
    count = int(data.num_nodes)
    sources, others = simple_edges(np.asarray(data.edge_index).reshape(2, -1), count)
    ends = np.searchsorted(sources, np.arange(count + 1))
    inside = targets[targets < count].tolist()  # nodes that arrive are not in the graph
    first = {node: others[ends[node] : ends[node + 1]][:NEAR].tolist() for node in inside}
    second = [other for around in first.values() for other in around]
    near: dict[int, list[int]] = {}
    spent = 0
    for node in [*first, *second]:  # a tight budget costs second rings before it costs pictures
        if node not in near and spent < BUDGET:
            near[node] = others[ends[node] : ends[node + 1]][:NEAR].tolist()
            spent += len(near[node]) + 2
    seen = sorted({*near, *(other for around in near.values() for other in around)})
    labels = getattr(data, "y", None)
    known = np.full(count, -1) if labels is None else np.asarray(labels).reshape(-1)
    return {
        "kind": "nodes",
        "near": {str(node): around for node, around in near.items()},
        "degree": {str(node): int(ends[node + 1] - ends[node]) for node in near},
        "label": {str(node): int(known[node]) for node in seen},
    }


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
