"""Records: what a proof is kept as, whichever way its margins are linear, so that sizes, grids and attacks can be asked again.

`Electorate` is the record of voters and their lists; `Several` of entries written out; `Injected` of fake voters, of which
only bounds are known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from unswayed.errors import InputError
from unswayed.theory.ballots import Bools, Ints, Linear, check_change
from unswayed.theory.checks import check_count
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll


class Record(Protocol):
    """Exact margins of some targets."""

    @property
    def label(self) -> Ints:
        """int64[t]: the label of every target."""

    @property
    def spare(self) -> Ints:
        """int64[t, C]: what its margin over each class can lose without a change of label."""

    def __len__(self) -> int: ...

    def sizes(self, change: str = "any") -> Ints:
        """int64[t]: the largest number of changes that no label can be changed with; −1 where nothing is promised."""

    def grid(self, adds: int, deletes: int) -> Bools:
        """bool[t, adds + 1, deletes + 1]."""

    def witness(self, target: int, change: str = "any") -> Ints | None:
        """The entries of a cheapest attack; None if there is none."""

    def voices(self, target: int, rival: int) -> tuple[Ints, Ints]:
        """(entries that are there, what each adds to the margin over this rival)."""

    def take(self, index: Any) -> Self:
        """The targets at these positions."""


@dataclass(frozen=True, eq=False)
class Several:
    """Targets whose entries are written out, in parts of equal length: target i is number `place`[i] of part `part`[i]."""

    parts: tuple[Linear, ...]
    part: Ints
    place: Ints

    @classmethod
    def of(cls, parts: Sequence[Linear], positions: Sequence[Any] | None = None) -> "Several":
        """The parts one after the other, or part p at `positions`[p]."""
        count = [len(part) for part in parts]
        part, place = np.repeat(np.arange(len(parts)), count), _within(count)
        if positions is not None:
            order = np.argsort(np.concatenate([*positions, np.zeros(0, np.int64)]), kind="stable")
            part, place = part[order], place[order]
        return cls(tuple(parts), part, place)

    def __len__(self) -> int:
        return len(self.part)

    @cached_property
    def label(self) -> Ints:
        """int64[t]: the label of every target."""
        return self._gather([part.label for part in self.parts])

    @cached_property
    def spare(self) -> Ints:
        """int64[t, C]: what its margin over each class can lose without a change of label."""
        return self._gather([part.spare for part in self.parts])

    def sizes(self, change: str = "any") -> Ints:
        """int64[t]: the largest number of changes that no label can be changed with; −1 where nothing is promised."""
        check_change(change)
        sizes = np.zeros(len(self), dtype=np.int64)
        for here, part in self._used():
            sizes[here] = part.sizes(change)
        return sizes

    def grid(self, adds: int, deletes: int) -> Bools:
        """bool[t, adds + 1, deletes + 1]: whether no attack with at most so many additions and deletions changes the label."""
        cells = np.ones(
            (len(self), check_count(adds, "adds") + 1, check_count(deletes, "deletes") + 1), dtype=bool
        )
        for here, part in self._used():
            cells[here] = part.grid(adds, deletes)
        return cells

    def witness(self, target: int, change: str = "any") -> Ints | None:
        """The entries of a cheapest attack on this target; None if there is none."""
        part: Linear = self.parts[self.part[target]]
        return part.witness(int(self.place[target]), change)

    def voices(self, target: int, rival: int) -> tuple[Ints, Ints]:
        """(entries that are there, what each adds to the margin over this rival)."""
        part, place = self.parts[self.part[target]], self.place[target]
        there = np.flatnonzero(part.present[place])
        return there, part.gains[place, there, rival]

    def take(self, index: Any) -> "Several":
        """The targets at these positions."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        return Several(self.parts, self.part[chosen], self.place[chosen])

    def _used(self) -> Any:
        for number in np.unique(self.part):
            here = np.flatnonzero(self.part == number)
            yield here, self.parts[number].take(self.place[here])

    def _gather(self, values: list[Any]) -> Ints:
        starts = np.cumsum([0, *(len(part) for part in self.parts)])
        return np.asarray(np.concatenate(values)[starts[self.part] + self.place])


@dataclass(frozen=True, eq=False)
class Injected:
    """Targets under fake voters: sizes from what one fake can do at most; nobody shows an attack, and nothing is deleted."""

    label: Ints
    spare: Ints
    size: Ints
    most: Ints

    def __len__(self) -> int:
        return len(self.label)

    def sizes(self, change: str = "any") -> Ints:
        """int64[t]: so many fakes cannot change the label; nothing is deleted, so no number of deletions can."""
        check_change(change)
        return self.most if change == "deletes" else self.size

    def grid(self, adds: int, deletes: int) -> Bools:
        """bool[t, adds + 1, deletes + 1]: whether so many fakes are within the size."""
        cells = np.arange(check_count(adds, "adds") + 1) <= self.size[:, None]
        return np.repeat(cells[:, :, None], check_count(deletes, "deletes") + 1, axis=2)

    def witness(self, target: int, change: str = "any") -> Ints | None:
        """Refused: a bound shows no attack."""
        raise InputError("Fake nodes are bounded by the worst any of them could say, so there is no witness.")

    def voices(self, target: int, rival: int) -> tuple[Ints, Ints]:
        """None are kept."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def take(self, index: Any) -> "Injected":
        """The targets at these positions."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        return Injected(*(part[chosen] for part in (self.label, self.spare, self.size, self.most)))


def pack(record: Record) -> dict[str, Any]:
    """The record as arrays by name, which `unpack` turns back; the name of its kind is a key."""
    return KINDS[type(record).__name__].pack(record)


def unpack(kind: str, arrays: Mapping[str, Any]) -> Record:
    """The record that `pack` described."""
    record: Record = KINDS[kind].unpack(arrays)
    return record


class _Packing:
    """Fields that are arrays."""

    def __init__(self, kind: type[Any], *names: str) -> None:
        self.kind, self.names = kind, names

    def pack(self, record: Any) -> dict[str, Any]:
        """The arrays by name."""
        return {name: getattr(record, name) for name in self.names}

    def unpack(self, arrays: Mapping[str, Any]) -> Any:
        """The record."""
        return self.kind(**{name: arrays[name] for name in self.names})


class _PackedElectorate(_Packing):
    def pack(self, record: Any) -> dict[str, Any]:
        """The roll's ballots among the rest."""
        roll = {"ballots": record.roll.ballots, "voters": np.array(record.roll.voters)}
        return super().pack(record) | roll | {"paired": np.array(record.paired)}

    def unpack(self, arrays: Mapping[str, Any]) -> Any:
        """The roll first; the base is what the scores are without what was heard."""
        parts = {name: arrays[name] for name in self.names if name != "scores"}
        roll, scores = Roll(arrays["ballots"], int(arrays["voters"])), arrays["scores"]
        twice = Electorate(roll, base=scores, **parts, paired=bool(arrays["paired"]))
        return replace(twice, base=2 * scores - twice.scores)


class _PackedSeveral(_Packing):
    fields: ClassVar[tuple[str, ...]] = ("label", "spare", "gains", "present", "entries")

    def pack(self, record: Any) -> dict[str, Any]:
        """The arrays of every part, numbered; what is repeated in memory is written once."""
        packed = super().pack(record) | {"parts": np.array(len(record.parts))}
        for number, part in enumerate(record.parts):
            packed |= {f"{number}.{name}": _once(getattr(part, name)) for name in self.fields}
        return packed

    def unpack(self, arrays: Mapping[str, Any]) -> Any:
        """Part by part."""
        numbers = range(int(arrays["parts"]))
        parts = [Linear(*(arrays[f"{number}.{name}"] for name in self.fields)) for number in numbers]
        return Several(tuple(parts), arrays["part"], arrays["place"])


KINDS: dict[str, _Packing] = {
    "Electorate": _PackedElectorate(
        Electorate, "own", "scores", "start", "row", "voter", "itself", "entries"
    ),
    "Several": _PackedSeveral(Several, "part", "place"),
    "Injected": _Packing(Injected, "label", "spare", "size", "most"),
}


def _once(values: Any) -> Any:
    """The array without what broadcasting repeats."""
    return values[tuple(slice(0, 1) if step == 0 else slice(None) for step in values.strides)]


def _within(count: list[int]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(many) for many in count)])
