"""Nodes and pairs of nodes as users write them, checked."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, pair_entries


def to_data(graph: Graph) -> Any:
    """The clean graph as a torch_geometric Data with its node-level constants."""
    from torch_geometric.data import Data

    return Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **graph.extras)


def read_nodes(nodes: Any, num_nodes: int) -> Tensor:
    """int64[targets] from whole numbers or a boolean mask over all nodes; order is kept."""
    try:
        chosen: Tensor = torch.as_tensor(nodes).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"nodes must be whole numbers or a boolean mask, not {type(nodes).__name__}."
        ) from error
    chosen = chosen[None] if chosen.ndim == 0 else chosen
    if chosen.dtype == torch.bool:
        if chosen.shape != (num_nodes,):
            raise InputError(f"A mask over nodes needs length {num_nodes}, not {tuple(chosen.shape)}.")
        chosen = chosen.nonzero().flatten()
    if chosen.ndim != 1 or chosen.numel() == 0:
        raise InputError("nodes must name at least one node, as whole numbers or as a boolean mask.")
    if chosen.is_floating_point() or chosen.is_complex():
        raise InputError("nodes must be whole numbers or a boolean mask.")
    if chosen.dtype == torch.uint8:  # an old kind of mask, which would be read as nodes 0 and 1
        raise InputError(
            "nodes of type uint8 may be a mask or numbers; give a boolean mask or int64 numbers."
        )
    if int(chosen.min()) < 0 or int(chosen.max()) >= num_nodes:
        raise InputError(f"nodes must lie between 0 and {num_nodes - 1}.")
    return chosen.long().clone()


def read_pairs(pairs: Any, num_nodes: int) -> Tensor:
    """int64[2, m] with i < j, in the order given, from [m, 2] or a list of tuples; a [2, m] tensor with m != 2 too."""
    listed = torch.as_tensor(np.asarray(pairs) if not isinstance(pairs, Tensor) else pairs).detach().cpu()
    if listed.ndim == 2 and listed.shape[1] != 2 and listed.shape[0] == 2:
        listed = listed.T
    if (
        listed.ndim != 2
        or listed.shape[1] != 2
        or not len(listed)
        or listed.is_floating_point()
        or listed.dtype == torch.bool
    ):
        raise InputError("pairs must be a list of node pairs, shape [m, 2], at least one.")
    low, high = listed.long().min(dim=1).values, listed.long().max(dim=1).values
    if int(low.min()) < 0 or int(high.max()) >= num_nodes or bool((low == high).any()):
        raise InputError(f"Each pair must name two different nodes between 0 and {num_nodes - 1}.")
    result = torch.stack([low, high])
    if torch.unique(pair_entries(result)).numel() != result.shape[1]:
        raise InputError("A pair is named twice; each pair is one entry.")
    return result
