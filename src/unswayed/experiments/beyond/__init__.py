"""Whole graphs under asymmetric noise: train, poll every test node at several levels, and keep the counts.

    python -m unswayed.experiments.beyond --runs DIR --device cuda                  (does the work alone)
    unswayed reproduce beyond --seeds 5 --runs DIR --out docs/results               (and writes tables, rows and plots)

The work needs numpy, scipy, torch and torch_geometric alone; certifying what was polled comes later.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unswayed.experiments import kept_results
from unswayed.experiments.kept_results import Result as Kept
from unswayed.experiments.kept_results import Work, arguments, check_names, preparing, read_all, settings
from unswayed.theory.noise import AddDelete

COMMAND = "unswayed reproduce beyond"
SAMPLES = 10_000
# (p_add, p_delete): the more is deleted and added, the larger the attack that can be ruled out
LEVELS = {
    "cora": ((1e-3, 0.6), (1e-3, 0.8), (1e-4, 0.95), (3e-3, 0.9), (1e-2, 0.9)),
    "citeseer": ((1e-3, 0.6), (1e-3, 0.8), (1e-4, 0.95), (3e-3, 0.9), (1e-2, 0.9)),
    "pubmed": ((1e-4, 0.8), (1e-3, 0.9)),
}
LABELS = (20, 50)  # known labels of each class
PROTOCOLS = ("transductive", "inductive")


@dataclass(frozen=True)
class Case(kept_results.Case):
    """One training: everything that decides the weights."""

    folder: ClassVar[str] = "beyond"
    dataset: str
    per_class: int
    seed: int
    protocol: str = "transductive"
    model: str = "sage"

    @property
    def noises(self) -> list[AddDelete]:
        """The levels it is trained under and polled with."""
        return [AddDelete(p_add=a, p_delete=r) for a, r in LEVELS[self.dataset]]

    @property
    def words(self) -> str:
        """The case for people."""
        return f"{self.dataset}, {self.per_class} labels a class, {self.protocol}, split {self.seed}"

    @property
    def name(self) -> str:
        """Model, labels, protocol and split."""
        return f"{self.model}-{self.per_class}-{self.protocol}-{self.seed}"


Result = Kept[Case]


def cases(
    seeds: Collection[int],
    datasets: Collection[str] | None = None,
    protocols: Collection[str] = PROTOCOLS,
    labels: Collection[int] = LABELS,
) -> Iterator[Case]:
    """Seeds outermost, so that an interrupted run has all settings for fewer seeds; PubMed with the fewest labels alone."""
    check_names("dataset", datasets, LEVELS)
    check_names("protocol", protocols, PROTOCOLS)
    for seed in seeds:
        for protocol in protocols:
            for name in LEVELS if datasets is None else datasets:
                for per_class in LABELS[:1] if name == "pubmed" else LABELS:
                    if per_class in labels:
                        yield Case(name, per_class, seed, protocol)


def _worker(device: str, samples: int) -> Work[Case]:
    from unswayed.experiments.beyond.work import work

    return lambda case: work(case, samples, device)


prepare = preparing(COMMAND, _worker, SAMPLES)


def results(runs: Path) -> list[Result]:
    """Everything that was kept, in one order."""
    return read_all(runs / "beyond", Case)


def main(argv: list[str] | None = None) -> None:
    """Do the work of this experiment; no certificate, no table."""
    parser = arguments("unswayed.experiments.beyond", main.__doc__, range(5))
    parser.add_argument("--datasets", nargs="+", default=list(LEVELS))
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--labels", type=int, nargs="+", default=list(LABELS), help="known labels a class")
    told = parser.parse_args(argv)
    prepare(cases(told.seeds, told.datasets, told.protocols, told.labels), **settings(told))
