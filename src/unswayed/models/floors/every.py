"""Every floor of a node dataset side by side: what can be had, at any perturbation size, by never looking at an edge.

Three ways of learning, each with a few widths and decays, chosen on validation nodes: from labels; from a teacher that
reads edges but has never seen the test nodes; and from one that has seen them and their edges. The last learns by heart, node
by node, what the edges said, as far as features tell nodes apart. Of the second there are two, since some networks learn what the
teacher said of validation nodes and others do not. Nodes without features leave nothing but the majority.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.models.floors.judging import Floor, majority
from unswayed.models.floors.nodes import taught_nodes
from unswayed.models.floors.perceptrons import Lesson, Perceptron, Pupil, best_pupil
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.teacher import EVERY_TEACHER, taught
from unswayed.models.training.view import view
from unswayed.sampling.threads import threads

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
    found = {"majority": majority(dataset.labels, split)}
    if not dataset.num_features:
        return found
    said = {} if taught_already is None else taught_already
    seen = view(dataset, split, "transductive").to(device)
    found["labels"] = _best("labels", Lesson(dataset, split, seen, seen.train), LABELS, seed)
    for protocol in ("inductive", "transductive"):
        seen = view(dataset, split, protocol).to(device)
        if protocol not in said:
            said[protocol] = taught(seen, dataset.num_classes, seed=seed, device=device, teachers=teachers)
        nodes = {f"distilled {protocol}": taught_nodes(seen, protocol)}
        if protocol == "inductive":
            nodes[ALL_SEEN] = torch.arange(len(seen.data.y), device=device)
        for name, learnt in nodes.items():
            found[name] = _best(name, Lesson(dataset, split, seen, learnt, said[protocol]), DISTILLED, seed)
    return found


def fair(names: Iterable[str], protocol: str) -> list[str]:
    """The floors that have seen no more than the protocol allows."""
    return [name for name in names if protocol in name or "distilled" not in name]


def _best(name: str, lesson: Lesson, choices: Iterable[Perceptron], seed: int) -> Floor:
    """The mean of a few perceptrons that learnt these nodes, with the settings that did best on validation nodes."""
    return best_pupil(Pupil(name, learner, lesson, seed) for learner in choices).mean_of_few()
