"""Floors of node classification by one protocol, in seconds: few perceptrons, of one width for each lesson."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.models.floors.judging import Counting, Floor, majority
from unswayed.models.floors.perceptrons import Lesson, Perceptron, Pupil, best_pupil
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.own_scores import MEMBERS
from unswayed.models.training.teacher import MEMBERS as TAUGHT_BY
from unswayed.models.training.teacher import TEACHERS, taught
from unswayed.models.training.view import View, view
from unswayed.watching import Steps

FROM_LABELS = {
    "mlp": Perceptron(64, CleanSettings()),
    "mlp-decayed": Perceptron(64, CleanSettings(weight_decay=5e-3, input_dropout=0.2)),
}
DISTILLED = {"mlp-distilled": Perceptron(64, CleanSettings(steps=300, weight_decay=0.0))}
# where a teacher has read the links of the nodes that are asked about, what it said can be learnt by heart, node by node
BY_HEART = {"mlp-by-heart": Perceptron(256, CleanSettings(steps=100, weight_decay=0.0, input_dropout=0.0))}
LARGE = 10.0  # features beyond it are brought to like size before a floor learns from them
SMALL = 0.1  # so are those of nodes that usually lie nearer to each other's mean than this


@dataclass(frozen=True, eq=False)
class NodeFloors:
    """The structure-free models of one graph and split; `teacher` are soft labels, None: those of the best teacher."""

    dataset: Dataset
    split: Split
    protocol: str
    seed: int
    device: str
    teacher: Tensor | None
    told: Steps | None

    def every(self) -> list[Floor]:
        """The majority, and one perceptron of every kind."""
        return [self._majority, *(pupil.alone for pupil in self._pupils(Counting(self.told, self._models)))]

    def best(self) -> Floor:
        """The one that did best on validation nodes; of perceptrons, the mean of a few that learnt alike."""
        pupils = self._pupils(Counting(self.told, self._models + MEMBERS - 1))
        if not pupils or self._majority.validation >= best_pupil(pupils).alone.validation:
            return self._majority
        return best_pupil(pupils).mean_of_few()

    @property
    def _majority(self) -> Floor:
        return majority(self.dataset.labels, self.split)

    @cached_property
    def _kinds(self) -> dict[str, Perceptron]:
        by_heart = BY_HEART if self.protocol == "transductive" else {}
        return {**FROM_LABELS, **DISTILLED, **by_heart}

    @property
    def _models(self) -> int:
        """How many learn before one is chosen."""
        return len(self._kinds) + (len(TEACHERS) * TAUGHT_BY if self.teacher is None else 0)

    def _pupils(self, learnt: Counting) -> list[Pupil]:
        """One of each kind; none where nodes have no features, since all look the same without edges."""
        if not self.dataset.num_features:
            return []
        data = alike(self.dataset, self.split)
        seen = view(data, self.split, self.protocol).to(self.device)
        labels = Lesson(data, self.split, seen, seen.train)
        told = Lesson(data, self.split, seen, taught_nodes(seen, self.protocol), self._soft(seen, learnt))
        return [
            Pupil(name, perceptron, labels if name in FROM_LABELS else told, self.seed, learnt)
            for name, perceptron in self._kinds.items()
        ]

    def _soft(self, seen: View, learnt: Counting) -> Tensor:
        """What the teacher says of every node in sight."""
        if self.teacher is not None:
            return self.teacher.to(self.device)
        return taught(seen, self.dataset.num_classes, seed=self.seed, device=self.device, done=learnt)


def taught_nodes(seen: View, protocol: str) -> Tensor:
    """The nodes whose answers a teacher tells: all in sight, but where test nodes are strangers those that judge are, too.

    Of nodes whose links the teacher has read it says what no features tell: judged by them, a floor would seem far higher than it is.
    """
    everyone = torch.ones(len(seen.data.y), dtype=torch.bool, device=seen.val.device)
    if protocol == "inductive":
        everyone[seen.val] = False
    return everyone.nonzero()[:, 0]


def alike(dataset: Dataset, split: Split) -> Dataset:
    """The dataset with features of like size, as the training nodes have them, where some are so large that nothing is learnt from the
    others, and brought to size together where all are so small that nothing is learnt at all: a floor that cannot learn would flatter
    every certificate. Test nodes have no say in it."""
    x = dataset.graph.x
    learnt, known = x[split.train], x[torch.cat([split.train, split.val])]
    usual = (known - learnt.mean(dim=0)).norm(dim=1).median()
    if not float(known.abs().max()) <= LARGE:
        usual = learnt.std(dim=0).clamp_min(1e-9)
    elif not 0 < float(usual) < SMALL:
        return dataset
    data = copy(dataset.graph)
    data.x = ((x - learnt.mean(dim=0)) / usual).nan_to_num().clamp(-LARGE, LARGE)
    return replace(dataset, data=data)
