"""Attack certified targets of real models: within their size nothing may succeed; beyond it, how wide is the gap?

    python -m benchmarks.checks.attack_soundness --nodes 200 --graphs 30 --attempts 1000

Cora under the row threat and MUTAG under all pairs. Each kind of attack gets at least `--attempts` attempts of exactly the
certified size, spread over the targets; beyond, the gradient attack looks for the smallest change that succeeds.
"""

import argparse
import json
import time

import numpy as np
import torch

import unswayed as us
from benchmarks.loading import NOISE, trained
from unswayed.attack import KINDS, attack


def cora(count: int, samples: int, model: str, recipe: str):
    data, split, net = trained("cora", model, recipe=recipe, test="rest")
    return net, us.Row(data.data, split.test[:count]), NOISE, samples


def mutag(count: int, samples: int, model: str, recipe: str):
    noise = us.Flip(beta=0.9)
    data, split, net = trained("mutag", model, recipe=recipe, noise=noise)
    chosen = torch.cat([split.test, split.val, split.train])[:count]
    return net, us.AllPairs([data.graphs[int(i)] for i in chosen]), noise, samples


def besiege(name: str, net, threat, noise, samples: int, attempts: int, judge: int, beyond: bool) -> dict:
    begin = time.time()
    certs = us.certify(us.poll(net, threat, noise, samples=samples), alpha=0.001)
    certified = int((certs.size >= 1).sum())
    each = -(-attempts // max(certified, 1))
    print(f"{name}: {certs}; {certified} with K >= 1, {each} attempts of each kind on each", flush=True)
    row = {
        "dataset": name,
        "targets": len(certs),
        "certified_1": certified,
        "median_size": int(np.median(certs.size)),
    }
    for kind in KINDS:
        start = time.time()
        found = attack(net, threat, certs, kinds=[kind], attempts=each, beyond=False, samples=judge, seed=1)
        row[kind] = {
            "attempts": int(found.attempts.sum()),
            "successes": len(found.breaches),
            "seconds": round(time.time() - start),
        }
        print(json.dumps({"dataset": name, kind: row[kind]}), flush=True)
    if beyond:
        found = attack(net, threat, certs, kinds=["gradient"], attempts=0, samples=judge, seed=2)
        hit = found.attacked >= 0
        row["beyond"] = {
            "attacked": int(hit.sum()),
            "median_certified": float(np.median(certs.size[hit])) if hit.any() else None,
            "median_attacked": float(np.median(found.attacked[hit])) if hit.any() else None,
            "median_gap": float(np.median(found.gap)) if hit.any() else None,
            "smallest_gap": int(found.gap.min()) if hit.any() else None,
        }
    return {**row, "seconds": round(time.time() - begin)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=40)
    parser.add_argument("--attempts", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--judge", type=int, default=5_000)
    parser.add_argument("--model", default="gcn-mean")
    parser.add_argument("--graph-model", default="gin")
    parser.add_argument("--recipe", default="clean", help="of the node classifier")
    parser.add_argument(
        "--graph-recipe",
        default="noise",
        help="of the graph classifier: a clean one says the same of every noisy graph",
    )
    parser.add_argument("--no-beyond", action="store_true")
    parser.add_argument("--only", choices=["cora", "mutag"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    jobs = {
        "cora": (cora, given.nodes, given.model, given.recipe),
        "mutag": (mutag, given.graphs, given.graph_model, given.graph_recipe),
    }
    wrong = 0
    for name, (make, count, model, recipe) in jobs.items():
        if given.only not in (None, name):
            continue
        row = besiege(
            name,
            *make(count, given.samples, model, recipe),
            given.attempts,
            given.judge,
            not given.no_beyond,
        )
        wrong += sum(row[kind]["successes"] for kind in KINDS)
        print(json.dumps({"model": model, "recipe": recipe, **row}), flush=True)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
