"""The largest number of entries of which every split into additions and deletions is certified, without asking about every one.

Along a fixed share of deletions certification falls with the number of entries, since neither additions nor deletions ever become fewer.
Floats (`Judge`) lead to the share that fails first; then all splits of one number are proved in blocks: no split
of a block has more additions, or deletions, than one attack that holds, or two splits speak for all between them. What that
leaves open is asked exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unswayed.theory.law import Floats, Ints
from unswayed.theory.tails import SLACK

# blocks of splits tried first, and the most pieces that one is cut into where it is not proved
BLOCKS, MOST = (
    64,
    64,
)
SAFE = 0.88  # of what a block could be widened by: such pieces are mostly proved
SECTIONS = 32  # places looked at together where a search is led by floats


class Floating(Protocol):
    """What floats prove of many attacks at once: each is certified where its margin is above `SLACK`."""

    def margin(self, adds: Ints, deletes: Ints) -> Floats:
        """By how much each attack is certified, at least and nearly."""

    @property
    def span(self) -> float:
        """About how many neighbouring splits two of them can speak for."""

    def block(self, k: int, low: Ints, high: Ints) -> Floats:
        """By how much all splits of k entries with `low` to `high` deletions are, at least."""


@dataclass(frozen=True)
class Splits:
    """Attacks on one target, of which `ones` entries are 1 (None: unknown) and `cap` there are; `test` decides one exactly."""

    test: Callable[[int, int], bool]
    floats: Floating
    ones: int | None
    cap: int

    def ends(self, k: int) -> tuple[int, int]:
        """The fewest and the most deletions of a split that exists."""
        return (0, k) if self.ones is None else (max(0, k - (self.cap - self.ones)), min(k, self.ones))

    def split(self, k: Ints, deletes: int, of: int) -> Ints:
        """The deletions of splits of k entries with about this share of them."""
        low, high = (0, k) if self.ones is None else (k - (self.cap - self.ones), np.minimum(k, self.ones))
        return np.asarray(np.clip(k * deletes // of, np.maximum(low, 0), high))

    def largest(self, low: int, start: int) -> int:
        """The largest k ≤ cap of which every split holds, if every split of `low` does; `start` is a guess."""
        k, share, weak = self._led(low, start)
        high = self._below(low, self.cap + 1, share, k)
        while high - low > 1:
            if weak is None or k != high - 1:
                k = high - 1
                weak = self._weakest(k, weak)[0]
            if self.test(k - weak, weak):
                weak = self._failing(k)
                if weak is None:
                    return k
            high = self._below(low, high, (weak, k), about(self._along((weak, k)), low, high, high))
        return low

    def _along(self, share: tuple[int, int]) -> Callable[[Ints], Floats]:
        """The margin of so many entries, this share of them deletions."""

        def margin(k: Ints) -> Floats:
            deletes = self.split(k, *share)
            return self.floats.margin(k - deletes, deletes)

        return margin

    def _led(self, low: int, start: int) -> tuple[int, tuple[int, int], int | None]:
        """About the largest k, the share of deletions that fails first beyond it, and the deletions of its weakest split: floats alone."""
        share, weak = (0, 1), None
        k = about(self._along(share), low, self.cap + 1, start)  # pure attacks fail first, as a rule
        fewer = about(self._along((1, 1)), low, k + 1, k)
        if fewer < k:
            k, share = fewer, (1, 1)
        while k > low:
            weak, margin = self._weakest(k, weak)
            if margin > 0:
                break
            share = weak, k
            k = about(self._along(share), low, k, k)
        return k, share, weak

    def _below(self, low: int, high: int, share: tuple[int, int], guess: int) -> int:
        """The first that fails of splits with this share of deletions, if it is below `high`."""

        def holds(k: int) -> bool:
            deletes = int(self.split(np.array(k), *share))
            return self.test(k - deletes, deletes)

        return 1 + last(holds, low, high - 1, guess)

    def _weakest(self, k: int, near: int | None) -> tuple[int, float]:
        """The deletions of the split that floats call the weakest, and its margin: of those near to one, or found by ever narrower looks."""
        low, high = self.ends(k)
        if near is None:
            ends = 4 ** np.arange(k.bit_length() // 2 + 1)  # what is weak is often near an end
            deletes = np.concatenate([np.linspace(low, high, SECTIONS), low + ends, high - ends])
        else:
            # the nearer, the denser
            steps = np.union1d(np.arange(SECTIONS // 2), 2 ** np.arange(k.bit_length()))
            deletes = np.concatenate([near - steps, near + steps])
        while True:
            deletes = np.unique(deletes.clip(low, high).astype(np.int64))
            margin = self.floats.margin(k - deletes, deletes)
            place = int(margin.argmin())
            low, high = int(deletes[max(place - 1, 0)]), int(deletes[min(place + 1, len(deletes) - 1)])
            if near is not None or high - low <= 2:
                return int(deletes[place]), float(margin[place])
            deletes = np.append(np.linspace(low, high, SECTIONS), deletes[place])

    def _failing(self, k: int) -> int | None:
        """The deletions of a split of k entries that is not certified; None where all are, which this proves."""
        first, final = self.ends(k)
        edges = np.unique(np.linspace(first, final + 1, BLOCKS + 1).astype(np.int64))
        low, high = edges[:-1], edges[1:] - 1
        more = np.array([0, 1 + k // BLOCKS])
        there = self.floats.margin(k - first + more, first + 0 * more)
        cost = max(float(there[0] - there[1]) / int(more[1]), 1e-300)  # of one more entry, about
        while True:
            margin = self.floats.block(k, low, high)
            left = ~(margin > SLACK)
            low, high, margin = low[left], high[left], margin[left]
            if not len(low) or int((high - low).max()) == 0:
                break
            with np.errstate(over="ignore"):  # a margin may be far below 0, and hardly change
                # entries more than a split that stands alone has
                spare = SAFE * (margin / cost + (high - low))
            low, high = _cut(low, high, np.maximum(spare, self.floats.span))
        return next((r for r in low.tolist() if not self.test(k - r, r)), None)


def _cut(low: Ints, high: Ints, widest: Floats) -> tuple[Ints, Ints]:
    """Every block in two pieces or more, no wider than this if few enough; each has one split at least."""
    width = high + 1 - low
    pieces = np.ceil(width / np.maximum(widest, 1.0)).clip(2, MOST).astype(np.int64)
    pieces = np.minimum(pieces, width)
    of = np.repeat(np.arange(len(low)), pieces)
    number = np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = low[of] + width[of] * number // pieces[of]
    end = low[of] + width[of] * (number + 1) // pieces[of] - 1
    return begin, end


def about(margin: Callable[[Ints], Floats], low: int, high: int, start: int) -> int:
    """About the last k from `low` on whose margin is above 0, and below `high`: a few looks at many, the first around `start`.

    >>> about(lambda k: 700.5 - k, 2, 100_000, 300)
    700
    """
    reach, inside = 1 + min(start, high) // 2, False
    while high - low > 1:
        steps = reach >> np.arange(reach.bit_length() + 1)  # the nearer, the denser
        looks = np.linspace(low, high, SECTIONS) if inside else np.concatenate([start - steps, start + steps])
        k = np.unique(looks.clip(low + 1, high - 1).astype(np.int64))
        found = margin(k)
        bad = np.flatnonzero(~(found > 0))
        end = int(bad[0]) if len(bad) else len(k)
        inside = inside or 0 < end < len(k)
        low, high = (int(k[end - 1]) if end else low), (int(k[end]) if end < len(k) else high)
        if 0 < end < len(k) and (high - low) ** 2 <= low:  # a straight line is off by less than one
            return low + int((high - low) * found[end - 1] / (found[end - 1] - found[end]))
        start, reach = low if end else high, 4 * reach
    return low


def last(holds: Callable[[int], bool], low: int, high: int, start: int) -> int:
    """The largest k from `low` to `high` that holds, if `low` does and whatever is below one that holds; `start` is a guess.

    >>> last(lambda k: k <= 700, 2, 1000, 690)
    700
    """
    k, step = min(max(start, low + 1), high), 1
    if k > low and holds(k):
        while k < high and holds(min(k + step, high)):
            k, step = min(k + step, high), 3 * step
        low, high = k, min(k + step, high + 1)
    else:
        high = k
        while (k := max(high - step, low)) > low and not holds(k):
            high, step = k, 3 * step
        low = k
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
