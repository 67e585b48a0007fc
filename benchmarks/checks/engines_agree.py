"""How many votes of the fast engines differ from the generic engine's on trained Cora models (float32).

    python -m benchmarks.checks.engines_agree [--samples 300] [--models gcn-mean,gat,gcn,sage,gin] [--device cuda] [--out FILE]

Every single vote is compared, sample by sample and target by target; where two differ, `margin` is the largest distance
between the two highest logits of such a sample (the generic engine's).
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unswayed.experiments.bench import Case, question_of
from unswayed.experiments.runs import commit, device_name
from unswayed.sampling.engines import choose

COMPARED = {"cpu": 20, "cuda": 500}  # samples compared at a time


def compare(model: str, samples: int, device: str) -> dict[str, Any]:
    question = question_of(Case("cora", model), device)
    fast, slow = choose(replace(question, engine="fast")), choose(replace(question, engine="generic"))
    targets, step = tuple(range(len(question.threat))), COMPARED[torch.device(device).type]
    differ = votes = 0
    margin = 0.0
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        ours, theirs = fast.answers(start, stop, targets), slow.answers(start, stop, targets)
        other = ours.argmax(-1) != theirs.argmax(-1)
        top = theirs.topk(2).values
        differ += int(other.sum())
        votes += other.numel()
        margin = max(margin, float(((top[..., 0] - top[..., 1]) * other).max()))
    return {
        "model": model,
        "engine": fast.name,
        "device": device_name(device),
        "votes": votes,
        "differ": differ,
        "equal": 1 - differ / votes,
        "margin": margin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--models", default="gcn-mean,gat,gcn,sage,gin")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for model in options.models.split(","):
        rows.append(compare(model, options.samples, options.device))
        print(rows[-1], flush=True)
    if options.out:
        options.out.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
