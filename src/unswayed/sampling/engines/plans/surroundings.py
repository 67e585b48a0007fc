"""The clean graph around the targets, as tensors that every layer's row form needs."""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

# Torch announces, once a process, that compressed tensors are in beta. It does so here, where one thread imports: filters of warnings
# belong to all threads, and two that set and restore them at a time can leave all warnings off.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


def _csr(rows: Tensor, columns: Tensor, n: int, dtype: torch.dtype) -> Tensor:
    order = torch.argsort(rows * n + columns)
    return compressed(rows[order], columns[order], (n, n), dtype)


def compressed(rows: Tensor, columns: Tensor, shape: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """A sparse matrix of ones at these places, which come by row, then by column."""
    starts = begins(torch.bincount(rows, minlength=shape[0]))
    return csr(starts, columns, torch.ones(rows.numel(), dtype=dtype, device=rows.device), shape)


def csr(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix with these values at these columns, row by row."""
    return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)


class _Symmetric(torch.autograd.Function):
    """A symmetric sparse matrix times a dense one; its gradient is the same product."""

    @staticmethod
    def forward(ctx: FunctionCtx, matrix: Tensor, dense: Tensor) -> Tensor:
        ctx.save_for_backward(matrix)
        return product(matrix, dense)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[None, Tensor]:
        (matrix,) = ctx.saved_tensors
        return None, product(matrix, grad[0].contiguous())


def symmetric(matrix: Tensor, dense: Tensor) -> Tensor:
    """A symmetric sparse matrix, on a card one of ones, times a dense one; differentiable."""
    out: Tensor = _Symmetric.apply(matrix, dense)  # type: ignore[no-untyped-call]
    return out


def product(matrix: Tensor, dense: Tensor) -> Tensor:
    """A sparse matrix of ones times a dense one.

    Where torch is asked for one order of sums on a card, as in training, by sums over entries: the card's own product adds up in
    the order in which its parts happen to end, which other work beside it changes.
    """
    if not (dense.is_cuda and torch.are_deterministic_algorithms_enabled()):
        return matrix @ dense
    return by_entries(matrix, dense)


def by_entries(matrix: Tensor, dense: Tensor) -> Tensor:
    """The same product, a row of the dense matrix added for every entry."""
    rows, columns = entries_of(matrix, torch.arange(len(matrix), device=dense.device))
    return dense.new_zeros((len(matrix), dense.shape[1])).index_add(0, rows, dense[columns])


@dataclass(frozen=True)
class Surroundings:
    """An undirected graph without its self-loops, which are kept apart because no noise touches them."""

    edge_index: Tensor
    adjacency: Tensor
    degree: Tensor
    loops: Tensor

    @classmethod
    def of(
        cls, edge_index: Tensor, n: int, dtype: torch.dtype, device: str | torch.device = "cpu"
    ) -> "Surroundings":
        """From an edge_index with both directions of every edge, each once."""
        edge_index = edge_index.to(device)
        rows, columns = edge_index
        own = rows == columns
        loops = torch.bincount(rows[own], minlength=n).to(dtype)
        rows, columns = rows[~own], columns[~own]
        degree = torch.bincount(rows, minlength=n).to(dtype)
        return cls(torch.stack([rows, columns]), _csr(rows, columns, n, dtype), degree, loops)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.degree.numel()

    def spread(self, z: Tensor) -> Tensor:
        """Row v of the result is the sum of z over v's neighbours; z is [n, anything]."""
        return symmetric(self.adjacency, z.reshape(self.n, -1)).reshape(z.shape)

    def adjacent(self, nodes: Tensor) -> Tensor:
        """bool[B, n]: the clean row of each of the nodes."""
        rows, columns = self.edges_of(nodes)
        out = torch.zeros((nodes.numel(), self.n), dtype=torch.bool, device=nodes.device)
        out[rows, columns] = True
        return out

    def edges_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """(which of `nodes`, neighbour) for every edge at one of them."""
        return entries_of(self.adjacency, nodes)


def entries_of(matrix: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """(which of `rows`, column) for every entry of a compressed matrix in one of them."""
    starts, columns = matrix.crow_indices(), matrix.col_indices()
    if not len(columns):
        return columns, columns
    which, place = stretches(starts[rows], starts[rows + 1] - starts[rows])
    return which, columns[place]


def stretches(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(which stretch, number) for all numbers of stretches that begin at `first` and have `count` of them."""
    which = torch.repeat_interleave(torch.arange(count.numel(), device=count.device), count)
    shift = (first - count.cumsum(0) + count).index_select(0, which)
    return which, shift.add_(torch.arange(which.numel(), device=count.device))


def begins(count: Tensor) -> Tensor:
    """int64[n + 1]: where each of n stretches of so many begins, one after the other, and where the last one ends."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])
