"""The declared splits, drawn from a seed: equal on every machine because every source gives the same node order."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from unswayed.datasets.catalog import ENTRIES
from unswayed.datasets.loading import Dataset, check_dataset
from unswayed.errors import InputError

VALIDATION = 500  # nodes that choose hyper-parameters and the stopping step; never test nodes
PLACES = "{} must be a mask, or numbers of targets from 0 up, in one row."
DECLARED = {*ENTRIES, "karate"}  # whose splits are what they have always been


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint indices of nodes or graphs, which masks are turned into: to learn from, to choose with, to report on."""

    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        lengths = set()  # of masks
        for part in ("train", "val", "test"):
            try:
                given = torch.as_tensor(getattr(self, part))
            except (TypeError, ValueError, RuntimeError) as error:
                raise InputError(PLACES.format(part)) from error
            if given.dtype == torch.bool:
                lengths.add(len(given) if given.ndim else 0)
            places = given.nonzero()[:, 0] if given.dtype == torch.bool else given
            if not places.numel():
                raise InputError("train, val and test must each hold at least one target.")
            if given.ndim != 1 or places.is_floating_point() or int(places.min()) < 0:
                raise InputError(PLACES.format(part))
            object.__setattr__(self, part, places)
        if len(lengths) > 1:
            told = ", ".join(map(str, sorted(lengths)))
            raise InputError(f"Masks of one split have one value for each target, not {told} values.")
        everything = torch.cat([self.train, self.val, self.test])
        if len(set(everything.tolist())) != len(everything):
            raise InputError("train, val and test overlap: a target may belong to one part only.")

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.val)} val, {len(self.test)} test)"


def split(
    dataset: Dataset,
    seed: int,
    *,
    test: int | Literal["rest"] = 100,
    per_class: int = 20,
    labelled: float | None = None,
    draw: Literal["class", "nodes"] = "class",
) -> Split:
    """A random split that depends on the seed and the dataset alone.

    Nodes: `per_class` of each class to train on, 500 to choose with (fewer on small graphs). Where `labelled` is given
    or declared by the dataset, that share of each class has a known label instead: three quarters of them to train on,
    one quarter to choose with, and no other label is ever read; with `draw="nodes"` it is that share of all nodes, whatever
    their classes, so that a class may have more or fewer. Then `test` nodes, or all
    remaining ones with "rest"; 100 test nodes are the first 100 of the rest. Graphs: a tenth to test on, a tenth of the
    others to choose with.
    """
    check_dataset(dataset)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 up, not {seed!r}.")
    labels = dataset.labels.numpy()
    order = np.random.default_rng([seed, len(labels)]).permutation(np.flatnonzero(labels >= 0))
    if dataset.task == "graph":
        return _graph_split(order)
    share = dataset.labelled if labelled is None else labelled
    train, val, others = (
        _by_class(order, dataset, per_class, seed)
        if share is None
        else _by_share(order, dataset, share, draw)
    )
    if test != "rest" and (not isinstance(test, int | np.integer) or not 0 < test <= len(others)):
        raise InputError(f"test must lie between 1 and {len(others)} nodes, or be 'rest', not {test!r}.")
    return _indices(train, val, others if test == "rest" else others[:test])


def _by_class(order: np.ndarray, dataset: Dataset, per_class: int, seed: int) -> tuple[np.ndarray, ...]:
    own = dataset.labels.numpy()[order]
    train = np.concatenate([order[own == c][:per_class] for c in range(dataset.num_classes)])
    rest = order[~np.isin(order, train)]
    if dataset.name not in DECLARED:  # where a class is rare, training has taken all that come first
        rest = np.random.default_rng([seed, len(own), per_class]).permutation(rest)
    validation = min(VALIDATION, len(rest) // 3)
    return train, rest[:validation], rest[validation:]


def _by_share(order: np.ndarray, dataset: Dataset, share: float, draw: str) -> tuple[np.ndarray, ...]:
    if not 0 < share < 1:
        raise InputError(f"labelled is the share of nodes with a known label, between 0 and 1, not {share}.")
    if draw not in ("class", "nodes"):
        raise InputError(f"draw says what a share is taken of, 'class' or 'nodes', not {draw!r}.")
    part = np.full(len(order), 2)
    own = dataset.labels.numpy()[order] if draw == "class" else np.zeros(len(order))
    for c in np.unique(own):
        mine = np.flatnonzero(own == c)
        known = round(share * len(mine))
        part[mine[:known]] = 0
        part[mine[: round(known / 4)]] = 1
    return order[part == 0], order[part == 1], order[part == 2]


def _graph_split(order: np.ndarray) -> Split:
    tenth = round(len(order) / 10)
    test, others = order[:tenth], order[tenth:]
    validation = round(len(others) / 10)
    return _indices(others[validation:], others[:validation], test)


def _indices(*parts: np.ndarray) -> Split:
    return Split(*(torch.from_numpy(np.ascontiguousarray(part, dtype=np.int64)) for part in parts))
