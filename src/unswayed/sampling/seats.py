"""Seats drawn without replacement, in exact integers: which neighbours of a row are kept.

A draw below m comes from a 32-bit word: it is the word modulo m, and a word at or beyond the largest multiple of m is thrown
away for the next attempt, so every value is exactly as likely as every other. Draw t picks among the seats that are left.
The words are Philox words of (seed, purpose, sample number, draw, attempt), apart from all words of the other streams:

    counter (draw, sample // 4, target, purpose + 1024 + 2¹⁶ attempt), lane sample % 4
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.stream import LANES, Stream, philox
from unswayed.theory.noise import WORD

NAME = (
    "philox4x32-10/seats-1"  # goes into the provenance; another layout of the counter must get another name
)
SEATS = 4 << 8
Words = npt.NDArray[np.uint64]
IntArray = npt.NDArray[np.int64]


def words(
    stream: Stream, start: int, stop: int, draws: int, attempt: int, targets: Sequence[int | None]
) -> Words:
    """uint64[stop - start, targets, draws]: the words of one attempt."""
    keys, purposes = zip(*map(stream.counter_tail, targets), strict=True)
    quads = np.arange(start // LANES, -(-stop // LANES), dtype=np.uint64)[:, None, None]
    key, draw = np.array(keys, dtype=np.uint64)[:, None], np.arange(draws, dtype=np.uint64)
    tail = np.full((1, 1, 1), purposes[0] + SEATS + (attempt << 16), dtype=np.uint64)
    lanes = philox((draw[None, None], quads, key[None], tail), stream.key)
    skip = start % LANES
    joined: Words = np.stack(lanes, axis=1).reshape(-1, len(keys), draws)[skip : skip + stop - start]
    return joined


def below(stream: Stream, start: int, stop: int, sizes: IntArray, targets: Sequence[int | None]) -> Words:
    """uint64[stop - start, targets, draws]: uniform below each of `sizes` [targets, draws], exactly."""
    size = sizes.astype(np.uint64)
    limit = np.uint64(WORD) // size * size
    found, attempt = words(stream, start, stop, size.shape[1], 0, targets), 0
    while (late := found >= limit).any():
        attempt += 1
        found = np.where(late, words(stream, start, stop, size.shape[1], attempt, targets), found)
    return np.asarray(found % size)


def pick(draws: IntArray) -> IntArray:
    """int64[.., kept]: different seats, ascending; draw t counts among the seats that are left.

    >>> pick(np.array([[0, 0], [2, 2], [2, 1]])).tolist()
    [[0, 1], [2, 3], [1, 2]]
    """
    taken: list[IntArray] = []
    for t in range(draws.shape[-1]):
        seat = draws[..., t].copy()
        for other in taken:  # ascending: each seat taken before moves the count by one
            seat += seat >= other
        for place, other in enumerate(taken):
            taken[place], seat = np.minimum(other, seat), np.maximum(other, seat)
        taken.append(seat)
    return np.stack(taken, axis=-1) if taken else draws


def kept_by_each(
    stream: Stream, start: int, stop: int, seats: Sequence[int], kept: int, targets: Sequence[int | None]
) -> IntArray:
    """int64[stop - start, targets, kept]: which of its seats each target keeps in these samples; every set is equally likely."""
    if not (0 <= start <= stop <= WORD * LANES and 0 <= kept <= min(seats) and max(seats) < WORD):
        raise InputError(f"{kept} of {min(seats)} seats in samples {start} to {stop} cannot be drawn.")
    sizes = np.asarray(seats, dtype=np.int64)[:, None] - np.arange(kept, dtype=np.int64)
    return pick(below(stream, start, stop, sizes, targets).astype(np.int64))


def kept_seats(
    stream: Stream, start: int, stop: int, seats: int, kept: int, *, target: int | None = None
) -> IntArray:
    """int64[stop - start, kept]: the same of one target.

    >>> kept_seats(Stream(0), 5, 7, 9, 2).tolist() == kept_seats(Stream(0), 0, 8, 9, 2)[5:7].tolist()
    True
    """
    return kept_by_each(stream, start, stop, [seats], kept, [target])[:, 0]


def kept_rows(
    stream: Stream, start: int, stop: int, clean: Tensor, kept: int, seats: int, *, target: int | None = None
) -> Tensor:
    """bool[stop - start, n]: the noisy rows of a clean row bool[n]; its ones have the first seats, in ascending order."""
    ones = clean.cpu().nonzero()[:, 0]
    drawn = torch.from_numpy(kept_seats(stream, start, stop, max(len(ones), seats), kept, target=target))
    rows = torch.zeros((stop - start, len(clean)), dtype=torch.bool)
    sample, place = (drawn < len(ones)).nonzero(as_tuple=True)
    rows[sample, ones[drawn[sample, place]]] = True
    return rows.to(clean.device)
