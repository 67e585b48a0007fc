"""Structure-free floors: models that no edge can change, so that any perturbation size is certified for free.

A certificate says something about the graph only where it beats these. Each learns by the same protocol, from the same
split, and (distilled) from the same teacher as the networks it is held against; the best is chosen on validation targets.
Of graphs, ensembles like those that learn under noise, but without layers, are among them: judged on validation graphs
that they have not seen, they answer after learning these too, as the networks do.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.ensembles import Ensemble
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.graphs import GraphSettings, fit_graphs
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.together import EnsembleSettings, fit_ensemble
from unswayed.models.training.view import View, view

LABELS = CleanSettings()
DISTILLED = CleanSettings(steps=300, weight_decay=0.0)
GRAPHS = GraphSettings(steps=600, weight_decay=0.0, check_every=20)
# readout of the standardised counts (of the size, where nodes have no features) and weight decay of five members
ENSEMBLES = {
    "counts-linear": ("linear", 1e-3),
    "counts-perceptron": ("mlp", 1e-3),
    "counts-perceptron-decayed": ("mlp", 1e-2),
}
ENSEMBLE_STEPS = 600


@dataclass(frozen=True, eq=False)
class Floor:
    """What a structure-free model answers for every target, right on this share of the validation and test targets."""

    name: str
    predictions: Tensor
    validation: float
    accuracy: float


def floor(
    dataset: Dataset,
    split: Split,
    *,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    teacher: Tensor | None = None,
) -> Floor:
    """The structure-free model that did best on the validation targets."""
    options = floors(dataset, split, protocol=protocol, seed=seed, device=device, teacher=teacher)
    return max(options, key=lambda option: option.validation)


def floors(
    dataset: Dataset,
    split: Split,
    *,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    teacher: Tensor | None = None,
) -> list[Floor]:
    """Every structure-free model: the majority, and perceptrons on labels, on a teacher's answers, or on counts."""
    labels = dataset.labels
    common = int(labels[split.train].bincount().argmax())
    found = [_floor("majority", torch.full_like(labels, common), labels, split)]
    if dataset.task == "graph":
        for name in ("counts", "deepsets"):
            found.append(_floor(name, _graph_answers(name, dataset, split, seed, device), labels, split))
        return [*(_ensemble_floor(name, dataset, split, seed, device) for name in ENSEMBLES), *found]
    seen = view(dataset, split, protocol).to(device)
    soft = (
        soft_labels(seen, dataset.num_classes, seed=seed, device=device)
        if teacher is None
        else teacher.to(device)
    )
    for name, targets in (("mlp", None), ("mlp-distilled", soft)):
        model = _perceptron(dataset, seen, targets, seed, device)
        with torch.no_grad():
            answers = model(dataset.graph.x.to(device), seen.data.edge_index[:, :0]).argmax(dim=1).cpu()
        found.append(_floor(name, answers, labels, split))
    return found


def _floor(name: str, answers: Tensor, labels: Tensor, split: Split) -> Floor:
    right = (answers == labels).float()
    return Floor(name, answers, float(right[split.val].mean()), float(right[split.test].mean()))


def _perceptron(dataset: Dataset, seen: View, targets: Tensor | None, seed: int, device: str) -> nn.Module:
    model = build("mlp", dataset.num_features, dataset.num_classes, seed=seed).to(device)
    edgeless = replace(seen, data=Data(x=seen.data.x, edge_index=seen.data.edge_index[:, :0], y=seen.data.y))
    pool = None if targets is None else torch.arange(len(targets), device=device)
    with seeded(seed, device):
        return fit_clean(
            model, edgeless, targets, pool=pool, settings=LABELS if targets is None else DISTILLED
        )


def _graph_answers(name: str, dataset: Dataset, split: Split, seed: int, device: str) -> Tensor:
    model = build(name, dataset.num_features, dataset.num_classes, task="graph", seed=seed).to(device)
    with seeded(seed, device):
        fit_graphs(model, dataset, split, None, seed=seed, device=device, settings=GRAPHS)
    return _answers(model, dataset, device)


def _ensemble_floor(name: str, dataset: Dataset, split: Split, seed: int, device: str) -> Floor:
    """The validation score is that of members which learnt the training graphs alone; then they learn all of both."""
    own, decay = ENSEMBLES[name]
    settings = EnsembleSettings(steps=ENSEMBLE_STEPS, weight_decay=decay)
    answers = []
    for graphs in (split.train, torch.cat([split.train, split.val])):
        model = build(
            "ensemble", dataset.num_features, dataset.num_classes, task="graph", seed=seed, layers=0, own=own
        ).to(device)
        assert isinstance(model, Ensemble)
        with seeded(seed, device):
            fit_ensemble(model, dataset, graphs, None, seed=seed, device=device, settings=settings)
        answers.append(_answers(model, dataset, device))
    held_back, final = (_floor(name, found, dataset.labels, split) for found in answers)
    return replace(final, validation=held_back.validation)


@torch.no_grad()
def _answers(model: nn.Module, dataset: Dataset, device: str) -> Tensor:
    everything = Batch.from_data_list(list(dataset.graphs)).to(device)
    answers: Tensor = model(everything.x, everything.edge_index, everything.batch).argmax(dim=1).cpu()
    return answers
