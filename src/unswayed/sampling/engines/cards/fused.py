"""Sums over the links of many noisy graphs by fused kernels on a CUDA card, where torch would pass over memory a dozen times.

Each kernel stands for plain operations on the same numbers, written where it is used. It is used where triton is installed and
its sums agreed with theirs on the first samples that it was asked about; everywhere else the plain ones are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unswayed.sampling.engines.cards import kernels

ENABLED = True  # whether kernels are used at all
CLOSE = 1e-5  # of the largest number: how far sums in another order may lie apart
FEW = 8  # samples that a kernel is tried on
_agreed: dict[tuple[Any, ...], bool] = {}


def either(kernel: Callable[..., Tensor], plain: Callable[..., Tensor], *numbers: Tensor) -> Tensor:
    """What the plain operations say of these samples (first dimension of all numbers), by the kernel where it says the same.

    Both are asked about a few samples once for each width of numbers, and again where there were fewer samples so far.
    """
    first = numbers[0]
    if not _usable(first):
        return plain(*numbers)
    tried = min(FEW, max(len(t) for t in numbers))
    key = (kernel.__qualname__, first.device, tried, first.shape[-1])
    if key not in _agreed:
        few = [t[:FEW] for t in numbers]
        expected = plain(*(t.clone() for t in few))
        near = CLOSE * expected.abs().max()
        _agreed[key] = _works(lambda: (kernel(*(t.clone() for t in few)) - expected).abs().max() <= near)
    return kernel(*numbers) if _agreed[key] else plain(*numbers)


def copies(states: Tensor) -> bool:
    """Whether `rows` is used for such states: it must have copied a few of their rows bit for bit."""
    if not _usable(states):
        return False
    key = ("rows", states.device, FEW, states.shape[1])
    if key not in _agreed:
        few = torch.arange(min(FEW, len(states)), device=states.device).flip(0)
        _agreed[key] = _works(lambda: torch.equal(rows(states, few), states[few]))
    return _agreed[key]


def _usable(numbers: Tensor) -> bool:
    """Kernels are for single precision, on a card."""
    return ENABLED and kernels.AVAILABLE and numbers.is_cuda and numbers.dtype is torch.float32


def _works(trial: Callable[[], Any]) -> bool:
    """Whether a trial succeeds; a release of triton that cannot compile a kernel leaves the plain operations."""
    try:
        return bool(trial())
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False


def _power(size: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (size - 1).bit_length()


def _parts(size: int, block: int) -> int:
    """How many blocks it takes."""
    return -(-size // block)


def rectified_sums(states: Tensor, weight: Tensor, threshold: Tensor) -> Tensor:
    """[S, T, F]: Σ_v weight[s, v] relu(states[s, v] + threshold[s, t])."""
    (samples, nodes, width), targets = states.shape, threshold.shape[1]
    states, weight, threshold = states.contiguous(), weight.contiguous(), threshold.contiguous()
    wide, out = _power(width), torch.empty_like(threshold)
    block = max(1, min(2048 // wide, _power(targets)))
    sizes = {"width": width, "wide": wide, "block": block, "several": 64}
    with torch.cuda.device(states.device):
        kernels.rectified[samples, _parts(targets, block)](
            states, weight, threshold, out, nodes, targets, **sizes
        )
    return out


def corrected(
    sums: Tensor, noisy: tuple[Tensor, ...], around: tuple[Tensor, ...], known: tuple[Tensor, ...]
) -> Tensor:
    """The sums [S, T, F], with the true terms of the nodes around each target in place of the common ones."""
    (samples, number, width), nodes = sums.shape, noisy[0].shape[1]
    numbers = [t.contiguous() for t in (*noisy, *around, *known)]
    sizes = {"width": width, "wide": _power(width), "block": 32}
    with torch.cuda.device(sums.device):
        kernels.corrected[(number * _parts(samples, 32),)](sums, *numbers, samples, nodes, number, **sizes)
    return sums


def attended(
    base: Tensor, top: Tensor, zero: Tensor, one: Tensor, known: tuple[Tensor, Tensor, Tensor], slope: float
) -> Tensor:
    """[T, H, C, S]: values of attached nodes, weighed by exp(leaky(score + base) - top).

    `base` and `top` are [S, T, H], the noise [S, n]; `known` is which nodes are neighbours (1) or the target itself (2),
    [T, n], scores [T, H, n], and values [T, H, n, C].
    """
    kind, scores, values = known
    (samples, targets, heads), (nodes, width) = base.shape, values.shape[2:]
    base, top = (t.permute(1, 2, 0).contiguous() for t in (base, top))
    columns = zero.T.contiguous()
    noise = columns, columns if one is zero else one.T.contiguous()
    out, places = base.new_empty((targets, heads, width, samples)), targets * heads
    sizes = {"width": width, "wide": _power(width), "block": 128, "several": 64}
    with torch.cuda.device(base.device):
        kernels.attended[(places * _parts(samples, 128),)](
            *noise, kind, scores, values, base, top, out, samples, nodes, places, slope, heads=heads, **sizes
        )
    return out


def joined(
    out: Tensor,
    z: Tensor,
    attached: Tensor,
    before: Tensor,
    after: Tensor,
    loop: Tensor,
    edges: tuple[Tensor, ...],
    centre: int,
) -> Tensor:
    """[S, n, F]: after · (Σ before · z over a node's senders and, where it is attached, the centre + loop · before · z).

    z is [S or 1, n, F], `attached` and `before` [S, n], `after` [S or 1, n], `loop` [n]; the centre's own row is left as it is.
    """
    samples, nodes, width = out.shape
    wide = _power(width)
    block = max(1, 1024 // wide)
    steps = (0 if len(z) == 1 else nodes * width, 0 if len(after) == 1 else nodes)
    numbers = [t.contiguous() for t in (z, attached, before, after, loop, *edges)]
    sizes = {"width": width, "wide": wide, "block": block}
    with torch.cuda.device(out.device):
        kernels.joined[(samples * _parts(nodes, block),)](out, *numbers, nodes, centre, *steps, **sizes)
    return out


def rows(states: Tensor, index: Tensor) -> Tensor:
    """[rows, F]: those of states [n, F] with these numbers."""
    states, index, (count, width) = states.contiguous(), index.contiguous(), (index.numel(), states.shape[1])
    out, wide = states.new_empty((count, width)), _power(width)
    block = max(1, 1024 // wide)
    with torch.cuda.device(states.device):
        kernels.rows[(_parts(count, block),)](
            out, states, index, count, len(states), width=width, wide=wide, block=block
        )
    return out
