"""The classifier of a run, and the structure-free model that it is held against."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unswayed.cli.common import note, warn, working
from unswayed.cli.inputs import load_factory, load_weights
from unswayed.cli.plan import Plan
from unswayed.cli.record import WEIGHTS, read_record, tell_threads
from unswayed.cli.targets import Targets
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError, StoreError

if TYPE_CHECKING:
    from unswayed.models.floors import Floor


def make_model(plan: Plan) -> Any:
    """The classifier: the user's, ours with given weights, the store's, or a freshly trained one."""
    from unswayed.models.training import untrained

    if not plan.built_in and not plan.trains:
        model = load_factory(plan.model, plan.dataset)
        if plan.weights is not None:
            load_weights(model, plan.weights)
        elif _has_weights(model):
            warn(
                f"{plan.model} is taken as its factory makes it; if it was trained, give its weights with --weights."
            )
        return model
    kept = None if plan.store is None else _kept_weights(plan.store, plan.training)
    weights = plan.weights or kept
    if weights is None:
        return _train(plan)
    model = untrained(plan.model, plan.dataset, plan.recipe, seed=plan.seed) if plan.built_in else _own(plan)
    load_weights(model, weights)
    return model.eval()


def _own(plan: Plan) -> Any:
    """The user's module before training; the seed decides its weights too."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model = load_factory(plan.model, plan.dataset)
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"--recipe {plan.recipe} trains torch modules, and {plan.model} returned {type(model).__name__}."
        )
    return model


def _has_weights(model: Any) -> bool:
    parameters = getattr(model, "parameters", None)
    return callable(parameters) and any(True for _ in parameters())


def _kept_weights(store: Path, training: Mapping[str, Any]) -> Path | None:
    record = read_record(store)
    if record is None:
        return None
    for name, value in training.items():
        if record.training.get(name) != value:
            raise StoreError(
                f"The store {store} was made with another {name} ({record.training.get(name)}, now {value}); "
                "use a new folder for this run."
            )
    return store / WEIGHTS if (store / WEIGHTS).exists() else None


def _train(plan: Plan) -> Any:
    from unswayed.models.training import fit
    from unswayed.models.training.keeping import threads_in_words
    from unswayed.models.training.stepping import diary

    warn_before_training(plan)
    note(f"Training {plan.model} on {plan.dataset.name} ({plan.recipe}, {plan.protocol}) …")
    with working("training") as progress, diary() as kept:
        model = fit(
            plan.model if plan.built_in else _own(plan),
            plan.dataset,
            plan.split,
            recipe=plan.recipe,
            noise=None if plan.recipe == "clean" else plan.noise,
            protocol=plan.protocol,
            seed=plan.seed,
            device=plan.device,
            progress=progress,
            teacher=_teacher(plan),
        )
    return tell_threads(model, threads_in_words(plan.device, kept))


def warn_before_training(plan: "Task") -> None:
    """What makes training weak, or its result flattering."""
    _warn_of_large(plan.dataset)
    _warn_of_learnt(plan)


def _warn_of_large(dataset: Dataset) -> None:
    """Networks learn little from features of very different sizes; whose numbers they are decides how to scale them."""
    from unswayed.models.floors.nodes import LARGE

    if dataset.task == "graph" or not dataset.num_features:
        return
    size = dataset.graph.x.abs().max(dim=0).values
    if (largest := float(size.max())) > 100 * LARGE:
        warn(
            f"Feature {int(size.argmax()) + 1} reaches {largest:,.0f}; a network learns best from features of like size, so scale yours "
            "first, for example (x − mean) / std, or log(1 + x) for amounts."
        )


def _warn_of_learnt(plan: "Task") -> None:
    """What a network was told in training it gets right more easily than what it will be asked."""
    graphs = plan.dataset.task == "graph"  # whose networks learn validation graphs too, or stop by them
    told = {*plan.split.train.tolist(), *(plan.split.val.tolist() if graphs else ())}
    learnt = len(told.intersection(plan.targets.ids.tolist()))
    if learnt:
        warn(
            f"{learnt:,} of {len(plan.targets.ids):,} targets are also trained on{' or chosen with' * graphs}, so shares of right answers are flattering; "
            "--nodes test certifies others."
        )


class Task(Protocol):
    """What a floor is found for: some targets of a dataset, by one protocol and seed."""

    @property
    def dataset(self) -> Dataset:
        """The data."""

    @property
    def split(self) -> Split:
        """Who is learnt from, chosen with, and reported on."""

    @property
    def targets(self) -> Targets:
        """Who is certified."""

    @property
    def protocol(self) -> str:
        """What training may see."""

    @property
    def distils(self) -> bool:
        """Whether the model learns what a teacher says, which its floor then hears too."""

    @property
    def seed(self) -> int:
        """What decides everything random."""

    @property
    def device(self) -> str:
        """Where to train."""


def _teacher(plan: Task) -> Any:
    if plan.dataset.task == "graph" or not plan.distils:
        return None
    return _soft_labels(plan.dataset, plan.split, plan.protocol, plan.seed, plan.device)


@lru_cache(maxsize=1)
def _soft_labels(dataset: Dataset, parts: Split, protocol: str, seed: int, device: str) -> Any:
    """What a distilled model and its floor both learn from: the slow part of either, so computed once."""
    from unswayed.models.floors.nodes import alike
    from unswayed.models.training.teacher import soft_labels
    from unswayed.models.training.view import view

    seen = view(alike(dataset, parts), parts, protocol).to(device)
    return soft_labels(seen, dataset.num_classes, seed=seed, device=device)


def make_floor(plan: Task) -> "Floor | None":
    """The best structure-free model, with its accuracy on these targets; None where no truth is known."""
    from unswayed.models.floors import floor

    truth = plan.targets.truth
    if not bool((truth >= 0).any()):
        return None
    note("Training structure-free models for the floor …")
    with working("floor") as progress:
        best = floor(
            plan.dataset,
            plan.split,
            protocol=plan.protocol,
            seed=plan.seed,
            device=plan.device,
            teacher=_teacher(plan),
            progress=progress,
        )
    right = (best.predictions[plan.targets.ids].cpu() == truth)[truth >= 0]
    return replace(best, accuracy=float(right.double().mean()))
