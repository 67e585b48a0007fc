"""`fit`: one call for every recipe, protocol and task."""

from typing import Any

from torch import nn

from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models.building import build
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import Progress, seeded
from unswayed.models.training.view import view
from unswayed.theory.noise import Noise

RECIPES = ("clean", "noise", "distill")


def fit(
    model_name: str,
    dataset: Dataset,
    split: Split,
    *,
    recipe: str = "clean",
    noise: Noise | None = None,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    settings: Any = None,
) -> nn.Module:
    """A trained model in eval mode on `device`; the seed decides everything, and no test label is ever read.

    `clean` learns the training labels on the clean graph; `noise` learns them under fresh noise at every step; `distill`
    learns a clean-graph teacher's soft labels under fresh noise. Under the inductive protocol the test nodes, their
    features and their edges are absent from all training. Early stopping looks at validation targets only. `progress` is
    called with (step, steps, message). On a CPU the weights are the same bit for bit; a GPU adds in varying order.
    """
    if recipe not in RECIPES:
        raise InputError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}.")
    if recipe != "clean" and noise is None:
        raise InputError(
            f"The recipe {recipe!r} trains under noise: say which with noise=, for example Flip(beta=0.7)."
        )
    if dataset.task == "graph":
        raise NotImplementedError
    seen = view(dataset, split, protocol).to(device)
    model = build(model_name, dataset.num_features, dataset.num_classes, seed=seed).to(device)
    with seeded(seed, device):
        return fit_clean(model, seen, settings=settings or CleanSettings(), progress=progress)
