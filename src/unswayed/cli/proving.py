"""One proof from start to end: what the command line asked, the model, the floor, the proofs, the store."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unswayed.certificates import Certified
from unswayed.certificates.presenting import plural
from unswayed.cli.common import command_line, note, working
from unswayed.cli.flags import flag_in_words, read_positive, stays
from unswayed.cli.inputs import (
    CONTENT,
    Targets,
    content_of,
    load_factory,
    read_dataset,
    read_device,
    read_targets,
)
from unswayed.cli.models import label_ballots, make_floor, warn_before_training
from unswayed.cli.record import (
    CERTIFICATES,
    Record,
    check_place,
    keep_weights,
    open_run,
    read_record,
    sketches,
    tell_threads,
    threads_told,
    write_record,
)
from unswayed.cli.threat import read_threat
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError, StoreError
from unswayed.models.building import NAMES
from unswayed.models.training.keeping import telling, threads_in_words
from unswayed.models.training.stepping import diary
from unswayed.proving import prove
from unswayed.store import SETTINGS

LABELS, TRAINED, HASHED = "label-ballots", "ballots", "hashed:"
NO_EFFECT = ("store", "device", "floor", "report", "csv", "as_json", "positive")  # on what is proven
USUAL: dict[str, Any] = {"nodes": "test", "protocol": "transductive"}


@dataclass(frozen=True)
class ProvePlan:
    """Everything that decides a proof, checked before anything slow starts."""

    dataset: Dataset
    split: Split
    targets: Targets
    threat: str | None
    model: str
    voters: str | None
    attack_size: int | None
    precision: float | None
    positive: int | None
    groups: int | None
    protocol: str
    seed: int
    device: str
    command: str

    def __post_init__(self) -> None:
        own = self.model.rpartition(":")[2] if self.hashed else self.model
        if self.hashed and own not in NAMES:
            raise InputError(
                f"There is no network {own!r} to hash; after hashed: comes one of {', '.join(NAMES)}."
            )
        if not self.hashed and not self.own and self.model not in (LABELS, TRAINED):
            raise InputError(
                f"--model {self.model!r} cannot be proved; choose {LABELS}, {TRAINED}, hashed:gcn or file.py:factory "
                "(any other model: unswayed certify)."
            )
        if self.model == LABELS and self.dataset.task == "graph":
            raise InputError(
                "Label ballots are for nodes; for whole graphs use --model ballots or hashed:gin."
            )
        options = dict.fromkeys(("voters", "attack_size", "precision"), TRAINED) | {"groups": "hashed:…"}
        for name, meant in options.items():
            if getattr(self, name) is not None and not (
                self.hashed if name == "groups" else self.model == TRAINED
            ):
                raise InputError(f"--{name.replace('_', '-')} is for --model {meant}.")
        if self.precision is not None and self.positive is None:
            raise InputError("--precision is that of a flag: say of which label, with --positive.")
        named = [
            f"--{name.replace('_', '-')}"
            for name in ("voters", "attack_size", "precision")
            if getattr(self, name) is not None
        ]
        if self.dataset.task == "graph" and named:
            raise InputError(f"{named[0]} is for nodes; in whole graphs the pairs of nodes vote.")
        if self.precision is not None:
            from unswayed.models.training.flags import check_flags

            check_flags(self.dataset, self.split, self.precision, self.positive)
        for name in ("attack_size", "groups"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')} must be 1 or more, not {getattr(self, name)}.")

    @property
    def hashed(self) -> bool:
        """Whether groups of edges vote."""
        return self.model.startswith(HASHED)

    @property
    def own(self) -> bool:
        """Whether the model is made by the user's own factory."""
        return ":" in self.model and not self.hashed

    @property
    def training(self) -> dict[str, Any]:
        """How the model came about."""
        told = {
            "dataset": self.dataset.name,
            **content_of(self.dataset, self.split),
            "model": self.model,
            "protocol": self.protocol,
            "seed": self.seed,
        }
        flag = {} if self.precision is None else flag_in_words(self.positive, self.precision, self.dataset)
        return told | {"voters": self.voters, "attack size": self.attack_size, "groups": self.groups} | flag

    @property
    def known(self) -> Tensor:
        """int64[n]: the labels that may be told, those of training and validation nodes; −1 elsewhere."""
        told = torch.cat([self.split.train, self.split.val])
        labels = torch.full_like(self.dataset.labels, -1)
        labels[told] = self.dataset.labels[told]
        return labels


def prove_words(words: dict[str, Any]) -> tuple[Certified, Record]:
    """Prove what these command-line words ask for; what the store holds already is not proven again."""
    plan = make_plan(words)
    positive = stays(plan.positive, plan.dataset, plan.targets)
    store: Path | None = words["store"]
    if store is not None and (kept := _kept(store, plan)) is not None:
        note(f"The proofs are in {store} already.")
        return kept[1], replace(kept[0], positive=positive)
    model = make_model(plan)
    threat = read_threat(plan.dataset, plan.targets, plan.threat or ("all-pairs" if plan.hashed else None))
    note(f"Proving {plural(len(threat), 'target')} …")
    with working("proving"), redirect_stdout(sys.stderr):
        certs = prove(model, threat)
    floor = make_floor(plan) if words["floor"] else None  # not for what cannot be proved
    certs = certs.named(
        targets=plan.targets.names, classes=plan.dataset.class_names, nodes=plan.dataset.node_names
    )
    record = replace(_record(plan, floor, model), positive=positive)
    if store is not None:
        write_record(store, record)
        keep_weights(store, model)
        certs.save(store / CERTIFICATES)
    return certs, record


def make_plan(words: dict[str, Any]) -> ProvePlan:
    """Check every word and read the data; nothing slow has happened yet when this refuses."""
    device = read_device(words["device"])
    data, parts = read_dataset(
        words["dataset"], words["edges"], words["features"], words["labels"], words["seed"]
    )
    unseen = NO_EFFECT if words["precision"] is None else tuple(set(NO_EFFECT) - {"positive"})
    shown = [
        (name, value)
        for name, value in words.items()
        if name not in unseen and (name in ("model", "seed") or value != USUAL.get(name))
    ]
    check_place(words["store"], never=SETTINGS)
    return ProvePlan(
        dataset=data,
        split=parts,
        targets=read_targets(data, parts, words["nodes"]),
        threat=None if words["threat"] is None else str(words["threat"]),
        model=words["model"],
        voters=None if words["voters"] is None else str(words["voters"]),
        attack_size=words["attack_size"],
        precision=words["precision"],
        positive=read_positive(words["positive"], data),
        groups=words["groups"],
        protocol=str(words["protocol"]),
        seed=words["seed"],
        device=device,
        command=command_line("prove", shown),
    )


def _kept(store: Path, plan: ProvePlan) -> tuple[Record, Certified] | None:
    """What the store holds of this very proof; refused where it holds another run.

    A factory may make another model today, so that one is proved again.
    """
    if not store.exists() or (before := read_record(store)) is None:
        return None
    if before.command != plan.command:
        raise StoreError(
            f"The store {store} was made by another command ({before.command}); use a new folder."
        )
    if before.training.get(CONTENT) != plan.training[CONTENT]:
        raise StoreError(f"The store {store} was made with other content of the files; use a new folder.")
    if plan.own or not (store / CERTIFICATES).exists():
        return None
    record, found = open_run(store)
    return record, record.certify(found)


def make_model(plan: ProvePlan) -> Any:
    """What is proved: label ballots, a network trained from them, a vote of groups, or the user's own."""
    if plan.model == LABELS:
        return label_ballots(plan.dataset, plan.known)
    if plan.model == TRAINED or plan.hashed:
        warn_before_training(plan)
        note(f"Training {plan.model} on {plan.dataset.name} ({plan.protocol}) …")
        if plan.precision is not None and plan.positive is not None:  # few choose badly
            truly = int((plan.dataset.labels[plan.split.val] == plan.positive).sum())
            note(
                f"{truly:,} of {len(plan.split.val):,} validation nodes, which choose, bear the flagged label."
            )
        with working("training") as progress, diary() as kept:
            told = telling(progress)
            model = _hashed(plan, told) if plan.hashed else _trained(plan, told)
        return tell_threads(model, threads_in_words(plan.device, kept))
    model = load_factory(plan.model, plan.dataset)
    if plan.dataset.task == "node" and getattr(model, "frozen", None) is False:
        model.freeze(plan.dataset.graph, known=plan.known)
    return model


def _trained(plan: ProvePlan, progress: Any) -> Any:
    if plan.dataset.task == "graph":
        return _trained_on_graphs(plan, progress)
    from unswayed.models.training.ballot_settings import BallotSettings
    from unswayed.models.training.ballots import fit_ballots

    # what is presumed holds no link of theirs
    strangers = bool(torch.isin(plan.targets.ids, plan.split.test).all())
    asked: dict[str, Any] = {
        "attack_size": plan.attack_size,
        "voters": plan.voters,
        "presume": strangers,
    }
    settings = BallotSettings(**{name: value for name, value in asked.items() if value is not None})
    how = {"protocol": plan.protocol, "seed": plan.seed, "device": plan.device, "progress": progress}
    if plan.precision is not None:
        from unswayed.models.training.flags import FlagSettings, fit_flags

        assert plan.positive is not None
        flag = FlagSettings(network=settings)
        return fit_flags(
            plan.dataset, plan.split, precision=plan.precision, positive=plan.positive, settings=flag, **how
        ).cpu()  # fmt: skip
    return fit_ballots(plan.dataset, plan.split, settings=settings, **how).cpu()


def _trained_on_graphs(plan: ProvePlan, progress: Any) -> Any:
    from unswayed.models.training.pairs import fit_pairs

    return fit_pairs(plan.dataset, plan.split, seed=plan.seed, device=plan.device, progress=progress)


def _hashed(plan: ProvePlan, progress: Any) -> Any:
    from unswayed.models.training.hashed import GROUPS, fit_hashed

    return fit_hashed(
        plan.model.removeprefix(HASHED), plan.dataset, plan.split, groups=plan.groups or GROUPS,
        protocol=plan.protocol, seed=plan.seed, device=plan.device, progress=progress,
    ).cpu()  # fmt: skip


def _record(plan: ProvePlan, floor: tuple[float, str] | None, model: Any) -> Record:
    """What is remembered of this proof; it has no samples and no alpha."""
    data = plan.dataset
    return Record(
        title=f"{plan.model} on {data.name}",
        command=plan.command,
        training=plan.training | (threads_told(model) if plan.model == TRAINED or plan.hashed else {}),
        samples=0,
        alpha=0.0,
        bounds="exact",
        family=True,
        names=plan.targets.names,
        truth=tuple(plan.targets.truth.tolist()),
        class_names=data.class_names,
        floor=None if floor is None else floor[0],
        floor_name=None if floor is None else floor[1],
        finished=True,
        graph=sketches(data, plan.targets),
    )
