"""Attributes for every pair of nodes, made of the two ends alone, so that an edge which noise adds has some too."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.inputs import Graph, update_hash

TABLE = 2**24  # numbers of a table that is made once; beyond, the function is asked each time
CHUNK = 2**20  # pairs that the function is asked about at once
# relative and absolute: attributes that were stored may have been rounded on the way
ALIKE, NOTHING = (
    1e-4,
    1e-6,
)
TRIED = 2_000  # pairs that it is tried on
NAMES = ("edge_attr", "edge_weight")

Function = Callable[[Tensor, Tensor], Any]


class EdgeFunction:
    """One value for each ordered pair of nodes: a function of the two ends and of nothing else.

    On graphs that are not too large it is asked once about every pair, and its answers are what everybody gets. Otherwise it is
    tried: whether a pair's value depends on the other pairs, their order, or on how often it was asked.
    """

    def __init__(self, function: Function, num_nodes: int, name: str = "") -> None:
        self.function, self.num_nodes = function, num_nodes
        one = self._ask(torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
        self.name = name or NAMES[one.ndim == 1]
        self.table: Tensor | None = None
        self.ids: Tensor | None = None  # the function's own numbers of the nodes, where only some are left
        if num_nodes**2 * max(one.numel(), 1) <= TABLE:
            codes = torch.arange(num_nodes**2)
            asked = [self._ask(part // num_nodes, part % num_nodes) for part in torch.split(codes, CHUNK)]
            self.table = torch.cat(asked)
        self._check()

    def _ask(self, first: Tensor, second: Tensor) -> Tensor:
        try:
            with torch.no_grad():
                out = torch.as_tensor(self.function(first.clone(), second.clone())).detach().cpu()
        except Exception as error:
            raise InputError(
                f"edge_attr must take two tensors of node numbers and return one row for each pair; it failed ({type(error).__name__}: "
                f"{' '.join(str(error).split())})."
            ) from error
        if out.ndim not in (1, 2) or len(out) != len(first) or out.is_complex():
            raise InputError(
                f"edge_attr must return one number or one row for each of {len(first)} pairs, not shape {tuple(out.shape)}."
            )
        return out.float() if out.dtype in (torch.bool, torch.uint8) else out

    def _check(self) -> None:
        """Refuse what is no function of each pair alone."""
        drawn = torch.randint(0, self.num_nodes, (2, TRIED), generator=torch.Generator().manual_seed(0))
        together, backwards = self._ask(*drawn), self._ask(*drawn.flip(1)).flip(0)
        few = torch.cat([self._ask(*part) for part in torch.split(drawn, TRIED // 3, dim=1)])
        if together.is_floating_point() and bool(together.isnan().any()):
            raise InputError(
                "edge_attr gives some pairs NaN; every pair of nodes needs a value, since noise may join it."
            )
        known = self(drawn, self.num_nodes)
        if not all(torch.equal(together, other) for other in (backwards, few, known)):
            raise InputError(
                "edge_attr gives a pair another value when it is asked again, or with other pairs; it must be a function of the two "
                "end nodes alone."
            )

    def __call__(self, edges: Tensor, num_nodes: int) -> Tensor:
        """One row for each of these edges of block-diagonal graphs with so many nodes each."""
        first, second = (edges % num_nodes).cpu()
        if self.ids is not None:
            first, second = self.ids[first], self.ids[second]
        found = (
            self._ask(first, second) if self.table is None else self.table[first * self.num_nodes + second]
        )
        return found.to(edges.device)

    def part(self, keep: Tensor) -> "EdgeFunction":
        """The same for the graph of these nodes alone, bool[n], under their new numbers."""
        other = object.__new__(EdgeFunction)
        other.__dict__.update(self.__dict__)
        kept = keep.cpu().nonzero()[:, 0]
        other.ids = kept if self.ids is None else self.ids[kept]
        return other

    def digest(self) -> str:
        """sha256 of all values, or of the function's content and many of its values."""
        hashed = hashlib.sha256(self.name.encode())
        if self.table is not None:
            update_hash(hashed, "table", self.table)
            return hashed.hexdigest()
        from unswayed.sampling.digest import describe_model

        drawn = torch.randint(0, self.num_nodes, (2, TRIED), generator=torch.Generator().manual_seed(1))
        update_hash(hashed, "values", self._ask(*drawn))
        hashed.update(describe_model(self.function)["sha256"].encode())
        return hashed.hexdigest()


def with_attributes(graph: Graph, source: Any, function: Function | None) -> Graph:
    """The graph whose edges carry what the function makes of their ends; refused where the data says otherwise of an edge."""
    if function is None:
        return graph
    if not callable(function):
        raise InputError(
            f"edge_attr must be a function of two tensors of node numbers, not {type(function).__name__}."
        )
    told = [name for name in NAMES if getattr(source, name, None) is not None]
    made = EdgeFunction(function, graph.num_nodes, told[0] if len(told) == 1 else "")
    if made.name in told:
        _compare(made, source.edge_index, getattr(source, made.name))
    rest = tuple(name for name in graph.edge_data if " " not in name and name != made.name)
    return replace(graph, edge_data=rest, edge_attr=made)


def _compare(made: EdgeFunction, edge_index: Tensor, given: Tensor) -> None:
    edges, values = edge_index.cpu(), given.detach().cpu()
    found = made(edges, made.num_nodes)
    values = values.reshape(found.shape) if values.numel() == found.numel() else values
    if values.shape != found.shape:
        raise InputError(
            f"The data's {made.name} has shape {tuple(values.shape)}, but the function makes {tuple(found.shape)}."
        )
    close = torch.isclose(found.double(), values.double(), rtol=ALIKE, atol=NOTHING)
    wrong = ~(close if close.ndim == 1 else close.all(dim=1))
    if bool(wrong.any()):
        i, j = edges[:, int(wrong.nonzero()[0, 0])].tolist()
        raise InputError(
            f"The data's {made.name} of the edge {i} → {j} is not what the function makes of its ends; the model would be asked about "
            f"other edges than it knows. Remove {made.name} from the data if the function is to replace it."
        )
