"""Where certificates pay: every graph, protocol and split, by every method, each result kept as it comes.

    python -m unswayed.experiments.paying --runs DIR --seeds 5 --device cuda        (does the work alone)
    unswayed reproduce paying --seeds 5 --runs DIR --out docs/results               (and writes page, rows and figure)

The work needs numpy, scipy, torch and torch_geometric alone; certifying what was polled comes later.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from unswayed.datasets.catalog import entry
from unswayed.experiments.kept_results import (
    Arrays,
    Facts,
    MethodCase,
    arguments,
    check_names,
    preparing,
    read_all,
    settings,
    tried,
)
from unswayed.experiments.kept_results import Result as Kept

if TYPE_CHECKING:
    from unswayed.experiments.paying.bench import Bench

DATASETS = (
    "highschool",
    "primaryschool",
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
GRAPHS = ("mutag", "proteins", "nci1", "imdb-binary")  # many small graphs, whose pairs of nodes vote
FLAGGED = ("tolokers",)  # one label is rare and matters: nodes that are to stay flagged
EVERY = (*DATASETS, *GRAPHS, *FLAGGED)
PROTOCOLS = ("inductive", "transductive")
METHODS = ("floors", "label ballots", "trained", "hashed", "smoothed")
# label ballots again, of labels drawn whatever their classes, in a table of its own
DRAWN = "drawn at random"
LIMIT = "every label told"  # and of labels that nobody could know: what the links themselves allow
FORETOLD = "foretold"  # what `prospect` expects, by labelled nodes alone
TIES_LOST, TRAINING_ALONE = STRICTER = ("ties are lost", "and training labels alone speak")
METHODS_OF = dict.fromkeys(GRAPHS, ("floors", "pairs")) | dict.fromkeys(FLAGGED, ("flags",))
COMMAND = "unswayed reproduce paying"


@dataclass(frozen=True)
class Case(MethodCase):
    """One result: everything that decides it."""

    folder: ClassVar[str] = "paying"
    dataset: str
    protocol: str
    seed: int
    method: str

    @property
    def words(self) -> str:
        """The case for people."""
        return f"{self.dataset}, {self.protocol}, split {self.seed}, {self.method}"


Result = Kept[Case]


def free_of_protocol(dataset: str, method: str) -> bool:
    """Whether nothing is learnt, or both protocols are in one result, or test graphs are strangers anyway: kept once."""
    learns = method in ("trained", "flags") or (
        method in ("hashed", "smoothed") and entry(dataset).features > 0
    )
    return not learns


def methods_of(dataset: str) -> tuple[str, ...]:
    """What is done with a dataset; labels are drawn anew where a share of them is known."""
    usual = (
        (*METHODS, LIMIT, FORETOLD) if entry(dataset).labelled is None else (*METHODS, LIMIT, FORETOLD, DRAWN)
    )
    return METHODS_OF.get(dataset, usual)


def cases(
    seeds: Collection[int],
    datasets: Collection[str] = EVERY,
    protocols: Collection[str] = PROTOCOLS,
    methods: Collection[str] | None = None,
) -> Iterator[Case]:
    """Every result wanted, seeds outermost, so that an interrupted run has every graph for fewer splits."""
    check_names("dataset", datasets, EVERY)
    check_names("protocol", protocols, PROTOCOLS)
    check_names("method", methods, (*METHODS, LIMIT, FORETOLD, DRAWN, "pairs", "flags"))
    for seed in seeds:
        for dataset in (name for name in EVERY if name in datasets):
            for protocol in (name for name in PROTOCOLS if name in protocols):
                for method in methods_of(dataset):
                    if methods is not None and method not in methods:
                        continue
                    if protocol == PROTOCOLS[0] or not free_of_protocol(dataset, method):
                        yield Case(dataset, protocol, seed, method)


class _Work:
    """Does a case by its method; what one graph and split need is made once for neighbouring cases."""

    def __init__(self, device: str, samples: int) -> None:
        self.device, self.samples = device, samples
        self.bench: Bench | None = None

    def __call__(self, case: Case) -> tuple[Arrays, Facts]:
        from unswayed.experiments.paying.bench import Bench
        from unswayed.experiments.paying.methods import METHOD_OF

        if self.bench is None or not self.bench.serves(case):
            self.bench = Bench.of(case, device=self.device, samples=self.samples)
        self.bench = self.bench.for_case(case)
        return tried(METHOD_OF[case.method], self.bench)


prepare = preparing(COMMAND, _Work)


def results(runs: Path) -> list[Result]:
    """Everything that was kept, in one order."""
    return read_all(runs / "paying", Case)


def main(argv: list[str] | None = None) -> None:
    """Do the work of this experiment; no certificate of polled votes, no page."""
    parser = arguments("unswayed.experiments.paying", main.__doc__, range(5))
    parser.add_argument("--datasets", nargs="+", default=list(EVERY))
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--methods", nargs="+", default=None)
    told = parser.parse_args(argv)
    prepare(cases(told.seeds, told.datasets, told.protocols, told.methods), **settings(told))
