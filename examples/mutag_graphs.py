"""Graph classification: which molecules keep their label whatever bonds are added or removed?

MUTAG has 188 molecules, mutagenic or not. The attacker may add or remove any bond between two atoms of a molecule. A GIN
is trained on molecules with noisy bonds; the floor is a model that sees the atoms and no bonds.

    unswayed data fetch mutag           # once, unless $UNSWAYED_DATA already holds it
    python examples/mutag_graphs.py --samples 10000
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
    options.add_argument("--samples", type=int, default=10_000, help="noisy copies of each molecule")
    options.add_argument("--recipe", default="noise", choices=RECIPES)
    options.add_argument(
        "--beta", type=float, default=0.7, help="probability that a pair of atoms stays as it is"
    )
    options.add_argument(
        "--floor", action=argparse.BooleanOptionalAction, default=True, help="train it: half a minute"
    )
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()

    mutag = load("mutag")
    parts = split(mutag, asked.seed)
    noise = us.Flip(beta=asked.beta)
    model = fit("gin", mutag, parts, recipe=asked.recipe, noise=noise, seed=asked.seed)
    blind = floor(mutag, parts, protocol="inductive", seed=asked.seed) if asked.floor else None

    molecules = [mutag.graphs[i] for i in parts.test.tolist()]
    votes = us.poll(model, us.AllPairs(molecules), noise, samples=asked.samples, seed=asked.seed)
    certs = us.certify(votes, alpha=0.001)

    truth = mutag.labels[parts.test]
    print(f"{len(certs)} molecules of {votes.entries.min()} to {votes.entries.max()} pairs of atoms")
    print("   k  certified" + (f"  floor ({blind.name})" if blind else ""))
    sizes = [0, 1, 2, 5, 10, 15]
    for size, share in zip(sizes, certs.accuracy(truth, at=sizes), strict=True):
        print(f"{size:>4}  {share:9.2f}" + (f"  {blind.accuracy:.2f}" if blind else ""))
    print(f"{int(certs.abstained.sum())} abstain")


if __name__ == "__main__":
    main()
