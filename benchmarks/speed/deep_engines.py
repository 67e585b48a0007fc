"""How many times faster than one graph at a time the engines are on deeper models: processor time, one thread, one run.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.deep_engines [--models gcn-3,gat-3] [--graphs 20] [--out FILE]

Everything is timed in turns, best of three, so that other work on the machine moves both sides alike.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from unswayed.experiments.bench import CASES, Case, question_of
from unswayed.experiments.deep_networks import DEEP
from unswayed.experiments.one_graph import one_at_a_time, votes_of_one
from unswayed.experiments.runs import commit
from unswayed.sampling.engines import choose


def measure(case: Case, graphs: int) -> dict[str, Any]:
    question = question_of(case, "cpu")
    engine = choose(question)
    apart = len(question.threat) // votes_of_one(question)
    engine.labels(0, case.samples)  # warm
    ours, theirs = [], []
    for _ in range(3):
        begin = time.process_time()
        engine.labels(0, case.samples)
        ours.append((time.process_time() - begin) / case.samples / apart)
        theirs.append(one_at_a_time(question, graphs, time.process_time)[0] / graphs)
    return {
        "model": case.model,
        "threat": question.threat.kind,
        "noise": str(question.noise),
        "engine": engine.name,
        "why": engine.why,
        "graphs": case.samples * apart,
        "ms": 1e3 * min(ours),
        "one_at_a_time_ms": 1e3 * min(theirs),
        "times": min(theirs) / min(ours),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = set(filter(None, options.models.split(",")))
    rows = []
    for case in CASES:
        listed = case.model in DEEP or case.pairs
        if listed and (not wanted or case.model in wanted):
            rows.append(measure(case, options.graphs))
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
            if options.out:
                options.out.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
