"""Hold proofs against every attack there is, asked of the model itself, on random small cases of every threat and voter.

    python -m benchmarks.checks.prove_check --cases 2000

A ballot model's K must be neither too large nor too small, for any change, additions alone and deletions alone; every cell
of its grid must be right, and its witness must flip the model and be one larger than K. Hashed models and fake nodes: none
too large. Nothing here uses the package's sorting: the model is asked about one attacked graph at a time.
"""

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from itertools import chain, combinations
from typing import Any

import numpy as np

from benchmarks.checks import prove_check_cases as cases
from unswayed.errors import DoubtfulSetting

HARMLESS = ("cases", "abstained", "can be moved")


Case = cases.Case


def outcomes(case: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(additions, deletions, whether the label changes) of every attack, the empty one first."""
    count = len(case.present)
    attacks = list(chain.from_iterable(combinations(range(count), k) for k in range(count + 1)))
    label = case.ask(())
    deletes = np.array([int(case.present[list(attack)].sum()) for attack in attacks])
    flips = np.array([case.ask(attack) != label for attack in attacks])
    return np.array([len(attack) for attack in attacks]) - deletes, deletes, flips


def true_size(adds: np.ndarray, deletes: np.ndarray, flips: np.ndarray, entries: int) -> dict[str, int]:
    """The largest K that no attack refutes; all entries where none does."""
    sizes = {
        "any": adds + deletes,
        "adds": np.where(deletes == 0, adds, 10**6),
        "deletes": np.where(adds == 0, deletes, 10**6),
    }
    return {change: min(int(size[flips].min(initial=10**6)) - 1, entries) for change, size in sizes.items()}


def check(case: Any, exact: bool) -> Counter[str]:
    """What is wrong with one proof: empty where nothing is."""
    adds, deletes, flips = outcomes(case)
    found, entries = case.proofs, len(case.present)
    if found.label[0] < 0:
        return Counter({"abstained": 1} if not exact else {"abstained": 1, "too small": 1})
    wrong: Counter[str] = Counter({"can be moved": int(flips.any())})
    wrong["label"] += int(found.label[0] != case.ask(()))
    room = {"any": entries, "adds": int((~case.present).sum()), "deletes": int(case.present.sum())}
    for change, size in true_size(adds, deletes, flips, entries).items():
        said = int(found.sizes(change)[0])
        wrong["too large"] += said > size and said > min(size, room[change])
        wrong["too small"] += exact and said < min(size, room[change])
    cells = found.grid(entries, entries)[0]
    for a, r in np.ndindex(cells.shape):
        safe = not bool(flips[(adds <= a) & (deletes <= r)].any())
        wrong["cell too large"] += bool(cells[a, r]) and not safe
        wrong["cell too small"] += exact and safe and not bool(cells[a, r])
    return wrong + (check_witness(case, flips) if exact else Counter())


def check_witness(case: Any, flips: np.ndarray) -> Counter[str]:
    """A witness exists exactly where an attack does, is one larger than the size, and flips the model."""
    attack = case.proofs.witness(0)
    if attack is None:
        return Counter({"witness missing": int(flips.any())})
    places = [int(e) if case.names is None else list(case.names).index(int(e)) for e in attack]
    right = len(set(places)) == int(case.proofs.size[0]) + 1 and case.ask(places) != case.ask(())
    return Counter({"witness wrong": int(not right)})


def check_fakes(case: Any, rng: np.random.Generator, tries: int = 12) -> Counter[str]:
    """Whether some fakes within the size, of many features and links that were tried, move the label."""
    size = int(case.proofs.size[0])
    if size < 0:
        return Counter({"abstained": 1})
    label = case.ask(np.zeros((0, cases.FEATURES)), [])
    wrong = Counter({"label": int(label != case.proofs.label[0])})
    for _ in range(tries if size else 0):
        fakes = int(rng.integers(1, min(size, 5) + 1))
        x = rng.normal(size=(fakes, cases.FEATURES)) * rng.choice([1, 30, 1000])
        links = {(case.target, case.nodes + i) for i in range(fakes)}
        links |= {(v, case.nodes + i) for v in range(case.nodes) for i in range(fakes) if rng.random() < 0.5}
        wrong["too large"] += case.ask(x, sorted(links)) != label
    return wrong


def run(count: int, seed: int, only: str = "") -> dict[str, Counter[str]]:
    """The faults of `count` cases dealt evenly over all kinds, by kind; "cases" counts them."""
    rng = np.random.default_rng(seed)
    kinds = [name for name in (*cases.EXACT, *cases.LOWER, *cases.FAKES) if only in name]
    found = {name: Counter[str]() for name in kinds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulSetting)  # labels drawn at random may all be unknown
        for number in range(count):
            name = kinds[number % len(kinds)]
            if name in cases.FAKES:
                wrong = check_fakes(cases.FAKES[name](rng), rng)
            else:
                wrong = check({**cases.EXACT, **cases.LOWER}[name](rng), exact=name in cases.EXACT)
            found[name].update({"cases": 1, **wrong})
    return found


def faults(found: dict[str, Counter[str]]) -> int:
    return sum(n for counts in found.values() for what, n in counts.items() if what not in HARMLESS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    given = parser.parse_args()
    start = time.perf_counter()
    found = run(given.cases, given.seed, given.only)
    for name, counts in found.items():
        print(name, {what: n for what, n in counts.items() if n})
    seconds = round(time.perf_counter() - start, 1)
    print(json.dumps({"cases": given.cases, "faults": faults(found), "seconds": seconds}))
    sys.exit(1 if faults(found) else 0)


if __name__ == "__main__":
    main()
