"""Table 1: the statistics of the paper's datasets, counted from what was loaded."""

from pathlib import Path
from typing import Any

import numpy as np

from unswayed.datasets import PAPER, Dataset, load
from unswayed.experiments.rows import write_rows


def statistics(dataset: Dataset) -> dict[str, Any]:
    """Nodes, undirected edges, features and classes; of graph datasets the number of graphs and the means."""
    graphs = list(dataset.graphs) if dataset.task == "graph" else [dataset.graph]
    nodes = [int(graph.num_nodes or 0) for graph in graphs]
    edges = [int(graph.edge_index.shape[1]) // 2 for graph in graphs]
    return {
        "dataset": dataset.name,
        "task": dataset.task,
        "graphs": len(graphs),
        "nodes": round(float(np.mean(nodes)), 2),
        "edges": round(float(np.mean(edges)), 2),
        "features": dataset.num_features,
        "classes": dataset.num_classes,
    }


def write_table(path: Path) -> Path:
    """Write the statistics of the paper's six datasets; they are fetched where they are missing."""
    write_rows(path, [statistics(load(name, fetch=True)) for name in PAPER])
    return path
