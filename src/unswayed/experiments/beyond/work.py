"""The work on whole graphs: a student of clean-graph teachers under noise of every level, and its counts at each."""

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.beyond import Case
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.models import build
from unswayed.models.floors import Floor, floors
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import view
from unswayed.models.training.whole import WholeSettings, fit_whole
from unswayed.polling import poll
from unswayed.sampling.threats import AllPairs
from unswayed.theory.noise import AddDelete

TRAINING = WholeSettings(steps=600)


def work(case: Case, samples: int, device: str) -> tuple[Arrays, Facts]:
    """Train once, then poll all test nodes at every level: the counts of each, and what certifying them takes."""
    dataset = load(case.dataset, fetch=True)
    parts = split(dataset, case.seed, test="rest", per_class=case.per_class)
    begin = time.perf_counter()
    student, beside = train(case, dataset, parts, device)
    edges = dataset.graph.edge_index
    facts: Facts = {
        "clean_accuracy": right(student, dataset, parts, edges, device),
        "accuracy_edgeless": right(student, dataset, parts, edges[:, :0], device),
        "floor": max(beside, key=lambda floor: floor.validation).accuracy,
        "floors": {floor.name: floor.accuracy for floor in beside},
        "train_seconds": time.perf_counter() - begin,
        "samples": samples,
    }
    arrays: Arrays = {"targets": parts.test.numpy(), "truth": dataset.labels[parts.test].numpy()}
    levels = []
    for place, noise in enumerate(case.noises):
        arrays[f"counts-{place}"], level = asked(student, dataset, parts, noise, samples, device)
        levels.append(level)
    return arrays, {**facts, "levels": levels, "seconds": time.perf_counter() - begin}


def asked(
    student: nn.Module, dataset: Dataset, parts: Split, noise: AddDelete, samples: int, device: str
) -> tuple[Any, Facts]:
    """The counts of all test nodes at one level, and how they were come by."""
    begin = time.perf_counter()
    votes = poll(student, AllPairs(dataset.graph, parts.test), noise, samples=samples, device=device)
    assert votes.ones is not None
    level = {
        "noise": noise.to_dict(),
        "entries": int(votes.entries[0]),
        "ones": int(votes.ones[0]),
        "provenance": dict(votes.provenance),
        "seconds": time.perf_counter() - begin,
    }
    return votes.counts.astype(np.int32), level


def train(case: Case, dataset: Dataset, parts: Split, device: str) -> tuple[nn.Module, list[Floor]]:
    """A student of clean-graph teachers that has seen whole-graph noise of every level, and the floors beside it."""
    seen = view(dataset, parts, case.protocol).to(device)
    targets = soft_labels(seen, dataset.num_classes, seed=case.seed, device=device)
    beside = floors(dataset, parts, protocol=case.protocol, seed=case.seed, device=device, teacher=targets)
    student = build(case.model, dataset.num_features, dataset.num_classes, seed=case.seed).to(device)
    with seeded(case.seed, device):
        fit_whole(student, seen, targets, case.noises, seed=case.seed, settings=TRAINING)
    return student, beside


def right(model: nn.Module, dataset: Dataset, parts: Split, edges: Tensor, device: str) -> float:
    """Accuracy on the test nodes of one answer on a graph with these edges."""
    with torch.no_grad():
        answer = model(dataset.graph.x.to(device), edges.to(device)).argmax(dim=1).cpu()
    return float((answer == dataset.graph.y)[parts.test].float().mean())
