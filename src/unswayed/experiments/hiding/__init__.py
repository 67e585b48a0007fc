"""Noise that only hides beside exact proofs: links added on Photo, fake nodes on three graphs; each result kept as it comes.

    python -m unswayed.experiments.hiding --runs DIR --seeds 0 1 2 --device cuda    (does the work alone)
    unswayed reproduce hiding --seeds 3 --runs DIR --out docs/results               (and writes rows and page)

The work needs numpy, scipy, torch and torch_geometric alone; certifying what was polled comes later.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unswayed.experiments.kept_results import (
    Arrays,
    Facts,
    MethodCase,
    Work,
    arguments,
    check_names,
    preparing,
    read_all,
    settings,
    tried,
)
from unswayed.experiments.kept_results import Result as Kept

# Each kind of proof twice: of what known labels say, without any training, and of what one teacher taught
LINKS = (  # against links that are added
    *("label floor", "keep labels", "delete labels", "hash labels", "label ballots"),
    *("floors", "keep", "delete", "hashed", "ballots", "snapshot ballots"),
)
FAKES = (  # against fake nodes
    *("label floor", "hide labels", "label votes"),
    *("floors", "hide", "hashed by nodes", "snapshot votes"),
)
UNTRAINED = (*LINKS[:5], *FAKES[:3])
SHARED = "deletions"  # by one attacker, of edges of the whole graph
METHODS = {"photo": LINKS, "cora": (*FAKES, SHARED), "citeseer": FAKES, "amherst41": FAKES}
COMMAND = "unswayed reproduce hiding"


@dataclass(frozen=True)
class Case(MethodCase):
    """One result: everything that decides it."""

    folder: ClassVar[str] = "hiding"
    dataset: str
    seed: int
    method: str
    protocol: str = "inductive"

    @property
    def words(self) -> str:
        """The case for people."""
        return f"{self.dataset}, split {self.seed}, {self.method}"


Result = Kept[Case]


def cases(
    seeds: Collection[int], datasets: Collection[str] | None = None, methods: Collection[str] | None = None
) -> Iterator[Case]:
    """Every result wanted, seeds outermost, so that an interrupted run has every graph for fewer splits."""
    every = sorted({method for own in METHODS.values() for method in own})
    check_names("dataset", datasets, METHODS)
    check_names("method", methods, every)
    for seed in seeds:
        for dataset, own in METHODS.items():
            if datasets is None or dataset in datasets:
                wanted = own if methods is None else [method for method in own if method in methods]
                yield from (Case(dataset, seed, method) for method in wanted)


def _worker(device: str, samples: int) -> Work[Case]:
    from unswayed.experiments.hiding.bench import Bench
    from unswayed.experiments.hiding.methods import METHOD_OF

    benches: dict[tuple[str, int], Bench] = {}

    def work(case: Case) -> tuple[Arrays, Facts]:
        place = case.dataset, case.seed
        if place not in benches:
            benches.clear()
            benches[place] = Bench.of(case, device, samples)
        return tried(METHOD_OF[case.method], benches[place])

    return work


prepare = preparing(COMMAND, _worker)


def results(runs: Path) -> list[Result]:
    """Everything that was kept, in one order."""
    return read_all(runs / "hiding", Case)


def main(argv: list[str] | None = None) -> None:
    """Do the work of this experiment; no certificate of polled votes, no page."""
    parser = arguments("unswayed.experiments.hiding", main.__doc__, range(3))
    parser.add_argument("--datasets", nargs="+", default=list(METHODS))
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument(
        "--untrained", action="store_true", help="only what needs no training but the floor's"
    )
    told = parser.parse_args(argv)
    methods = UNTRAINED if told.untrained else told.methods
    prepare(cases(told.seeds, told.datasets, methods), **settings(told))
