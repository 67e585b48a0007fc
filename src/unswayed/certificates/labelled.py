"""Targets with a label and a size each: picked, named, pickled and kept in files the same way in every family."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates.about import About, IntArray, rebuild
from unswayed.errors import InputError
from unswayed.naming import check_places, in_order, in_words

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Labelled:
    """A label and a size for each target, −1 together where nothing is promised; no array can be written to."""

    label: IntArray
    size: IntArray
    about: About

    def __post_init__(self) -> None:
        for name in ("label", "size"):
            object.__setattr__(self, name, np.array(getattr(self, name), np.int64))
            if getattr(self, name).shape != (len(self.about),):
                raise InputError(f"There are {len(self.about)} targets but {name} has another shape.")
        if np.any(self.size > self.about.entries) or np.any((self.label < 0) != (self.size < 0)):
            raise InputError("A size must not exceed the entries, and label and size are −1 together.")
        for part in fields(self):
            if isinstance(value := getattr(self, part.name), np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.about)

    def __getitem__(self, where: Any) -> Self:
        """The same family for one position, a slice, a mask or a list of positions."""
        try:
            index = np.arange(len(self))[where]
        except (IndexError, TypeError, ValueError) as error:
            if isinstance(where, int | np.integer):  # ends a `for` loop too
                raise IndexError(f"There is no position {where} among {len(self)} targets.") from error
            raise InputError(f"Targets cannot be picked with {where!r}: {error}.") from error
        return self.take(np.atleast_1d(index))

    def __iter__(self) -> Iterator[Self]:
        return (self[position] for position in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), {part.name: getattr(self, part.name) for part in fields(self)})

    @property
    def abstained(self) -> BoolArray:
        """Where nothing is promised."""
        return self.size < 0

    @property
    def answer(self) -> npt.NDArray[Any]:
        """The label of each target as the classifier names it; None where nothing is promised."""
        return in_words(self.label, self.about.class_names)

    @property
    def targets(self) -> IntArray:
        """The node or graph number of each target."""
        return self.about.targets

    @property
    def unit(self) -> str:
        """What one target is called."""
        return self.about.words.unit

    def named(self, *, targets: Any = None, classes: Any = None, nodes: Any = None) -> Self:
        """The same certificates with names for targets, for labels, for all nodes, or for several of these."""
        given = {"target_names": targets, "class_names": classes, "node_names": nodes}
        told: dict[str, Any] = {name: in_order(value) for name, value in given.items() if value is not None}
        check_places(told.get("class_names", ()), self.about.class_names)
        return replace(self, about=replace(self.about, **told))

    # what is kept in a file: by default the fields, arrays as arrays and the rest as JSON

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that `save` writes."""
        own = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "about"}
        return {name: value for name, value in own.items() if isinstance(value, np.ndarray)}

    def header(self) -> dict[str, Any]:
        """Everything else that `save` writes, JSON-ready."""
        own = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "about"}
        return {name: value for name, value in own.items() if not isinstance(value, np.ndarray)}

    @classmethod
    def restore(cls, about: About, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The certificates that `arrays` and `header` described."""
        return cls(about=about, **arrays, **header)

    def take(self, index: IntArray, **parts: Any) -> Self:
        """The certificates of the targets at these positions; every array must have one row a target."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        arrays = {name: value[index] for name, value in own.items() if isinstance(value, np.ndarray)}
        return replace(self, about=self.about.take(index), **{**arrays, **parts})
