"""Own scores of a ballot network: what it says of a node by itself, learnt from labels or from a teacher."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import taught
from unswayed.models.training.view import View, alone

Weights = dict[str, Tensor]
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
    """Learns weights for fresh own scores on what a protocol lets be seen; the seed decides everything random."""

    fresh: Callable[[], nn.Module]
    seen: View
    classes: int
    seed: int
    device: str

    def best(self, protocol: str, *, distil: bool, teacher: Tensor | None) -> list[Weights]:
        """Weights that learnt the labels and weights that learnt a teacher's answers, the better on validation nodes first.

        Test nodes are strangers in the inductive protocol, so there the teacher's answers on validation nodes are not learnt:
        those would not be judged as strangers.
        """
        found = [_better([self._taught(None, self.seen.train, how) for how in FROM_LABELS])]
        if distil:
            soft = (
                taught(self.seen, self.classes, seed=self.seed, device=self.device)
                if teacher is None
                else teacher
            )
            pool = torch.ones(len(soft), dtype=torch.bool, device=self.device)
            if protocol == "inductive":
                pool[self.seen.val] = False
            shown = pool.nonzero()[:, 0]
            found.append(_better([self._taught(soft, shown, how) for how in FROM_TEACHER]))
        return [weights for _, weights in sorted(found, key=lambda option: -option[0])]

    def _taught(self, soft: Tensor | None, learnt: Tensor, how: CleanSettings) -> tuple[float, Weights]:
        """Validation accuracy and weights after these nodes' soft labels were learnt; None: their own labels."""
        seen, own = self.seen, self.fresh()
        bare, targets = alone(seen, learnt, soft)
        with seeded(self.seed, self.device):
            fit_clean(_Alone(own), bare, targets, settings=how)
        with torch.no_grad():
            right = own(seen.data.x[seen.val]).argmax(dim=1) == seen.data.y[seen.val]
        return float(right.float().mean()), own.state_dict()


def _better(options: list[tuple[float, Weights]]) -> tuple[float, Weights]:
    """The first of those that are right about the most validation nodes."""
    return max(options, key=lambda option: option[0])


class _Alone(nn.Module):
    """Own scores as a model of nodes that never looks at edges."""

    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        self.own = own

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        out: Tensor = self.own(x)
        return out
