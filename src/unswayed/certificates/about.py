"""What certificates are about, in plain values: the targets, their entries, and the words for them. No torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isqrt
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.naming import Name, check_distinct, places, plain
from unswayed.theory.checks import whole_sizes

IntArray = npt.NDArray[np.int64]

# what a size counts: changes of any kind, additions alone, deletions alone
CHANGES = (
    "any",
    "adds",
    "deletes",
)


def check_change(change: str) -> str:
    """One of "any", "adds" and "deletes"."""
    if change not in CHANGES:
        raise InputError(f"change must be one of {', '.join(CHANGES)}, not {change!r}.")
    return change


def withstood(sizes: npt.ArrayLike, at: npt.ArrayLike, limit: npt.ArrayLike | None) -> npt.NDArray[np.bool_]:
    """bool[..., targets]: who withstands so many changes; whoever withstands all that there can be, withstands more.

    >>> withstood([2, 2], at=[1, 5], limit=[2, 9]).tolist()
    [[True, True], [True, False]]
    """
    wanted = whole_sizes(at)[..., None]
    proven: npt.NDArray[np.bool_] = np.asarray(sizes) >= (
        wanted if limit is None else np.minimum(wanted, limit)
    )
    return proven


@dataclass(frozen=True)
class Words:
    """How people speak of a threat: what a target is called, and what an attacker does to it.

    `{k}` stands for the number of changes. What is not said is said of "entries", never guessed from the kind.

    >>> Words(unit="node").attack(3)
    'changes up to 3 of its entries'
    """

    unit: str = "target"
    one: str = "changes one of its entries"
    many: str = "changes up to {k} of its entries"
    adds: str = "adds up to {k} of its entries"
    deletes: str = "deletes up to {k} of its entries"

    @classmethod
    def of(cls, threat: Mapping[str, Any]) -> Self:
        """The words in a threat's description; the plain ones where it has none."""
        told = threat.get("words")
        known = told if isinstance(told, Mapping) else {}
        names = [field.name for field in fields(cls)]
        return cls(**{name: known[name] for name in names if isinstance(known.get(name), str)})

    def attack(self, size: int | str, change: str = "any") -> str:
        """An attack of up to `size` changes of this kind."""
        if change == "any" and size == 1:
            return self.one
        told = (self.many if change == "any" else getattr(self, change)).replace("{k}", str(size))
        return told.replace("up to 1 of", "one of") if size == 1 else told

    def to_dict(self) -> dict[str, str]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class About:
    """The targets of some certificates: their numbers, the lengths of their structure vectors, and their names.

    `ones` counts the entries that are 1 (None where unknown), `threat` is the mapping of `Threat.describe()`, whose names of
    nodes are used where no others are given.
    """

    targets: IntArray
    entries: IntArray
    classes: int
    ones: IntArray | None = None
    threat: Mapping[str, Any] = field(default_factory=dict)
    target_names: tuple[str, ...] = ()
    class_names: tuple[Name, ...] = ()  # numbers where the classifier's own classes are numbers
    node_names: tuple[str, ...] = ()  # of every node of the graph, so that entries can be told by their ends

    def __post_init__(self) -> None:
        for name in ("targets", "entries", "ones"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _frozen(getattr(self, name)))
        object.__setattr__(self, "threat", dict(self.threat) if isinstance(self.threat, Mapping) else {})
        for name in ("target_names", "node_names"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        object.__setattr__(self, "class_names", plain(self.class_names))
        if not self.target_names and (known := self._known_names):
            named = tuple(known.get(str(target), str(target)) for target in self.targets.tolist())
            object.__setattr__(self, "target_names", named)
        wanted = {self.targets.shape, self.entries.shape, (len(self),)}
        if len(wanted) != 1 or (self.ones is not None and self.ones.shape != (len(self),)):
            raise InputError("Every target needs one number of entries (and, where known, of ones).")
        if self.target_names and len(self.target_names) != len(self):
            raise InputError(f"There are {len(self)} targets but {len(self.target_names)} names for them.")
        check_distinct(self.class_names)
        if self.class_names and len(self.class_names) != self.classes:
            raise InputError(f"There are {self.classes} classes but {len(self.class_names)} names for them.")

    def __len__(self) -> int:
        return len(self.targets)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), {field.name: getattr(self, field.name) for field in fields(self)})

    @property
    def words(self) -> Words:
        """How people speak of the threat."""
        return Words.of(self.threat)

    @property
    def zeros(self) -> IntArray | None:
        """How many entries are 0; None where unknown."""
        return None if self.ones is None else self.entries - self.ones

    @property
    def counts_nodes(self) -> bool:
        """Whether a size counts nodes (fake ones, or ones that lie) instead of entries of the structure vector."""
        return self.threat.get("counts") == "nodes"

    @property
    def sides(self) -> tuple[str, ...]:
        """The kinds of change that can be spoken of by themselves: none where nodes are counted, which are of one kind."""
        return () if self.counts_nodes else CHANGES[1:]

    def limit(self, change: str) -> IntArray | None:
        """How many changes (or additions, or deletions) there can be at most; None where unknown.

        Where nodes are counted there is no such limit: fake ones can be more than are spoken of, and no edge's deletion is covered.
        """
        if self.counts_nodes:
            return None
        return {"any": self.entries, "adds": self.zeros, "deletes": self.ones}.get(change)

    def position(self, target: int | str) -> int:
        """Where a target stands, given by position or by name."""
        if isinstance(target, str):
            if found := [place for place, name in enumerate(self.target_names) if name == target]:
                if len(set(self.targets[found].tolist())) > 1:
                    raise InputError(f"{target!r} is the name of several targets; give a position instead.")
                return found[0]
            some = ", ".join(map(repr, self.target_names[:5]))
            known = f"the first targets are {some}" if some else "targets have no names here; give a position"
            raise InputError(f"There is no target {target!r}; {known}.")
        whole = isinstance(target, int | np.integer) and not isinstance(target, bool)
        inside = whole and 0 <= target < len(self.targets)
        if whole and str(target) in self.target_names:  # a number that is a name as well
            if inside and self.target_names[target] != str(target):
                raise InputError(
                    f"{target} is the name of one target and the position of another; give the name as text, '{target}', or pick the "
                    f"position first, [{target}]."
                )
            return int(target) if inside else self.position(str(target))
        if not inside:
            raise InputError(
                f"Targets are given by name, or by position from 0 to {len(self.targets) - 1}, not {target!r}."
            )
        return int(target)

    def target_name(self, position: int) -> str:
        """A target as people read it."""
        return self.target_names[position] if self.target_names else str(self.targets[position])

    @property
    def label_names(self) -> tuple[str, ...]:
        """All classes as people read them; empty where they have no names."""
        return tuple(map(str, self.class_names))

    def label_name(self, label: int) -> str:
        """A label as people read it; "abstains" for −1."""
        if label < 0:
            return "abstains"
        return str(self.class_names[label]) if label < len(self.class_names) else str(label)

    def places(self, labels: npt.ArrayLike) -> IntArray:
        """The class number of each label, given by name or by number; −1 where it is missing, refused where it is no class."""
        return places(labels, self.classes, self.class_names)

    @property
    def _known_names(self) -> Mapping[str, str]:
        """What the threat calls its nodes, by their numbers; empty where it does not say."""
        words = self.threat.get("words")
        names = words.get("names") if isinstance(words, Mapping) else None
        return names if isinstance(names, Mapping) else {}

    def node_name(self, node: int) -> str:
        """A node as people read it."""
        if node < len(self.node_names):
            return self.node_names[node]
        return str(self._known_names.get(str(node), node))

    def ends(self, position: int, entry: int) -> tuple[int, int] | None:
        """The two nodes that an entry of this target joins; None where the threat does not say."""
        kind = self.threat.get("kind")
        if kind in ("row", "row-new"):
            return int(self.targets[position]), int(entry)
        if kind != "all-pairs":
            return None
        high = (1 + isqrt(1 + 8 * int(entry))) // 2  # entry j(j−1)/2 + i is the pair i < j
        return int(entry) - high * (high - 1) // 2, high

    def entry_name(self, position: int, entry: int) -> str:
        """An entry as people read it: the other end of the target's link, both ends of another pair, or its number."""
        ends = self.ends(position, entry)
        if ends is None:
            return str(entry)
        own = int(self.targets[position]) if self.words.unit == "node" else -1
        return "–".join(self.node_name(end) for end in ends if end != own)

    def take(self, index: IntArray) -> Self:
        """The targets at these positions."""
        names = tuple(self.target_names[i] for i in index) if self.target_names else ()
        ones = None if self.ones is None else self.ones[index]
        return replace(
            self, targets=self.targets[index], entries=self.entries[index], ones=ones, target_names=names
        )


@dataclass(frozen=True, eq=False)
class Column:
    """One more fact for each target: a column of the frame, of the JSON and, if it has a `title`, of report tables.

    `rounding` says to which side shown digits go ("down", "up", or "" for whole numbers and words), so that none of them
    promises more than was proven. `values` may have further axes; tables then leave it to the JSON.
    """

    name: str
    values: npt.NDArray[Any]
    title: str = ""
    meaning: str = ""
    rounding: str = ""
    names: tuple[str, ...] = ()  # of the values, where they are numbers of classes

    def rounded(self, digits: int = 6) -> npt.NDArray[Any]:
        """The values with so many decimals, to the safe side."""
        if self.rounding not in ("down", "up"):
            return self.values
        scale = 10.0**digits
        towards = np.floor if self.rounding == "down" else np.ceil
        return np.asarray(towards(self.values * scale) / scale)

    def shown(self, position: int, digits: int = 4) -> str:
        """One value as a table shows it."""
        if self.names:
            return self.names[int(self.values[position])]
        value = self.rounded(digits)[position]
        return f"{value:.{digits}f}" if np.issubdtype(self.values.dtype, np.floating) else str(value)


@dataclass(frozen=True)
class Bar:
    """One line of an explanation's picture: a name, its number as text, a share of the whole, and what is proven of it."""

    name: str
    value: str
    share: float
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    """One certificate in detail, for people (`bars`, `sentences`) and for machines (`facts`, JSON-ready)."""

    name: str
    label: str
    size: int
    statement: str
    bars: tuple[Bar, ...] = ()
    titles: tuple[str, str, str] = ("label", "votes", "proven")  # of the bars' name, value and note
    sentences: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; the family's own facts stand beside the common ones."""
        told = {name: getattr(self, name) for name in ("name", "label", "size", "statement")}
        bars = [asdict(bar) for bar in self.bars]
        return {**self.facts, **told, "bars": bars, "sentences": list(self.sentences)}


def _frozen(values: npt.ArrayLike) -> IntArray:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def rebuild(cls: type[Any], parts: dict[str, Any]) -> Any:
    """The object that these fields make; pickle and deepcopy come this way, so that copies are checked and frozen too."""
    return cls(**parts)
