"""Perceptrons that answer for nodes by their features alone, taught by labels or by a teacher who reads edges."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.floors.judging import Floor, judged
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.own_scores import APART, MEMBERS
from unswayed.models.training.view import View, alone


@dataclass(frozen=True)
class Perceptron:
    """A width and the settings it learns with."""

    hidden: int
    settings: CleanSettings


@dataclass(frozen=True, eq=False)
class Lesson:
    """The nodes to be learnt, of those that may be seen, and what a teacher says of all in sight; None: they have their labels."""

    dataset: Dataset
    split: Split
    seen: View
    nodes: Tensor
    soft: Tensor | None = None

    def learnt(self, perceptron: Perceptron, seed: int) -> Tensor:
        """float[n, C]: what a perceptron says of every node of the dataset after this lesson."""
        x, device = self.dataset.graph.x, str(self.seen.data.x.device)
        bare, soft = alone(self.seen, self.nodes, self.soft)
        model = build("mlp", x.shape[1], self.dataset.num_classes, seed=seed, hidden=perceptron.hidden)
        with seeded(seed, device):
            model = fit_clean(model.to(device), bare, soft, settings=perceptron.settings)
        with torch.no_grad():
            said: Tensor = model(x.to(device), bare.data.edge_index)
        return said.cpu()


@dataclass(frozen=True, eq=False)
class Pupil:
    """A perceptron and the lesson it learns; `done` is told its name whenever it has."""

    name: str
    perceptron: Perceptron
    lesson: Lesson
    seed: int
    done: Callable[[str], None] = lambda _: None

    @cached_property
    def alone(self) -> Floor:
        """What it answers from its first beginning."""
        return self._judged(self._first)

    def mean_of_few(self) -> Floor:
        """What it answers on average over a few beginnings: one's luck moves a floor by as much as certificates gain."""
        others = [self._said(self.seed + APART * member) for member in range(1, MEMBERS)]
        return self._judged(torch.stack([self._first, *others]).mean(dim=0))

    @cached_property
    def _first(self) -> Tensor:
        return self._said(self.seed)

    def _said(self, seed: int) -> Tensor:
        said = self.lesson.learnt(self.perceptron, seed)
        self.done(self.name)
        return said

    def _judged(self, said: Tensor) -> Floor:
        return judged(self.name, said.argmax(dim=1), self.lesson.dataset.labels, self.lesson.split)


def best_pupil(pupils: Iterable[Pupil]) -> Pupil:
    """The one that did best on validation nodes from its first beginning."""
    return max(pupils, key=lambda pupil: pupil.alone.validation)
