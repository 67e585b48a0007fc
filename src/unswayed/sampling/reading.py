"""Nodes and pairs of nodes as users write them, checked."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.inputs import NAMES, Graph, pair_entries

LISTED = 5  # names that a refusal shows
MASKS = 2  # nodes of a graph beyond which zeros and ones for each would name some of them again and again


def to_data(graph: Graph) -> Any:
    """The clean graph as a torch_geometric Data with its node-level constants."""
    from torch_geometric.data import Data

    named = {NAMES: list(graph.names)} if graph.names else {}
    return Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **graph.extras, **named)


def numbered(nodes: Any, names: tuple[Any, ...]) -> Any:
    """Nodes that are given by name as numbers; numbers and masks as they are, unless the names are no text themselves."""
    given = nodes.tolist() if hasattr(nodes, "tolist") else nodes
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    listed = [item.item() if isinstance(item, np.generic) or _is_one(item) else item for item in listed]
    by_name = bool(names) and not all(isinstance(name, str) for name in names)
    if not any(isinstance(item, str) for item in listed) and (not by_name or _is_mask(listed)):
        _refuse_doubt(listed, names)
        return nodes
    if not names:
        raise InputError(
            f"The graph's nodes are numbers, and {_first(listed)!r} is none; give numbers from 0, or say what the nodes are "
            f"called: data.{NAMES} = [...]."
        )
    place = {name: i for i, name in enumerate(names)}
    strange = [item for item in listed if not isinstance(item, Hashable) or item not in place]
    if strange:
        few = ", ".join(repr(name) for name in names[:LISTED])
        raise InputError(f"There is no node {strange[0]!r} in this graph; its first nodes are {few}.")
    return [place[item] for item in listed]


def _refuse_doubt(numbers: list[Any], names: tuple[Any, ...]) -> None:
    """Refuse a number that is also another node's name: nobody can tell which of the two is meant."""
    if not names or _is_mask(numbers):
        return
    place = {name: i for i, name in enumerate(names)}
    doubtful = (i for i in numbers if isinstance(i, int) and place.get(str(i), i) != i)
    if (number := next(doubtful, None)) is not None:
        raise InputError(
            f"{number} may mean the node at position {number} or the one called '{number}'; give names, as text."
        )


def _is_one(item: Any) -> bool:
    """Whether this is a tensor of one number."""
    return isinstance(item, Tensor) and item.ndim == 0


def _is_mask(items: list[Any]) -> bool:
    return all(isinstance(item, bool) for item in items)


def _first(items: list[Any]) -> Any:
    return next(item for item in items if isinstance(item, str))


def read_nodes(nodes: Any, num_nodes: int, names: tuple[Any, ...] = ()) -> Tensor:
    """int64[targets] from names, whole numbers or a boolean mask over all nodes; order is kept."""
    if isinstance(nodes, set | frozenset):
        raise InputError("nodes must come in an order, which a set has not; give a list of them.")
    try:
        chosen: Tensor = torch.as_tensor(numbered(nodes, names)).detach().cpu()
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"nodes must be names, whole numbers or a boolean mask, not {type(nodes).__name__}."
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
    if looks_like_mask(chosen, num_nodes):
        raise InputError(
            f"nodes are {num_nodes:,} zeros and ones, one for each node: a mask, it seems; give it as booleans, such as mask.bool()."
        )
    return chosen.long().clone()


def looks_like_mask(numbers: Tensor, num_nodes: int) -> bool:
    """Whether these are zeros and ones, one for each node: read as numbers they would name the nodes 0 and 1 again and again."""
    return len(numbers) == num_nodes > MASKS and int(numbers.max()) <= 1


def read_pairs(pairs: Any, num_nodes: int, names: tuple[Any, ...] = ()) -> Tensor:
    """int64[2, m] with i < j, in the order given, from [m, 2], from [2, m] as in an edge_index, or from a list of tuples."""
    if isinstance(pairs, Tensor | np.ndarray) and tuple(pairs.shape) == (2, 2) and pairs[0, 1] != pairs[1, 0]:
        raise InputError(
            "A table of two rows and two columns may hold a pair in each row or, as an edge_index does, in each column; give the pairs as a "
            "list, such as [(0, 1), (2, 3)]."
        )
    if names:
        upright = not hasattr(pairs, "shape") or not _is_sideways(pairs)
        pairs = [numbered(pair, names) for pair in (pairs if upright else pairs.T)]
    listed = torch.as_tensor(np.asarray(pairs) if not isinstance(pairs, Tensor) else pairs).detach().cpu()
    if _is_sideways(listed):
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


def _is_sideways(pairs: Any) -> bool:
    """Whether pairs stand side by side, as in an edge_index."""
    return len(pairs.shape) == 2 and pairs.shape[1] != 2 and pairs.shape[0] == 2
