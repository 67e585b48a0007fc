"""Classes by name: labels as people write them, matched with the classes that a classifier knows by number."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError

IntArray = npt.NDArray[np.int64]
# what JSON can say: numbers stay numbers, so that labels 1 and 2 are told from places
Name = str | int | float | bool

SHOWN = 8  # names that a refusal lists


def in_order(names: Iterable[Any]) -> tuple[Any, ...]:
    """Names as a tuple; what has no order of its own, or is one text, is refused: a name would go to another's place."""
    if isinstance(names, set | frozenset | dict | str | bytes) or not isinstance(names, Iterable):
        raise InputError(
            f"Names must be a list, in the order of the numbers that they stand for, not a {type(names).__name__}."
        )
    return tuple(names)


def plain(names: Iterable[Any]) -> tuple[Name, ...]:
    """Names as JSON values: numbers and booleans stay what they are, everything else is text.

    >>> plain(np.array([1, 2])), plain(["ham", "spam"])
    ((1, 2), ('ham', 'spam'))
    """
    items = (name.item() if isinstance(name, np.generic) else name for name in in_order(names))
    return tuple(item if isinstance(item, bool | int | float) else str(item) for item in items)


def check_distinct(names: Iterable[Any]) -> None:
    """Refuse names of which two are the same: nobody could tell which class is meant."""
    seen: set[Name] = set()
    for name in plain(names):
        if name in seen or str(name) in seen:  # by value (1 is 1.0) or as text
            raise InputError(f"Two classes are called {name!r}; give each a name of its own.")
        seen |= {name, str(name)}


def check_places(names: Iterable[Any], known: Iterable[Any]) -> None:
    """Refuse names of which one is, to the classifier itself, another class's: labels would come under each other's names.

    Classes that are only numbered from 0, as by a LabelEncoder, may have other numbers for names.

    >>> check_places(["no", "yes"], known=[0, 1]), check_places([1, 2], known=[0, 1])
    (None, None)
    """
    given, own = plain(names), plain(known)
    place = {word: number for number, name in enumerate(own) for word in (str(name), _value(name))}
    strange = {_value(name) for name in given} != {_value(name) for name in own}
    if own == tuple(range(len(own))) and strange and not all(str(name) in place for name in given):
        return
    for number, name in enumerate(given):
        if (other := place.get(str(name), place.get(_value(name), number))) != number:
            raise InputError(
                f"Class {number} is given the name {name!r}, which the classifier has for its class {other}; names come in its order: "
                f"{', '.join(map(str, own[:SHOWN]))}{', …' * (len(own) > SHOWN)}."
            )


def _value(name: Name) -> float | str:
    """A number, also one that is written as text, by its value (1, 1.0 and True are one); other text as it is."""
    try:
        return float(name)
    except (ValueError, OverflowError):
        return str(name)


def in_words(labels: IntArray, names: tuple[Name, ...]) -> npt.NDArray[Any]:
    """Labels as they are named, or numbers where nothing is; None for −1."""
    return np.array([None if i < 0 else names[i] if names else i for i in labels.tolist()], object)


def places(labels: npt.ArrayLike, classes: int, names: tuple[Name, ...] = ()) -> IntArray:
    """The class number of each label, −1 where it is missing; whatever is none of the classes is refused.

    Text is matched with names. Numbers are matched with names that are numbers (scikit-learn's classes 1 and 2, or −1 and
    1), and are class numbers where there are no such names; refused where one is, as text, another class's name.

    >>> places(["spam", "ham"], 2, ("ham", "spam")), places([2, 1], 2, (1, 2)), places([1, -1], 2)
    (array([1, 0]), array([1, 0]), array([ 1, -1]))
    """
    given = np.asarray(labels)
    flat = given.reshape(-1)
    if any(isinstance(label, str | bytes) for label in flat.tolist()):
        return _by_text(flat.tolist(), classes, names).reshape(given.shape)
    return _by_number(_numbers(flat), classes, names).reshape(given.shape)


def _by_text(labels: list[Any], classes: int, names: tuple[Name, ...]) -> IntArray:
    if not names:
        told = ", ".join(repr(str(label)) for label in dict.fromkeys(labels))
        raise InputError(
            f"The labels are names ({told[:80]}), but the {classes} classes have none; name them in the order of the model's "
            "columns, as in poll(..., classes=[…]), prove(..., classes=[…]) or certs.named(classes=[…])."
        )
    known = {str(name): place for place, name in enumerate(names)}
    return _looked_up([_text(label) for label in labels], known, names)


def _text(label: Any) -> str | None:
    """The label as text; None where it is missing."""
    missing = label is None or label == "" or (isinstance(label, float) and np.isnan(label))
    return None if missing else str(label)


def _numbers(labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Labels must be names or numbers, not {labels.dtype}.") from error


def _by_number(labels: npt.NDArray[np.float64], classes: int, names: tuple[Name, ...]) -> IntArray:
    if names and not any(isinstance(name, str) for name in names):
        known = {float(name): place for place, name in enumerate(names)}
        return _looked_up([None if np.isnan(label) else label for label in labels.tolist()], known, names)
    _refuse_doubt(labels, names)
    whole = np.where(np.isnan(labels), -1, labels)
    if np.any(whole != np.floor(whole)) or np.any(whole >= classes):
        wrong = whole[(whole != np.floor(whole)) | (whole >= classes)][0]
        raise InputError(
            f"The label {wrong:g} is none of the {classes} classes, which have the numbers 0 to {classes - 1}."
        )
    return np.asarray(np.maximum(whole, -1), np.int64)


def _refuse_doubt(labels: npt.NDArray[np.float64], names: tuple[Name, ...]) -> None:
    """Refuse a number that is also, written as text, another class's name: nobody can tell which of the two is meant."""
    place = {_value(name): number for number, name in enumerate(names)}
    doubtful = (label for label in np.unique(labels).tolist() if place.get(label, label) != label)
    # NaN, a missing label, is no number: it differs from itself
    if (label := next((label for label in doubtful if label == label), None)) is not None:
        raise InputError(
            f"The label {label:g} may be the number of a class, or the class that is called {str(names[place[label]])!r} and has the number "
            f"{place[label]}; give names, as text: [classes[number] for number in labels]."
        )


def _looked_up(labels: list[Any], known: dict[Any, int], names: tuple[Name, ...]) -> IntArray:
    strange = next((label for label in labels if label is not None and label not in known), None)
    if strange is not None:
        more = ", …" if len(names) > SHOWN else ""
        shown = f"{strange:g}" if isinstance(strange, float) else repr(strange)
        raise InputError(
            f"The label {shown} is none of the classes {', '.join(map(str, names[:SHOWN]))}{more}."
        )
    return np.array([-1 if label is None else known[label] for label in labels], np.int64)
