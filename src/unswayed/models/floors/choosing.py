"""`floor` and `floors`: the structure-free model to hold certificates against, and every one that was tried."""

from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.models.floors.graphs import graph_floors
from unswayed.models.floors.judging import Floor, best_of
from unswayed.models.floors.nodes import NodeFloors
from unswayed.models.training.asked import check_asked
from unswayed.sampling.threads import threads
from unswayed.watching import Steps, steps_shown


@threads(1)
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
    """The structure-free model that did best on targets which it neither learnt nor is tested on; of nodes, the mean of a few that
    learnt alike.

    `progress` is called with (models trained, all, name); without it, a line in a terminal or a notebook moves on.
    """
    check_asked(dataset, split, protocol=protocol, seed=seed, device=device, teacher=teacher)
    with steps_shown("floor", progress) as told:
        if dataset.task == "graph":
            return best_of(graph_floors(dataset, split, seed, told))
        return NodeFloors(dataset, split, protocol, seed, device, teacher, told).best()


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
    with steps_shown("floors", progress) as told:
        if dataset.task == "graph":
            return graph_floors(dataset, split, seed, told)
        return NodeFloors(dataset, split, protocol, seed, device, teacher, told).every()
