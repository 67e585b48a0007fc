"""Noise whose cost follows the entries that change, of exactly the same law as if every entry were drawn.

Between one added entry and the next lies a geometric gap: Pr(gap >= j) = q^j with q = 1 - T_add/2³². A uniform U, read 64
bits at a time, gives gap >= j iff U < q^j, decided in integers: the word is compared with floor(q^j 2⁶⁴), and where it
equals that floor further words decide against the next bits of q^j. No logarithm, no rounding. Every entry is treated as
a 0 here; what falls on a 1 is dropped, and the ones are drawn one by one with T_delete, so entries stay independent.

The words are Philox words of (seed, purpose, sample number, draw), apart from all words of the dense stream:

    additions: counter (draw // 2, sample, target, purpose + 256)            64 bits: draw % 2
    further bits:      (draw, sample, target, purpose + 512 + 2¹⁶ depth)
    deletions:         (entry, sample // 4, target, purpose + 768 + 2¹⁶ (entry >> 32))   32 bits: sample % 4
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.stream import LANES, MASK, Stream, philox
from unswayed.theory.noise import WORD, Noise

# goes into the provenance; another layout of the counter, or another order of the entries, must get another name
NAME = "philox4x32-10/sparse-2"
ADDITION, FURTHER, DELETION = 1 << 8, 2 << 8, 3 << 8
SIGN = -(2**63)  # xor-ing it takes half the range off a 64-bit word, and an int64 holds the rest
GUARD = 192  # extra bits carried while powers of q are tabulated; a floor they leave open is computed exactly
LONGEST = 2**15  # a table of at most this many gaps; longer ones are drawn in stages, which is exact


@dataclass(frozen=True)
class Gaps:
    """The exact law of how many entries are passed over before the next one flips, each with probability T/2³².

    `longest` is the largest gap one word can tell; "at least `longest`" means: pass over that many and draw again,
    because the geometric law has no memory. `bits` is the length of a word; tests make it short.

    >>> gaps = Gaps(threshold=2**31, longest=3)       # q = 1/2
    >>> [hex(floor) for floor in gaps.floors]
    ['0x8000000000000000', '0x4000000000000000', '0x2000000000000000']
    """

    threshold: int
    longest: int
    bits: int = 64

    @property
    def q(self) -> Fraction:
        """The probability that an entry does not flip."""
        return Fraction(WORD - self.threshold, WORD)

    @cached_property
    def floors(self) -> list[int]:
        """floor(q^j 2^bits) for j = 1 .. longest, each proved: lower and upper enclosures agree, or it is computed exactly."""
        keep, scale = WORD - self.threshold, self.bits + GUARD
        low = high = 1 << scale
        found = []
        for j in range(1, self.longest + 1):
            low, high = low * keep // WORD, -(-high * keep // WORD)
            floor = low >> GUARD
            found.append(floor if high >> GUARD == floor else self.exact_floor(j))
        return found

    def exact_floor(self, j: int) -> int:
        """floor(q^j 2^bits), from the exact power."""
        power: int = (WORD - self.threshold) ** j << self.bits
        return power // int(WORD**j)

    @cached_property
    def ascending(self) -> Tensor:
        """The floors from the smallest up, less half the range, so that int64 holds them."""
        return torch.tensor([floor - 2 ** (self.bits - 1) for floor in reversed(self.floors)])

    def decide(self, word: int, further: Callable[[int], int], gap: int = 0) -> int:
        """The gap of the U that begins with `word` and goes on with further(1), further(2), …; it is `gap` or more."""
        value, length, depth = word, self.bits, 0
        while gap < self.longest:
            power, unit = (WORD - self.threshold) ** (gap + 1) << length, WORD ** (gap + 1)
            if (value + 1) * unit <= power:  # all of [value, value + 1) / 2^length lies below q^(gap+1)
                gap += 1
            elif value * unit >= power:
                return gap
            else:
                depth += 1
                value, length = value << self.bits | further(depth), length + self.bits
        return gap

    def draws_for(self, entries: int) -> int:
        """An even number of draws that nearly always passes all `entries`; more are drawn where it does not."""
        p = self.threshold / WORD
        # of a draw, on average; no draw depends on it
        advance = -math.expm1(self.longest * math.log1p(-p)) / p
        expected = entries / advance
        return 2 * int((1.03 * expected + 5 * expected**0.5 + 10) / 2)

    def __call__(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """(gaps, whether further words must decide) of words less half their range."""
        table = self.ascending.to(words.device)
        above = torch.searchsorted(table, words, right=True)
        tied = (above > 0) & (table[(above - 1).clamp(min=0)] == words)
        return self.longest - above, tied


@cache
def gaps_of(threshold: int) -> Gaps:
    """The table for one T_add: long enough that most gaps take one word, short enough for a core's cache."""
    return Gaps(threshold, min(LONGEST, 1 + 4 * WORD // threshold))


@dataclass(frozen=True)
class SparseStream:
    """Noisy structure vectors, listed by their ones; pure in (seed, purpose, sample number) and of the exact law.

    >>> from unswayed.theory.noise import AddDelete
    >>> stream, noise = SparseStream(Stream(seed=0)), AddDelete(p_add=0.01, p_delete=0.4)
    >>> whole = stream.ones(0, 8, 1000, torch.tensor([3, 500]), noise)
    >>> part = stream.ones(5, 6, 1000, torch.tensor([3, 500]), noise)
    >>> part[1].tolist() == whole[1][whole[0] == 5].tolist()
    True
    """

    stream: Stream

    def ones(
        self,
        start: int,
        stop: int,
        entries: int,
        clean: Tensor,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """(sample - start, entry) of every 1 in the noisy vectors of these samples; `clean` lists the ones, ascending.

        By sample, then by entry: the order tells nothing of which entries were there before the noise.
        """
        if not (0 <= start <= stop <= WORD and entries <= 2**48):
            raise InputError(f"Samples {start} to {stop} of {entries} entries are outside the sparse stream.")
        clean = clean.to(device)
        sample, entry = self.additions(start, stop, entries, noise, target=target, device=device)
        if len(clean):
            place = torch.searchsorted(clean, entry).clamp(max=len(clean) - 1)
            fresh = clean[place] != entry
            sample, entry = sample[fresh], entry[fresh]
        row, column = (~self.deletions(start, stop, clean, noise, target=target)).nonzero(as_tuple=True)
        merged = merge(row * entries + clean[column], sample * entries + entry)
        return merged // entries, merged % entries

    def additions(
        self,
        start: int,
        stop: int,
        entries: int,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """(sample - start, entry) of the entries that flip if they are 0, for each sample in ascending order."""
        if not noise.thresholds[0]:  # nothing is ever added
            return torch.zeros((2, 0), dtype=torch.int64, device=device).unbind()  # type: ignore[return-value]
        gaps = gaps_of(noise.thresholds[0])
        rows = torch.arange(start, stop, device=device)
        at = torch.full_like(rows, -1)  # the last entry passed or flipped
        found, draw = [], 0
        chunk = gaps.draws_for(entries)
        while len(rows):
            gap = self._gaps(rows, draw, chunk, gaps, target)
            reached = at[:, None] + torch.cumsum(gap + (gap < gaps.longest), dim=1)
            hit = (gap < gaps.longest) & (reached < entries)
            row, column = hit.nonzero(as_tuple=True)
            found.append(((rows - start)[row], reached[row, column]))
            unfinished = reached[:, -1] < entries - 1
            rows, at = rows[unfinished], reached[unfinished, -1]
            draw, chunk = draw + chunk, max(16, chunk // 8 * 2)
        samples, positions = (
            (torch.cat(parts) for parts in zip(*found, strict=True)) if found else (rows, rows)
        )
        if len(found) > 1:
            order = torch.argsort(samples, stable=True)
            samples, positions = samples[order], positions[order]
        return samples, positions

    def deletions(
        self, start: int, stop: int, clean: Tensor, noise: Noise, *, target: int | None = None
    ) -> Tensor:
        """bool[stop - start, ones]: which of the `clean` ones become 0."""
        key, purpose = self.stream.counter_tail(target)
        quads = _range(start // LANES, -(-stop // LANES), clean.device)[:, None]
        high = clean.cpu().numpy() >> 32
        low = _as_words(clean & MASK)[None, :]
        tail = _as_words(torch.from_numpy(purpose + DELETION + (high << 16)).to(clean.device))[None, :]
        lanes = philox((low, quads, _like(quads, key), tail), self.stream.key)
        flips = [torch.as_tensor(word < noise.thresholds[1]) for word in lanes]
        skip = start % LANES
        return torch.stack(flips, dim=1).flatten(0, 1)[skip : skip + stop - start]

    def _gaps(self, rows: Tensor, draw: int, count: int, gaps: Gaps, target: int | None) -> Tensor:
        """int64[rows, count]: the gaps of draws draw .. draw + count - 1; draw and count are even."""
        key, purpose = self.stream.counter_tail(target)
        pairs = _range(draw // 2, (draw + count) // 2, rows.device)[None, :]
        samples = _as_words(rows)[:, None]
        a, b, c, d = philox(
            (pairs, samples, _like(pairs, key), _like(pairs, purpose + ADDITION)), self.stream.key
        )
        words = (torch.stack([_join(a, b), _join(c, d)], dim=2).flatten(1) ^ SIGN) >> (64 - gaps.bits)
        gap, tied = gaps(words)
        for row, column in tied.nonzero().tolist():  # once in 2^64 / longest words
            further = self._further(draw + column, int(rows[row]), key, purpose, gaps.bits)
            word = int(words[row, column]) + 2 ** (gaps.bits - 1)
            gap[row, column] = gaps.decide(word, further, int(gap[row, column]))
        return gap

    def _further(self, draw: int, sample: int, key: int, purpose: int, bits: int) -> Callable[[int], int]:
        """The words that continue the binary expansion begun by one draw."""

        def word(depth: int) -> int:
            counter = (draw, sample, key, purpose + FURTHER + (depth << 16))
            high, low, _, _ = philox(tuple(np.uint64(part) for part in counter), self.stream.key)  # type: ignore[arg-type]
            return (int(high) << 32 | int(low)) >> (64 - bits)

        return word


def merge(some: Tensor, others: Tensor) -> Tensor:
    """Two ascending lists as one; much faster than sorting where one of them is short."""
    if len(some) > len(others):
        some, others = others, some
    place = torch.searchsorted(others, some) + torch.arange(len(some), device=some.device)
    merged = others.new_empty(len(some) + len(others))
    rest = torch.ones_like(merged, dtype=torch.bool)
    rest[place] = False
    merged[place], merged[rest] = some, others
    return merged


def pair_of(entry: Tensor) -> tuple[Tensor, Tensor]:
    """The pair i < j with j(j-1)/2 + i = entry, exactly, for entries below 2⁵²: a float root, corrected in integers.

    >>> [part.tolist() for part in pair_of(torch.tensor([0, 1, 2, 3]))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    j = ((1 + (8 * entry + 1).double().sqrt()) / 2).long()
    j = j - (j * (j - 1) // 2 > entry).long()
    j = j + (j * (j + 1) // 2 <= entry).long()
    return entry - j * (j - 1) // 2, j


def _in_numpy(device: torch.device) -> bool:
    """Words are numpy's uint64 on the CPU, where that is faster, and torch's int64 elsewhere; the bits are the same."""
    return device.type == "cpu"


def _range(start: int, stop: int, device: torch.device) -> Any:
    if _in_numpy(device):
        return np.arange(start, stop, dtype=np.uint64)
    return torch.arange(start, stop, device=device)


def _as_words(values: Tensor) -> Any:
    return values.numpy().view(np.uint64) if _in_numpy(values.device) else values


def _like(words: Any, value: int) -> Any:
    """One counter word, in the array type of `words`."""
    if isinstance(words, np.ndarray):
        return np.full((1, 1), value, dtype=np.uint64)
    return torch.full((1, 1), value, dtype=torch.int64, device=words.device)


def _join(high: Any, low: Any) -> Tensor:
    """The int64 whose upper and lower halves these words are."""
    if isinstance(high, np.ndarray):
        return torch.from_numpy(((high << np.uint64(32)) | low).view(np.int64))
    joined: Tensor = (high << 32) | low
    return joined
