"""Electorate: exact sizes for very many targets that hear from the same voters, by lists sorted once.

The score of class c at target u is z_c = base_c + Σ (o_c + q_c) over the links that are there: `own` o is the target's, the
ballot q belongs to the link if it is there now, else to the voter as a newcomer. The entries of a target are all voters but
itself. The results are those of `ballots.Linear` on all entries; the tests compare the two.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.errors import InputError
from unswayed.theory.ballots import LIMIT, Bools, Ints, Linear, check_change, spare_of
from unswayed.theory.checks import check_count
from unswayed.theory.duels import NUMPY, WIDEST, Arrays, Duels, Voters
from unswayed.theory.roll import KEPT, Roll

BRIEF = 256  # of a list that many targets are first compared with: most need no more
AT_ONCE = 2**19  # links and scores looked at together
FEW = 8  # targets up to which each is looked at alone
DEEP = 64  # voters of each list that one target is first compared with
TALLIED = 256  # targets whose scores are added up together: what they hear stays near the processor
FARTHEST = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Electorate:
    """Exact sizes, grids and attacks of t targets, each of which may gain or lose links to any voter of the roll but itself.

    `start` int64[t + 1], `row` and `voter` int64[links]: the links that are there, by target, the rows of ballots they speak by, and
    whose they are. `own` and `base` int64[t, C]; `itself` int64[t] is the target's own number among the voters, −1 if it is none of
    them; `entries` int64[t] is what a size is capped at. `paired`: the entries are all pairs of voters, numbered j(j−1)/2 + i for
    i < j, of which only those with the target matter.
    """

    roll: Roll
    own: Ints
    base: Ints
    start: Ints
    row: Ints
    voter: Ints
    itself: Ints
    entries: Ints
    paired: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.itself), self.classes)
        fits = self.own.shape == self.base.shape == shape and self.start.shape == (shape[0] + 1,)
        if not fits or self.row.shape != self.voter.shape or self.entries.shape != self.itself.shape:
            raise InputError("The parts of an electorate do not fit together.")
        reach = (self.roll.voters + 1) * self.loudest
        if 2 * (reach + _largest(self.base)) >= LIMIT:
            raise InputError(
                "The ballots are too large for exact sums in 64 bits; use a coarser fixed point."
            )

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.roll.ballots.shape[1])

    @cached_property
    def loudest(self) -> int:
        """The most that one link can add to a score or take from it."""
        return _largest(self.own) + self.roll.loudest

    def __len__(self) -> int:
        return len(self.itself)

    @cached_property
    def scores(self) -> Ints:
        """int64[t, C]: what each target says of itself and what it hears now, added up when first asked for."""
        scores = np.empty_like(self.base)

        def add_up(begin: int) -> None:
            some, start = slice(begin, begin + TALLIED), self.start[begin : begin + TALLIED + 1]
            degree = np.diff(start)
            scores[some] = self.base[some] + degree[:, None] * self.own[some]
            said = self.roll.ballots.take(self.row[start[0] : start[-1]], axis=0)
            if len(linked := np.flatnonzero(degree)):
                heard = np.add.reduceat(said, start[linked] - start[0], axis=0, dtype=np.int64)
                scores[begin + linked] += heard

        _side_by_side(add_up, range(0, len(self), TALLIED))
        return scores

    @cached_property
    def label(self) -> Ints:
        """int64[t]: the class with the highest score, the lowest of those that tie."""
        return np.asarray(self.scores.argmax(axis=1), dtype=np.int64)

    @cached_property
    def spare(self) -> Ints:
        """int64[t, C]: what the label's margin over each class can lose without a change of label."""
        return spare_of(self.scores)

    def take(self, index: Any) -> "Electorate":
        """The targets at these positions."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        count = self.start[chosen + 1] - self.start[chosen]
        start = np.concatenate([[0], np.cumsum(count)])
        link = np.arange(start[-1]) + np.repeat(self.start[chosen] - start[:-1], count)
        parts = {name: getattr(self, name)[chosen] for name in ("own", "base", "itself", "entries")}
        return replace(self, start=start, row=self.row[link], voter=self.voter[link], **parts)

    def sizes(self, change: str = "any", arrays: Arrays = NUMPY) -> Ints:
        """int64[t]: the largest K such that no change of at most K entries changes the label; all entries if none ever does."""
        check_change(change)
        if len(self) > FEW:
            return self._sizes(change, arrays)
        return np.array([self._size_of_one(i, change) for i in range(len(self))], dtype=np.int64)

    def _sizes(self, change: str, arrays: Arrays = NUMPY) -> Ints:
        """All targets, those of one label together: they share their lists."""
        order, sizes = np.argsort(self.label, kind="stable"), self.entries.copy()
        parts = [order[part] for part in self._parts(order)]
        found = _side_by_side(lambda who: self._sizes_of(who, change, arrays), parts)
        for who, size in zip(parts, found, strict=True):
            sizes[who] = size
        return sizes

    def _sizes_of(self, who: Ints, change: str, arrays: Arrays) -> Ints:
        """These targets together, each against its most dangerous rival first."""
        best, least = self.entries[who], self._at_least(who, change)
        open_ = np.arange(len(who))
        while len(open_):
            rival = least[open_].argmin(axis=1)
            close = least[open_, rival] < best[open_]
            open_, rival = open_[close], rival[close]
            if len(open_):
                found = self._against(who[open_], rival, change, arrays, min(BRIEF, KEPT))
                best[open_] = np.minimum(best[open_], found)
                least[open_, rival] = FARTHEST
        return best

    def _at_least(self, who: Ints, change: str) -> Ints:
        """int64[len(who), C]: a quick lower bound of each rival's size, from the loudest ballots of all."""
        high, low, own = self.roll.high, self.roll.low, self.own[who]
        label, everyone = self.label[who], np.arange(len(who))
        offset = own[everyone, label][:, None] - own
        removed = high[label][:, None] - low + offset
        added = high - low[label][:, None] - offset
        worst = {"any": np.maximum(removed, added), "adds": added, "deletes": removed}[change]
        spare = spare_of(self.scores[who])
        least = np.where(worst > 0, spare // np.maximum(worst, 1), self.entries[who][:, None])
        least[everyone, label] = FARTHEST  # no rival of its own
        return least

    def _against(self, who: Ints, rival: Ints, change: str, arrays: Arrays, most: int) -> Ints:
        """int64: what these targets withstand against these rivals; lists are prolonged for those that need it."""
        parts = self._parts(who)
        found = [self._duels(who[part], rival[part], arrays, most, change).sizes() for part in parts]
        size, all_, short = (np.concatenate(column) for column in zip(*found, strict=True))
        size = np.where(all_, self.entries[who], size)
        if short.any():
            size[short] = self._against(who[short], rival[short], change, arrays, 16 * most)
        return size

    def _parts(self, who: Ints) -> list[Ints]:
        """Positions in `who`, as many together as memory and the width of a sorting key allow."""
        links = np.cumsum(self.start[who + 1] - self.start[who] + self.classes)
        wide = WIDEST // (4 * self.loudest + 4)
        step = np.maximum(links // AT_ONCE, np.arange(len(who)) // max(1, wide))
        parts = np.split(np.arange(len(who)), np.flatnonzero(np.diff(step)) + 1)
        return [part for part in parts if len(part)]

    def _duels(self, who: Ints, rival: Ints, arrays: Arrays, most: int, change: str = "any") -> Duels:
        """Duels of these targets with these rivals."""
        label = self.label[who]
        pairs, pair = np.unique(label * self.classes + rival, return_inverse=True)
        lists = self.roll.sorted_for(pairs, arrays, most) if change != "deletes" else None
        voters = Voters(self.roll.ballots, self.start, self.row, self.voter, self.itself)
        offset = self.own[who, label] - self.own[who, rival]
        spare = self.scores[who, label] - self.scores[who, rival] - (rival < label)
        return Duels(voters, lists, who, (label, rival, pair), offset, spare, arrays, change)

    def grid(self, adds: int, deletes: int) -> Bools:
        """bool[t, adds + 1, deletes + 1]: whether no attack with at most so many additions and deletions changes the label."""
        adds, deletes = check_count(adds, "adds"), check_count(deletes, "deletes")
        cells = np.ones((len(self), adds + 1, deletes + 1), dtype=bool)
        everyone = np.arange(len(self))
        depth = max(KEPT, adds + int(np.diff(self.start).max(initial=0)) + 1)
        for rival in range(self.classes):
            who = everyone[self.label != rival]
            for part in self._parts(who):
                duels = self._duels(who[part], np.full(len(part), rival), NUMPY, depth)
                most = duels.most_additions
                cost = np.stack([duels.added(np.minimum(k, most))[0] for k in range(adds + 1)], axis=1)
                loss = np.stack([duels.deleted(np.full(len(part), k)) for k in range(deletes + 1)], axis=1)
                cells[who[part]] &= cost[:, :, None] + loss[:, None, :] <= duels.spare[:, None, None]
        return cells

    def witness(self, target: int, change: str = "any") -> Ints | None:
        """The entries of a cheapest attack on this target, size + 1 of them, each linked or unlinked; None if there is none."""
        size = int(self.take([target]).sizes(change)[0])
        if size >= self.entries[target]:
            return None
        voter, small = self._shortlist(target, size + 1)
        found = small.witness(0, change)
        assert found is not None
        return self._entry(target, voter[found])

    def voices(self, target: int, rival: int) -> tuple[Ints, Ints]:
        """(entries that are there, what each adds to the margin over this rival)."""
        here, label = slice(self.start[target], self.start[target + 1]), self.label[target]
        effect = self.roll.ballots[self.row[here]].astype(np.int64) + self.own[target]
        return self._entry(target, self.voter[here]), effect[:, label] - effect[:, rival]

    def _entry(self, target: int, voter: Ints) -> Ints:
        """The entries in which these voters and the target meet."""
        if not self.paired:
            return voter
        low, high = np.minimum(voter, self.itself[target]), np.maximum(voter, self.itself[target])
        entry: Ints = high * (high - 1) // 2 + low
        return entry

    def _size_of_one(self, target: int, change: str) -> int:
        """One target against the worst few voters of each list; where those do not settle it, all rivals at once."""
        voter, small = self._shortlist(target, DEEP)
        size = int(small.sizes(change)[0])
        if size < min(DEEP, len(voter)):
            return size
        rivals = np.delete(np.arange(self.classes), self.label[target])
        who = np.full(len(rivals), target)
        return int(self._against(who, rivals, change, NUMPY, KEPT).min())

    def _shortlist(self, target: int, depth: int) -> tuple[Ints, Linear]:
        """The voters that an attack of at most `depth` changes would take, and the target's entries with them alone."""
        here = slice(self.start[target], self.start[target + 1])
        linked, label, classes = self.voter[here], int(self.label[target]), self.classes
        length = min(self.roll.voters, depth + len(linked) + 1)
        most = min(self.roll.voters, max(KEPT, length))
        ends = (self.roll.ends(label, c, most, NUMPY)[1] for c in range(classes) if c != label)
        ahead = np.concatenate([voter[:length] for voter in ends])
        new = _without(ahead, np.append(linked, self.itself[target]))
        effect = self.roll.ballots[np.concatenate([self.row[here], new])].astype(np.int64) + self.own[target]
        present = np.arange(len(effect)) < len(linked)
        gains = effect[:, label, None] - effect
        spare = spare_of(self.scores[target, None])
        return np.concatenate([linked, new]), Linear([label], spare, gains[None], present[None])


def _without(values: Ints, others: Ints) -> Ints:
    """The values, sorted and each once, that are not among the others; several times as fast as numpy's own on few."""
    left, gone = np.sort(values), np.sort(others)
    left = left[np.append(True, left[1:] != left[:-1])] if len(left) else left
    place = np.minimum(np.searchsorted(gone, left), len(gone) - 1)
    return np.asarray(left[gone[place] != left])


def _side_by_side(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """The work on every part, in order, on as many cores as there are; numpy lets go of the interpreter meanwhile."""
    cores = min(
        len(parts), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if cores < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(work, parts))


def _largest(values: NDArray[Any]) -> int:
    return max(int(values.max()), -int(values.min())) if values.size else 0
