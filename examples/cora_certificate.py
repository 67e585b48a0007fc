"""Certified accuracy on Cora, held against the floor that needs no graph at all.

Trains a model on 140 labelled papers, asks it about noisy copies of each test paper's citations, and prints the share
of papers whose label is right and proven against k changed citations. The last column is a model that sees no
citation, so no forged one can fool it: a certificate below it has not earned its keep.

    unswayed data fetch cora            # once, unless $UNSWAYED_DATA already holds it
    python examples/cora_certificate.py --model sage --recipe distill --samples 10000
"""

import argparse

import unswayed as us
from unswayed.datasets import load, split
from unswayed.models.floors import floor
from unswayed.models.training import RECIPES, fit


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--samples", type=int, default=10_000, help="noisy copies for each paper")
    options.add_argument("--targets", type=int, default=100, help="how many test papers to certify")
    options.add_argument("--model", default="gcn-mean", help="gcn, gcn-mean, gat, gin, sage or mlp")
    options.add_argument("--recipe", default="clean", choices=RECIPES)
    options.add_argument("--beta", type=float, default=0.7, help="probability that a citation stays as it is")
    options.add_argument(
        "--floor", action=argparse.BooleanOptionalAction, default=True, help="train it: a minute"
    )
    options.add_argument("--device", default="cpu")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()

    cora = load("cora")
    parts = split(cora, asked.seed, test=asked.targets)
    noise = us.Flip(beta=asked.beta)
    model = fit(
        asked.model, cora, parts, recipe=asked.recipe, noise=noise, seed=asked.seed, device=asked.device
    )
    blind = floor(cora, parts, protocol="transductive", seed=asked.seed) if asked.floor else None

    threat = us.Row(cora.graph, parts.test)
    votes = us.poll(model, threat, noise, samples=asked.samples, seed=asked.seed, device=asked.device)
    certs = us.certify(votes, alpha=0.001)

    reach = us.theory.ceiling(noise, asked.samples, 0.001, cora.num_classes)
    print(
        f"{asked.model} ({asked.recipe}) on {len(certs)} papers; these settings can prove at most K = {reach}."
    )
    print("   k  certified" + (f"  floor ({blind.name})" if blind else ""))
    sizes = sorted({0, 1, 2, 5, 10, 15, reach})
    for size, share in zip(sizes, certs.accuracy(cora.labels[parts.test], at=sizes), strict=True):
        print(f"{size:>4}  {share:9.2f}" + (f"  {blind.accuracy:.2f}" if blind else ""))


if __name__ == "__main__":
    main()
