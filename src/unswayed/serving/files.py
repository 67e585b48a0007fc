"""A service in a file: its graph, its settings, and which model it belongs to. Nothing is pickled."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from unswayed.errors import StoreError
from unswayed.files import damaged, read_arrays, write_arrays
from unswayed.serving.still import Still

FORMAT = 1
WHAT = "file of a service"
EXTRA = "extra."
TEXTS = ("edge_data", "left_out", "kind", "names")


def save(path: str | os.PathLike[str], graph: Still, told: Mapping[str, Any]) -> None:
    """Write everything to one file, atomically."""
    arrays = {"pairs": graph.pairs.numpy(), "loops": graph.loops.numpy()}
    if graph.x is not None:
        arrays["x"] = graph.x.numpy()
    arrays |= {EXTRA + name: value.numpy() for name, value in graph.extras.items()}
    words = {"num_nodes": graph.num_nodes, **{name: getattr(graph, name) for name in TEXTS}}
    write_arrays(path, {"service": FORMAT, "graph": words, **told}, arrays)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Still]:
    """(what was told, the graph); an altered, truncated or foreign file is refused."""
    header, arrays = read_arrays(path, WHAT)
    if header.get("service") != FORMAT:
        raise StoreError(f"{path} is no {WHAT}, or one of another version of this package.")
    try:
        words = header["graph"]
        graph = Still(
            num_nodes=int(words["num_nodes"]),
            pairs=_tensor(arrays["pairs"]),
            loops=_tensor(arrays["loops"]),
            x=_tensor(arrays["x"]) if "x" in arrays else None,
            extras={n.removeprefix(EXTRA): _tensor(v) for n, v in arrays.items() if n.startswith(EXTRA)},
            edge_data=tuple(words["edge_data"]),
            left_out=tuple(words["left_out"]),
            kind=str(words["kind"]),
            names=tuple(_name(name) for name in words["names"]),
        )
        _ = header["settings"]["noise"], header["model"]["sha256"], dict(header["audited"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, WHAT) from error
    return header, graph


def same_model(path: str | os.PathLike[str], stored: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuse another model than the one the service was made with."""
    if stored["sha256"] != given["sha256"]:
        raise StoreError(
            f"{path} is the service of another model ({stored['name']}, now {given['name']}; code, settings or weights differ); "
            "load the weights it was made with, or make a new service."
        )


def _name(told: Any) -> Any:
    """What a node is called; JSON knows no tuples."""
    return tuple(map(_name, told)) if isinstance(told, list) else told


def _tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
