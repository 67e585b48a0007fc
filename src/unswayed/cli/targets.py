"""From words on a command line to the nodes or graphs that are asked about."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.cli.common import note
from unswayed.cli.splitting import UNLABELLED
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError


@dataclass(frozen=True)
class Targets:
    """What is certified: positions in the dataset, and the names people know them by."""

    ids: Tensor
    names: tuple[str, ...]
    truth: Tensor


PARTS = {
    "test": "all test nodes",
    "val": "all validation nodes",
    "all": "every node",
    UNLABELLED: "every node without a label",
}
CHOICES = f"test, val, all, {UNLABELLED}, or numbers such as 3,17,42"


def read_targets(dataset: Dataset, parts: Split, words: str) -> Targets:
    """Targets from `test`, `val`, `all`, `unlabelled`, or a list of numbers or (for the user's own files) node names.

    A list has a comma: `test,` is the node of that name.
    """
    count, known = len(dataset.labels), dataset.node_names
    named = known is not None and words in known
    if words in PARTS:
        ids = _part(dataset, parts, words)
        if named:
            note(
                f"--nodes {words} means {PARTS[words]}; the node that is called {words} is --nodes {words}, (with a comma)."
            )
    elif named:  # whatever commas it has
        ids = torch.tensor([known.index(words)])  # type: ignore[union-attr]
    else:
        ids = torch.tensor(_numbers(words, count, known, dataset.task))
    names = tuple(known[int(place)] if known is not None else str(int(place)) for place in ids)
    return Targets(ids, names, dataset.labels[ids])


def _part(dataset: Dataset, parts: Split, words: str) -> Tensor:
    if words == "all":
        return torch.arange(len(dataset.labels))
    if words != UNLABELLED:
        return getattr(parts, words)  # type: ignore[no-any-return]
    silent = (dataset.labels < 0).nonzero()[:, 0]
    if not len(silent):
        raise InputError(f"Every {dataset.task} has a label here, so --nodes {UNLABELLED} names none.")
    return silent


def _numbers(words: str, count: int, known: tuple[str, ...] | None, task: str) -> list[int]:
    asked = [word.strip() for word in words.split(",") if word.strip()]
    if not asked:
        raise InputError(f"--nodes names no target; give {CHOICES}.")
    place_of = None if known is None else {name: place for place, name in enumerate(known)}
    found = []
    for word in asked:
        place = place_of.get(word) if place_of is not None else int(word) if word.isdecimal() else None
        if place is None and place_of is None:
            raise InputError(f"--nodes: {word!r} is not a number; give {CHOICES}.")
        if place is None or place >= count:
            last = f" (they go from 0 to {count - 1})" if known is None else f"; it has {_few(known)}"
            raise InputError(f"There is no {task} {word!r} in this dataset{last}.")
        found.append(place)
    if len(set(found)) != len(found):
        raise InputError("--nodes names a target twice; name each once.")
    return found


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (" and so on" if len(names) > 4 else "")
