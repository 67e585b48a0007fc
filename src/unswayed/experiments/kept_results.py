"""Results that are kept one by one as they come, so that work can stop at any moment and go on where it was.

A case says everything that decides one result and where that is kept; a result is arrays over targets and facts in words
and numbers. Needs numpy alone until there is work to do.
"""

import argparse
import io
import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.files import write_atomically

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Say = Callable[[str], None]


class Case:
    """Everything that decides one result: subclasses are frozen dataclasses of plain values, and name their folder."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    folder: ClassVar[str]
    dataset: str
    protocol: str
    seed: int

    @property
    def words(self) -> str:
        """The case for people."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Of the file that keeps its result, among those of the same graph."""
        raise NotImplementedError

    def path(self, runs: Path) -> Path:
        """Where its result is kept."""
        return runs / self.folder / self.dataset / f"{self.name}.npz"


class MethodCase(Case):
    """One method on one split."""

    method: str

    @property
    def name(self) -> str:
        """Protocol, split and method."""
        return f"{self.protocol}-{self.seed}-{self.method.replace(' ', '-')}"


C = TypeVar("C", bound=Case)
Work = Callable[[C], tuple[Arrays, Facts]]


@dataclass(frozen=True, eq=False)
class Result(Generic[C]):
    """What the work on a case left."""

    case: C
    arrays: Arrays
    facts: Facts

    def write(self, runs: Path) -> None:
        """Keep it, whole or not at all."""
        path = self.case.path(runs)
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer, told = io.BytesIO(), json.dumps({"case": asdict(self.case), **self.facts})
        np.savez_compressed(buffer, facts=np.array(told), **self.arrays)  # type: ignore[arg-type]
        write_atomically(path, buffer.getvalue())

    @classmethod
    def read(cls, path: Path, kind: type[C]) -> Self:
        """What was kept of a case of this kind."""
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files if name != "facts"}
            facts: Facts = json.loads(str(kept["facts"]))
        return cls(kind(**facts.pop("case")), arrays, facts)


def read_all(folder: Path, kind: type[C]) -> list[Result[C]]:
    """Everything that was kept in a folder, in one order."""
    return [Result.read(path, kind) for path in sorted(folder.glob("*/*.npz"))]


def complete(
    wanted: Iterable[C],
    work: Work[C],
    *,
    runs: Path,
    device: str,
    command: str,
    stop_after: float = float("inf"),
    say: Say = print,
) -> int:
    """Do what is missing and keep it; how many results are still missing, because they would have begun too late."""
    from unswayed.experiments.runs import commit, device_name

    listed, begin, left = list(wanted), time.perf_counter(), 0
    for number, case in enumerate(listed, 1):
        if case.path(runs).exists():
            continue
        if time.perf_counter() - begin > stop_after:
            left += 1
            continue
        arrays, facts = work(case)
        machine = {"device": device_name(device), "commit": commit(), "command": command}
        Result(case, arrays, {**facts, **machine}).write(runs)
        say(f"[{number} of {len(listed)}] {case.words}: {summary(arrays)} ({facts['seconds']:.1f} s)")
    if left:
        say(f"Out of time: {left} results are left for another run.")
    return left


def preparing(command: str, worker: Callable[[str, int], Work[C]], usual: int = 10_000) -> Callable[..., int]:
    """An experiment's `prepare`; `worker` makes what works on a case, from a device and a number of samples."""

    def prepare(
        wanted: Iterable[C],
        *,
        runs: Path,
        device: str = "cpu",
        samples: int = usual,
        stop_after: float = float("inf"),
        say: Say = print,
    ) -> int:
        """Do what is missing and keep it; how many results are still missing."""
        how: dict[str, Any] = {"runs": runs, "device": device, "command": command, "stop_after": stop_after}
        return complete(wanted, worker(device, samples), say=say, **how)

    return prepare


def tried(method: Callable[[Any], tuple[Arrays, Facts]], bench: Any) -> tuple[Arrays, Facts]:
    """What a method found on a bench, with what all methods keep, and the seconds that it took."""
    started = time.perf_counter()
    arrays, facts = method(bench)
    return {**bench.common(), **arrays}, {**facts, "seconds": time.perf_counter() - started}


def check_names(what: str, given: Iterable[str] | None, known: Collection[str]) -> None:
    """Refuse a name that an experiment does not know."""
    if unknown := [name for name in given or () if name not in known]:
        raise InputError(f"This experiment knows no {what} {unknown[0]!r}; choose from {', '.join(known)}.")


def summary(arrays: Arrays) -> str:
    """The first figures of a result, for the line that says it is there."""
    if "any" not in arrays:
        return "kept"
    right = arrays["label"] == arrays["truth"]
    return ", ".join(f"{k}: {np.mean(right & (arrays['any'] >= k)):.3f}" for k in (0, 5, 10))


def arguments(module: str, what: str | None, seeds: Sequence[int]) -> argparse.ArgumentParser:
    """The command line of work alone, for a machine that has neither plots nor our own command."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=what)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds), help="which splits")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument(
        "--stop-after", type=float, default=float("inf"), help="begin nothing new after these seconds"
    )
    return parser


def settings(told: argparse.Namespace) -> dict[str, Any]:
    """How the work is to be done, as `arguments` read it; every line is said at once, also into a pipe."""
    names = ("runs", "device", "samples", "stop_after")
    return {**{name: getattr(told, name) for name in names}, "say": _aloud}


def _aloud(words: str) -> None:
    print(words, flush=True)
