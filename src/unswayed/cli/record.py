"""What a stored run remembers beside its votes, so that reports and explanations need neither model nor dataset."""

import io
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from unswayed._version import __version__
from unswayed.certificates import Certified, certify, certify_top
from unswayed.cli.common import check_store, note, warn
from unswayed.cli.sketching import Sketch, arrays_of, read_graph
from unswayed.errors import InputError, StoreError, WorldError
from unswayed.files import write_atomically
from unswayed.naming import in_words
from unswayed.report.summary import Summary, summarise
from unswayed.store import CERTIFICATES, load
from unswayed.votes import Votes

RECORD, GRAPH, WEIGHTS = "run.json", "graph.npz", "weights.safetensors"
LOOKED = (
    "choosing {names} after looking at a result spends the confidence, unless it was decided on beforehand: "
    "of several levels that were tried, only the one fixed before the first look holds as stated"
)
AGAIN = (
    "This store was certified before, at {} samples. Changing the number after seeing the result voids the confidence, unless you had "
    "decided on it beforehand; --bounds anytime stays valid."
)
FORMAT = 1
EARLIER = "(an earlier version)"


@dataclass(frozen=True)
class Record:
    """A run in words: how it was trained and asked, what is true, and how to do it again. JSON-ready but for `graph`."""

    title: str
    command: str
    training: Mapping[str, Any]
    samples: int
    alpha: float
    bounds: str
    family: bool
    names: tuple[str, ...]
    truth: tuple[int, ...]
    class_names: tuple[str, ...] | None = None
    floor: float | None = None
    floor_name: str | None = None
    finished: bool = False
    top: int | None = None
    rivals: str = "all"
    positive: int | None = None
    base: float | None = None  # the accuracy of the model itself, not smoothed, not attacked
    sees: dict[str, Any] | None = (
        None  # how far the model can see, where that is known: `sampling.fields.Sight`
    )
    version: str | None = __version__  # of the package that made the run; None where nobody knows
    graph: Sketch | tuple[Sketch, ...] | None = field(default=None, compare=False)

    @property
    def other_maker(self) -> str | None:
        """The other version of the package that made the run; None where it was this one, or nobody knows."""
        return None if self.version in (None, __version__) else f"unswayed {self.version}"

    @property
    def again(self) -> str:
        """The command that shows all of this again: with the label that should stay flagged, which changes no certificate."""
        if self.positive is None or " --positive " in self.command:
            return self.command
        named = str(self.positive) if self.class_names is None else self.class_names[self.positive]
        return f"{self.command} --positive {shlex.quote(named)}"

    def certify(self, found: Votes | Certified) -> Certified:
        """The certificates of these votes at the recorded confidence; certificates are what they are."""
        if isinstance(found, Certified):
            return found
        level = {"alpha": self.alpha, "bounds": self.bounds, "family": self.family}
        return certify_as(found, self.top, self.rivals, **level)

    def summarise(self, certs: Certified) -> Summary:
        """The facts of a report; a label of −1 means unknown, and where all are unknown there is no truth."""
        if len(self.names) != len(certs):
            raise StoreError(f"The record names {len(self.names)} targets but the votes have {len(certs)}.")
        known, classes = any(label >= 0 for label in self.truth), self.class_names or ()
        flagged = self.positive if self.positive is None or not classes else classes[self.positive]
        alike = known and certs.places == 1  # what is said of one answer can be held against these
        return summarise(
            certs,
            data=self.graph,
            truth=in_words(np.array(self.truth), classes) if known else None,  # a number may be a name
            floor=None
            if self.floor is None or not alike
            else _Floor(self.floor, self.floor_name or "structure-free model"),
            command=self.again,
            title=self.title,
            names=None
            if self.names == tuple(map(certs.about.target_name, range(len(certs))))
            else self.names,
            class_names=self.class_names,
            positive=flagged if alike else None,
            base=self.base if alike else None,
            settings={name.capitalize(): value for name, value in self._told().items() if value is not None},
        )

    def _told(self) -> dict[str, Any]:
        """How the run came about; by whom, where that was another version than the one that shows it."""
        return {**self.training, "stored by": self.other_maker}


def certify_as(votes: Votes, top: int | None, rivals: str, **level: Any) -> Certified:
    """The usual certificates, or with `top` those of staying among the so many most probable."""
    return certify(votes, rivals=rivals, **level) if top is None else certify_top(votes, top, **level)


@dataclass(frozen=True)
class _Floor:
    accuracy: float
    name: str


_threads: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def tell_threads(model: Any, words: str) -> Any:
    """The model, once it is said and kept with how many threads it was trained."""
    note(f"Trained with {words.partition(';')[0]}.")
    _threads[model] = words
    return model


def threads_told(model: Any, store: Path | None = None) -> dict[str, str]:
    """With how many threads the model was trained, now or when its weights came into the store."""
    before = None if model in _threads or store is None else read_record(store)
    told = _threads.get(model) if before is None else before.training.get("threads")
    return {} if told is None else {"threads": told}


def check_place(store: Path | None, never: str) -> None:
    """Refuse a place for a store that is none, or that holds this file of the other kind, which a report would mix up."""
    check_store(store)
    if store is not None and (store / never).exists():
        what = "proofs" if never == CERTIFICATES else "votes"
        raise StoreError(f"The store {store} holds {what} already; use a new folder for this run.")


def write_record(folder: Path, record: Record) -> None:
    """Keep the record in the folder of a run, atomically."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError(f"--store must be a folder, and {folder} is a file.") from error
    except OSError as error:
        raise WorldError(f"The store {folder} could not be created: {error.strerror or error}.") from error
    words = {name: value for name, value in asdict(record).items() if name != "graph"}
    write_atomically(folder / RECORD, json.dumps({"format": FORMAT, **words}, indent=2).encode() + b"\n")
    if record.graph is not None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays_of(record.graph))
        write_atomically(folder / GRAPH, buffer.getvalue())


def read_record(folder: str | os.PathLike[str]) -> Record | None:
    """The record of a stored run; None where the run was made from Python and has none."""
    path = Path(folder) / RECORD
    if not path.exists():
        return None
    try:
        words = json.loads(path.read_bytes())
        if words.pop("format") != FORMAT:
            raise StoreError(f"{path} was written by another version; certify again into a new folder.")
        for name in ("top", "positive", "base", "sees"):  # runs from before they could be asked for
            words.setdefault(name, None)
        words.setdefault("rivals", "all")
        words.setdefault("version", EARLIER)
        for name in ("names", "truth", "class_names"):
            words[name] = tuple(words[name]) if words[name] is not None else None
        if not _well_formed(words):
            raise StoreError(f"{path} is damaged; delete it and run the same certify command again.")
        return Record(**words, graph=read_graph(Path(folder) / GRAPH))
    except OSError as error:
        raise WorldError(f"{path} could not be read: {error.strerror or error}.") from error
    except StoreError:
        raise
    except Exception as error:  # a damaged file can fail anywhere
        raise StoreError(f"{path} is damaged; delete it and run the same certify command again.") from error


KINDS = {
    "title": str, "command": str, "training": dict, "samples": int, "alpha": float, "bounds": str, "family": bool,
    "names": tuple, "truth": tuple, "class_names": tuple | None, "floor": float | None, "floor_name": str | None,
    "finished": bool, "top": int | None, "rivals": str, "positive": int | None, "base": float | None,
    "sees": dict | None, "version": str | None,
}  # fmt: skip

SIGHT = {"layers": int, "degrees": bool}


def _well_formed(words: dict[str, Any]) -> bool:
    """Whether every field has its own type, down to the members of lists: what is shown later relies on it."""
    members = ((words["names"], str), (words["truth"], int), (words["class_names"] or (), str))
    classes = len(words["class_names"] or ()) or None  # where they have no names they are not counted here
    return (
        all(isinstance(words[name], kind) for name, kind in KINDS.items())
        and (classes is None or max(*words["truth"], words["positive"] or 0, 0) < classes)
        and (words["positive"] is None or words["positive"] >= 0)
        and all(isinstance(item, kind) for many, kind in members for item in many)
        and (words["sees"] is None or {name: type(value) for name, value in words["sees"].items()} == SIGHT)
    )


def open_run(path: Path) -> tuple[Record, Votes | Certified]:
    """The record of a run, or of a file of votes or certificates, and what was counted or proven in it."""
    if not path.exists():
        raise StoreError(f"There is no store {path}; make one with: unswayed certify … --store {path}.")
    found: Votes | Certified = load(path)
    record = (read_record(path) if path.is_dir() else None) or _unrecorded(path, found)
    if isinstance(found, Certified) and record.other_maker is not None:
        note(f"These proofs were made by {record.other_maker}; this is unswayed {__version__}.")
    drawn = int(found.samples.max()) if isinstance(found, Votes) else 0
    if record.finished and drawn > record.samples and record.bounds != "anytime":
        warn(f"This store holds {drawn:,} samples, all of which count here. {AGAIN.format(record.samples)}")
    return record, found


def _unrecorded(path: Path, found: Votes | Certified) -> Record:
    """What is known of a run that was made from Python."""
    adaptive = isinstance(found, Votes) and found.adaptive
    names = found.about.target_names if isinstance(found, Certified) else ()
    return Record(
        title=f"Certified robustness: {path.name}", command=f"unswayed report {path}", training={}, samples=0,
        alpha=0.001, bounds="anytime" if adaptive else "strict", family=False,
        names=names or tuple(str(target) for target in found.targets), truth=(-1,) * len(found), version=None,
    )  # fmt: skip


def keep_weights(store: Path, model: Any) -> None:
    """Write a torch module's state into the folder of a run."""
    from safetensors.torch import save
    from torch import nn

    if isinstance(model, nn.Module):
        state = {
            name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()
        }
        write_atomically(store / WEIGHTS, save(state))


def warn_of_second_look(store: Path, asked: Any) -> None:
    """Warn where a store that was certified before is certified otherwise: by more or fewer samples, or at another level."""
    before = read_record(store)
    if before is None or not before.finished:
        return
    if before.samples != asked.samples and asked.bounds != "anytime":
        warn(AGAIN.format(before.samples))
    levels = ("alpha", "bounds", "family", "rivals", "top")
    if other := [name for name in levels if getattr(before, name) != getattr(asked, name)]:
        said = LOOKED.format(names=" and ".join(other))
        warn(f"This store was certified before; {said}.")
