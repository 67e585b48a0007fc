"""From words on a command line to a threat: which entries an attacker may change, and what an edge carries."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from unswayed.cli.inputs import load_function
from unswayed.cli.targets import Targets
from unswayed.datasets import Dataset
from unswayed.errors import InputError
from unswayed.sampling.threats import AllPairs, Directed, Inject, Row, Threat


def read_threat(
    dataset: Dataset,
    targets: Targets,
    kind: str | None,
    links: int | None = None,
    *,
    directed: bool = False,
    edge_attr: Callable[..., Any] | None = None,
) -> Threat:
    """The threat: by default a node's own row, or every pair of a graph."""
    if links is not None and kind != "inject":
        raise InputError("--links is how many links a fake node may have; it goes with --threat inject.")
    if dataset.task == "graph":
        if kind in ("row", "inject"):
            raise InputError(
                f"{dataset.name} classifies whole graphs, not nodes of one; use --threat all-pairs."
            )
        return AllPairs([dataset.graphs[int(place)] for place in targets.ids], edge_attr=edge_attr)
    if kind == "inject":
        if directed or edge_attr is not None:
            raise InputError("--threat inject knows neither --directed edges nor --edge-attr.")
        return Inject(dataset.graph, targets.ids, links)
    everywhere = kind == "all-pairs"
    if directed:
        return Directed(dataset.graph, targets.ids, "all" if everywhere else "in", edge_attr=edge_attr)
    return (AllPairs if everywhere else Row)(dataset.graph, targets.ids, edge_attr=edge_attr)


def read_edge_attr(words: str | None, dataset: Dataset, model: str, recipe: str) -> Callable[..., Any] | None:
    """The function file.py:function of two tensors of node numbers; one that also asks for `x` gets the nodes' features."""
    if words is None:
        return None
    if ":" not in model:
        raise InputError("--edge-attr is for a model of your own that reads edge_weight or edge_attr.")
    if recipe != "clean":
        raise InputError(
            f"--recipe {recipe} trains without edge attributes; train yours, and give --weights."
        )
    function: Callable[..., Any] = load_function(words, "--edge-attr")
    asks = "x" in inspect.signature(function).parameters
    if asks and dataset.task == "graph":
        raise InputError("With several graphs, --edge-attr takes a function of two node numbers, without x.")
    return partial(function, x=dataset.graph.x) if asks else function


def check_directed(directed: bool, edges: Any, recipe: str) -> None:
    """Refuse --directed where edges have no direction, or training would take it away."""
    if directed and edges is None:
        raise InputError("--directed is for your own --edges; the datasets here are undirected.")
    if directed and recipe != "clean":
        raise InputError(
            f"--recipe {recipe} trains under noise of undirected edges; train yours, and give --weights."
        )
