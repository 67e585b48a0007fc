"""Own scores of a ballot network: what it says of a node by itself, learnt from labels or from a teacher.

They are the mean of a few perceptrons that learnt from different beginnings: one perceptron's luck decides as much as a
proof against one link gains. The mean of perceptrons is a wider perceptron.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unswayed.models.side_by_side import Weights, side_by_side
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import accuracy, seeded
from unswayed.models.training.teacher import taught
from unswayed.models.training.view import View, alone

MEMBERS = 3  # perceptrons whose mean is taken
APART = 1000  # between their seeds
# they learn as the structure-free floors do, so that the network with its ballots off is one of them
FROM_LABELS = (
    CleanSettings(),
    CleanSettings(weight_decay=5e-3),
    CleanSettings(weight_decay=5e-3, input_dropout=0.2),
)
FROM_TEACHER = (
    CleanSettings(steps=300, weight_decay=0.0),
    CleanSettings(steps=300, weight_decay=5e-4, input_dropout=0.2),
    CleanSettings(steps=300, weight_decay=0.0, input_dropout=0.0),
)


@dataclass(frozen=True, eq=False)
class OwnScores:
    """Learns weights for own scores on what a protocol lets be seen; the seed decides everything random.

    `fresh(seed)` is one perceptron before training; what is learnt is `MEMBERS` times as wide.
    """

    fresh: Callable[[int], nn.Module]
    seen: View
    classes: int
    seed: int
    device: str
    importance: Tensor | None = None  # how much a node of each class counts; None: all alike

    def best(self, protocol: str, *, distil: bool, teacher: Tensor | None) -> list[Weights]:
        """Weights that learnt the labels and weights that learnt a teacher's answers, the better on validation nodes first.

        Test nodes are strangers in the inductive protocol, so there the teacher's answers on validation nodes are not learnt:
        those would not be judged as strangers.
        """
        found = [self._together(None, self.seen.train, FROM_LABELS)]
        if distil:
            soft = (
                taught(self.seen, self.classes, seed=self.seed, device=self.device)
                if teacher is None
                else teacher
            )
            pool = torch.ones(len(soft), dtype=torch.bool, device=self.device)
            if protocol == "inductive":
                pool[self.seen.val] = False
            found.append(self._together(soft, pool.nonzero()[:, 0], FROM_TEACHER))
        return [joined(own) for _, own in sorted(found, key=lambda option: -option[0])]

    def _together(
        self, soft: Tensor | None, learnt: Tensor, choices: Sequence[CleanSettings]
    ) -> tuple[float, list[Weights]]:
        """Validation accuracy of the mean, and the members, all with the settings that did best for the first of them."""
        tried = [self._taught(soft, learnt, how, self.seed) for how in choices]
        best = max(range(len(choices)), key=lambda place: self._right([tried[place]]))
        others = [
            self._taught(soft, learnt, choices[best], self.seed + APART * member)
            for member in range(1, MEMBERS)
        ]
        members = [tried[best], *others]
        return self._right(members), [own.state_dict() for own in members]

    def _taught(self, soft: Tensor | None, learnt: Tensor, how: CleanSettings, seed: int) -> nn.Module:
        """A perceptron that has learnt these nodes' soft labels; None: their own labels."""
        own = self.fresh(seed)
        bare, targets = alone(self.seen, learnt, soft)
        with seeded(seed, self.device):
            fit_clean(_Alone(own), bare, targets, settings=how, importance=self.importance)
        return own.eval()

    @torch.no_grad()
    def _right(self, members: Sequence[nn.Module]) -> float:
        """Validation accuracy of the mean of these."""
        x, y = self.seen.data.x[self.seen.val], self.seen.data.y[self.seen.val]
        said = torch.stack([own(x) for own in members]).mean(dim=0)
        return accuracy(said, y, self.importance)


def joined(members: Sequence[Weights]) -> Weights:
    """The weights of one wider perceptron that says the mean of what these say."""
    return side_by_side(members, first="0", last="3")


class _Alone(nn.Module):
    """Own scores as a model of nodes that never looks at edges."""

    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        self.own = own

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        out: Tensor = self.own(x)
        return out
