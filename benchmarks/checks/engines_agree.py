"""How many votes of the fast engines differ from the generic engine's on trained Cora models (float32).

    python -m benchmarks.checks.engines_agree [--samples 300] [--models gcn-mean,gat,gcn-3,…] [--device cuda] [--alone] [--out FILE]
    python -m benchmarks.checks.engines_agree --models deep [--noise 0.001,0.6]


Every single vote is compared, sample by sample and target by target; where two differ, `margin` is the largest distance
between the two highest logits of such a sample (the generic engine's). With `--alone` every graph is asked by itself. Deeper models
see the first 64 features only, since the slow way would aggregate all 1,433 of them for every noisy graph.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unswayed.experiments.bench import BETA, Case, question_of
from unswayed.experiments.deep import DEEP
from unswayed.experiments.runs import commit, device_name
from unswayed.sampling.engines import choose
from unswayed.theory.noise import AddDelete, Flip, Noise

COMPARED = {"cpu": 20, "cuda": 500}  # samples compared at a time


FEATURES = 64


def compare(model: str, samples: int, device: str, noise: Noise, alone: bool) -> dict[str, Any]:
    features = FEATURES if model in DEEP else None
    question = question_of(Case("cora", model, noise=noise, features=features), device)
    fast = choose(replace(question, engine="fast"))
    slow: Any = choose(replace(question, engine="generic"))
    if alone:
        slow = slow.alone
    targets, step = tuple(range(len(question.threat))), COMPARED[torch.device(device).type]
    differ = votes = 0
    margin = 0.0
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        span = (range(start, stop),) if alone else (start, stop)
        ours, theirs = fast.answers(start, stop, targets), slow.answers(*span, targets)
        other = ours.argmax(-1) != theirs.argmax(-1)
        top = theirs.topk(2).values
        differ += int(other.sum())
        votes += other.numel()
        margin = max(margin, float(((top[..., 0] - top[..., 1]) * other).max()))
    return {
        "model": model,
        "engine": fast.name,
        "noise": str(noise),
        "against": "one graph at a time" if alone else "generic",
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
    parser.add_argument("--noise", default="", help="p_add,p_delete instead of Flip(0.7)")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    chances = [float(p) for p in options.noise.split(",") if p]
    noise = AddDelete(p_add=chances[0], p_delete=chances[1]) if chances else Flip(beta=BETA)
    known = [name for name in DEEP if name != "feast-2"]
    for model in known if options.models == "deep" else options.models.split(","):
        rows.append(compare(model, options.samples, options.device, noise, options.alone))
        print(rows[-1], flush=True)
    if options.out:
        options.out.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
