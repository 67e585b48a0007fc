"""Structure-free floors: models that no edge can change, so that any perturbation size is certified for free.

A certificate says something about the graph only where it beats these. Each learns by the same protocol, from the same
split, and (distilled) from the same teacher as the networks it is held against; the best is chosen on validation targets.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.graphs import GraphSettings, fit_graphs
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import View, view

LABELS = CleanSettings()
DISTILLED = CleanSettings(steps=300, weight_decay=0.0)
GRAPHS = GraphSettings(steps=600, weight_decay=0.0, check_every=20)


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
        return found
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
    everything = Batch.from_data_list(list(dataset.graphs)).to(device)
    with torch.no_grad():
        answers: Tensor = model(everything.x, everything.edge_index, everything.batch).argmax(dim=1).cpu()
    return answers
