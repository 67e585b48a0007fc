"""Fixed point: floats to whole numbers whose sums are exact, and what must hold of features and tables."""

import hashlib
from typing import Any

import torch
from torch import Tensor

from unswayed.ballots.links import Links, out_of_place
from unswayed.errors import UnsoundModel

SCALE = 2**20  # of the fixed point; a power of two, so that scores divided by it are exact
LARGEST = 2**30 - 1  # ballots and their differences are kept in 32 bits
EXACT = 2**52  # scores stay below, so that a double holds them
FEW = 20  # nodes below which features may follow the degrees by chance
STRAIGHT = 1 - 1e-9  # correlation with the degrees that only rounding keeps from 1
FLAT = 1e-6  # spread of a column, times that of the degrees, below which there is nothing to follow


def fixed(values: Tensor) -> Tensor:
    """int64: the values in fixed point, each rounded to the nearest; refused where they are not finite or far too large."""
    scaled = values.double() * SCALE
    if not bool(scaled.isfinite().all()) or bool((scaled.abs() > EXACT).any()):
        raise UnsoundModel(
            "The model's scores are not finite or far too large; check its weights and the features."
        )
    return scaled.round().long()


def check_exact(own: Tensor, base: Tensor, ballots: Tensor, nodes: int) -> None:
    """Refuse tables whose sums a double might not hold."""
    most = [int(table.abs().max()) if table.numel() else 0 for table in (own, base, ballots.long())]
    if most[1] + nodes * (most[0] + most[2]) >= EXACT:
        raise UnsoundModel(
            "The model's scores are too large to be added exactly; train with smaller weights."
        )


def check_not_structural(links: Links) -> None:
    """Refuse features that are the nodes' degrees in disguise: an attack on the links would change them."""
    if links.x is None or links.nodes < FEW or links.x.ndim != 2:
        return
    degree = torch.bincount(links.target, minlength=links.nodes).double()
    values = links.x.double()
    said = [_follows(values, told) for told in (degree, degree.log1p(), (degree + 1).rsqrt())]
    if any(said) or _spells(values, degree.long()) or _decided_by(degree.long(), values):
        raise UnsoundModel(
            "The features say each node's degree; features made from structure change with the attack and may not vote: "
            "leave them out."
        )


def _follows(values: Tensor, told: Tensor) -> bool:
    """Whether some column is a straight line in `told`."""
    told, spread = told - told.mean(), values - values.mean(dim=0)
    size = told.norm() * spread.norm(dim=0)
    return bool((((told @ spread).abs() > STRAIGHT * size) & (size > FLAT)).any())


def _decided_by(degree: Tensor, values: Tensor) -> bool:
    """Whether some column with more than two values is the same for all nodes of a degree, where many nodes share degrees."""
    kinds, place = torch.unique(degree, return_inverse=True)
    if 2 * len(kinds) > len(degree):
        return False
    where, shape = place[:, None].expand_as(values), (len(kinds), values.shape[1])
    low = values.new_zeros(shape).scatter_reduce(0, where, values, "amin", include_self=False)
    high = values.new_zeros(shape).scatter_reduce(0, where, values, "amax", include_self=False)
    same = (low == high).all(dim=0)
    return any(len(torch.unique(low[:, column])) > 2 for column in same.nonzero()[:, 0].tolist())


def _spells(values: Tensor, degree: Tensor) -> bool:
    """Whether rows are one-hot, more than two columns are used, and the degree decides which."""
    if not bool((((values == 0) | (values == 1)).all(dim=1) & (values.sum(dim=1) == 1)).all()):
        return False
    pair = torch.unique(torch.stack([degree, values.argmax(dim=1)]), dim=1)
    return len(pair[0].unique()) == pair.shape[1] and len(pair[1].unique()) > 2


def hash_of(x: Tensor) -> Tensor:
    """uint8[32]: sha256 of the features as doubles."""
    hashed = hashlib.sha256(f"{tuple(x.shape)}".encode())
    flat = x.detach().reshape(len(x), -1)
    for start in range(0, len(flat), 2**14):
        hashed.update(flat[start : start + 2**14].cpu().double().contiguous().numpy().tobytes())
    return torch.frombuffer(bytearray(hashed.digest()), dtype=torch.uint8)


def hash_of_names(names: tuple[Any, ...]) -> Tensor | None:
    """uint8[33]: sha256 of what the nodes are called, in their order, then 1 where these are the numbers from 0 in another order.

    None where they are numbered from 0, or nobody knows.
    """
    if not names:
        return None
    hashed = hashlib.sha256(repr([str(name) for name in names]).encode())
    # of the hash alone nobody could tell whether a graph without names, numbered from 0, has its nodes elsewhere
    return torch.frombuffer(bytearray([*hashed.digest(), out_of_place(names)]), dtype=torch.uint8)


def same_memory(known: Tensor, x: Tensor) -> bool:
    """Whether x is a part, from the beginning, of what was checked, untouched since; of inference tensors nobody counts what is written."""
    if known.is_inference() or x.is_inference():
        return False
    untouched = known.data_ptr() == x.data_ptr() and known._version == x._version == 0
    return untouched and len(x) <= len(known) and x.shape[1:] == known.shape[1:] and x.is_contiguous()
