"""Peak memory of the generic engine on PubMed: one target, 1,000 samples, in one process.

    python -m benchmarks.speed.pubmed_memory [--samples 1000] [--model gcn]

The limit is 4 GB of resident memory, imports included; exit code 1 above it.
"""

import argparse
import json
import resource
import sys
import time

import torch
from torch_geometric.nn import GAT, GCN

import unswayed as us
from unswayed.datasets import load

LIMIT = 4 * 2**30


def peak() -> int:
    """Bytes of resident memory at its highest, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--model", choices=["gcn", "gat"], default="gcn")
    arguments = parser.parse_args()
    dataset = load("pubmed")
    torch.manual_seed(0)
    kind = GCN if arguments.model == "gcn" else GAT
    model = kind(dataset.num_features, 16, 2, dataset.num_classes)
    before, begin = peak(), time.perf_counter()
    votes = us.poll(
        model, us.Row(dataset.graph, [0]), us.Flip(beta=0.7), samples=arguments.samples, engine="generic"
    )
    result = {
        "model": arguments.model,
        "samples": int(votes.samples[0]),
        "peak_gb": round(peak() / 2**30, 3),
        "before_poll_gb": round(before / 2**30, 3),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(result))
    sys.exit(0 if peak() < LIMIT else 1)


if __name__ == "__main__":
    main()
