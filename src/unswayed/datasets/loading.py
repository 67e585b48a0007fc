"""`load`: the benchmarks as PyG objects, the same graph in the same order whatever the source."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from unswayed.datasets.catalog import Task, entry
from unswayed.datasets.readers import graphs_of, node_reader
from unswayed.datasets.sources import locate
from unswayed.errors import InputError


@dataclass(frozen=True, eq=False)
class Dataset:
    """A benchmark or the user's own data, ready to train on: one graph for node tasks, a list for graph tasks.

    `num_features` is 0 where nodes have none; x is then a column of ones, and networks for whole graphs see degrees,
    recomputed from whatever edges they are given. `y` is -1 where a node has no label. `labelled` is the share of nodes
    whose labels the declared split knows (None: twenty of each class).
    """

    name: str
    task: Task
    num_features: int
    num_classes: int
    data: Data | None = None
    graphs: tuple[Data, ...] = ()
    node_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    labelled: float | None = None

    def __post_init__(self) -> None:
        for graph in self.graphs if self.data is None else (self.data,):
            _check_features(graph.x, max(self.num_features, 1))
            if graph.y.dtype != torch.int64 or (self.task == "node" and graph.y.ndim != 1):
                raise InputError(
                    f"Labels must be one int64 number each, not {graph.y.dtype} of shape {tuple(graph.y.shape)}."
                )

    def __repr__(self) -> str:
        what = f"{len(self.graphs)} graphs" if self.data is None else f"{self.data.num_nodes} nodes"
        return f"Dataset({self.name}: {what}, {self.num_features} features, {self.num_classes} classes)"

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


def check_dataset(dataset: object) -> None:
    """Refuse what is no dataset, and say what makes one."""
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"A dataset is expected, not {type(dataset).__name__}; unswayed.datasets.from_data makes one of your own data."
        )


def _check_features(x: Tensor | None, columns: int) -> None:
    """Refuse what networks would not learn from, or would learn nonsense from in silence."""
    if x is None or x.layout != torch.strided or x.dtype != torch.float32 or x.shape[1:] != (columns,):
        told = "none" if x is None else f"{x.dtype} of shape {tuple(x.shape)} ({x.layout})"
        raise InputError(
            f"Features must be a dense float32 table with {columns} column{'s' * (columns > 1)} (one of ones where nodes have none), "
            f"not {told}; x.to_dense().float() makes one."
        )
    if not bool(x.isfinite().all()):
        node = int((~x.isfinite()).any(dim=1).nonzero()[0])
        raise InputError(f"Node {node} has a feature that is NaN or infinite; fill it or drop the node.")


def load(name: str, *, fetch: bool = False) -> Dataset:
    """The benchmark `name`, verified against the shipped sha256; nothing is downloaded unless `fetch=True`."""
    about = entry(name)
    folder, files = locate(about, fetch=fetch)
    if about.task == "graph":
        graphs = tuple(graphs_of(folder, about))
        return Dataset(about.name, "graph", about.features, about.classes, graphs=graphs)
    read = node_reader(about, files)(folder, about)
    return Dataset(
        about.name,
        "node",
        read.features,
        about.classes,
        data=read.data(),
        class_names=read.class_names,
        labelled=about.labelled,
    )
