"""One proof from start to end: what the command line asked, the model, the floor, the proofs, the store."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unswayed._version import __version__
from unswayed.certificates import Certified
from unswayed.certificates.presenting import plural
from unswayed.cli.common import command_line, note, working
from unswayed.cli.flags import flag_in_words, judged_in_words, read_positive, stays, tell_flagged, tell_judged
from unswayed.cli.inputs import (
    CONTENT,
    NO_FACTORY,
    content_of,
    read_dataset,
    read_device,
)
from unswayed.cli.models import make_floor
from unswayed.cli.provers import HASHED, LABELS, TRAINED, make_model
from unswayed.cli.record import (
    Record,
    check_place,
    keep_weights,
    open_run,
    read_record,
    threads_told,
    write_record,
)
from unswayed.cli.sketching import sketches
from unswayed.cli.targets import Targets, read_targets
from unswayed.cli.threat import read_threat
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError, StoreError
from unswayed.models.building import NAMES
from unswayed.proving import prove
from unswayed.store import CERTIFICATES, SETTINGS

if TYPE_CHECKING:
    from unswayed.models.floors import Floor

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
        if self.model.endswith(".py"):
            raise InputError(NO_FACTORY.format(self.model))
        if not self.hashed and not self.own and self.model not in (LABELS, TRAINED):
            raise InputError(
                f"--model {self.model!r} cannot be proved; choose {LABELS}, {TRAINED}, hashed:gcn or file.py:factory "
                "(any other model: unswayed certify)."
            )
        if self.model == LABELS and self.dataset.task == "graph":
            raise InputError(
                "Label ballots are for nodes; for whole graphs use --model ballots or hashed:gin."
            )
        if self.threat == "all-pairs" and self.dataset.task == "node" and self._repeats:
            raise InputError(
                "Ballots of two hops repeat what neighbours say, which an attacker of --threat all-pairs can change; leave it out, or use "
                "--model ballots --voters features, or hashed:gcn."
            )
        if self.model == LABELS and self.threat == "inject":
            raise InputError(
                "Label ballots repeat what neighbours say, and fake nodes can be anybody's neighbours; against them use "
                "--model ballots --voters features."
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
        for name, least in (("attack_size", 1), ("groups", 2)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise InputError(
                    f"--{name.replace('_', '-')} must be {least} or more, not {getattr(self, name)}."
                )

    @property
    def distils(self) -> bool:
        """Whether a teacher is at hand that the floor could share: ballot networks find their own."""
        return False

    @property
    def hashed(self) -> bool:
        """Whether groups of edges vote."""
        return self.model.startswith(HASHED)

    @property
    def _repeats(self) -> bool:
        """Whether voters say what their own neighbours say."""
        return self.model == LABELS or (self.model == TRAINED and self.voters != "features")

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
    certs, record = _proved(words, plan, positive)
    if plan.positive is not None and positive is None:
        tell_flagged(certs, plan.positive)
    return certs, record


def _proved(words: dict[str, Any], plan: ProvePlan, positive: int | None) -> tuple[Certified, Record]:
    """The proofs and their record, from the store where it holds them."""
    store: Path | None = words["store"]
    if store is not None and (kept := _kept(store, plan)) is not None:
        note(f"The proofs are in {store} already.")
        tell_judged(kept[0].training)
        return kept[1], replace(kept[0], positive=positive)
    model = make_model(plan)
    if plan.precision is not None:
        tell_judged(judged_in_words(model))
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
        if (
            store.is_dir()
        ):  # should this end halfway, the new record must not stand beside proofs that were there before
            (store / CERTIFICATES).unlink(missing_ok=True)
        write_record(store, record)
        keep_weights(store, model)
        certs.save(store / CERTIFICATES)
    return certs, record


def proved_by_name(model: Any) -> bool:
    """Whether a model of this name is proved, not asked under noise."""
    return model in (LABELS, TRAINED) or str(model).startswith(HASHED)


def prove_asked(words: dict[str, Any], store: Path | None = None) -> tuple[Certified, Record]:
    """Prove what words of another command ask for, which know nothing of how models are proved; without a floor."""
    shared = ("dataset", "edges", "features", "labels", "nodes", "threat", "model", "protocol", "seed")
    more = dict.fromkeys(("voters", "attack_size", "precision", "groups", "positive"))
    asked = {name: words[name] for name in shared}
    return prove_words({**asked, **more, "device": "cpu", "store": store, "floor": False})


def make_plan(words: dict[str, Any]) -> ProvePlan:
    """Check every word and read the data; nothing slow has happened yet when this refuses."""
    check_place(words["store"], never=SETTINGS)
    device = read_device(words["device"])
    data, parts = read_dataset(
        words["dataset"], words["edges"], words["features"], words["labels"], words["seed"],
        nodes=words["nodes"],
    )  # fmt: skip
    unseen = NO_EFFECT if words["precision"] is None else tuple(set(NO_EFFECT) - {"positive"})
    shown = [
        (name, value)
        for name, value in words.items()
        if name not in unseen and (name in ("model", "seed") or value != USUAL.get(name))
    ]
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
    if before.other_maker is not None:  # which may have proved something else
        note(
            f"The proofs in {store} were made by {before.other_maker}; this is unswayed {__version__}, which proves again."
        )
        return None
    record, found = open_run(store)
    return record, record.certify(found)


def _learnt(plan: ProvePlan, model: Any) -> dict[str, Any]:
    """What is told of a training that has taken place."""
    if plan.model != TRAINED and not plan.hashed:
        return {}
    return threads_told(model) | ({} if plan.precision is None else judged_in_words(model))


def _record(plan: ProvePlan, floor: "Floor | None", model: Any) -> Record:
    """What is remembered of this proof; it has no samples and no alpha."""
    data = plan.dataset
    return Record(
        title=f"{plan.model} on {data.name}",
        command=plan.command,
        training=plan.training | _learnt(plan, model),
        samples=0,
        alpha=0.0,
        bounds="exact",
        family=True,
        names=plan.targets.names,
        truth=tuple(plan.targets.truth.tolist()),
        class_names=data.class_names,
        floor=None if floor is None else floor.accuracy,
        floor_name=None if floor is None else floor.name,
        finished=True,
        graph=sketches(data, plan.targets),
    )
