"""`load`: the six benchmarks as PyG objects, the same graph in the same order whatever the source."""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from unswayed.datasets.catalog import CORA_TEXT, Entry, Task, entry
from unswayed.datasets.sources import locate

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
class Dataset:
    """A benchmark or the user's own data, ready to train on: one graph for node tasks, a list for graph tasks.

    `num_features` is 0 where nodes have none; models built for it then see degrees, recomputed from whatever edges
    they are given. `y` is -1 where a node has no label.
    """

    name: str
    task: Task
    num_features: int
    num_classes: int
    data: Data | None = None
    graphs: tuple[Data, ...] = ()
    node_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def graph(self) -> Data:
        """The one graph of a node-classification dataset."""
        assert self.data is not None, "a graph-classification dataset has many graphs"
        return self.data

    @property
    def labels(self) -> Tensor:
        """int64: the label of every node, or of every graph."""
        if self.task == "graph":
            return torch.cat([graph.y.view(-1) for graph in self.graphs])
        labels: Tensor = self.graph.y
        return labels


def load(name: str, *, fetch: bool = False) -> Dataset:
    """The benchmark `name`, verified against the shipped sha256; nothing is downloaded unless `fetch=True`."""
    about = entry(name)
    folder, files = locate(about, fetch=fetch)
    if about.task == "graph":
        graphs = tuple(_graphs(folder, about))
        return Dataset(about.name, "graph", about.features, about.classes, graphs=graphs)
    raw = _cora_text(folder) if files == CORA_TEXT else _planetoid(folder, about)
    return Dataset(about.name, "node", about.features, about.classes, data=_canonical(*raw))


def _canonical(x: Tensor, edge_index: Tensor, y: Tensor) -> Data:
    """Undirected edges without loops in one order, features that sum to one in each row (as in Kipf and Welling)."""
    edges = to_undirected(remove_self_loops(edge_index)[0], num_nodes=len(y))
    return Data(x=x / x.sum(dim=1, keepdim=True).clamp(min=1e-12), edge_index=coalesce(edges), y=y)


@contextlib.contextmanager
def _borrowed(folder: Path, name: str) -> Any:
    """A throw-away root for PyG's loaders, which write beside the files they read."""
    with (
        tempfile.TemporaryDirectory() as root,
        open(os.devnull, "w") as quiet,
        contextlib.redirect_stderr(quiet),
    ):
        (Path(root) / name).mkdir()
        (Path(root) / name / "raw").symlink_to(folder.resolve(), target_is_directory=True)
        yield root


def _planetoid(folder: Path, about: Entry) -> tuple[Tensor, Tensor, Tensor]:
    from torch_geometric.datasets import Planetoid

    with _borrowed(folder, about.folder) as root:
        data = Planetoid(root, about.folder)[0]
    return data.x, data.edge_index, data.y


def _cora_text(folder: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Cora's original text files in the node and class order of Planetoid's."""
    with resources.files("unswayed.datasets").joinpath("cora_order.npy").open("rb") as file:
        order = np.load(file, allow_pickle=False)
    rows = [line.split() for line in (folder / "cora.content").read_text().splitlines()]
    rows = [rows[i] for i in order]
    number = {row[0]: i for i, row in enumerate(rows)}
    links = [line.split() for line in (folder / "cora.cites").read_text().splitlines()]
    x = torch.from_numpy(np.array([row[1:-1] for row in rows], dtype=np.float32))
    y = torch.tensor([_CORA_CLASSES.index(row[-1]) for row in rows])
    return x, torch.tensor([[number[a], number[b]] for a, b in links]).t(), y


def _graphs(folder: Path, about: Entry) -> list[Data]:
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
