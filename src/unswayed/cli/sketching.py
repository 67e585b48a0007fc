"""The graph of a stored run, as far as its pictures need it."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from unswayed.cli.targets import Targets
    from unswayed.datasets import Dataset


@dataclass(frozen=True)
class Sketch:
    """Just enough of a graph to draw it."""

    edge_index: npt.NDArray[np.int64]
    num_nodes: int
    y: npt.NDArray[np.int64] | None = None


def arrays_of(graph: Sketch | tuple[Sketch, ...]) -> dict[str, npt.NDArray[np.int64]]:
    """What is written of it."""
    parts = (graph,) if isinstance(graph, Sketch) else graph
    arrays = {
        "one": np.array([isinstance(graph, Sketch)], np.int64),
        "edges": np.concatenate([part.edge_index for part in parts], axis=1),
        "counts": np.array([part.edge_index.shape[1] for part in parts]),
        "nodes": np.array([part.num_nodes for part in parts]),
    }
    return arrays if isinstance(graph, tuple) or graph.y is None else {**arrays, "y": graph.y}


def read_graph(path: Path) -> Sketch | tuple[Sketch, ...] | None:
    """What was written; None where nothing was."""
    if not path.exists():
        return None
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    pieces = np.split(arrays["edges"], np.cumsum(arrays["counts"])[:-1], axis=1)
    if arrays["one"][0]:
        return Sketch(pieces[0], int(arrays["nodes"][0]), arrays.get("y"))
    return tuple(Sketch(piece, int(nodes)) for piece, nodes in zip(pieces, arrays["nodes"], strict=True))


def sketches(data: "Dataset", targets: "Targets") -> Sketch | tuple[Sketch, ...]:
    """The one graph, or the graphs that are targets, as far as a picture needs them."""
    if data.task == "graph":
        return tuple(_sketch(data.graphs[int(place)]) for place in targets.ids)
    return _sketch(data.graph)


def _sketch(data: Any) -> Sketch:
    label = None if data.y is None else data.y.view(-1).numpy().astype(np.int64)
    return Sketch(data.edge_index.numpy().astype(np.int64), int(data.num_nodes), label)
