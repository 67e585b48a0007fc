"""How often a whole claim is false, from drawn noise to the certified size, where it is easiest to be wrong.

    python -m benchmarks.checks.coverage_claims --repetitions 10000

Each case is a noise, an attack, and the classifier that the attack hurts most, set so that the attack leaves exactly a tie: a
certificate that covers the attack is then false, and so is any for the other label. Noise is drawn from its definition, without
the package; votes are certified as a user would. `predict` is asked through a service: its label must be the more probable one.
"""

import json
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations

import numpy as np
import torch
from scipy import stats
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import unswayed as us
from benchmarks.checks.coverage import asked as simulated

Table = Mapping[frozenset, Fraction]
#: Draws (repetitions, samples) from random numbers: int64[repetitions], how many samples say the first label.
Votes = Callable[[int, int, np.random.Generator], np.ndarray]


def seen(row: frozenset, kept: int, seats: int) -> Table:
    """Pr(seen set) when `kept` of the row and blanks are drawn without replacement."""
    places = [*sorted(row), *[None] * (max(len(row), seats) - len(row))]
    draws = [frozenset({v for v in some if v is not None}) for some in combinations(places, kept)]
    return {what: Fraction(draws.count(what), len(draws)) for what in set(draws)}


def hardest(before: Table, after: Table) -> dict[frozenset, float]:
    """Pr(first label | seen): what is likelier before than after comes first, until half of the mass after is reached."""
    left, says = Fraction(1, 2), {}
    order = sorted(before, key=lambda what: after.get(what, Fraction(0)) / before[what])
    for what in order:
        mass = after.get(what, Fraction(0))
        part = min(Fraction(1), left / mass) if mass else Fraction(1)
        says[what], left = float(part), left - part * mass
    return says


def kept_votes(ones: int, kept: int, seats: int, adds: int, deletes: int) -> Votes:
    row = frozenset(range(ones))
    says = hardest(seen(row, kept, seats), seen(frozenset(range(deletes, ones + adds)), kept, seats))
    places = max(ones, seats)
    table = np.zeros(2**ones)
    for what, part in says.items():
        table[sum(1 << v for v in what)] = part
    bit = np.where(np.arange(places) < ones, 1 << np.minimum(np.arange(places), ones), 0)

    def votes(repetitions: int, samples: int, rng: np.random.Generator) -> np.ndarray:
        first = np.zeros(repetitions, np.int64)
        for _ in range(samples):
            drawn = rng.permuted(np.tile(np.arange(places), (repetitions, 1)), axis=1)[:, :kept]
            first += rng.random(repetitions) < table[bit[drawn].sum(axis=1)]
        return first

    return votes


def fake_votes(nodes: float, edges: float) -> Votes:
    """One fake node, one link to the target. Honest links are many: the classifier sees whether the target is hidden."""
    loss = min(
        (1 - nodes) * (1 - edges) / 2 / (1 - (1 - nodes) * (1 - edges)), (1 - nodes) ** 2 * (1 - edges)
    )
    top = 0.5 + loss
    shown = min(1.0, top / (1 - nodes))
    hidden = (top - shown * (1 - nodes)) / nodes if nodes else 0.0

    def votes(repetitions: int, samples: int, rng: np.random.Generator) -> np.ndarray:
        away = rng.binomial(samples, nodes, repetitions)
        return rng.binomial(away, hidden) + rng.binomial(samples - away, shown)

    return votes


def lied_to_votes(features: float, edges: float, liars: int) -> Votes:
    """The target and, with two liars, its neighbour: the first label wherever one of them is seen, as often as needed elsewhere."""
    chances = [1 - features, (1 - features) * (1 - edges)][:liars]
    met = 1 - float(np.prod([1 - chance for chance in chances]))
    elsewhere = 0.5 / (1 - met)

    def votes(repetitions: int, samples: int, rng: np.random.Generator) -> np.ndarray:
        noticed = np.zeros((repetitions, samples), bool)
        for chance in chances:
            noticed |= rng.random((repetitions, samples)) < chance
        return (noticed | (rng.random((repetitions, samples)) < elsewhere)).sum(axis=1)

    return votes


def pair_of_nodes() -> Data:
    return Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))


def certified(counts: np.ndarray, noise, bounds: str, alpha: float) -> us.Certified:
    if isinstance(noise, us.Mask):
        threat = us.Intercept(pair_of_nodes(), [0], hops=1)
        about = {"targets": np.zeros(len(counts), int), "provenance": {"threat": threat.describe()}}
        votes = us.Votes.from_counts(counts, noise, entries=2, ones=0, **about)
        return us.certify_intercepted(votes, threat, alpha=alpha, bounds=bounds)
    ones = 0 if isinstance(noise, us.Hide) else 4
    return us.certify(us.Votes.from_counts(counts, noise, entries=12, ones=ones), alpha=alpha, bounds=bounds)


#: name → (noise, additions, deletions, how votes are drawn)
CASES = {
    f"{noise.kept} of {noise.seats} seats kept, {adds} added, {deletes} deleted": (
        noise,
        adds,
        deletes,
        kept_votes(4, noise.kept, noise.seats, adds, deletes),
    )
    for noise, adds, deletes in (
        (us.Keep(2, 9), 1, 0),
        (us.Keep(2, 9), 0, 1),
        (us.Keep(2, 9), 1, 1),
        (us.Keep(1, 4), 2, 0),
        (us.Keep(1, 2), 0, 1),
    )
}
CASES |= {
    f"nodes hidden {noise.nodes:g}, edges lost {noise.edges:g}, one fake node": (
        noise,
        1,
        0,
        fake_votes(noise.nodes, noise.edges),
    )
    for noise in (us.Hide(0.625, 0.5, links=1), us.Hide(0.0, 0.75, links=1), us.Hide(0.25, 0.875, links=1))
}
CASES |= {
    f"features masked {noise.features:g}, edges deleted {noise.edges:g}, {liars} lying": (
        noise,
        liars,
        0,
        lied_to_votes(noise.features, noise.edges, liars),
    )
    for noise, liars in ((us.Mask(0.875, 0.5), 1), (us.Mask(0.875, 0.5), 2))
}


def false_rate(
    case: str, bounds: str, alpha: float, samples: int, repetitions: int, rng: np.random.Generator
) -> float:
    """Of certificates for fresh votes, which share claims what is not so."""
    noise, adds, deletes, votes = CASES[case]
    first = votes(repetitions, samples, rng)
    certs = certified(np.column_stack([first, samples - first]), noise, bounds, alpha)
    covers = certs.grid(adds, deletes)[:, adds, deletes]
    return float((((certs.label == 0) & covers) | (certs.label == 1)).mean())


class Degree(nn.Module):
    """The second label for whoever has a neighbour."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(1, 2, aggr="sum", root_weight=False)
        with torch.no_grad():
            self.conv.lin_l.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            self.conv.lin_l.bias.copy_(torch.tensor([0.5, -0.5]))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv(x, edge_index)


def wrong_predictions(alpha: float, samples: int, requests: int, seen: float = 0.505) -> float:
    """A service is asked about 200 nodes with one link each, seen with probability `seen`: how often it names the other label."""
    ends = torch.arange(400).view(200, 2).T
    data = Data(x=torch.ones(400, 1), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    service = us.Smoothed(
        Degree(), us.AddDelete(0, 1 - seen), data, samples=samples, alpha=alpha, classes=2, audit=20
    )
    return float(np.mean([(service.predict(range(0, 400, 2)) == 0).mean() for _ in range(requests)]))


def main() -> None:
    a = simulated(__doc__)
    rng, begun = np.random.default_rng(a.seed), time.process_time()
    limit = float(stats.binom.ppf(0.9999, a.repetitions, 0.05) / a.repetitions)
    print(
        f"false claims in {a.repetitions} repetitions of {a.samples} samples at alpha .05 (allowed: {limit:.4f})"
    )
    worst = 0.0
    for case in CASES:
        rates = {
            m: false_rate(case, m, 0.05, a.samples, a.repetitions, rng)
            for m in ("strict", "tight", "anytime")
        }
        worst = max(worst, *rates.values())
        print(f"{case:64s} {'    '.join(f'{m} {r:.4f}' for m, r in rates.items())}", flush=True)
    asked = wrong_predictions(0.05, 101, a.repetitions // 200)
    summary = {"worst": worst, "limit": limit, "wrong predictions": asked}
    print(json.dumps({**summary, "seconds": round(time.process_time() - begun, 1)}))
    raise SystemExit(int(max(worst, asked) > limit))


if __name__ == "__main__":
    main()
