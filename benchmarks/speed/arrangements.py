"""What each arrangement of the engines brings: milliseconds a noisy graph with it, and with it switched off, in one run.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.arrangements [--only rows,signs] [--out FILE]

Processor time on one thread, 100 Cora nodes (20 of deeper models), both sides in turns, the best of three; votes must be equal but for ties.
An arrangement is a file or a class that could be deleted if nothing were slower without it.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import unswayed.sampling.engines as engines
from unswayed import Keep
from unswayed.experiments.bench import Case, question_of
from unswayed.experiments.runs import commit
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.graphs.planned import StarLogits
from unswayed.sampling.engines.rows.sorting import SortedSum
from unswayed.theory.noise import AddDelete

FEW = AddDelete(p_add=0.001, p_delete=0.6)
LISTED: dict[str, Any] = {"targets": 20, "noise": AddDelete(p_add=0.05, p_delete=0.5), "pairs": 200}
TWO = ("gcn-mean", "sage", "gin", "gat", "gcn")
DEEP = ("gcn-3", "gat-3", "sage-3", "gin-3")
FEATURES = 64  # of deeper models: what is compared is what comes after the first layer
# the arrangement, what it is asked about, and how many samples
ARRANGEMENTS: dict[str, list[Case]] = {
    "rows": [Case("cora", model, 400) for model in TWO],
    "sorting": [Case("cora", "gat", 400)],
    "signs": [Case("cora", "gat", 400)],
    "kept": [Case("cora", model, 400, noise=Keep(kept=5, seats=50)) for model in TWO[:4]],
    "pairs of states": [Case("cora", model, 48, 20, features=FEATURES) for model in DEEP],
    "pulling": [Case("cora", "appnp-10", 48, 20, features=FEATURES)],
    "touched": [Case("cora", model, 200, 20, FEW, features=FEATURES) for model in DEEP],
    "switched": [Case("cora", model, 200, features=FEATURES, **LISTED) for model in ("gcn-3", "sage-3")],
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """While it lasts, the arrangement is not there."""
    ways, every = PlanEngine._ways, engines._fast_engines

    def fewer(self: PlanEngine, ask: Any) -> Any:
        return {way: how for way, how in ways(self, ask).items() if way != name}

    kinds = {"rows": "RowEngine", "kept": "KeptEngine"}
    patches = {
        "sorting": patch.object(SortedSum, "suits", staticmethod(lambda *_: False)),
        "signs": patch("unswayed.sampling.engines.rows.attended._moderate", lambda _: False),
        "pairs of states": patch.object(StarLogits, "_find_pairs", lambda *_: None),
        "pulling": patch("unswayed.sampling.engines.graphs.planned.pulls_of", lambda _: {}),
        **dict.fromkeys(("touched", "switched"), patch.object(PlanEngine, "_ways", fewer)),
        **dict.fromkeys(
            kinds,
            patch.object(
                engines, "_fast_engines", lambda: [e for e in every() if e.__name__ != kinds.get(name)]
            ),
        ),
    }
    with patches[name]:
        yield


def measure(name: str, case: Case) -> dict[str, Any]:
    question, spent = question_of(case, "cpu"), {True: float("inf"), False: float("inf")}
    apart = len(question.threat) if not case.pairs else 1
    there = engines.choose(question)
    there.labels(0, case.samples)  # warm
    with without(name):
        gone = engines.choose(question)
        gone.labels(0, case.samples)
    for _ in range(3):
        spent[True] = min(spent[True], _seconds(there, case.samples))
        with without(name):
            spent[False] = min(spent[False], _seconds(gone, case.samples))
    found, other = there.labels(0, case.samples), gone.labels(0, case.samples)
    ms = {side: 1e3 * seconds / case.samples / apart for side, seconds in spent.items()}
    return {
        "arrangement": name,
        "model": case.model,
        "noise": str(case.noise),
        "engine": there.name,
        "ms": ms[True],
        "engine_without": gone.name,
        "ms_without": ms[False],
        "times": ms[False] / ms[True],
        "votes": found.numel(),
        "differ": int((found != other).sum()),
    }


def _seconds(engine: Any, samples: int) -> float:
    begin = time.process_time()
    engine.labels(0, samples)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name, cases in ARRANGEMENTS.items():
        for case in cases if not options.only or name in options.only.split(",") else ():
            rows.append(measure(name, case))
            print({k: round(v, 5) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
            if options.out:
                options.out.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
