"""How many links the certified targets have, and whether a graph can be the one they were certified in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified
from unswayed.certificates.presenting import plural
from unswayed.errors import InputError
from unswayed.report.neighbourhood import simple_edges

IntArray = npt.NDArray[np.int64]


def degrees(certs: Certified, data: Any) -> IntArray | None:
    """Neighbours of each target node; edges of each target graph; None where neither is known."""
    ones, kind = certs.about.ones, certs.about.threat.get("kind")
    row = kind in ("row", "row-new")
    if kind == "all-pairs" and data is not None and ones is not None:
        _check_edges(certs, data, ones)
    if data is None or isinstance(data, Sequence):
        return ones if row or certs.unit != "node" else None
    count = max(int(data.num_nodes), int(certs.targets.max()) + 1)
    sources, _ = simple_edges(np.asarray(data.edge_index).reshape(2, -1), count)
    found = np.bincount(sources, minlength=count)[certs.targets].astype(np.int64)
    if not row or ones is None:
        return found
    other = np.flatnonzero(found != ones)
    if kind == "row" and other.size:
        raise InputError(
            f"`data` is not the graph that was certified: {certs.unit} {certs.about.target_name(int(other[0]))} has {plural(int(found[other[0]]), 'link')} "
            f"there, and had {int(ones[other[0]]):,}. Give the graph as it was."
        )
    return ones


def _check_edges(certs: Certified, data: Any, ones: IntArray) -> None:
    """Refuse graphs with other numbers of edges than those that were certified against all pairs."""
    listed = list(data) if isinstance(data, Sequence) else [data]
    if certs.unit == "node":
        places = [0]  # one graph for all
    elif len(listed) == len(certs):
        places = list(range(len(certs)))
    else:
        places = certs.targets.tolist()
    for position, place in enumerate(places):
        if place >= len(listed):
            raise InputError(f"`data` has {plural(len(listed), 'graph')}, and number {place} was certified.")
        graph = listed[place]
        edges = simple_edges(np.asarray(graph.edge_index).reshape(2, -1), int(graph.num_nodes)).shape[1] // 2
        if edges != ones[position]:
            raise InputError(
                f"`data` is not what was certified: the graph of {certs.unit} {certs.about.target_name(position)} has "
                f"{plural(edges, 'edge')} there, and had {int(ones[position]):,}. Give what was certified, in its order."
            )
