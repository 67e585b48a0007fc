"""How often bounds from 1,000 votes of a real model are false, held against the model's own probabilities.

    python -m benchmarks.checks.coverage_model --nodes 20 --repetitions 1000 --truth 1000000

The votes of samples 0, 1, 2, … are cut into blocks of 1,000; the first ones are repetitions, the rest (a million samples) the
truth. The hardest nodes are chosen by other noise: those whose two leading labels are nearest to each other.
"""

import argparse
import json
import time

import numpy as np
import torch

import unswayed as us
from benchmarks.loading import NOISE, trained
from unswayed.ledger import BLOCK
from unswayed.theory import bound_votes


def hardest(net, data, pool, count: int) -> torch.Tensor:
    """The nodes with the smallest lead, by votes that are used for nothing else."""
    counts = us.poll(net, us.Row(data, pool), NOISE, samples=2000, purpose="select").counts
    ranked = np.sort(counts, axis=1)
    return pool[np.argsort(ranked[:, -1] - ranked[:, -2])[:count]]


def false(bounds, truth: np.ndarray) -> np.ndarray:
    """bool[repetitions]: claims more than is so, without abstaining."""
    others = np.tile(truth, (len(bounds.label), 1))
    others[np.arange(len(bounds.label)), bounds.label] = -1
    wrong = (bounds.p_top > truth[bounds.label]) | (bounds.p_rest < others.max(axis=1))
    return wrong & (bounds.p_top > bounds.p_rest)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--truth", type=int, default=10**6)
    parser.add_argument("--model", default="gcn-mean")
    given = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.time()
    data, split, net = trained("cora", given.model, test="rest")
    nodes = hardest(net, data.data, split.test[:300], given.nodes)
    samples = given.repetitions * BLOCK + given.truth
    votes = us.poll(net, us.Row(data.data, nodes), NOISE, samples=samples, seed=7)
    repeated, rest = votes.blocks[: given.repetitions], votes.blocks[given.repetitions :]
    truth = rest.sum(axis=0) / given.truth
    leads = np.sort(truth, axis=1)
    print(f"leads of the chosen nodes: {np.round(leads[:, -1] - leads[:, -2], 3).tolist()}")
    for method in ("strict", "tight", "anytime", "paper"):
        for alpha in (0.05, 0.01, 0.001):
            wrong = [
                false(bound_votes(repeated[:, t], BLOCK, alpha, method), truth[t]) for t in range(len(nodes))
            ]
            rates = np.mean(wrong, axis=1)
            print(
                json.dumps(
                    {
                        "bounds": method,
                        "alpha": alpha,
                        "certificates": int(np.size(wrong)),
                        "false": int(np.sum(wrong)),
                        "rate": float(np.mean(wrong)),
                        "worst_node": float(rates.max()),
                        "holds": bool(np.mean(wrong) <= alpha),
                    }
                ),
                flush=True,
            )
    print(json.dumps({"nodes": len(nodes), "samples": samples, "seconds": round(time.time() - begin)}))


if __name__ == "__main__":
    main()
