"""Floors of graph classification: ensembles like those that learn under noise, but on counts of nodes alone.

A few validation graphs would choose among them by chance, so folds of all development graphs do, and the chosen one learns
all of these, as the networks do.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Batch

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.ensembles import Ensemble
from unswayed.models.floors.judging import Counting, Floor, judged, majority
from unswayed.models.training.keeping import seeded
from unswayed.models.training.together import EnsembleSettings, fit_ensemble
from unswayed.watching import Steps

# readout of the counts (of the size, where nodes have no features) and weight decay of five members
COUNTS = {
    "counts-linear": ("linear", 1e-3),
    "counts-linear-decayed": ("linear", 1e-2),
    "counts-perceptron": ("mlp", 1e-3),
    "counts-perceptron-decayed": ("mlp", 1e-2),
    "counts-perceptron-free": ("mlp", 1e-4),
}
COUNTS_STEPS = 600
FOLDS = 5


def graph_floors(dataset: Dataset, split: Split, seed: int, told: Steps | None) -> list[Floor]:
    """Every ensemble on counts, and the most common label; `validation` is the share of development graphs that each was right about
    without having learnt them."""
    learnt = Counting(told, len(COUNTS) * (FOLDS + 1))
    most, known = majority(dataset.labels, split), torch.cat([split.train, split.val])
    right = float((dataset.labels[known] == most.predictions[known]).float().mean())
    counts = [_counts_floor(name, dataset, split, seed, learnt) for name in COUNTS]
    return [*counts, replace(most, validation=right)]


def _counts_floor(name: str, dataset: Dataset, split: Split, seed: int, learnt: Counting) -> Floor:
    """Judged by folds of the development graphs, then taught all of them; so small that no card would be faster."""
    known, right = development(split, seed), 0
    for held, others in folds(known):
        right += int((_taught(name, dataset, others, seed) == dataset.labels)[held].sum())
        learnt(name)
    final = judged(name, _taught(name, dataset, known, seed), dataset.labels, split)
    learnt(name)
    return replace(final, validation=right / len(known))


def development(split: Split, seed: int) -> Tensor:
    """Training and validation targets in an order that the seed decides."""
    known = torch.cat([split.train, split.val])
    return known[torch.randperm(len(known), generator=torch.Generator().manual_seed(seed))]


def folds(known: Tensor, number: int = FOLDS) -> list[tuple[Tensor, Tensor]]:
    """(held back, the others), so many times: each is held back once."""
    place = torch.arange(len(known)) % number
    return [(known[place == fold], known[place != fold]) for fold in range(number)]


def counts_taught(name: str, dataset: Dataset, graphs: Tensor, seed: int) -> Ensemble:
    """The ensemble of this name on counts of nodes after it has learnt these graphs."""
    own, decay = COUNTS[name]
    model = build(
        "ensemble", dataset.num_features, dataset.num_classes, task="graph", seed=seed, layers=0, own=own
    )
    assert isinstance(model, Ensemble)
    settings = EnsembleSettings(steps=COUNTS_STEPS, weight_decay=decay)
    with seeded(seed, "cpu"):
        fit_ensemble(model, dataset, graphs, None, seed=seed, device="cpu", settings=settings)
    return model


def _taught(name: str, dataset: Dataset, graphs: Tensor, seed: int) -> Tensor:
    """What the ensemble answers for every graph after it has learnt these."""
    model, everything = counts_taught(name, dataset, graphs, seed), Batch.from_data_list(list(dataset.graphs))
    with torch.no_grad():
        answers: Tensor = model(everything.x, everything.edge_index, everything.batch).argmax(dim=1)
    return answers
