"""How each benchmark's files become one graph, through PyG's own classes where there is one.

Those write beside what they read, so they are given a throw-away folder. Of people only what the task needs is kept:
no names are in the files, the class year is never among the features, and nothing here prints a row.
"""

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, subgraph, to_undirected

from unswayed.datasets.catalog import CORA_TEXT, Entry

YEAR = 5  # the column of Facebook's table that is the task; the others may be features
STUDENTS = 100  # a class year has at least so many
HOLDERS = 20  # a feature is a value that at least so many share; a department has at least so many members

_CORA_CLASSES = (  # Planetoid's class numbers
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)


@dataclass(frozen=True, eq=False)
class Read:
    """What a reader found: edges in any order and direction, a label for each node, features or None."""

    x: Tensor | None
    edge_index: Tensor
    y: Tensor
    class_names: tuple[str, ...] | None = None

    @property
    def features(self) -> int:
        """How many numbers describe a node; 0 where it has none."""
        return 0 if self.x is None else int(self.x.shape[1])

    def data(self) -> Data:
        """Undirected edges without loops in one order; a column of ones where there are no features."""
        x = torch.ones(len(self.y), 1) if self.x is None else self.x
        edges = to_undirected(remove_self_loops(self.edge_index)[0], num_nodes=len(self.y))
        return Data(x=x, edge_index=coalesce(edges), y=self.y)


Reader = Callable[[Path, Entry], Read]


def node_reader(about: Entry, files: tuple[str, ...]) -> Reader:
    """The reader of a node-classification benchmark, by the form its files have."""
    if files == CORA_TEXT:
        return _cora_text
    return _READERS.get(about.name, _planetoid)


def _shares(x: Tensor) -> Tensor:
    """Features that sum to one in each row, as in Kipf and Welling."""
    return x / x.sum(dim=1, keepdim=True).clamp(min=1e-12)


def _kept(read: Read, keep: np.ndarray) -> Read:
    """The same graph with these nodes alone, and the classes numbered anew in order."""
    nodes = torch.from_numpy(np.flatnonzero(keep))
    edges, _ = subgraph(nodes, read.edge_index, relabel_nodes=True, num_nodes=len(read.y))
    found, y = np.unique(read.y[nodes].numpy(), return_inverse=True)
    x = None if read.x is None else read.x[nodes]
    return Read(x, edges, torch.from_numpy(y), tuple(map(str, found.tolist())))


@contextlib.contextmanager
def _borrowed(folder: Path, name: str) -> Any:
    """A throw-away root for PyG's loaders, which write beside the files they read."""
    with (
        tempfile.TemporaryDirectory() as root,
        open(os.devnull, "w") as quiet,
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
    ):
        # PyG's, of what pandas lent it
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        (Path(root) / name).mkdir()
        (Path(root) / name / "raw").symlink_to(folder.resolve(), target_is_directory=True)
        yield root


def _planetoid(folder: Path, about: Entry) -> Read:
    from torch_geometric.datasets import Planetoid

    with _borrowed(folder, about.folder) as root:
        data = Planetoid(root, about.folder)[0]
    return Read(_shares(data.x), data.edge_index, data.y)


def _cora_text(folder: Path, about: Entry) -> Read:
    """Cora's original text files in the node and class order of Planetoid's."""
    with resources.files("unswayed.datasets").joinpath("cora_order.npy").open("rb") as file:
        order = np.load(file, allow_pickle=False)
    rows = [line.split() for line in (folder / "cora.content").read_text().splitlines()]
    rows = [rows[i] for i in order]
    number = {row[0]: i for i, row in enumerate(rows)}
    links = [line.split() for line in (folder / "cora.cites").read_text().splitlines()]
    x = torch.from_numpy(np.array([row[1:-1] for row in rows], dtype=np.float32))
    y = torch.tensor([_CORA_CLASSES.index(row[-1]) for row in rows])
    return Read(_shares(x), torch.tensor([[number[a], number[b]] for a, b in links]).t(), y)


def _facebook(folder: Path, about: Entry) -> Read:
    """Friends at one college; the class year, of students of the larger years, from everything but the year."""
    from scipy.io import loadmat

    table = loadmat(folder / "data.mat")
    info = table["local_info"].astype(np.int64)
    year, friends = info[:, YEAR], table["A"].tocoo()
    large = [value for value in np.unique(year) if value and (year == value).sum() >= STUDENTS]
    keep = np.isin(year, large)
    edges = torch.from_numpy(np.stack([friends.row, friends.col]).astype(np.int64))
    plain = _kept(Read(None, edges, torch.from_numpy(year)), keep)
    x = one_hot(np.delete(info[keep], YEAR, axis=1))
    return Read(torch.from_numpy(x), plain.edge_index, plain.y, plain.class_names)


def one_hot(columns: np.ndarray) -> np.ndarray:
    """float32: a column for each value that at least 20 rows hold; 0 means missing and is nobody's value."""
    found = []
    for values in columns.T:
        known, counts = np.unique(values, return_counts=True)
        common = known[(known != 0) & (counts >= HOLDERS)]
        found.append(values[:, None] == common)
    return np.concatenate(found, axis=1).astype(np.float32)


def _polblogs(folder: Path, about: Entry) -> Read:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from torch_geometric.datasets import PolBlogs

    with _borrowed(folder, about.folder) as root:
        data = PolBlogs(str(Path(root) / about.folder))[0]
    n, links = int(data.num_nodes), data.edge_index.numpy()
    _, part = connected_components(coo_array((np.ones(links.shape[1]), links), shape=(n, n)), directed=False)
    return _kept(Read(None, data.edge_index, data.y.long()), part == np.bincount(part).argmax())


def _email(folder: Path, about: Entry) -> Read:
    from torch_geometric.datasets import EmailEUCore

    with _borrowed(folder, about.folder) as root:
        data = EmailEUCore(str(Path(root) / about.folder))[0]
    return _kept(Read(None, data.edge_index, data.y), (data.y.bincount() >= HOLDERS)[data.y].numpy())


def _amazon(folder: Path, about: Entry) -> Read:
    from torch_geometric.datasets import Amazon

    with _borrowed(folder, about.folder) as root:
        data = Amazon(root, about.folder)[0]
    return Read(data.x, data.edge_index, data.y)


def _tolokers(folder: Path, about: Entry) -> Read:
    from torch_geometric.datasets import HeterophilousGraphDataset

    with _borrowed(folder, about.folder) as root:
        data = HeterophilousGraphDataset(root, about.folder)[0]
    return Read(data.x, data.edge_index, data.y, ("not banned", "banned"))


def _contacts(folder: Path, about: Entry) -> Read:
    """People of a school who were ever face to face; their class is the label (a primary school's teachers are one more)."""
    rows = [line.split() for line in (folder / about.files[0]).read_text().splitlines()]
    class_of = {row[1 + side]: row[3 + side] for row in rows for side in (0, 1)}
    number = {student: i for i, student in enumerate(sorted(class_of, key=int))}
    names = tuple(sorted(set(class_of.values())))
    pairs = {(number[row[1]], number[row[2]]) for row in rows}
    y = torch.tensor([names.index(class_of[student]) for student in number])
    return Read(None, torch.tensor(sorted(pairs)).t(), y, names)


_READERS: dict[str, Reader] = {
    "amherst41": _facebook,
    "cornell5": _facebook,
    "polblogs": _polblogs,
    "emaileucore": _email,
    "photo": _amazon,
    "computers": _amazon,
    "tolokers": _tolokers,
    "highschool": _contacts,
    "primaryschool": _contacts,
}


def graphs_of(folder: Path, about: Entry) -> list[Data]:
    """Edge labels are left out: an edge that noise adds would have none. Without features, x is a column of ones."""
    from torch_geometric.datasets import TUDataset

    with _borrowed(folder, about.folder) as root:
        graphs = list(TUDataset(root, about.folder))
    plain = []
    for graph in graphs:
        x = graph.x if about.features else torch.ones(graph.num_nodes, 1)
        edges = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
        plain.append(Data(x=x[:, -max(about.features, 1) :].float(), edge_index=edges, y=graph.y))
    return plain
