"""Every floor of a node dataset side by side: what can be had, at any perturbation size, by never looking at an edge.

Three ways of learning, each with a few widths and decays, chosen on validation nodes: from labels; from a teacher that
reads edges but has never seen the test nodes; and from one that has seen them and their edges. The last learns by heart, node
by node, what the edges said, as far as features tell nodes apart. Of the second there are two, since some networks learn what the
teacher said of validation nodes and others do not. Nodes without features leave nothing but the majority.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.floors import Floor, judged, most_common
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.own_scores import APART, MEMBERS
from unswayed.models.training.teacher import EVERY_TEACHER, taught
from unswayed.models.training.view import View, alone, view
from unswayed.sampling.threads import threads


@dataclass(frozen=True)
class Perceptron:
    """A width and the settings it learns with."""

    hidden: int
    settings: CleanSettings


LABELS = (
    Perceptron(16, CleanSettings()),
    Perceptron(16, CleanSettings(weight_decay=5e-3)),
    Perceptron(64, CleanSettings(weight_decay=5e-3, input_dropout=0.2)),
)
ALL_SEEN = "distilled inductive, validation nodes too"
DISTILLED = (
    Perceptron(16, CleanSettings(steps=300, weight_decay=0.0)),
    Perceptron(64, CleanSettings(steps=300, weight_decay=5e-4, input_dropout=0.2)),
    Perceptron(256, CleanSettings(steps=300, weight_decay=0.0, input_dropout=0.0)),
)


@threads(1)
def all_floors(
    dataset: Dataset,
    split: Split,
    *,
    seed: int = 0,
    device: str = "cpu",
    teachers: Iterable[str] = EVERY_TEACHER,
    taught_already: dict[str, Tensor] | None = None,
) -> dict[str, Floor]:
    """The floors by name: majority, labels, distilled inductive (twice), distilled transductive; no test label is ever read.

    The teacher is the one of `teachers` that did best on validation nodes. What it said under each protocol is read from, or
    else added to, `taught_already`.
    """
    labels = dataset.labels
    common = most_common(labels, split)
    found = {"majority": judged("majority", torch.full_like(labels, common), labels, split)}
    if not dataset.num_features:
        return found
    said = {} if taught_already is None else taught_already
    seen = view(dataset, split, "transductive").to(device)
    found["labels"] = _best("labels", dataset, split, seen, LABELS, None, seed, seen.train)
    for protocol in ("inductive", "transductive"):
        seen = view(dataset, split, protocol).to(device)
        if protocol not in said:
            said[protocol] = taught(seen, dataset.num_classes, seed=seed, device=device, teachers=teachers)
        everyone = torch.ones(len(said[protocol]), dtype=torch.bool)
        strangers = everyone.index_fill(0, seen.val.cpu(), False)
        ways = {ALL_SEEN: everyone} if protocol == "inductive" else {}
        for name, learnt in {f"distilled {protocol}": strangers if ways else everyone, **ways}.items():
            nodes = learnt.nonzero()[:, 0].to(device)
            found[name] = _best(name, dataset, split, seen, DISTILLED, said[protocol], seed, nodes)
    return found


def fair(names: Iterable[str], protocol: str) -> list[str]:
    """The floors that have seen no more than the protocol allows."""
    return [name for name in names if protocol in name or "distilled" not in name]


def _best(
    name: str,
    dataset: Dataset,
    split: Split,
    seen: View,
    choices: Iterable[Perceptron],
    soft: Tensor | None,
    seed: int,
    learnt: Tensor,
) -> Floor:
    """The mean of a few perceptrons that learnt these nodes, with the settings that did best on validation nodes."""
    bare, targets = alone(seen, learnt, soft)

    def floor_of(*said: Tensor) -> Floor:
        return judged(name, torch.stack(said).mean(dim=0).argmax(dim=1), dataset.labels, split)

    tried = [(choice, _logits(dataset, bare, choice, targets, seed)) for choice in choices]
    best, first = max(tried, key=lambda option: floor_of(option[1]).validation)
    others = (_logits(dataset, bare, best, targets, seed + APART * member) for member in range(1, MEMBERS))
    return floor_of(first, *others)


def _logits(dataset: Dataset, bare: View, choice: Perceptron, soft: Tensor | None, seed: int) -> Tensor:
    device = bare.data.x.device
    model = build("mlp", dataset.num_features, dataset.num_classes, seed=seed, hidden=choice.hidden)
    with seeded(seed, str(device)):
        model = fit_clean(model.to(device), bare, soft, settings=choice.settings)
    with torch.no_grad():
        said: Tensor = model(dataset.graph.x.to(device), bare.data.edge_index)
    return said.cpu()
