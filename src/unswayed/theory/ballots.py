"""What a model made of ballots can be held to, exactly: margins that are linear in the entries, in whole numbers.

The score of class c is z_c(s) = base_c + Σ s_i e_ic, s_i in {0, 1}: entry i speaks by e_i when it is there. So the margin
of the label A over a rival c is linear in s, and changing entry i costs it the harm h_i = g_i where the entry is there,
−g_i where it is not, with the gain g_i = e_iA − e_ic. Ties go to the lower class. The label stands against c as long as the
harms add up to at most what the margin has to *spare*: M_c, less one where c < A. The worst attack with k changes takes the k
largest positive harms, so sorting decides everything, and what it takes next is an attack.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.errors import InputError
from unswayed.theory.checks import check_count

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CHANGES = ("any", "adds", "deletes")
LIMIT = 2**62  # sums stay below this, so that no int64 wraps around
AT_ONCE = 2**22  # numbers sorted at a time


@dataclass(frozen=True, eq=False)
class Linear:
    """Exact sizes, grids and attacks of targets whose margins are linear in their entries.

    `spare` is int64[t, C], what the label's margin over each rival can lose without the label changing (the label's own
    column is not read; below 0 nothing is promised); `gains` int64[t, n, C], what each entry adds to that margin when it is
    there, or anything that broadcasts to it; `present` bool[t, n]. `entries` int64[t] says how many of the n are real: the
    others must have gains 0.

    >>> one = Linear.of_scores([[5, 2]], [[[1, 0], [4, 2], [0, 1]]], [[True, True, False]])
    >>> one.label, one.sizes(), one.witness(0)
    (array([0]), array([2]), array([1, 0, 2]))
    """

    label: Ints
    spare: Ints
    gains: Ints
    present: Bools
    entries: Ints

    def __init__(
        self,
        label: ArrayLike,
        spare: ArrayLike,
        gains: ArrayLike,
        present: ArrayLike,
        entries: ArrayLike | None = None,
    ) -> None:
        rivals = _whole(spare, "spare", 2)
        there = np.asarray(present)
        if there.dtype != np.bool_ or there.ndim != 2 or len(there) != len(rivals):
            raise InputError(
                "`present` must be true or false for each target and entry, shape [targets, entries]."
            )
        effect = _whole(gains, "gains", None)
        shape = (*there.shape, rivals.shape[1])
        try:
            effect = np.broadcast_to(effect, shape)
        except ValueError as error:
            raise InputError(f"`gains` has shape {effect.shape}, which does not fit {shape}.") from error
        count = np.full(len(there), there.shape[1]) if entries is None else _whole(entries, "entries", 1)
        chosen = _whole(label, "label", 1)
        if chosen.shape != count.shape or len(count) != len(there):
            raise InputError("`label` and `entries` need one number a target.")
        if np.any((chosen < 0) | (chosen >= rivals.shape[1])) or np.any(
            (count < 0) | (count > there.shape[1])
        ):
            raise InputError(
                "Every label must be one of the classes, and `entries` at most the entries given."
            )
        _check_range(rivals, effect, there.shape[1])
        parts = {"label": chosen, "spare": rivals, "gains": effect, "present": there, "entries": count}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_scores(
        cls, scores: ArrayLike, effects: ArrayLike, present: ArrayLike, entries: ArrayLike | None = None
    ) -> "Linear":
        """From the scores int64[t, C] as they are, and what each entry adds to each class when it is there, int64[t, n, C].

        The label is the class with the highest score, the lowest of those that tie.
        """
        total, effect = _whole(scores, "scores", 2), _whole(effects, "effects", 3)
        if len(effect) not in (1, len(total)) or effect.shape[2] != total.shape[1]:
            raise InputError(
                f"`effects` has shape {effect.shape}, which does not fit scores of {total.shape}."
            )
        effect = np.broadcast_to(effect, (len(total), *effect.shape[1:]))
        label = total.argmax(axis=1)
        own = np.take_along_axis(effect, label[:, None, None], axis=2)
        return cls(label, spare_of(total, label), own - effect, present, entries)

    def __len__(self) -> int:
        return len(self.label)

    def take(self, index: Any) -> "Linear":
        """The targets at these positions."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        shared = self.gains.strides[0] == 0  # gains of all targets alike are not written out
        gains = self.gains[:1] if shared else self.gains[chosen]
        return Linear(
            self.label[chosen], self.spare[chosen], gains, self.present[chosen], self.entries[chosen]
        )

    def sizes(self, change: str = "any") -> Ints:
        """int64[t]: the largest K such that no change of at most K entries changes the label; all entries if none ever does.

        `change` "adds" allows entries to appear only, "deletes" to vanish only. −1 where nothing is promised at all.
        """
        return np.asarray(self.against(change).min(axis=1), dtype=np.int64)

    def against(self, change: str = "any") -> Ints:
        """int64[t, C]: the same for each rival by itself; all entries in the label's own column."""
        check_change(change)
        sizes = np.repeat(self.entries[:, None], self.spare.shape[1], axis=1)
        for rows, rival in self._parts():
            harm = self._harms(rows, rival, change)
            harm = -np.sort(-harm, axis=1)
            stands = np.cumsum(harm, axis=1) <= self.spare[rows, rival, None]
            size = np.where(stands.all(axis=1), self.entries[rows], stands.sum(axis=1))
            size = np.where(self.spare[rows, rival] < 0, -1, size)
            sizes[rows, rival] = np.where(self.label[rows] == rival, sizes[rows, rival], size)
        return sizes

    def grid(self, adds: int, deletes: int) -> Bools:
        """bool[t, adds + 1, deletes + 1]: whether no attack with at most so many additions and deletions changes the label."""
        adds, deletes = check_count(adds, "adds"), check_count(deletes, "deletes")
        cells = np.ones((len(self), adds + 1, deletes + 1), dtype=bool)
        for rows, rival in self._parts():
            added = largest_sums(self._harms(rows, rival, "adds"), adds)
            deleted = largest_sums(self._harms(rows, rival, "deletes"), deletes)
            stands = added[:, :, None] + deleted[:, None, :] <= self.spare[rows, rival, None, None]
            cells[rows] &= stands | (self.label[rows] == rival)[:, None, None]
        return cells

    def witness(self, target: int, change: str = "any") -> Ints | None:
        """The entries of a cheapest attack on this target, size + 1 of them; None if no attack changes its label."""
        check_change(change)
        best: Ints | None = None
        for rival in range(self.spare.shape[1]):
            if rival == self.label[target]:
                continue
            harm = self._harms(slice(target, target + 1), rival, change)[0]
            order = np.argsort(-harm, kind="stable")
            flips = np.flatnonzero(np.cumsum(harm[order]) > self.spare[target, rival])
            if self.spare[target, rival] < 0:
                return np.zeros(0, dtype=np.int64)
            if len(flips) and (best is None or flips[0] + 1 < len(best)):
                best = order[: flips[0] + 1]
        return best

    def _parts(self) -> Iterator[tuple[slice, int]]:
        """Some targets and one rival at a time, so that memory stays bounded."""
        step = max(1, AT_ONCE // max(1, self.present.shape[1]))
        for start in range(0, len(self), step):
            for rival in range(self.spare.shape[1]):
                yield slice(start, start + step), rival

    def _harms(self, rows: slice, rival: int, change: str) -> Ints:
        """int64[rows, n]: what changing each entry costs the margin over this rival, 0 where it does not hurt."""
        gains, present = self.gains[rows, :, rival], self.present[rows]
        harm = np.where(present, gains, -gains)
        if change != "any":
            harm = np.where(present == (change == "deletes"), harm, 0)
        return np.maximum(harm, 0)


def spare_of(scores: ArrayLike, label: ArrayLike | None = None) -> Ints:
    """int64[t, C]: what the label's margin over each class can lose without a change of label: z_A − z_c − [c < A].

    >>> spare_of([[3, 3, 1]])
    array([[0, 0, 2]])
    """
    total = _whole(scores, "scores", 2)
    chosen = total.argmax(axis=1) if label is None else _whole(label, "label", 1)
    tie = np.arange(total.shape[1]) < chosen[:, None]
    own: Ints = np.take_along_axis(total, chosen[:, None], axis=1)
    return own - total - tie


def injected_sizes(label: ArrayLike, spare: ArrayLike, harm: ArrayLike, most: int) -> Ints:
    """int64[t]: so many fake voters cannot change the label, whatever they say, if each costs the margin at most `harm`.

    `harm` int64[t, C] bounds what one fake voter takes from the margin over each rival; `most` is the stated maximum, given
    where fakes cannot hurt.

    >>> injected_sizes([0, 0], [[0, 7], [0, 7]], [[0, 3], [0, -1]], most=100)
    array([  2, 100])
    """
    rivals, cost = _whole(spare, "spare", 2), _whole(harm, "harm", 2)
    chosen, most = _whole(label, "label", 1), check_count(most, "most")
    if cost.shape != rivals.shape or chosen.shape != rivals.shape[:1]:
        raise InputError("`label`, `spare` and `harm` do not fit together.")
    size = np.where(cost > 0, np.minimum(rivals // np.maximum(cost, 1), most), most)
    size = np.where(rivals < 0, -1, size)
    size[np.arange(len(size)), chosen] = most
    return np.asarray(size.min(axis=1), dtype=np.int64)


def largest_sums(harm: Ints, most: int) -> Ints:
    """int64[t, most + 1]: the sums of the 0, 1, …, `most` largest of each row's harms, all 0 or more."""
    few = min(most, harm.shape[1])
    top = -np.partition(-harm, few - 1, axis=1)[:, :few] if few else harm[:, :0]
    sums = np.cumsum(-np.sort(-top, axis=1), axis=1)
    padded = np.zeros((len(harm), most + 1), dtype=np.int64)
    padded[:, 1 : few + 1] = sums
    if few:
        padded[:, few + 1 :] = sums[:, -1:]
    return padded


def check_change(change: Any) -> None:
    """Refuse what is not one of the kinds of change."""
    if change not in CHANGES:
        raise InputError(f"change must be one of {', '.join(CHANGES)}, not {change!r}.")


def _whole(value: ArrayLike, name: str, dimensions: int | None) -> Ints:
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.integer) or (dimensions is not None and array.ndim != dimensions):
        shape = "" if dimensions is None else f" in {dimensions} dimension{'s' * (dimensions > 1)}"
        raise InputError(f"`{name}` must be whole numbers{shape}.")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= LIMIT:
        raise InputError(f"`{name}` is too large; use a coarser fixed point.")
    return array.astype(np.int64, copy=False)


def _check_range(spare: Ints, gains: Ints, entries: int) -> None:
    """Refuse numbers whose sums could leave the 64 bits."""
    if _largest(gains) * max(entries, 1) + _largest(spare) >= LIMIT:
        raise InputError("The ballots are too large for exact sums in 64 bits; use a coarser fixed point.")


def _largest(values: Ints) -> int:
    return max(int(values.max()), -int(values.min())) if values.size else 0
