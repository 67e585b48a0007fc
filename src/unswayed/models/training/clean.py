"""Ordinary training on the clean graph: the faithful recipe, and the teachers of `distill`."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unswayed.models.training.keeping import Best, Progress, ThinDropout, accuracy
from unswayed.models.training.stepping import descend
from unswayed.models.training.view import View


@dataclass(frozen=True)
class CleanSettings:
    """The published settings of GCN training: Adam, 200 steps on the whole graph, weights by validation."""

    steps: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    input_dropout: float = 0.5
    check_every: int = 4


# The published rate and dropout of GAT: half the rate, twice the steps. On Cora 800 steps found nothing better than 200.
CLEAN_GAT = CleanSettings(steps=400, lr=0.005, input_dropout=0.6)


def fit_clean(
    model: nn.Module,
    seen: View,
    targets: Tensor | None = None,
    *,
    pool: Tensor | None = None,
    settings: CleanSettings | None = None,
    progress: Progress | None = None,
    importance: Tensor | None = None,
) -> nn.Module:
    """The model after training, with the weights that did best on the validation nodes.

    Without `targets` it learns the labels of the training nodes; with `targets` (soft labels [n, C]) it learns those of
    the `pool` nodes. `importance` [C] is how much a node of each class counts, in training and in validation; None: all alike.
    """
    chosen = settings or CleanSettings()
    data, best = seen.data, Best()
    optimiser = torch.optim.Adam(model.parameters(), lr=chosen.lr, weight_decay=chosen.weight_decay)
    nodes = seen.train if pool is None else pool
    wanted = data.y if targets is None else targets
    features = ThinDropout(data.x, chosen.input_dropout)
    for step in range(1, chosen.steps + 1):
        model.train()
        logits = model(features(), data.edge_index)
        descend(optimiser, functional.cross_entropy(logits[nodes], wanted[nodes], weight=importance))
        if step % chosen.check_every == 0 or step == chosen.steps:
            best.offer(_score(model, seen, importance), model)
            if progress is not None:
                progress(step, chosen.steps, f"validation {best.score[0]:.3f}")
    return best.restore(model)


@torch.no_grad()
def _score(model: nn.Module, seen: View, importance: Tensor | None) -> tuple[float, float]:
    """Validation accuracy, ties broken by the lower loss."""
    model.eval()
    logits = model(seen.data.x, seen.data.edge_index)[seen.val]
    labels = seen.data.y[seen.val]
    loss = float(functional.cross_entropy(logits, labels, weight=importance))
    return accuracy(logits, labels, importance), -loss
