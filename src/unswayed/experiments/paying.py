"""Where certificates pay: every graph, protocol and split, by every method, each result kept as it comes.

    python -m unswayed.experiments.paying --runs DIR --seeds 5 --device cuda        (does the work alone)
    unswayed reproduce paying --seeds 5 --runs DIR --out docs/results               (and writes page, rows and figure)

The work needs numpy, scipy, torch and torch_geometric alone; certifying what was polled comes later.
"""

import argparse
import io
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.files import write_atomically

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Say = Callable[[str], None]

DATASETS = (
    "highschool",
    "amherst41",
    "cornell5",
    "polblogs",
    "emaileucore",
    "photo",
    "computers",
    "cora",
    "citeseer",
    "pubmed",
)
PROTOCOLS = ("inductive", "transductive")
METHODS = ("floors", "label ballots", "trained", "hashed", "smoothed")
FREE_OF_PROTOCOL = (
    "floors",
    "label ballots",
)  # nothing is learnt, or both protocols are in one result: kept once
COMMAND = "unswayed reproduce paying"


@dataclass(frozen=True)
class Case:
    """One result: everything that decides it."""

    dataset: str
    protocol: str
    seed: int
    method: str

    def path(self, runs: Path) -> Path:
        """Where it is kept."""
        return (
            runs
            / "paying"
            / self.dataset
            / f"{self.protocol}-{self.seed}-{self.method.replace(' ', '-')}.npz"
        )


@dataclass(frozen=True, eq=False)
class Result:
    """What a method left: arrays over the test targets, and facts in words and numbers."""

    case: Case
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
    def read(cls, path: Path) -> "Result":
        """What was kept."""
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files if name != "facts"}
            facts: Facts = json.loads(str(kept["facts"]))
        return cls(Case(**facts.pop("case")), arrays, facts)


def cases(
    seeds: Collection[int],
    datasets: Collection[str] = DATASETS,
    protocols: Collection[str] = PROTOCOLS,
    methods: Collection[str] = METHODS,
) -> Iterator[Case]:
    """Every result wanted, seeds outermost, so that an interrupted run has every graph for fewer splits."""
    for given, known, what in (
        (datasets, DATASETS, "dataset"),
        (protocols, PROTOCOLS, "protocol"),
        (methods, METHODS, "method"),
    ):
        if unknown := [name for name in given if name not in known]:
            raise InputError(
                f"This experiment knows no {what} {unknown[0]!r}; choose from {', '.join(known)}."
            )
    for seed in seeds:
        for dataset in (name for name in DATASETS if name in datasets):
            for protocol in (name for name in PROTOCOLS if name in protocols):
                for method in (name for name in METHODS if name in methods):
                    if method not in FREE_OF_PROTOCOL or protocol == PROTOCOLS[0]:
                        yield Case(dataset, protocol, seed, method)


def prepare(
    wanted: Iterator[Case],
    *,
    runs: Path,
    device: str = "cpu",
    samples: int = 10_000,
    stop_after: float = float("inf"),
    say: Say = print,
) -> int:
    """Do what is missing and keep it; how many results are still missing (those begun too late, or not possible)."""
    from unswayed.experiments.paying_methods import METHOD_OF, Bench
    from unswayed.experiments.runs import commit, device_name

    listed, begin, left = list(wanted), time.perf_counter(), 0
    bench: Bench | None = None
    for number, case in enumerate(listed, 1):
        if case.path(runs).exists():
            continue
        if time.perf_counter() - begin > stop_after:
            left += 1
            continue
        if bench is None or not bench.serves(case):
            bench = Bench.of(case, device=device, samples=samples)
        started = time.perf_counter()
        arrays, facts = METHOD_OF[case.method](bench)
        seconds = time.perf_counter() - started
        machine = {"device": device_name(device), "commit": commit(), "command": COMMAND}
        Result(case, {**bench.common(), **arrays}, {**facts, **machine, "seconds": seconds}).write(runs)
        say(
            f"[{number} of {len(listed)}] {case.dataset}, {case.protocol}, split {case.seed}, {case.method}: "
            f"{_summary(arrays, bench.common())} ({seconds:.1f} s)"
        )
    if left:
        say(f"Out of time: {left} results are left for another run.")
    return left


def _summary(arrays: Mapping[str, npt.NDArray[Any]], common: Arrays) -> str:
    """The first figure of a result, for the line that says it is there."""
    if "any" not in arrays:
        return "kept"
    right = arrays["label"] == common["truth"]
    return ", ".join(f"{k}: {np.mean(right & (arrays['any'] >= k)):.3f}" for k in (0, 5, 10))


def results(runs: Path) -> list[Result]:
    """Everything that was kept, in one order."""
    return [Result.read(path) for path in sorted((runs / "paying").glob("*/*.npz"))]


def main(argv: list[str] | None = None) -> None:
    """Do the work of this experiment; no certificate of polled votes, no page."""
    parser = argparse.ArgumentParser(prog="python -m unswayed.experiments.paying", description=main.__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="which splits")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument(
        "--stop-after", type=float, default=float("inf"), help="begin nothing new after these seconds"
    )
    told = parser.parse_args(argv)
    prepare(
        cases(told.seeds, told.datasets, told.protocols, told.methods),
        runs=told.runs,
        device=told.device,
        samples=told.samples,
        stop_after=told.stop_after,
        say=lambda words: print(words, flush=True),
    )


if __name__ == "__main__":
    main()
