"""How many votes of the fast engines differ from the generic engine's on trained Cora models (float32).

    python -m benchmarks.checks.engines_agree [--samples 300] [--models gcn-mean,gat,gcn-3,…] [--device cuda] [--out FILE]
    python -m benchmarks.checks.engines_agree --models deep [--noise 0.001,0.6] [--pairs 200] [--against alone|cpu]

Every single vote is compared, sample by sample and target by target; where two differ, `margin` is the largest distance
between the two highest logits of such a sample (the other side's). The other side is the generic engine, or every graph asked by
itself (`--against alone`, also `--alone`), or the fast engine of the CPU (`--against cpu`). Deeper models see the first 64 features
only, since the slow way would aggregate all 1,433 of them for every noisy graph. `--pairs` lists so many pairs around 20 targets.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unswayed.experiments.bench import BETA, Case, question_of
from unswayed.experiments.deep_networks import DEEP
from unswayed.experiments.runs import commit, device_name
from unswayed.sampling.engines import choose
from unswayed.theory.noise import AddDelete, Flip

COMPARED = {"cpu": 20, "cuda": 500}  # samples compared at a time
AGAINST = {"generic": "generic", "alone": "one graph at a time", "cpu": "the CPU's fast engine"}
FEATURES = 64


def compare(case: Case, span: range, device: str, against: str) -> dict[str, Any]:
    question = question_of(case, device)
    fast = choose(replace(question, engine="fast"))
    other = _other_side(question, against)
    targets, step = tuple(range(len(question.threat))), COMPARED[torch.device(device).type]
    differ = votes = 0
    margin = 0.0
    for start in range(span.start, span.stop, step):
        stop = min(start + step, span.stop)
        ours, theirs = fast.answers(start, stop, targets).cpu(), other(start, stop, targets).cpu()
        unlike = ours.argmax(-1) != theirs.argmax(-1)
        top = theirs.topk(2).values
        differ += int(unlike.sum())
        votes += unlike.numel()
        margin = max(margin, float(((top[..., 0] - top[..., 1]) * unlike).max()))
    return {
        "model": case.model,
        "threat": question.threat.kind,
        "engine": fast.name,
        "noise": str(case.noise),
        "against": AGAINST[against],
        "device": device_name(device),
        "votes": votes,
        "differ": differ,
        "equal": 1 - differ / votes,
        "margin": margin,
    }


def _other_side(question: Any, against: str) -> Callable[[int, int, tuple[int, ...]], Tensor]:
    if against == "cpu":
        return choose(replace(question, engine="fast", device="cpu")).answers
    generic: Any = choose(replace(question, engine="generic"))
    if against == "generic":
        return generic.answers  # type: ignore[no-any-return]
    return lambda start, stop, targets: generic.alone.answers(range(start, stop), targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--models", default="gcn-mean,gat,gcn,sage,gin")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--noise", default="", help="p_add,p_delete instead of Flip(0.7)")
    parser.add_argument("--against", choices=list(AGAINST), default="generic")
    parser.add_argument("--alone", dest="against", action="store_const", const="alone")
    parser.add_argument(
        "--start", type=int, default=0, help="the first sample, to share the work among processes"
    )
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    chances = [float(p) for p in options.noise.split(",") if p]
    noise = AddDelete(p_add=chances[0], p_delete=chances[1]) if chances else Flip(beta=BETA)
    known = [name for name in DEEP if name != "feast-2"]
    for model in known if options.models == "deep" else options.models.split(","):
        features = FEATURES if model in DEEP else None
        targets = 20 if options.pairs else 100
        case = Case("cora", model, noise=noise, targets=targets, pairs=options.pairs, features=features)
        span = range(options.start, options.start + options.samples)
        rows.append(compare(case, span, options.device, options.against))
        print(rows[-1], flush=True)
    if options.out:
        options.out.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
