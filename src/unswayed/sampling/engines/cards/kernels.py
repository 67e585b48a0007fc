"""Kernels for a CUDA card, in triton; `fused` says what each computes, and where it is used.

Loops that add up many numbers do so in parts: sums of sums round less than one long sum. Programs are numbered along one axis,
since a card allows few along the others.
"""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

AVAILABLE = triton is not None


def jit(function: Any) -> Any:
    """The kernel that the function describes, where there is triton."""
    return function if triton is None else triton.jit(function)


@jit
def rectified(  # type: ignore[no-untyped-def]
    states,
    weight,
    threshold,
    out,
    nodes,
    targets,
    width: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
    several: tl.constexpr,
):
    """One program: `block` targets of one sample."""
    sample = tl.program_id(0).to(tl.int64)
    target = tl.program_id(1) * block + tl.arange(0, block)
    channel = tl.arange(0, wide)
    place = (sample * targets + target[:, None]) * width + channel[None, :]
    inside = (target[:, None] < targets) & (channel[None, :] < width)
    above = tl.load(threshold + place, mask=inside, other=0.0)
    states += sample * nodes * width
    weight += sample * nodes
    total = tl.zeros([block, wide], above.dtype)
    for begin in range(0, nodes, several):
        part = tl.zeros([block, wide], above.dtype)
        for node in range(begin, min(begin + several, nodes)):
            state = tl.load(states + node * width + channel, mask=channel < width, other=0.0)
            part += tl.load(weight + node) * tl.maximum(state[None, :] + above, 0.0)
        total += part
    tl.store(out + place, total, mask=inside)


@jit
def corrected(  # type: ignore[no-untyped-def]
    sums,
    zero,
    one,
    states,
    threshold,
    targets,
    starts,
    affected,
    close,
    firsts,
    sources,
    z,
    clean,
    flipped,
    detached,
    weight,
    kept_weight,
    kept_base,
    samples,
    nodes,
    number,
    width: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """One program: `block` samples of one target; see `rows.coupled.Coupled` for the names."""
    target = tl.program_id(0) % number
    sample = (tl.program_id(0) // number).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, wide)
    there, real = sample < samples, channel < width
    inside = there[:, None] & real[None, :]
    place = (sample[:, None] * number + target) * width + channel[None, :]
    above = tl.load(threshold + place, mask=inside, other=0.0)
    total = tl.load(sums + place, mask=inside, other=0.0)
    zero, one = zero + sample * nodes, one + sample * nodes
    states += sample[:, None] * nodes * width + channel[None, :]
    node = tl.load(targets + target)
    sent = tl.load(clean + node) + tl.load(zero + node, mask=there, other=0.0) * tl.load(flipped + node)
    own = sent[:, None] * tl.load(z + node * width + channel, mask=real, other=0.0)[None, :]
    for i in range(tl.load(starts + target), tl.load(starts + target + 1)):
        v, near = tl.load(affected + i), tl.load(close + i)
        state = tl.load(states + v * width, mask=inside, other=0.0) + above
        wrong = tl.load(zero + v, mask=there, other=0.0) * tl.load(weight + v)
        stays = (1.0 - tl.load(one + v, mask=there, other=0.0)) * tl.load(kept_weight + v)
        right = tl.where(near > 0, stays, wrong)
        right = tl.where(v == node, 0.0, right)
        moved = tl.zeros([block, wide], above.dtype)
        for j in range(tl.load(firsts + i), tl.load(firsts + i + 1)):
            w = tl.load(sources + j)
            change = tl.load(one + w, mask=there, other=0.0) * tl.load(detached + w)
            change -= tl.load(zero + w, mask=there, other=0.0) * tl.load(flipped + w)
            moved += change[:, None] * tl.load(z + w * width + channel, mask=real, other=0.0)[None, :]
        base = tl.load(kept_base + v * width + channel, mask=real, other=0.0)
        moved += tl.where(near > 0, base[None, :] - own, 0.0)
        total += right[:, None] * tl.maximum(state + moved, 0.0) - wrong[:, None] * tl.maximum(state, 0.0)
    tl.store(sums + place, total, mask=inside)


@jit
def attended(  # type: ignore[no-untyped-def]
    zero,
    one,
    kind,
    scores,
    values,
    base,
    top,
    out,
    samples,
    nodes,
    places,
    slope,
    heads: tl.constexpr,
    width: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
    several: tl.constexpr,
):
    """One program: `block` samples of one head of one target."""
    place = (tl.program_id(0) % places).to(tl.int64)  # target times heads, plus head
    sample = (tl.program_id(0) // places).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, wide)
    there, real = sample < samples, channel < width
    a = tl.load(base + place * samples + sample, mask=there, other=0.0)
    most = tl.load(top + place * samples + sample, mask=there, other=0.0)
    kind += place // heads * nodes
    scores += place * nodes
    values += place * nodes * width
    total = tl.zeros([wide, block], a.dtype)
    row = sample  # of 64 bits, as all numbers that grow with samples times nodes
    for begin in range(0, nodes, several):
        part = tl.zeros([wide, block], a.dtype)
        for node in range(begin, min(begin + several, nodes)):
            score = tl.load(scores + node) + a
            weight = tl.exp(tl.where(score > 0, score, slope * score) - most)
            near = tl.load(kind + node)
            added = tl.load(zero + row, mask=there, other=0.0)
            stayed = 1.0 - tl.load(one + row, mask=there, other=0.0)
            weight *= tl.where(near == 0, added, tl.where(near == 1, stayed, 0.0))
            value = tl.load(values + node * width + channel, mask=real, other=0.0)
            part += value[:, None] * weight[None, :]
            row += samples
        total += part
    where = (place * width + channel[:, None]) * samples + sample[None, :]
    tl.store(out + where, total, mask=real[:, None] & there[None, :])


@jit
def joined(  # type: ignore[no-untyped-def]
    out,
    z,
    attached,
    before,
    after,
    loop,
    order,
    starts,
    senders,
    nodes,
    centre,
    z_step,
    after_step,
    width: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """One program: `block` receivers of one sample, which have about as many senders each."""
    blocks = tl.cdiv(nodes, block)
    sample = (tl.program_id(0) // blocks).to(tl.int64)
    place = tl.program_id(0) % blocks * block + tl.arange(0, block)
    channel = tl.arange(0, wide)
    there, real = place < nodes, channel < width
    inside = there[:, None] & real[None, :]
    v = tl.load(order + place, mask=there, other=0)
    first = tl.load(starts + v, mask=there, other=0)
    count = tl.load(starts + v + 1, mask=there, other=0) - first
    z += sample * z_step
    before += sample * nodes
    spoke = tl.load(z + centre * width + channel, mask=real, other=0.0) * tl.load(before + centre)
    own = tl.load(z + v[:, None] * width + channel[None, :], mask=inside, other=0.0)
    own *= (tl.load(before + v, mask=there, other=0.0) * tl.load(loop + v, mask=there, other=0.0))[:, None]
    total = tl.load(attached + sample * nodes + v, mask=there, other=0.0)[:, None] * spoke[None, :]
    for i in range(tl.max(count, 0)):
        here = i < count
        w = tl.load(senders + first + i, mask=here, other=0)
        state = tl.load(
            z + w[:, None] * width + channel[None, :], mask=here[:, None] & real[None, :], other=0.0
        )
        total += state * tl.load(before + w, mask=here, other=0.0)[:, None]
    total = (total + own) * tl.load(after + sample * after_step + v, mask=there, other=0.0)[:, None]
    where = (sample * nodes + v[:, None]) * width + channel[None, :]
    tl.store(out + where, total, mask=inside & (v[:, None] != centre))


@jit
def rows(out, states, index, count, height, width: tl.constexpr, wide: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program: `block` rows."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, wide)
    there, real = place < count, channel < width
    row = tl.load(index + place, mask=there, other=0)
    inside = there[:, None] & real[None, :]
    known = inside & (row >= 0)[:, None] & (row < height)[:, None]
    value = tl.load(states + row[:, None] * width + channel[None, :], mask=known, other=float("nan"))
    tl.store(out + place[:, None] * width + channel[None, :], value, mask=inside)
