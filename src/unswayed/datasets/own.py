"""The user's own PyG objects as a dataset, and what training asks of any dataset and its parts."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from unswayed.datasets.loading import Dataset, check_dataset
from unswayed.datasets.splits import Split
from unswayed.errors import DoubtfulSetting, InputError
from unswayed.sampling.inputs import NAMES, checked_edges, checked_names, unpacked


def from_data(data: Data | Sequence[Data], *, classes: int | None = None) -> Dataset:
    """Your own graph with a label `y` for each node (−1 or NaN: unknown), or a list or dataset of graphs with one `y` each, to train on.

    `classes` is how many there are (default: as many as the labels say). Attributes of edges are left out: an edge that
    noise adds would have none. What nodes of one graph are called (`node_names`) is kept.
    """
    data = unpacked(data)
    if isinstance(data, Data):
        _tell_of_attributes([data])
        graph = _plain(data, data.num_nodes)
        if names := checked_names(getattr(data, NAMES, None), graph.num_nodes):
            graph[NAMES] = list(names)  # so that what is frozen on it knows whose tables are whose
        return Dataset("own", "node", _features(data), _count(graph.y, classes), data=graph)
    if not isinstance(data, Sequence) or not data or not all(isinstance(graph, Data) for graph in data):
        raise InputError(
            f"from_data takes a Data of torch_geometric or a list of them, not {type(data).__name__}; "
            "torch_geometric.utils.from_networkx makes one of a networkx graph."
        )
    widths = sorted({_features(graph) for graph in data})
    if len(widths) > 1:
        raise InputError(
            f"Some graphs have {widths[0]} features a node, others {widths[-1]}; give all as many."
        )
    _tell_of_attributes(data)
    graphs = tuple(_plain(graph, 1) for graph in data)
    count = _count(torch.cat([graph.y for graph in graphs]), classes)
    return Dataset("own", "graph", widths[0], count, graphs=graphs)


def check_parts(dataset: Any, split: Any) -> None:
    """Refuse what is no dataset or no split, and parts that name targets which are not there or have no label to learn."""
    check_dataset(dataset)
    if not isinstance(split, Split):
        raise InputError(
            f"A split is expected, not {type(split).__name__}; give unswayed.datasets.Split(train, val, test), as numbers or masks."
        )
    labels = dataset.labels
    if int(torch.cat([split.train, split.val, split.test]).max()) >= len(labels):
        raise InputError(f"train, val and test name targets beyond the {len(labels)} that there are.")
    if bool((labels[torch.cat([split.train, split.val])] < 0).any()):
        raise InputError(
            "train or val names a target without a label (its y is below 0); leave it out of both."
        )


def _tell_of_attributes(graphs: Sequence[Data]) -> None:
    unread = [name for name in ("edge_weight", "edge_attr") if any(name in graph for graph in graphs)]
    if unread:
        warnings.warn(
            f"An edge is there or not, so {' and '.join(unread)} {'is' if len(unread) == 1 else 'are'} not learnt from.",
            DoubtfulSetting,
            stacklevel=3,
        )


def _plain(graph: Data, count: int) -> Data:
    if not isinstance(graph.edge_index, Tensor):
        raise InputError("The data has no edge_index; give its edges as a tensor of two rows.")
    edges = checked_edges(int(graph.num_nodes), graph.edge_index)
    x = torch.ones(graph.num_nodes, 1) if graph.x is None else graph.x.detach().float()
    return Data(x=x, edge_index=edges, y=_labels(graph.y, count))


def _features(graph: Data) -> int:
    if graph.x is not None and graph.x.ndim != 2:
        raise InputError(
            f"Features x must be a table of nodes by numbers, not of shape {tuple(graph.x.shape)}."
        )
    return 0 if graph.x is None else int(graph.x.shape[1])


def _labels(y: Any, count: int) -> Tensor:
    labels = y.view(-1) if isinstance(y, Tensor) else torch.empty(0)
    if labels.is_floating_point():
        labels = labels.nan_to_num(-1.0)  # as pandas writes what is missing
    if len(labels) != count or bool((labels.long() != labels).any()):
        raise InputError(
            "y must hold the class of each node, or of each graph, as a whole number (−1 or NaN: unknown)."
        )
    return labels.long()


def _count(labels: Tensor, classes: int | None) -> int:
    seen = int(labels.max()) + 1
    count = seen if classes is None else classes
    if count < max(seen, 2):
        raise InputError(
            f"Labels run up to {seen - 1}, and there are at least two classes; {count} are too few."
        )
    return count
