"""Many threads, and the bits of one: which operations of torch may be shared out without changing a single bit.

Sums come out otherwise when they are cut in other parts, and functions such as exp are computed in one way inside a part and in another at
its end. So one thread is the rule. Exceptions are what copies numbers or rounds each of them once; sums that one thread does from
beginning to end wherever they are; and products of matrices of a kind that gave equal bits when it was tried on random numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

aten = torch.ops.aten
FEW = 2**15  # numbers in a result up to which torch itself shares nothing out
# numbers in a product's factors from which on it is not tried: that would take as much memory again
MANY = 2**28
TRIALS = 2
KINDS = 10_000  # of products that are remembered
COPIES = {
    aten.index_select.default, aten.gather.default, aten.index.Tensor, aten.clone.default, aten.copy_.default, aten.where.self,
    aten.threshold_backward.default,
}  # fmt: skip
ROUNDED_ONCE = {
    aten.add.Tensor, aten.add_.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.mul_.Tensor, aten.div.Tensor, aten.div_.Tensor,
}  # fmt: skip
IN_ORDER = {aten.scatter_add.default, aten.scatter_add_.default}
EACH_ALONE = COPIES | ROUNDED_ONCE | IN_ORDER
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
SIMPLE = {torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool}
_tried: dict[Any, bool] = {}
_names = WeakIdKeyDictionary()  # of compressed rows, of which no two are of one kind


class SameBits(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it lasts, operations that may take `number` threads do, and all others one.

    `seen` holds every operation there was. Gradients of a few, such as products of all numbers, are worked out by other formulas
    where anything listens to operations as this does, so that gradients must be compared when new ones come up.
    """

    def __init__(self, number: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number, self.seen = number, set[Any]()

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operation's own answer."""
        self.seen.add(operation)
        if kwargs or not may_share(operation, args, self.number):
            return operation(*args, **(kwargs or {}))
        torch.set_num_threads(self.number)
        try:
            return operation(*args)
        finally:
            torch.set_num_threads(1)


def may_share(operation: Any, args: Sequence[Any], number: int) -> bool:
    """Whether so many threads bring the bits of one, for sure."""
    if operation in EACH_ALONE:
        parts = [part for part in args if isinstance(part, Tensor)]
        return any(part.numel() > FEW for part in parts) and all(part.dtype in SIMPLE for part in parts)
    if operation not in PRODUCTS or not all(_plain(factor) for factor in args):
        return False
    size = sum(factor.numel() for factor in args if factor.layout == torch.strided)
    if not FEW < size < MANY:
        return False
    kind = (operation, number, *(_kind(factor) for factor in args))
    if kind not in _tried:
        if len(_tried) > KINDS:
            return False
        _tried[kind] = _gives_equal_bits(operation, args, number)
    return _tried[kind]


def _plain(factor: Any) -> bool:
    """Whether it is a matrix that random numbers can stand in for: as it lies in memory, or as compressed rows."""
    if not isinstance(factor, Tensor) or factor.dtype not in (torch.float32, torch.float64):
        return False
    if factor.layout == torch.sparse_csr:
        return True
    dense = factor.layout == torch.strided and torch._debug_has_internal_overlap(factor) == 0
    return dense and factor.data_ptr() % 64 == 0  # as new memory does; where numbers begin may matter


def _kind(factor: Tensor) -> tuple[Any, ...]:
    if factor.layout == torch.sparse_csr:
        return (_names.setdefault(factor, object()),)  # type: ignore[no-untyped-call]
    return tuple(factor.shape), factor.dtype, factor.stride()


def _gives_equal_bits(operation: Any, args: Sequence[Tensor], number: int) -> bool:
    """Whether random factors of these kinds have the same product with one and with so many threads."""
    chance, before = torch.Generator().manual_seed(number), torch.get_num_threads()
    try:
        for _ in range(TRIALS):
            factors = [_like(factor, chance) for factor in args]
            torch.set_num_threads(1)
            one = operation(*factors)
            torch.set_num_threads(number)
            if not equal_bits(one, operation(*factors)):
                return False
    finally:
        torch.set_num_threads(before)
    return True


def _like(factor: Tensor, chance: torch.Generator) -> Tensor:
    """Random numbers of very different sizes, whose sums show in which order they were added."""
    if factor.layout == torch.sparse_csr:
        drawn = factor.clone()
        drawn.values().normal_(generator=chance).pow_(3)
        return drawn
    drawn = torch.empty_strided(factor.shape, factor.stride(), dtype=factor.dtype)
    return drawn.normal_(generator=chance).pow_(3)


def equal_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two matrices are the same to the last bit, zeros of either sign and what is no number included."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    if not alike or {one.layout, other.layout} != {torch.strided}:
        return False
    first, second = (
        each.detach().clone(memory_format=torch.contiguous_format).flatten() for each in (one, other)
    )
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))
