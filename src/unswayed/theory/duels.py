"""Duels: many targets at once, each against one rival, decided by lists of voters that were sorted once.

What a new voter does to the margin over a rival depends on the target only by a constant, so the order in which an attacker
takes new voters is the same for all targets of one label: one list for each ordered pair of classes. A target passes over
those that speak to it already. The k-th that is left, and the sum of the first k, are found by bisection: O(degree + log) a target.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WIDEST = 2**62  # of a sorting key
SAMPLED = 64  # one value of so many shows where the largest begin


class Arrays:
    """The few array operations that duels are made of, in numpy; another library can stand in."""

    where: Any = staticmethod(np.where)
    minimum: Any = staticmethod(np.minimum)
    maximum: Any = staticmethod(np.maximum)

    def arange(self, count: int) -> Any:
        """0 .. count - 1."""
        return np.arange(count)

    def zeros(self, count: int) -> Any:
        """int64 zeros."""
        return np.zeros(count, dtype=np.int64)

    def join(self, *parts: Any) -> Any:
        """One after the other."""
        return np.concatenate(parts)

    def sort(self, keys: Any) -> Any:
        """Ascending."""
        return np.sort(keys)

    def repeat(self, values: Any, times: Any) -> Any:
        """Each value so many times."""
        return np.repeat(values, times)

    def cumsum(self, values: Any) -> Any:
        """Running sums."""
        return np.cumsum(values)

    def highest(self, values: Any) -> Any:
        """Running maxima."""
        return np.maximum.accumulate(values)

    def count(self, segment: Any, segments: int) -> Any:
        """How often each segment occurs."""
        return np.bincount(segment, minlength=segments)

    def largest(self, values: Any, most: int) -> tuple[Any, Any]:
        """The largest values, descending, and where they are."""
        chosen = _among(values, most) if most < len(values) else np.arange(len(values))
        order = chosen[np.argsort(-values[chosen], kind="stable")[:most]]
        return values[order].astype(np.int64), order


def _among(values: Ints, most: int) -> Ints:
    """Where the `most` largest values are, and perhaps a few more.

    A selection is slow where most values are equal: a sample shows from which value on there are enough; else all are sorted.
    """
    drawn = np.sort(values[::SAMPLED])
    edge = drawn[-min(len(drawn), 2 * most // SAMPLED + 8)]
    above = np.flatnonzero(values > edge)
    if len(above) >= most:
        return above
    level = np.flatnonzero(values == edge)
    if len(above) + len(level) < most:
        edge = np.sort(values)[len(values) - most]
        above, level = np.flatnonzero(values > edge), np.flatnonzero(values == edge)
    return np.concatenate([above, level[: most - len(above)]])


NUMPY = Arrays()


@dataclass(frozen=True, eq=False)
class Lists:
    """For some ordered pairs of classes (label, rival), the voters that say the rival loudest against the label.

    Flat: pair p has `value`[p·length : (p+1)·length], descending q_rival − q_label, and `total`[p·(length+1) …] its sums from
    nothing up. `whole` tells that no voter is missing.
    """

    value: Any
    total: Any
    voter: Any
    length: int
    whole: bool

    @classmethod
    def of(cls, ends: list[tuple[Any, Any]], whole: bool, arrays: Arrays = NUMPY) -> "Lists":
        """From the highest values of each pair and whose they are."""
        value, voter = arrays.join(*(top for top, _ in ends)), arrays.join(*(who for _, who in ends))
        nothing = arrays.zeros(1)
        total = arrays.join(*(part for top, _ in ends for part in (nothing, arrays.cumsum(top))))
        return cls(value, total, voter, len(ends[0][0]), whole)


@dataclass(frozen=True, eq=False)
class Voters:
    """What the targets of some duels hear now: the links of target i are `start`[i] .. `start`[i+1] − 1 of `row` and `voter`.

    `row` is the row of `ballots` by which a link speaks, `voter` who that is, and so the row it would speak by as a newcomer; `itself` is the target's own number among the voters, −1 where it has none.
    """

    ballots: Any
    start: Any
    row: Any
    voter: Any
    itself: Any


class Duels:
    """Targets against one rival each: exact sums of the worst additions and deletions, and the sizes that follow.

    `pair` says which list of `lists` is the target's; `offset` is m, what the target's own score adds to each gain; `spare`
    what the margin can lose.
    """

    def __init__(
        self,
        voters: Voters,
        lists: Lists | None,
        who: Any,
        sides: tuple[Any, Any, Any],
        offset: Any,
        spare: Any,
        arrays: Arrays = NUMPY,
        change: str = "any",
    ) -> None:
        self.arrays, self.offset, self.spare, self.change = arrays, offset, spare, change
        label, rival, pair = sides
        segment, link = self._links(voters.start[who], voters.start[who + 1])
        sides_of = label[segment], rival[segment]
        said = self._difference(voters, voters.row[link], *sides_of)
        if change != "adds":
            self._note_deletions(said, segment)
        if lists is None:  # enough for deletions alone
            return
        self.lists, self.begin, self.begin_sums = lists, pair * lists.length, pair * (lists.length + 1)
        if voters.voter is not voters.row:
            said = self._difference(voters, voters.voter[link], *sides_of)
        itself = voters.itself[who]
        own = self._difference(voters, arrays.maximum(itself, itself * 0), label, rival)
        self._note_passed(said, segment, own, itself >= 0)

    def _links(self, start: Any, stop: Any) -> tuple[Any, Any]:
        """(which target, which link) of all links from the starts to the stops."""
        a, count = self.arrays, stop - start
        segment = a.repeat(a.arange(len(start)), count)
        return segment, a.arange(len(segment)) + a.repeat(start - (a.cumsum(count) - count), count)

    def _difference(self, voters: Voters, row: Any, one: Any, other: Any) -> Any:
        flat, wide = voters.ballots.reshape(-1), voters.ballots.shape[1]
        return self._wide(flat[row * wide + one]) - self._wide(flat[row * wide + other])

    def _wide(self, values: Any) -> Any:
        return values + self.arrays.zeros(1)  # from 32 bits to 64

    def _note_deletions(self, said: Any, segment: Any) -> None:
        """The positive gains of the links that are there, descending for each target, and their running sums."""
        gain = said + self.offset[segment]
        hurts = gain > 0
        self.gain, self.first = self._sorted(gain[hurts], segment[hurts])
        self.gain_sum = self._sums(self.gain)

    def _note_passed(self, said: Any, segment: Any, own: Any, real: Any) -> None:
        """Where in its list a target finds itself and voters that speak to it already: how many free ones come before.

        `said` is what they say as newcomers for the label over the rival, so that −`said` is their value in the list.
        """
        a, everyone = self.arrays, self.arrays.arange(len(own))
        last = self.lists.value[self.begin + self.lists.length - 1] if self.lists.length else own
        listed, own_listed = -said >= last[segment], (-own >= last) & real
        self.passed, self.passed_first = self._sorted(
            a.join(-said[listed], -own[own_listed]), a.join(segment[listed], everyone[own_listed])
        )
        segment = a.repeat(everyone, self.passed_first[1:] - self.passed_first[:-1])
        here = a.arange(len(segment))
        new = here < 0
        new[1:] = (self.passed[1:] != self.passed[:-1]) | (segment[1:] != segment[:-1])
        run = a.highest(a.where(new, here, 0)) if len(here) else here  # where a run of equal values begins
        before = self._listed_above(self.passed, self.begin[segment])
        # of equal voters, those passed over stand first
        self.free = before - (run - self.passed_first[segment])
        self.passed_sum = self._sums(self.passed)

    def _sorted(self, value: Any, segment: Any) -> tuple[Any, Any]:
        """The values, descending within each segment, and where each segment begins."""
        a, segments = self.arrays, len(self.offset)
        first = a.join(a.zeros(1), a.cumsum(a.count(segment, segments)))
        if not len(value):
            return value, first
        top = int(value.max())
        wide = top - int(value.min()) + 1
        assert wide * segments < WIDEST, "the caller keeps the number of targets within this"
        key = a.sort(segment * wide + (top - value))
        return top - key % wide, first

    def _sums(self, values: Any) -> Any:
        return self.arrays.join(self.arrays.zeros(1), self.arrays.cumsum(values))

    def _listed_above(self, value: Any, begin: Any) -> Any:
        """How many of a list's values are strictly above."""
        return self._bisect(
            lambda at: self.lists.value[begin + at] > value, begin * 0, begin * 0 + self.lists.length
        )

    def _bisect(self, holds: Callable[[Any], Any], low: Any, high: Any) -> Any:
        """The number of positions from `low` on, below `high`, at which a condition holds that never holds again once it fails; plus `low`."""
        steps = int((high - low).max()).bit_length() if len(low) else 0
        for step in (2**power for power in reversed(range(steps))):
            inside = low + step <= high
            yes = inside & holds(self.arrays.where(inside, low + (step - 1), 0))
            low = low + yes * step
        return low

    @property
    def most_additions(self) -> Any:
        """How many listed voters hurt and are free to be added; where the list ends before they do, as many as are listed."""
        hurting = self._listed_above(self.offset, self.begin)
        passed = self._bisect_passed(lambda at: self.passed[at] > self.offset)
        return hurting - self.arrays.minimum(passed, hurting)

    @property
    def cut_short(self) -> Any:
        """Where the list ends although its last voter still hurts."""
        if self.lists.whole:
            return self.offset != self.offset
        return self.lists.value[self.begin + self.lists.length - 1] > self.offset

    def _bisect_passed(self, holds: Callable[[Any], Any]) -> Any:
        start, stop = self.passed_first[:-1], self.passed_first[1:]
        return self._bisect(holds, start, stop) - start

    def added(self, count: Any) -> tuple[Any, Any]:
        """(what the `count` worst additions cost together, what the last of them costs), for counts up to `most_additions`."""
        passed = self._bisect_passed(lambda at: self.free[at] < count)
        upto = self.arrays.minimum(count + passed, count * 0 + self.lists.length)
        start = self.passed_first[:-1]
        over = self.passed_sum[start + passed] - self.passed_sum[start]
        cost = self.lists.total[self.begin_sums + upto] - over - count * self.offset
        last = self.lists.value[self.begin + self.arrays.maximum(upto - 1, upto * 0)] - self.offset
        return cost, last

    def deleted(self, count: Any) -> Any:
        """What the `count` worst deletions cost together; `count` is cut at those that hurt."""
        start, stop = self.first[:-1], self.first[1:]
        return self.gain_sum[self.arrays.minimum(start + count, stop)] - self.gain_sum[start]

    def _deletions_within(self, budget: Any) -> Any:
        """How many of the worst deletions cost at most the budget."""
        start, stop = self.first[:-1], self.first[1:]
        return (
            self._bisect(lambda at: self.gain_sum[at + 1] - self.gain_sum[start] <= budget, start, stop)
            - start
        )

    def _deletions_above(self, harm: Any) -> Any:
        """How many deletions cost at least `harm` each."""
        start, stop = self.first[:-1], self.first[1:]
        return self._bisect(lambda at: self.gain[at] >= harm, start, stop) - start

    def sizes(self) -> tuple[Any, Any, Any]:
        """(how many changes the label withstands, whether it withstands all that hurt, whether the list was too short to tell)."""
        if self.change == "deletes":
            size = self._deletions_within(self.spare)
            return size, size == self.first[1:] - self.first[:-1], size < 0
        most = self.most_additions
        if self.change == "adds":
            size = self._bisect(lambda k: self.added(k + 1)[0] <= self.spare, most * 0, most)
            return size, size == most, (size == most) & self.cut_short
        return self._any_size(most, self.first[1:] - self.first[:-1])

    def _any_size(self, most: Any, hurting: Any) -> tuple[Any, Any, Any]:
        """Additions and deletions in one descending order, deletions first among equals."""
        a = self.arrays

        def stands(k: Any) -> Any:
            cost, last = self.added(k + 1)
            return cost + self.deleted(self._deletions_above(last)) <= self.spare

        adds = self._bisect(stands, most * 0, most)
        deletes = self._deletions_within(self.spare - self.added(adds)[0])
        # the next addition: only what hurts as much goes before it
        coming = self.added(a.minimum(adds + 1, most))[1]
        deletes = a.where(adds < most, a.minimum(deletes, self._deletions_above(coming)), deletes)
        done = (adds == most) & (deletes == hurting)
        return adds + deletes, done, (adds == most) & self.cut_short
