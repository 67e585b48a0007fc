"""How many votes of the fast engines differ from the generic engine's on trained Cora models (float32).

    python benchmarks/engines_agree.py [--samples 100] [--models gcn-mean,gat,gcn,sage,gin] [--out FILE]

Votes are compared in blocks of four samples of one target, so differences can hardly cancel.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from unswayed.experiments.bench import Case, _question
from unswayed.sampling.engines import choose

BLOCK = 4


def compare(model: str, samples: int) -> dict[str, object]:
    question = _question(Case("cora", model), "cpu")
    fast, slow = choose(replace(question, engine="fast")), choose(replace(question, engine="generic"))
    differ = votes = 0
    for start in range(0, samples, BLOCK):
        ours, theirs = fast.count(start, start + BLOCK), slow.count(start, start + BLOCK)
        differ += int(np.abs(ours - theirs).sum()) // 2
        votes += int(theirs.sum())
    return {
        "model": model,
        "engine": fast.name,
        "votes": votes,
        "differ": differ,
        "equal": 1 - differ / votes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--models", default="gcn-mean,gat,gcn,sage,gin")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for model in options.models.split(","):
        rows.append(compare(model, options.samples))
        print(rows[-1], flush=True)
    if options.out:
        options.out.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
