"""`build`: a network by name, with weights that depend on the seed alone."""

from typing import Any

import torch
from torch import nn

from unswayed.errors import InputError
from unswayed.models.ensembles import Ensemble
from unswayed.models.networks import GAT, GCN, GIN, MLP, SAGE, DeepSets, GraphGCN, MeanGCN, NodeGIN

_NODE: dict[str, type[nn.Module]] = {
    "gcn": GCN,
    "gcn-mean": MeanGCN,
    "gat": GAT,
    "gin": NodeGIN,
    "sage": SAGE,
    "mlp": MLP,
}
_GRAPH: dict[str, Any] = {
    "gin": GIN,
    "gcn": lambda features, classes, hidden=32, layers=5: GraphGCN(features, classes, hidden, layers),
    "mlp": DeepSets,
    "ensemble": Ensemble,
}
NAMES = tuple(_NODE)


def build(
    name: str, num_features: int, num_classes: int, *, task: str = "node", seed: int = 0, **sizes: Any
) -> nn.Module:
    """An untrained network in eval mode; the same arguments give the same weights.

    `task` is "node" or "graph". With `num_features=0` a network for graphs sees the degrees of the edges it is
    given, one for nodes a column of ones. `sizes` are the network's own, such as hidden=64.

    >>> build("sage", 10, 3, hidden=8).first
    SAGEConv(10, 8, aggr=mean)
    """
    known = check_name(name, task)
    width = max(num_features, 1) if task == "node" else num_features
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: nn.Module = known[name](width, num_classes, **sizes)
    network.sizes = dict(sizes)  # type: ignore[assignment]  # what stored weights need to be built again
    return network.eval()


def check_name(name: str, task: str) -> dict[str, Any]:
    """Refuse what is no network for this task; all that are, by name."""
    known = {"node": _NODE, "graph": _GRAPH}.get(task)
    if known is None:
        raise InputError(f"task must be 'node' or 'graph', not {task!r}.")
    if name not in known:
        raise InputError(
            f"There is no model {name!r} for {task} classification; choose one of {', '.join(known)}"
            " (or, to be proved, train ballots)."
        )
    return known
