"""One attacker with so many deletions in all on Cora: how many nodes by counting node by node, and by the linear programme.

    python -m benchmarks.checks.shared_deletions --budget 25

A GraphSAGE of two layers is trained on the clean graph and polled under noise that only deletes, for every test node at once. A node's answer
depends on the edges with an end within one hop, and a deletion elsewhere counts for others only: that is what the programme knows and
counting does not.
"""

import argparse
import json
import time

import torch

import unswayed as us
from unswayed.datasets import load, split
from unswayed.models.training import fit


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--budget", type=int, default=25)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--p-delete", type=float, nargs="+", default=[0.5, 0.8, 0.9])
    a = parser.parse_args()
    torch.set_num_threads(1)
    dataset = load(a.dataset, fetch=True)
    parts = split(dataset, 0, test="rest")
    nodes = parts.test[: a.targets]
    model = fit("sage", dataset, parts)
    fields = us.receptive_fields(dataset.graph, nodes, layers=2)
    for p in a.p_delete:
        begin = time.perf_counter()
        noise = us.AddDelete(p_add=0, p_delete=p)
        votes = us.poll(model, us.AllPairs(dataset.graph, nodes), noise, samples=a.samples, progress=False)
        certs = us.certify(votes, alpha=0.05, family=True)
        sizes = certs.sizes("deletes")
        counting = certs.shared(a.budget, change="deletes")
        programme = certs.shared(a.budget, change="deletes", fields=fields)
        found = {
            "p_delete": p,
            "targets": len(nodes),
            "certified": int((~certs.abstained).sum()),
            "median_deletions": int(sorted(sizes[~certs.abstained])[int((~certs.abstained).sum()) // 2]),
            "by_counting": counting,
            "by_the_programme": programme,
            "ratio": round(programme / max(counting, 1), 4),
            "seconds": round(time.perf_counter() - begin, 1),
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
