"""A run on disk: one folder with settings.json and votes.npz, whole at every moment.

Both files are written beside and renamed over the old ones, so a crash, a kill or a copy taken while running finds complete
files; at worst the votes of the last blocks are missing and are drawn again.
"""

import json
import os
from pathlib import Path
from typing import Any

from unswayed.certificates.files import read
from unswayed.errors import InputError, StoreError, WorldError
from unswayed.files import write_atomically
from unswayed.notes import wordless
from unswayed.theory.noise import noise_from_dict
from unswayed.votes import Votes

FORMAT = 2
SETTINGS = "settings.json"
VOTES = "votes.npz"
CERTIFICATES = "certificates.npz"  # in place of votes, where nothing was drawn
REFUSED = "refused.json"  # why the votes counted first were refused; they are kept beside it
REFUSED_VOTES = "refused.npz"


class Store:
    """One stored run; opening it with other settings than it was made with is refused by name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._known: tuple[int, ...] | None = None  # which file of votes was read or written here last

    def open(self, settings: dict[str, Any]) -> None:
        """Create the folder for these settings, or check that it was made with the same ones."""
        settings = json.loads(json.dumps({"format": FORMAT, **settings}))
        if (self.path / SETTINGS).exists():
            if (unlike := difference(self.settings(), settings)) is not None:
                raise StoreError(
                    f"The store {self.path} was made with another {unlike}; use a new folder for this run."
                )
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"The store must be a folder, and {self.path} is, or lies in, a file."
            ) from error
        except OSError as error:
            raise WorldError(
                f"The store {self.path} could not be created: {error.strerror or error}."
            ) from error
        if (self.path / VOTES).exists():
            raise StoreError(f"The folder {self.path} holds votes without settings; it is no complete store.")
        write_atomically(
            self.path / SETTINGS, json.dumps(settings, indent=2, sort_keys=True).encode() + b"\n"
        )

    def _inside(self) -> str:
        """Which stores lie in this folder, where it is not one itself."""
        found = sorted(
            {file.parent.name for name in (SETTINGS, CERTIFICATES) for file in self.path.glob(f"*/{name}")}
        )
        return f"; there are stores in it: {', '.join(found[:5])}{', …' * (len(found) > 5)}" if found else ""

    def settings(self) -> dict[str, Any]:
        """What the run asks; refused where the file is damaged or missing."""
        path = self.path / SETTINGS
        try:
            settings = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise StoreError(f"{self.path} is no store: it has no {SETTINGS}{self._inside()}.") from error
        except OSError as error:
            raise WorldError(f"{path} could not be read: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:  # the latter where brackets nest too deeply
            raise StoreError(f"{path} is damaged: it is not JSON.") from error
        if not isinstance(settings, dict) or not isinstance(settings.get("format"), int):
            raise StoreError(f"{path} is not a settings file of ours.")
        if settings["format"] != FORMAT:
            raise StoreError(
                f"The store {self.path} was made by another version of unswayed, which may have counted other answers; "
                "use a new folder and poll again."
            )
        return settings

    def votes(self) -> Votes | None:
        """What has been counted so far; None before the first block."""
        self._known, path = self._file(), self.path / VOTES
        return Votes.load(path) if path.exists() else None

    def save(self, votes: Votes, *, force: bool = False) -> None:
        """Replace the stored votes, atomically; if another poll of the same question has stored more meanwhile, those stay."""
        if force or self._file() in (None, self._known) or not self._holds_more(votes):
            votes.save(self.path / VOTES)
            self._known = self._file()

    def _holds_more(self, votes: Votes) -> bool:
        try:
            stored = Votes.load(self.path / VOTES)
        except StoreError:  # damaged, or put aside just now
            return False
        more = int(stored.samples.sum()) > int(votes.samples.sum())
        return more and votes.difference(stored) is None

    def _file(self) -> tuple[int, ...] | None:
        """What tells one file of votes from the next; None where there is none."""
        try:
            found = (self.path / VOTES).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @property
    def refusal(self) -> str | None:
        """Why votes of this run were refused; None if they never were. What is counted now is counted the slow way."""
        path = self.path / REFUSED
        try:
            return str(json.loads(path.read_bytes())["why"]) if path.exists() else None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged: it does not say why votes were refused.") from error

    def refuse(self, why: str) -> None:
        """Put the stored votes aside and mark the store; a crash in between leaves a store that asks all of it again."""
        votes = self.path / VOTES
        if votes.exists():
            os.replace(votes, self.path / REFUSED_VOTES)
        write_atomically(self.path / REFUSED, json.dumps({"why": why}).encode() + b"\n")


SETTING_NAMES = {
    "model": "model",
    "noise": "noise",
    "threat": "threat",
    "seed": "seed",
    "classes": "number of classes",
}


def difference(stored: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """The first setting that differs, in words; None when all are equal."""
    stored, asked = wordless(stored), wordless(asked)
    for name in [*SETTING_NAMES, *sorted(set(stored) | set(asked))]:
        if stored.get(name) == asked.get(name):
            continue
        if name == "threat" and isinstance(stored.get(name), dict):
            return _threat_difference(stored[name], asked[name])
        words = _noise if name == "noise" else _short
        shown = f" ({words(stored.get(name))}, now {words(asked.get(name))})"
        return SETTING_NAMES.get(name, name) + shown
    return None


def _threat_difference(stored: dict[str, Any], asked: dict[str, Any]) -> str:
    if stored.get("kind") != asked.get("kind"):
        return f"threat ({stored.get('kind')}, now {asked.get('kind')})"
    words = {
        "targets": "list of targets",
        "number": "number of targets",
        "pairs": "list of pairs",
        "bits": "matrix of bits",
    }
    unlike = [key for key in asked if stored.get(key) != asked[key]]
    return words.get(unlike[0], unlike[0]) if unlike else "threat"


def _noise(value: Any) -> str:
    """A noise as it is typed."""
    try:
        return repr(noise_from_dict(value))
    except (InputError, TypeError, ValueError):  # of a file that says otherwise
        return _short(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        inner = {
            k: v[:8] if isinstance(v, str) and len(v) == 64 else v for k, v in value.items() if k != "covers"
        }
        return ", ".join(f"{key} {item}" for key, item in inner.items())
    return str(value)


def load(path: str | os.PathLike[str]) -> Any:
    """The votes or certificates in a file that `save` wrote, or in the folder of a stored run."""
    if (proven := Path(path) / CERTIFICATES).is_file():
        return read(proven)
    return load_votes(path) if Path(path).is_dir() else read(path)


def load_votes(path: str | os.PathLike[str]) -> Votes:
    """The votes in a vote file, or in the folder of a stored run."""
    if not Path(path).is_dir():
        return Votes.load(path)
    store = Store(path)
    store.settings()
    votes, refusal = store.votes(), store.refusal
    if votes is None and refusal is not None:
        raise StoreError(f"The votes in {path} were refused: {refusal}")
    if votes is None:
        raise StoreError(f"The store {path} has no votes yet.")
    return _prefix(votes, path)


def _prefix(votes: Votes, path: str | os.PathLike[str]) -> Votes:
    """The votes of sample numbers 0, 1, 2, … without a gap: which blocks of a run still going are done may be no accident."""
    whole = 0
    for start, stop in sorted(zip(votes.starts.tolist(), votes.stops.tolist(), strict=True)):
        if start > whole:
            break
        whole = stop
    if not whole:
        raise StoreError(f"The store {path} has no votes of its first samples yet.")
    return votes.first(whole)
