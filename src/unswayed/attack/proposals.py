"""Ways of choosing which entries to attack: at random, greedily, or along the gradient of the smoothed margin.

Each returns at most `budget` entries of the target's structure vector, the most harmful first, so that a prefix is again an
attack; entries that seem to help the label are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.attack.scorers import Scorer
from unswayed.sampling.stream import Stream
from unswayed.sampling.structures import noisy
from unswayed.theory.noise import Noise

MOVES = 16  # decisions of a greedy attack: beyond that many entries it takes several at a time
STEPS = 20  # of the gradient attack
RENEWED = 5  # steps after which the idle half of what it looks at is exchanged
HALVINGS = 50  # of an interval: more would be below what floats can tell
LOOKED_AT = 50_000  # entries the gradient attack looks at together
DRAWS = 32  # noisy structures behind each gradient


@dataclass
class Field:
    """One target under attack: its structure, the entries that may change, and a supply of fresh noise."""

    score: Scorer
    clean: Tensor
    free: Tensor
    label: int
    noise: Noise
    stream: Stream
    target: int
    random: torch.Generator
    used: int = 0

    def flips(self, count: int) -> tuple[Tensor, Tensor]:
        """Noise that no earlier call has seen."""
        start, self.used = self.used, self.used + count
        return self.stream.flips(start, self.used, len(self.clean), self.noise, target=self.target)

    def margin(self, vectors: Tensor) -> Tensor:
        """[B] between −1 and 1: how far the certified label leads over the next one."""
        logits = self.score(vectors).nan_to_num(nan=-1e9)
        rest = logits.clone()
        rest[:, self.label] = -torch.inf
        return torch.tanh(logits[:, self.label] - rest.amax(dim=1))

    def some(self, count: int, besides: Tensor | None = None) -> Tensor:
        """Up to `count` different free entries at random, none of them in `besides`."""
        pool = self.free if besides is None else self.free[~torch.isin(self.free, besides)]
        return pool[torch.randperm(len(pool), generator=self.random)[:count]]


def at_random(field: Field, budget: int) -> Tensor:
    """Random entries, half of them deletions of what is there (as far as there is any)."""
    present = field.free[field.clean[field.free]]
    deletions = present[torch.randperm(len(present), generator=field.random)[: (budget + 1) // 2]]
    chosen = torch.cat([deletions, field.some(budget - len(deletions), deletions)])
    return chosen[torch.randperm(len(chosen), generator=field.random)]


def greedily(field: Field, budget: int) -> Tensor:
    """Step by step the entries whose change alone lowers the smoothed margin most, among a fresh random pool."""
    chosen = torch.empty(0, dtype=torch.int64)
    each = -(-budget // MOVES)
    for _ in range(MOVES):
        wanted = min(each, budget - len(chosen))
        pool = _pool(field, chosen, wanted)
        if wanted < 1 or not len(pool):
            break
        gain = _gains(field, chosen, pool)
        best = torch.argsort(gain, descending=True)[:wanted]
        chosen = torch.cat([chosen, pool[best[gain[best] >= 0]]])
    return chosen


def _pool(field: Field, chosen: Tensor, wanted: int) -> Tensor:
    """Some present entries, which are few and matter most, and random others."""
    present = field.free[field.clean[field.free]]
    present = present[~torch.isin(present, chosen)][:MOVES]
    size = max(field.score.affordable // 32, 2 * wanted, 8)
    return torch.cat([present, field.some(max(size - len(present), wanted), torch.cat([chosen, present]))])


def _gains(field: Field, chosen: Tensor, pool: Tensor) -> Tensor:
    """[pool]: how much each change alone lowers the mean margin, all on the same noise."""
    draws = max(2, field.score.affordable // len(pool))
    flips = field.flips(draws)
    attacked = field.clean.clone()
    attacked[chosen] ^= True
    with torch.no_grad():
        before = field.margin(noisy(attacked, flips)).mean()
        means = []
        for part in torch.split(pool, max(1, field.score.affordable // draws)):
            other = attacked.repeat(len(part), 1)
            other[torch.arange(len(part)), part] ^= True
            stack = torch.cat([noisy(vector, flips) for vector in other])
            means.append(field.margin(stack).view(len(part), draws).mean(dim=1))
    return before - torch.cat(means)


def by_gradient(field: Field, budget: int) -> Tensor:
    """Projected gradient descent of the smoothed margin over a random block of relaxed changes (after PRBCD).

    Geisler and others, "Robustness of graph neural networks at scale", NeurIPS 2021: changes are weights between 0 and 1
    that sum to at most the budget; after the descent the heaviest are taken.
    """
    block = field.some(LOOKED_AT)
    weight = torch.zeros(len(block))
    pull = torch.zeros(len(block))
    for step in range(STEPS):
        weight.requires_grad_()
        (slope,) = torch.autograd.grad(_relaxed_margin(field, block, weight), weight)
        pull = -slope
        length = pull.norm().clamp_min(1e-12)
        weight = project(weight.detach() + 0.5 * (budget**0.5) * pull / length, budget)
        if len(block) < len(field.free) and step % RENEWED == RENEWED - 1:
            block, weight = _renew(field, block, weight)
    rank = torch.argsort(weight + 1e-6 * torch.tanh(pull), descending=True)[:budget]
    return block[rank[(weight[rank] > 0) | (pull[rank] >= 0)]]


def _relaxed_margin(field: Field, block: Tensor, weight: Tensor) -> Tensor:
    """The mean margin of noisy structures that change linearly with the weights."""
    clean = field.clean.float()
    relaxed = clean.index_put((block,), clean[block] + weight * (1 - 2 * clean[block]))
    from_zero, from_one = field.flips(DRAWS)
    vectors = relaxed * ~from_one + (1 - relaxed) * from_zero
    return field.margin(vectors).mean()


def _renew(field: Field, block: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Keeps the entries that carry weight and swaps the idle half for fresh ones."""
    keep = torch.argsort(weight, descending=True)[: len(block) // 2]
    fresh = field.some(len(block) - len(keep), block[keep])
    return torch.cat([block[keep], fresh]), torch.cat([weight[keep], torch.zeros(len(fresh))])


def project(weight: Tensor, budget: float) -> Tensor:
    """The nearest weights between 0 and 1 whose sum is at most the budget.

    >>> project(torch.tensor([3.0, 0.5, -1.0]), 1.0).round(decimals=3)
    tensor([1., 0., 0.])
    """
    inside = weight.clamp(0, 1)
    if float(inside.sum()) <= budget:
        return inside
    low, high = torch.zeros(()), weight.max()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if float((weight - middle).clamp(0, 1).sum()) > budget else (low, middle)
    return (weight - high).clamp(0, 1)


KINDS: dict[str, Callable[[Field, int], Tensor]] = {
    "random": at_random,
    "greedy": greedily,
    "gradient": by_gradient,
}
