"""Roll: everybody who may speak, what they say, and the lists of the loudest, sorted once for each pair of classes."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import InputError
from unswayed.theory.ballots import Ints
from unswayed.theory.duels import Arrays, Lists

KEPT = 4096  # of each list of voters; what goes beyond is sorted only where it is needed
SMALL = 2**30  # ballots in 32 bits stay below, so that their differences fit


@dataclass(frozen=True, eq=False)
class Roll:
    """Everybody who may speak, and what they say: `ballots` int[R, C], of which the first `voters` rows are said over new links.

    Further rows belong to links that are there already. Lists sorted for a pair of classes are kept here.
    """

    ballots: NDArray[Any]
    voters: int
    lists: dict[Any, tuple[Any, Any]] = field(default_factory=dict, repr=False)
    joined: dict[Any, Lists] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.ballots.ndim != 2 or not 0 <= self.voters <= len(self.ballots):
            raise InputError("Ballots need one row for every voter and one column for every class.")
        if self.ballots.dtype == np.int32 and self.loudest >= SMALL:
            raise InputError("The ballots are too large for 32 bits; use a coarser fixed point.")

    @cached_property
    def columns(self) -> NDArray[Any]:
        """int[C, voters]: what is said over new links, a class at a time, next to each other in memory."""
        return np.ascontiguousarray(self.ballots[: self.voters].T)

    @cached_property
    def high(self) -> Ints:
        """int64[C]: the highest ballot for each class, 0 if none is above."""
        return np.asarray(self.ballots.max(axis=0, initial=0), dtype=np.int64)

    @cached_property
    def low(self) -> Ints:
        """int64[C]: the lowest ballot for each class, 0 if none is below."""
        return np.asarray(self.ballots.min(axis=0, initial=0), dtype=np.int64)

    @cached_property
    def loudest(self) -> int:
        """The largest distance of any ballot from 0."""
        return max(int(self.high.max()), -int(self.low.min()))

    def sorted_for(self, codes: Ints, arrays: Arrays, most: int) -> Lists:
        """The lists of these ordered pairs of classes, label · C + rival; those of usual length are kept."""
        length = min(most, self.voters)
        key = (tuple(codes.tolist()), length, arrays)
        if (known := self.joined.get(key)) is not None:
            return known
        classes = self.ballots.shape[1]
        ends = [self.ends(code // classes, code % classes, length, arrays) for code in codes.tolist()]
        lists = Lists.of(ends, length == self.voters, arrays)
        self.joined.clear()  # one set at a time: with many classes they are large
        self.joined[key] = lists
        return lists

    def ends(self, label: int, rival: int, length: int, arrays: Arrays) -> tuple[Any, Any]:
        """The voters that say the rival loudest against the label, descending."""
        key = (label, rival, length, arrays)
        if key in self.lists:
            return self.lists[key]
        found = arrays.largest(self.columns[rival] - self.columns[label], length)
        if length <= KEPT:
            self.lists[key] = found
        return found
