"""Whole graphs under asymmetric noise: train, poll every test node at several levels, and keep the counts.

    python -m unswayed.experiments.beyond --runs DIR --device cuda                  (does the work alone)
    unswayed reproduce beyond --seeds 5 --runs DIR --out docs/results               (and writes tables, rows and plots)

The work needs numpy, scipy, torch and torch_geometric alone; certifying what was polled comes later.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unswayed.errors import InputError
from unswayed.experiments.kept import Result as Kept
from unswayed.experiments.kept import Say, arguments, complete, read_all, settings
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
class Case:
    """One training: everything that decides the weights."""

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

    def path(self, runs: Path) -> Path:
        """Where its result is kept."""
        name = f"{self.model}-{self.per_class}-{self.protocol}-{self.seed}.npz"
        return runs / "beyond" / self.dataset / name


Result = Kept[Case]


def cases(
    seeds: Collection[int],
    datasets: Collection[str] | None = None,
    protocols: Collection[str] = PROTOCOLS,
) -> Iterator[Case]:
    """Seeds outermost, so that an interrupted run has all settings for fewer seeds; PubMed with the fewest labels alone."""
    for given, known, what in ((datasets or (), LEVELS, "dataset"), (protocols, PROTOCOLS, "protocol")):
        if unknown := [name for name in given if name not in known]:
            raise InputError(
                f"This experiment knows no {what} {unknown[0]!r}; choose from {', '.join(known)}."
            )
    for seed in seeds:
        for protocol in protocols:
            for name in LEVELS if datasets is None else datasets:
                for per_class in LABELS[:1] if name == "pubmed" else LABELS:
                    yield Case(name, per_class, seed, protocol)


def prepare(
    wanted: Iterator[Case],
    *,
    runs: Path,
    device: str = "cpu",
    samples: int = SAMPLES,
    stop_after: float = float("inf"),
    say: Say = print,
) -> int:
    """Do what is missing and keep it; how many results are still missing."""
    from unswayed.experiments.beyond_work import work

    how: dict[str, Any] = {"runs": runs, "device": device, "command": COMMAND, "stop_after": stop_after}
    return complete(wanted, lambda case: work(case, samples, device), say=say, **how)


def results(runs: Path) -> list[Result]:
    """Everything that was kept, in one order."""
    return read_all(runs / "beyond", Case)


def main(argv: list[str] | None = None) -> None:
    """Do the work of this experiment; no certificate, no table."""
    parser = arguments("unswayed.experiments.beyond", main.__doc__, range(5))
    parser.add_argument("--datasets", nargs="+", default=list(LEVELS))
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS))
    told = parser.parse_args(argv)
    prepare(cases(told.seeds, told.datasets, told.protocols), **settings(told))


if __name__ == "__main__":
    main()
