"""Structure-free floors: models that no edge can change, so that any perturbation size is certified for free.

A certificate says something about the graph only where it beats these. Each learns by the same protocol, from the same
split, and (distilled) from the same teacher as the networks it is held against; the best is chosen on validation targets.
Of graphs they are ensembles like those that learn under noise, but without layers, with the same readouts and decays: a
few validation graphs would choose among them by chance, so folds of all development graphs do, and the chosen one learns
all of these, as the networks do.
"""

from copy import copy
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from unswayed.datasets import Dataset, Split
from unswayed.models.building import build
from unswayed.models.ensembles import Ensemble
from unswayed.models.training.asked import check_asked
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import MEMBERS, TEACHERS, soft_labels
from unswayed.models.training.together import EnsembleSettings, fit_ensemble
from unswayed.models.training.view import View, view
from unswayed.sampling.threads import threads
from unswayed.watching import Steps, steps_shown

LABELS = CleanSettings()
DECAYED = CleanSettings(weight_decay=5e-3, input_dropout=0.2)
DISTILLED = CleanSettings(steps=300, weight_decay=0.0)
# where a teacher has read the links of the nodes that are asked about, what it said can be learnt by heart, node by node
BY_HEART = CleanSettings(steps=100, weight_decay=0.0, input_dropout=0.0)
HIDDEN, WIDE = 64, 256
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
LARGE = 10.0  # features beyond it are brought to like size before a floor learns from them
SMALL = 0.1  # so are those of nodes that usually lie nearer to each other's mean than this


@dataclass(frozen=True, eq=False)
class Floor:
    """What a structure-free model answers for every target, right on this share of the validation targets, and of the test targets whose
    label is known (NaN where none is).

    Of graphs, `validation` is the share of development graphs that it was right about without having learnt them.
    """

    name: str
    predictions: Tensor = field(repr=False)
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
    progress: Steps | None = None,
) -> Floor:
    """The structure-free model that did best on targets which it neither learnt nor is tested on.

    `progress` is called with (models trained, all, name); without it, a line in a terminal or a notebook moves on.
    """
    options = floors(
        dataset, split, protocol=protocol, seed=seed, device=device, teacher=teacher, progress=progress
    )
    return max(options, key=lambda option: option.validation)


@threads(1)
def floors(
    dataset: Dataset,
    split: Split,
    *,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    teacher: Tensor | None = None,
    progress: Steps | None = None,
) -> list[Floor]:
    """Every structure-free model: the majority, and perceptrons on labels (two), on a teacher's answers (two, where test nodes are in
    sight: one generalises, one learns by heart), or on counts.
    """
    check_asked(dataset, split, protocol=protocol, seed=seed, device=device, teacher=teacher)
    with steps_shown("floor", progress) as told:
        if dataset.task == "graph":
            return _graph_floors(dataset, split, seed, _Counting(told, len(COUNTS) * (FOLDS + 1)))
        perceptrons = 4 if protocol == "transductive" else 3
        learnt = _Counting(told, perceptrons + (len(TEACHERS) * MEMBERS if teacher is None else 0))
        return _node_floors(dataset, split, protocol, seed, device, teacher, learnt)


class _Counting:
    """Tells of each model that has learnt."""

    def __init__(self, told: Steps | None, total: int) -> None:
        self.told, self.done, self.total = told, 0, total

    def __call__(self, name: str) -> None:
        self.done += 1
        if self.told is not None:
            self.told(self.done, self.total, name)


def _majority(labels: Tensor, split: Split) -> Floor:
    common = most_common(labels, split)
    return judged("majority", torch.full_like(labels, common), labels, split)


def _graph_floors(dataset: Dataset, split: Split, seed: int, learnt: _Counting) -> list[Floor]:
    most, known = _majority(dataset.labels, split), torch.cat([split.train, split.val])
    right = float((dataset.labels[known] == most.predictions[known]).float().mean())
    counts = [_counts_floor(name, dataset, split, seed, learnt) for name in COUNTS]
    return [*counts, replace(most, validation=right)]


def _node_floors(
    dataset: Dataset,
    split: Split,
    protocol: str,
    seed: int,
    device: str,
    teacher: Tensor | None,
    learnt: _Counting,
) -> list[Floor]:
    found = [_majority(dataset.labels, split)]
    if not dataset.num_features:  # without features and edges every node looks the same
        return found
    dataset = alike(dataset, split)
    seen = view(dataset, split, protocol).to(device)
    soft = (
        soft_labels(seen, dataset.num_classes, seed=seed, device=device, done=learnt)
        if teacher is None
        else teacher.to(device)
    )
    bare = replace(seen, data=Data(x=seen.data.x, edge_index=seen.data.edge_index[:, :0], y=seen.data.y))
    ways = {"mlp": (HIDDEN, LABELS), "mlp-decayed": (HIDDEN, DECAYED), "mlp-distilled": (HIDDEN, DISTILLED)}
    if protocol == "transductive":
        ways["mlp-by-heart"] = (WIDE, BY_HEART)
    for name, (hidden, how) in ways.items():
        lesson = (soft, _taught_nodes(seen, protocol)) if how in (DISTILLED, BY_HEART) else (None, None)
        model = build("mlp", dataset.num_features, dataset.num_classes, seed=seed, hidden=hidden).to(device)
        with seeded(seed, device):
            fit_clean(model, bare, lesson[0], pool=lesson[1], settings=how)
        with torch.no_grad():
            answers = model(dataset.graph.x.to(device), seen.data.edge_index[:, :0]).argmax(dim=1).cpu()
        found.append(judged(name, answers, dataset.labels, split))
        learnt(name)
    return found


def most_common(labels: Tensor, split: Split) -> int:
    """The label that training and validation targets bear most often: training targets may be as many of each class, by design."""
    return int(labels[torch.cat([split.train, split.val])].bincount().argmax())


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


def judged(name: str, answers: Tensor, labels: Tensor, split: Split) -> Floor:
    """These answers as a floor; targets whose label is unknown are left out, as they are of certified accuracy."""
    right, known = (answers == labels).float(), split.test[labels[split.test] >= 0]
    return Floor(name, answers, float(right[split.val].mean()), float(right[known].mean()))


def _taught_nodes(seen: View, protocol: str) -> Tensor:
    """The nodes whose answers a teacher tells: all in sight, but where test nodes are strangers those that judge are, too.

    Of nodes whose links the teacher has read it says what no features tell: judged by them, a floor would seem far higher than it is.
    """
    everyone = torch.ones(len(seen.data.y), dtype=torch.bool, device=seen.val.device)
    if protocol == "inductive":
        everyone[seen.val] = False
    return everyone.nonzero()[:, 0]


def _counts_floor(name: str, dataset: Dataset, split: Split, seed: int, learnt: _Counting) -> Floor:
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
