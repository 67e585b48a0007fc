"""Tabled: a module that can be frozen to tables of whole numbers, which come and go with its state."""

import copy
import hashlib
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from unswayed.sampling.inputs import update_hash

EXACT_TWINS: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()
HASHES: WeakKeyDictionary[nn.Module, tuple[list[tuple[Tensor | None, int | None]], str]] = WeakKeyDictionary()


class Tabled(nn.Module):
    """What every model with frozen tables has: they are forgotten by training, saved with the state, and hashed."""

    TABLES: ClassVar[tuple[str, ...]]  # the first is there exactly when the model is frozen

    def __init__(self) -> None:
        super().__init__()
        for name in self.TABLES:
            self.register_buffer(name, None)

    @property
    def frozen(self) -> bool:
        """Whether answers come from the tables."""
        return self._buffers[self.TABLES[0]] is not None

    def keep(self, **tables: Tensor | None) -> Self:
        """The model itself, in evaluation mode, answering from these tables."""
        where = next((p.device for p in self.parameters()), torch.device("cpu"))
        for name, table in tables.items():
            setattr(self, name, None if table is None else table.to(where))
        return self.eval()

    def thaw(self) -> Self:
        """The model itself without its tables: answers are in floats again."""
        EXACT_TWINS.pop(self, None)
        for name in self.TABLES:
            setattr(self, name, None)
        return self

    def train(self, mode: bool = True) -> Self:
        """Training forgets the tables: they would be those of other weights."""
        if mode and self.frozen:
            self.thaw()
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Tables go where the weights go, but are never rounded with them: answers would be of other numbers than those that were frozen."""
        held = {name: getattr(self, name) for name in self.TABLES}
        HASHES.pop(self, None)  # weights are exchanged inside their parameters, which torch does not count
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, table in held.items():
            if table is not None and getattr(self, name).dtype != table.dtype:
                setattr(self, name, table.to(getattr(self, name).device))
        return self

    def exact(self) -> Self:
        """A copy in float64 on the CPU, in evaluation mode, without tables; kept while the model stays frozen."""
        if self not in EXACT_TWINS:
            shared = [*self._buffers.values(), *self.constants()]
            twin = copy.deepcopy(self, {id(part): part for part in shared})
            EXACT_TWINS[self] = twin.thaw().to(device="cpu", dtype=torch.float64).eval()
        return cast(Self, EXACT_TWINS[self])

    def constants(self) -> list[Any]:
        """What no weight is part of and copies may share."""
        return []

    @property
    def table_hash(self) -> str:
        """sha256 of everything that a frozen answer is read from; kept while no tensor is exchanged or written to."""
        held = (*self._buffers.values(), *self.parameters())
        now = [(tensor, None if tensor is None else tensor._version) for tensor in held]
        kept = HASHES.get(self)
        if (
            kept is None
            or len(kept[0]) != len(now)
            or any(a is not b or v != w for (a, v), (b, w) in zip(kept[0], now, strict=True))
        ):
            HASHES[self] = kept = (now, self._hash())
        return kept[1]

    def _hash(self) -> str:
        hashed = hashlib.sha256(type(self).__name__.encode())
        for name in self.TABLES:
            if getattr(self, name) is not None:
                update_hash(hashed, name, getattr(self, name))
        for name, weight in self.named_parameters():  # what nodes that arrive are scored with
            update_hash(hashed, name, weight.detach())
        return hashed.hexdigest()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Tables come and go with the state: a state without them is that of a model that is not frozen."""
        EXACT_TWINS.pop(self, None)
        for name in self.TABLES:
            there = state_dict.get(prefix + name)
            setattr(self, name, None if there is None else torch.empty_like(there))
        super()._load_from_state_dict(state_dict, prefix, *rest)
