"""What a structure-free model is judged by, and how far a search for one has come."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unswayed.datasets import Split
from unswayed.watching import Steps


@dataclass(frozen=True, eq=False)
class Floor:
    """What a structure-free model answers for every target, right on this share of the validation targets, and of the test targets whose
    label is known (NaN where none is).

    Of graphs, `validation` is the share of development graphs that it was right about without having learnt them.
    """

    name: str
    predictions: Tensor = field(repr=False)
    validation: float
    accuracy: float


def judged(name: str, answers: Tensor, labels: Tensor, split: Split) -> Floor:
    """These answers as a floor; targets whose label is unknown are left out, as they are of certified accuracy."""
    right, known = (answers == labels).float(), split.test[labels[split.test] >= 0]
    return Floor(name, answers, float(right[split.val].mean()), float(right[known].mean()))


def most_common(labels: Tensor, split: Split) -> int:
    """The label that training and validation targets bear most often: training targets may be as many of each class, by design."""
    return int(labels[torch.cat([split.train, split.val])].bincount().argmax())


def majority(labels: Tensor, split: Split) -> Floor:
    """The most common label, for everybody."""
    return judged("majority", torch.full_like(labels, most_common(labels, split)), labels, split)


def best_of(options: Iterable[Floor]) -> Floor:
    """The one that did best on targets that judge; of equals, the first."""
    return max(options, key=lambda option: option.validation)


class Counting:
    """Tells of each model that has learnt."""

    def __init__(self, told: Steps | None, total: int) -> None:
        self.told, self.done, self.total = told, 0, total

    def __call__(self, name: str) -> None:
        """One more, of this name, has learnt."""
        self.done += 1
        if self.told is not None:
            self.told(self.done, self.total, name)
