"""What several measurements ask about: a model trained on a benchmark dataset, and the split it was trained on."""

from typing import Any, Literal

from torch import nn

from unswayed.datasets import Dataset, Split, load, split
from unswayed.models.training import fit
from unswayed.theory.noise import Flip

NOISE = Flip(beta=0.7)  # of the published setting


def trained(
    name: str,
    model: str,
    *,
    recipe: str = "clean",
    noise: Any = NOISE,
    seed: int = 0,
    test: int | Literal["rest"] = 100,
) -> tuple[Dataset, Split, nn.Module]:
    """The dataset, a split that the seed decides, and the model trained on it; "clean" training sees no noise."""
    dataset = load(name)
    parts = split(dataset, seed, test=test)
    taught = None if recipe == "clean" else noise
    return dataset, parts, fit(model, dataset, parts, recipe=recipe, noise=taught, seed=seed).eval()
