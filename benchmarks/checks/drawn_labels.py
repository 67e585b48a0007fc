"""Hold untrained label ballots against the first trials of them, whose splits were drawn by nothing but a permutation.

    python -m benchmarks.checks.drawn_labels

The first nodes of `numpy.random.default_rng(seed).permutation(nodes)` have known labels, a tenth of all is left to choose with (here
nothing is chosen), every other node is tested, and a tie counts as lost whichever class is right. Nodes stand in the order of their files; students in that of their numbers read as text. How
the trials drew was not written down: this is the plainest way that fits all seven graphs. One draw of a small graph moves its row by
several hundredths, so the standard error over draws stands beside it, and the page has splits that leave less to chance.
"""

import argparse
import json
import sys
from types import SimpleNamespace

import numpy as np
import torch

from unswayed.datasets import Dataset, load
from unswayed.datasets.catalog import entry
from unswayed.datasets.sources import locate
from unswayed.experiments.paying.methods import sizes_if_ties_are_lost

# share of known labels; what the trials had, in hundredths, by K (means of three splits)
TRIALS: dict[str, tuple[float, dict[int, int]]] = {
    "amherst41": (0.2, {0: 87, 5: 79, 10: 71, 15: 64, 20: 56}),
    "cornell5": (0.2, {0: 84, 5: 75, 10: 68, 15: 61, 20: 54}),
    "highschool": (0.2, {0: 100, 5: 97, 10: 90, 15: 71, 20: 48}),
    "emaileucore": (0.2, {0: 68, 5: 41, 10: 30, 15: 20, 20: 11}),
    "polblogs": (0.1, {0: 94, 1: 82, 2: 73, 3: 67, 5: 60, 10: 48, 15: 39, 20: 32}),
    "photo": (0.3, {0: 90, 1: 86, 2: 83, 5: 74}),
    "computers": (0.3, {0: 86, 1: 82, 2: 79, 5: 69}),
}


CHOOSING = 0.1  # of all nodes, set aside


def order_of(dataset: Dataset) -> np.ndarray:
    """The nodes in the order in which they were drawn from."""
    if dataset.name != "highschool":
        return np.arange(len(dataset.labels))
    about = entry(dataset.name)
    folder, files = locate(about)
    rows = [line.split() for line in (folder / files[0]).read_text().splitlines()]
    students = sorted(
        {student for row in rows for student in row[1:3]}, key=int
    )  # as the reader numbers them
    return np.array(sorted(range(len(students)), key=students.__getitem__))


def certified(dataset: Dataset, share: float, seed: int, sizes: list[int]) -> list[float]:
    """Certified accuracy at each size in one draw."""
    order = order_of(dataset)
    drawn = torch.from_numpy(order[np.random.default_rng(seed).permutation(len(order))])
    told, _, test = drawn.tensor_split([int(share * len(order)), int((share + CHOOSING) * len(order))])
    known = torch.full_like(dataset.labels, -1).index_copy(0, told, dataset.labels[told])
    bench = SimpleNamespace(dataset=dataset, parts=SimpleNamespace(test=test))
    withstood = sizes_if_ties_are_lost(bench, known)
    return [float((withstood >= k).mean()) for k in sizes]


def compare(name: str, draws: int) -> dict[str, object]:
    """The mean row of a graph beside that of the trials, and their largest difference."""
    share, trial = TRIALS[name]
    dataset = load(name, fetch=True)
    rows = np.array([certified(dataset, share, seed, list(trial)) for seed in range(draws)])
    mean, said = rows.mean(axis=0), np.array(list(trial.values())) / 100
    return {
        "graph": name,
        "draws": draws,
        "at": list(trial),
        "trials": said.tolist(),
        "mean": mean.round(4).tolist(),
        "standard_error": (rows.std(axis=0, ddof=1) / np.sqrt(draws)).round(4).tolist()
        if draws > 1
        else None,
        "largest_difference": round(float(np.abs(mean - said).max()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", choices=list(TRIALS), default=list(TRIALS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--within", type=float, default=0.02)
    a = parser.parse_args()
    torch.set_num_threads(1)
    far = 0
    for name in a.datasets:
        found = compare(name, a.draws)
        print(json.dumps(found), flush=True)
        far += float(str(found["largest_difference"])) > a.within
    sys.exit(1 if far else 0)


if __name__ == "__main__":
    main()
