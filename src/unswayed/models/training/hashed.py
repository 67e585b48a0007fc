"""Training what `Hashed` will ask: each step shows the network the edges of one group, drawn at random."""

import torch
from torch import Tensor, nn

from unswayed.ballots.hashed import Hashed
from unswayed.datasets import Dataset, Split
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.fitting import untrained
from unswayed.models.training.graphs import CLEAN, fit_graphs
from unswayed.models.training.keeping import Progress, seeded
from unswayed.models.training.view import view
from unswayed.sampling.threads import threads

GROUPS = 30
HASHED = CleanSettings(steps=300, check_every=25)  # every look at validation asks all groups


def hashed_untrained(model_name: str, dataset: Dataset, *, groups: int = GROUPS, seed: int = 0) -> Hashed:
    """The vote before training: what stored weights are loaded back into."""
    return Hashed(untrained(model_name, dataset, "clean", seed=seed), groups)


@threads(1)
def fit_hashed(
    model_name: str,
    dataset: Dataset,
    split: Split,
    *,
    groups: int = GROUPS,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    settings: CleanSettings | None = None,
    teacher: Tensor | None = None,
) -> nn.Module:
    """A vote of groups whose network has learnt on such groups, with the weights whose vote did best on validation targets.

    The seed decides everything, and no test label is ever read. Of nodes, `teacher` gives soft labels of every visible one,
    which are then learnt in place of the training nodes' own.
    """
    vote = hashed_untrained(model_name, dataset, groups=groups, seed=seed).to(device)
    with seeded(seed, device):
        if dataset.task == "graph":
            return fit_graphs(
                vote, dataset, split, None, seed=seed, device=device, settings=CLEAN, progress=progress
            )
        seen = view(dataset, split, protocol).to(device)
        told = None if teacher is None else teacher.to(device)
        pool = None if told is None else torch.arange(len(told), device=device)
        return fit_clean(vote, seen, told, pool=pool, settings=settings or HASHED, progress=progress)
