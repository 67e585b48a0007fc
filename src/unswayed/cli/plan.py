"""One run from start to end: what the command line asked, what it may reach, the votes and their record."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.certificates import Certified
from unswayed.certificates.top import BOUNDS as TOP_BOUNDS
from unswayed.cli.common import note, warn
from unswayed.cli.flags import asked
from unswayed.cli.inputs import content_of
from unswayed.cli.record import (
    Record,
    certify_as,
    keep_weights,
    threads_told,
    warn_of_second_look,
    write_record,
)
from unswayed.cli.sketching import sketches
from unswayed.cli.targets import Targets
from unswayed.cli.threat import read_threat
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError, UnswayedError
from unswayed.polling import AUDIT, MAX_SAMPLES, poll
from unswayed.runners import Runner
from unswayed.sampling.threats import Threat
from unswayed.sampling.until import Budget, Rule, UntilSize
from unswayed.store import SETTINGS
from unswayed.theory.bounds import check_level
from unswayed.theory.noise import Noise
from unswayed.votes import Votes
from unswayed.watching import ceiling_said

if TYPE_CHECKING:
    from unswayed.models.floors import Floor


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run, checked before anything slow starts."""

    dataset: Dataset
    split: Split
    targets: Targets
    threat: str | None
    noise: Noise
    model: str
    weights: Path | None
    recipe: str
    protocol: str
    samples: int
    alpha: float
    bounds: str
    family: bool
    seed: int
    store: Path | None
    device: str
    engine: str
    runner: Runner | None
    batch_size: int | None
    audit: int = AUDIT
    purpose: str = "certify"
    until_size: int | None = None
    budget: float | None = None
    top: int | None = None
    links: int | None = None
    rivals: str = "all"
    threshold: float | None = None
    positive: int | None = None
    flag: int = 1  # the label that an answer above the threshold means
    directed: bool = False
    edge_attr: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise InputError(f"--samples must lie between 1 and {MAX_SAMPLES:,}, not {self.samples}.")
        check_level(self.alpha)
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"--batch-size must be 1 or more, not {self.batch_size}.")
        if self.audit < 0:
            raise InputError(f"--audit must be 0 or more, not {self.audit}.")
        if self.until_size is not None and self.until_size < 0:
            raise InputError(f"--until-size must be 0 or more, not {self.until_size}.")
        if self.budget is not None and not self.budget > 0:
            raise InputError(f"--budget must be a number of seconds above 0, not {self.budget}.")
        if self.top is not None:
            self._check_top(self.top)

    def _check_top(self, top: int) -> None:
        if not 1 <= top < self.dataset.num_classes:
            raise InputError(
                f"--top must be a whole number from 1 to {self.dataset.num_classes - 1}, one less than the labels, not {top}."
            )
        if self.bounds not in TOP_BOUNDS:
            raise InputError(f"--top needs --bounds {' or '.join(TOP_BOUNDS)}, not {self.bounds}.")
        if self.until_size is not None:
            raise InputError("--until-size is about the label that comes first; use --budget with --top.")
        if self.positive is not None and top > 1:
            raise InputError("--positive is about the answer alone, not several places; leave --top away.")
        if self.rivals != "all":
            raise InputError("With --top, “no answer” may take one of the places; use --rivals all.")

    @property
    def until(self) -> Rule | None:
        """When to stop asking early; None for never."""
        alpha = self.alpha / max(len(self.targets.names), 1) if self.family else self.alpha
        size = None if self.until_size is None else UntilSize(self.until_size, alpha)
        time = None if self.budget is None else Budget(self.budget)
        return size | time if size is not None and time is not None else size or time

    @property
    def built_in(self) -> bool:
        """Whether the model is one of ours and not `file.py:factory`."""
        return ":" not in self.model and not self.model.endswith(".py")

    @property
    def trains(self) -> bool:
        """Whether the model is trained here: one of ours, or the user's own by a recipe under noise."""
        return self.weights is None and (self.built_in or self.recipe != "clean")

    @property
    def distils(self) -> bool:
        """Whether the model learns what a teacher says, which its floor then hears too."""
        return self.trains and self.recipe == "distill"

    @property
    def training(self) -> dict[str, Any]:
        """How the model came about; two runs with equal training have equal weights."""
        ours = self.trains
        return {
            "dataset": self.dataset.name,
            **content_of(self.dataset, self.split),
            "model": self.model,
            "weights": None if self.weights is None else str(self.weights),
            "recipe": self.recipe if ours else None,
            "protocol": self.protocol if ours else None,
            "seed": self.seed,
            "training noise": self.noise.to_dict() if ours and self.recipe != "clean" else None,
        }

    def entries(self) -> Threat:
        """What an attacker may change."""
        return read_threat(
            self.dataset,
            self.targets,
            self.threat,
            self.links,
            directed=self.directed,
            edge_attr=self.edge_attr,
        )

    def certify(self, votes: Votes) -> Certified:
        """What these votes prove, as this plan asks."""
        level = {"alpha": self.alpha, "bounds": self.bounds, "family": self.family}
        return certify_as(votes, self.top, self.rivals, **level)

    def ceiling(self, threat: Threat, change: str = "any") -> int:
        """The largest K that unanimous votes could prove, of any changes or of "adds" or "deletes" alone."""
        kinds = np.unique(np.stack([threat.entries, threat.ones]), axis=1)
        unanimous = [[self.samples] + [0] * (self.dataset.num_classes - 1)] * kinds.shape[1]
        votes = Votes.from_counts(unanimous, threat.takes(self.noise), kinds[0], ones=kinds[1])
        alpha = self.alpha / len(threat) if self.family else self.alpha
        best = replace(self, alpha=alpha, family=False).certify(votes)
        return int(best.sizes(change).max())


def make_threat(plan: Plan, want: int | None) -> Threat:
    """The threat; warns, before anything is sampled, where the wanted size is out of reach."""
    threat = plan.entries()
    reach = plan.ceiling(threat)
    if reach < 0:
        raise InputError(
            f"{plan.samples} samples prove nothing at alpha = {plan.alpha:g}: even unanimous votes would abstain; "
            f"it takes at least --samples {_least(plan, threat)}."
        )
    if want is not None and want > reach:
        cap = int(threat.entries.max())
        more = next(
            (d for d in _more(plan.samples) if replace(plan, samples=d).ceiling(threat) >= want), None
        )
        more_noise = "more noise" + (" (a beta nearer to 0.5)" if plan.noise.symmetric else "")
        if want > cap:
            cure = f"a target has only {cap} entries"
        elif more is None:
            cure = f"use {more_noise}"
        else:
            cure = f"it takes at least --samples {more}, or {more_noise}"
        warn(
            f"K = {want} is out of reach: even unanimous votes prove at most K = {reach}{_one_sided(plan, threat)} "
            f"with these settings; {cure}."
        )
    else:
        note(f"With these settings K can reach at most {reach}{_one_sided(plan, threat)}.")
    return threat


def _least(plan: Plan, threat: Threat) -> int:
    """The fewest samples with which unanimous votes prove a label."""
    few, enough = plan.samples, 2 * plan.samples
    while replace(plan, samples=enough).ceiling(threat) < 0:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if replace(plan, samples=middle).ceiling(threat) < 0 else (few, middle)
    return enough


def _one_sided(plan: Plan, threat: Threat) -> str:
    """For asymmetric noise, how far each kind of change can be proven harmless by itself."""
    if plan.noise.symmetric or threat.counts == "nodes":
        return ""
    adds, deletes = (plan.ceiling(threat, change) for change in ("adds", "deletes"))
    return f" (additions alone {adds}, deletions alone {deletes})"


def _more(samples: int) -> list[int]:
    return [step * 10**power for power in range(3, 9) for step in (1, 2, 5) if step * 10**power > samples]


def make_record(plan: Plan, command: str, floor: "Floor | None", model: Any) -> Record:
    """What is remembered of this run."""
    data = plan.dataset
    return Record(
        title=f"{plan.model} on {data.name}",
        command=command,
        training=plan.training | (threads_told(model, plan.store) if plan.trains else {}),
        samples=plan.samples,
        alpha=plan.alpha,
        bounds=plan.bounds,
        family=plan.family,
        top=plan.top,
        rivals=plan.rivals,
        positive=plan.positive,
        names=plan.targets.names,
        truth=tuple(plan.targets.truth.tolist()),
        class_names=data.class_names,
        floor=None if floor is None else floor.accuracy,
        floor_name=None if floor is None else floor.name,
        graph=sketches(data, plan.targets),
    )


def run_plan(plan: Plan, threat: Threat, model: Any, record: Record | None) -> Votes:
    """The votes; with a store, everything needed to resume and to report is on disk before the first sample."""
    if plan.store is not None and record is not None:
        warn_of_second_look(plan.store, plan)
        if not (plan.store / SETTINGS).exists():  # an older run is left as it is until `poll` has accepted it
            write_record(plan.store, record)
            keep_weights(plan.store, model)
    votes = _ask(
        plan,
        asked(plan, model),
        threat,
        plan.noise,
        samples=plan.samples,
        seed=plan.seed,
        device=plan.device,
        engine=plan.engine,
        runner=plan.runner,
        store=plan.store,
        classes=plan.dataset.class_names or plan.dataset.num_classes,
        batch_size=plan.batch_size,
        audit=plan.audit,
        purpose=plan.purpose,
        until=plan.until,
    )
    if plan.store is not None and record is not None:
        write_record(plan.store, replace(record, finished=True))
    return votes


def _ask(plan: Plan, *question: Any, **settings: Any) -> Votes:
    """Poll; an error that the user's own model file raised is theirs to mend, and says so."""
    try:
        # models print and Ray announces deaths; stdout is for the result
        with ceiling_said(), redirect_stdout(sys.stderr):
            return poll(*question, **settings)
    except UnswayedError:
        raise
    except Exception as error:
        own = None if plan.built_in else Path(plan.model.rpartition(":")[0]).resolve()
        if own is None or all(
            Path(frame.filename).resolve() != own for frame in extract_tb(error.__traceback__)
        ):
            raise
        raise InputError(
            f"{plan.model} failed when it was asked: {type(error).__name__}: {error}."
        ) from error
