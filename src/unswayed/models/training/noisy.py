"""Training under noise: at every step each target sees a fresh noisy row, through the exact row forward.

A student first learns from the nodes' own features alone (no edges), then under noise. At β = 0.7 a node of Cora has
about 800 random neighbours against 2 real ones, so what it must learn is mostly its own features, and the first
stage learns them at a hundredth of the cost. The second stage makes the network indifferent to what the noise does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from unswayed.errors import InputError, Unsupported
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import Best, Progress, ThinDropout
from unswayed.models.training.stepping import descend
from unswayed.models.training.view import View
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.row import row_logits, row_plan
from unswayed.sampling.noisy_data import rewired
from unswayed.sampling.seats import kept_rows
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise

Ask = Callable[[nn.Module, Any, Tensor, Tensor], Tensor]  # the logits of some nodes whose rows are these
VALIDATE_FROM = 2**33  # sample numbers that no training step reaches


@dataclass(frozen=True)
class NoisySettings:
    """How long and how hard to train under noise. Chosen on validation nodes; the results page says what was tried."""

    warm_up: int = 300
    steps: int = 120
    batch: int = 64
    lr: float = 0.01
    noisy_lr: float = 0.003
    weight_decay: float = 0.0
    input_dropout: float = 0.5
    hidden_dropout: bool = True
    check_every: int = 40
    checks: int = 4  # noisy rows asked for each validation node


class NoisyRows:
    """Fresh noisy rows of a graph's nodes: sample number s always gives the same noise."""

    def __init__(self, data: Data, noise: Noise, seed: int, ask: Ask = row_logits) -> None:
        if noise.threats and "row" not in noise.threats:
            raise InputError(
                f"Networks are trained under noise on rows, and {type(noise).__name__} is not that."
            )
        self.data, self.noise, self.stream, self.ask = data, noise, Stream(seed, purpose="train"), ask
        self.around = Surroundings.of(data.edge_index, data.num_nodes, torch.float32, data.x.device)

    def rows(self, nodes: Tensor, start: int) -> Tensor:
        """bool[B, n]: the rows of `nodes` under the noise of sample numbers start, start + 1, ..."""
        clean = self.around.adjacent(nodes)
        if self.noise.drawing == "seats":
            return self._kept(clean, start)
        added, deleted = self.stream.flips(
            start, start + len(nodes), self.data.num_nodes, self.noise, device=nodes.device
        )
        return torch.where(clean, ~deleted, added)

    def _kept(self, clean: Tensor, start: int) -> Tensor:
        """The rows with a few of their links, drawn for each by itself: how many seats there are depends on the row."""
        kept = self.noise.options()
        rows = [
            kept_rows(self.stream, start + i, start + i + 1, row, kept["kept"], kept["seats"])
            for i, row in enumerate(clean)
        ]
        return torch.cat(rows)

    @torch.no_grad()
    def accuracy(self, model: nn.Module, nodes: Tensor, draws: int, batch: int) -> float:
        """The share of noisy rows of `nodes` (each drawn `draws` times) on which the model is right."""
        model.eval()
        right, start = 0, VALIDATE_FROM
        for part in torch.split(nodes.repeat(draws), batch):
            logits = self.ask(model, self.data, part, self.rows(part, start))
            right += int((logits.argmax(dim=1) == self.data.y[part]).sum())
            start += len(part)
        return right / (len(nodes) * draws)


def fit_noisy(
    model: nn.Module,
    seen: View,
    noise: Noise,
    targets: Tensor,
    pool: Tensor,
    *,
    seed: int,
    settings: NoisySettings | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """The model after it has learnt `targets` (soft labels [n, C]) of the `pool` nodes under fresh noise at every step.

    The weights kept are those with the highest accuracy on noisy rows of the validation nodes.
    """
    chosen = settings or NoisySettings()
    total = chosen.warm_up + chosen.steps
    _warm_up(model, seen, targets, pool, chosen, progress)
    ask = asking(model)
    noisy, best = NoisyRows(seen.data, noise, seed, ask), Best()
    optimiser = torch.optim.Adam(model.parameters(), lr=chosen.noisy_lr, weight_decay=chosen.weight_decay)
    features = ThinDropout(seen.data.x, chosen.input_dropout)
    for step in range(1, chosen.steps + 1):
        model.train(chosen.hidden_dropout)
        nodes = pool[torch.randint(len(pool), (chosen.batch,), device=pool.device)]
        dropped = Data(x=features(), edge_index=seen.data.edge_index)
        rows = noisy.rows(nodes, step * chosen.batch)
        descend(optimiser, functional.cross_entropy(ask(model, dropped, nodes, rows), targets[nodes]))
        if step % chosen.check_every == 0 or step == chosen.steps:
            best.offer(noisy.accuracy(model, seen.val, chosen.checks, chosen.batch), model)
            if progress is not None:
                progress(chosen.warm_up + step, total, f"validation under noise {best.score:.3f}")
    return best.restore(model)


def asking(model: nn.Module) -> Ask:
    """The exact row forward where the model's layers are known; otherwise the model itself, with all these rows noisy in one graph."""
    try:
        row_plan(model)
    except Unsupported:
        return plain_logits
    return row_logits


def plain_logits(model: nn.Module, data: Any, nodes: Tensor, rows: Tensor) -> Tensor:
    """What the model says of these nodes when their rows are replaced all at once: near to one by one, and any model can say it."""
    out: Tensor = model(data.x, rewired(data.edge_index, nodes, rows))
    return out[nodes]


def _warm_up(
    model: nn.Module,
    seen: View,
    targets: Tensor,
    pool: Tensor,
    chosen: NoisySettings,
    progress: Progress | None,
) -> None:
    """Learns the pool's targets from features alone: the graph is given without its edges."""
    edgeless = Data(x=seen.data.x, edge_index=seen.data.edge_index[:, :0], y=seen.data.y)
    settings = CleanSettings(
        steps=chosen.warm_up,
        lr=chosen.lr,
        weight_decay=chosen.weight_decay,
        input_dropout=chosen.input_dropout,
        check_every=max(chosen.warm_up // 10, 1),
    )
    told = (
        None
        if progress is None
        else lambda done, _, text: progress(done, chosen.warm_up + chosen.steps, text)
    )
    fit_clean(model, replace(seen, data=edgeless), targets, pool=pool, settings=settings, progress=told)
