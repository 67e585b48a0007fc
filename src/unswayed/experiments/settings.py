"""The paper's experiments as rows of settings: what is trained, what is asked of it, and which panel shows it.

One training is polled once for each noise level, at the largest number of samples; every confidence level and every
smaller number of samples is read off the same votes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from unswayed.errors import InputError

Recipe = Literal["faithful", "best"]

NODES = ("cora", "citeseer", "pubmed")
GRAPHS = ("mutag", "proteins", "imdb-multi")
BETAS = (0.5, 0.6, 0.7, 0.8, 0.9)
BETA = 0.7  # where one level stands for all, and the noise that models learn under
ALPHAS = (0.1, 0.01, 0.001, 0.0001)
ALPHA = 0.001
SAMPLES = (1_000, 5_000, 10_000, 50_000)
SIZES = tuple(range(31))  # the perturbation sizes a row reports
EXPERIMENTS = ("table1", "figure1", "figure2", "figure3", "figure4", "figure5")
RECIPES = ("faithful", "best")


@dataclass(frozen=True)
class Training:
    """Everything that decides the weights of one model."""

    dataset: str
    model: str
    recipe: str
    protocol: str
    seed: int

    @property
    def key(self) -> str:
        """A name for the folder that keeps it."""
        return f"{self.dataset}-{self.model}-{self.recipe}-{self.protocol}-{self.seed}"


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: a model on a dataset, with one setting varied."""

    figure: str
    dataset: str
    model: str
    recipe: str
    protocol: str
    varied: Literal["beta", "alpha", "samples"]

    @property
    def betas(self) -> tuple[float, ...]:
        """The noise levels it needs votes for."""
        return BETAS if self.varied == "beta" else (BETA,)

    def training(self, seed: int) -> Training:
        """The training that this panel shows for one seed."""
        return Training(self.dataset, self.model, self.recipe, self.protocol, seed)


# model, recipe and protocols of each figure: the published settings, and what does best under noise
_MODELS: dict[str, dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "faithful": {
        "figure1": ("gcn-mean", "clean", ("transductive",)),
        "figure2": ("gat", "clean", ("transductive",)),
        "figure3": ("gin", "clean", ("inductive",)),
    },
    "best": {
        "figure1": ("sage", "distill", ("transductive", "inductive")),
        "figure2": ("gat", "distill", ("transductive",)),
        "figure3": ("gin", "noise", ("inductive",)),
    },
}


def panels(experiment: str, recipe: str) -> Iterator[Panel]:
    """The panels of one figure; figure 4 varies 1 − α and figure 5 the number of samples, on the votes of 1 and 3."""
    if recipe not in RECIPES:
        raise InputError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}.")
    if experiment not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment {experiment!r}; choose one of {', '.join(EXPERIMENTS)} or all."
        )
    varied = {"figure4": "alpha", "figure5": "samples"}.get(experiment, "beta")
    sources = {"table1": (), "figure4": ("figure1", "figure3"), "figure5": ("figure1", "figure3")}
    for source in sources.get(experiment, (experiment,)):
        model, how, protocols = _MODELS[recipe][source]
        for protocol in protocols:
            for dataset in GRAPHS if source == "figure3" else NODES:
                yield Panel(experiment, dataset, model, how, protocol, varied)  # type: ignore[arg-type]


def work(experiments: tuple[str, ...], recipe: str, seeds: int) -> dict[Training, tuple[float, ...]]:
    """Each training these experiments need, once, with the noise levels to poll; seed by seed, so that stopping early
    leaves every panel with fewer seeds."""
    wanted: dict[Training, set[float]] = {}
    for seed in range(seeds):
        for experiment in experiments:
            for panel in panels(experiment, recipe):
                wanted.setdefault(panel.training(seed), set()).update(panel.betas)
    return {training: tuple(sorted(betas)) for training, betas in wanted.items()}
