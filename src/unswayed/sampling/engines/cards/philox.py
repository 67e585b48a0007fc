"""The noise drawn by one fused kernel on a CUDA card: bit for bit what `Stream.flips` gives.

The plain torch path makes some hundred passes over memory; the kernel encrypts each counter in registers and writes only
the bits. `register()` puts it in place where triton is installed and a small block agrees with the plain path.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unswayed.sampling import stream
from unswayed.sampling.engines.cards.kernels import AVAILABLE, jit, tl  # type: ignore[attr-defined]
from unswayed.theory.noise import AddDelete

LANES = 256  # entries that one program of the kernel draws


@jit
def _kernel(  # type: ignore[no-untyped-def]
    zero_ptr,
    one_ptr,
    start,
    stop,
    first_quad,
    entries,
    key0,
    key1,
    c2_value,
    c3_value,
    add_threshold,
    delete_threshold,
    alike: tl.constexpr,
    block: tl.constexpr,
):
    """One program: `block` entries of four consecutive samples."""
    quad = first_quad + tl.program_id(0).to(tl.int64)
    entry = tl.program_id(1).to(tl.int64) * block + tl.arange(0, block)
    mask32 = 0xFFFFFFFF
    c0 = entry.to(tl.uint64)
    c1 = (tl.zeros([block], tl.int64) + quad).to(tl.uint64)
    c2 = (tl.zeros([block], tl.int64) + c2_value).to(tl.uint64)
    c3 = (tl.zeros([block], tl.int64) + c3_value).to(tl.uint64)
    k0 = (tl.zeros([block], tl.int64) + key0).to(tl.uint64)
    k1 = (tl.zeros([block], tl.int64) + key1).to(tl.uint64)
    for _ in tl.static_range(10):
        p0 = c0 * 0xD2511F53
        p1 = c2 * 0xCD9E8D57
        n0 = (p1 >> 32) ^ c1 ^ k0
        n2 = (p0 >> 32) ^ c3 ^ k1
        c1 = p1 & mask32
        c3 = p0 & mask32
        c0 = n0 & mask32
        c2 = n2 & mask32
        k0 = (k0 + 0x9E3779B9) & mask32
        k1 = (k1 + 0xBB67AE85) & mask32
    inside = entry < entries
    for lane in tl.static_range(4):  # each counter makes the words of four samples
        word = c0 if lane == 0 else (c1 if lane == 1 else (c2 if lane == 2 else c3))
        sample, drawn = quad * 4 + lane, word.to(tl.int64)
        where = inside & (sample >= start) & (sample < stop)
        place = (sample - start) * entries + entry
        tl.store(zero_ptr + place, (drawn < add_threshold).to(tl.int8), mask=where)
        if not alike:
            tl.store(one_ptr + place, (drawn < delete_threshold).to(tl.int8), mask=where)


def flips(
    source: stream.Stream,
    start: int,
    stop: int,
    entries: int,
    thresholds: tuple[int, int],
    target: int | None,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Two bool[stop - start, entries], as `Stream.flips` describes them."""
    alike = thresholds[0] == thresholds[1]
    zero = torch.empty((stop - start, entries), dtype=torch.bool, device=device)
    one = zero if alike else torch.empty_like(zero)
    if zero.numel() == 0:
        return zero, one
    first, last = start // stream.LANES, -(-stop // stream.LANES)
    grid = (last - first, -(-entries // LANES))
    c2, c3 = source.counter_tail(target)
    numbers: tuple[Any, ...] = (start, stop, first, entries, *source.key, c2, c3, *thresholds)
    with torch.cuda.device(device):
        _kernel[grid](zero.view(torch.int8), one.view(torch.int8), *numbers, alike=alike, block=LANES)
    return zero, one


def register() -> bool:
    """Draw with this kernel on every CUDA device from now on, if it exists and gives the same bits; say whether."""
    if "cuda" in stream.FLIP_KERNELS:
        return True
    if not AVAILABLE or not torch.cuda.is_available():
        return False
    source, noise = stream.Stream(2**63 + 5, "select"), AddDelete(p_add=0.2, p_delete=0.7)
    plain = source.flips(3, 17, 301, noise, target=6, device="cuda")
    fused = flips(source, 3, 17, 301, noise.thresholds, 6, torch.device("cuda"))
    if not all(torch.equal(a, b) for a, b in zip(plain, fused, strict=True)):
        return False
    stream.FLIP_KERNELS["cuda"] = flips
    return True
