"""Training of an ensemble of graph classifiers: all members at once, on the same noisy batches."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unswayed.datasets import Dataset
from unswayed.models.ensembles import Ensemble, Member
from unswayed.models.training.graphs import GraphPool
from unswayed.models.training.keeping import Progress
from unswayed.models.training.stepping import descend
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise

TELL_EVERY = 50
TINY = 1e-12  # a probability whose logarithm is finite: answers to large graphs may round to certainty


@dataclass(frozen=True)
class EnsembleSettings:
    """How an ensemble learns. Chosen by cross-validation inside development graphs: no graph is held back to stop early."""

    steps: int = 1000
    batch: int = 32
    lr: float = 0.01
    weight_decay: float = 1e-2
    copies: int = 1  # noisy copies of each graph in a step
    consistency: float = 0.0  # weight of the divergence of these copies' answers from their mean


def fit_ensemble(
    model: Ensemble,
    dataset: Dataset,
    graphs: Tensor,
    noise: Noise | None,
    *,
    seed: int,
    device: str,
    settings: EnsembleSettings,
    progress: Progress | None = None,
) -> nn.Module:
    """The ensemble after each member has learnt these graphs' labels, and nothing else; the last weights are kept."""
    pool = GraphPool([dataset.graphs[place] for place in graphs.tolist()], device)
    stream = Stream(seed, purpose="train")
    everything = torch.arange(len(graphs), device=device)
    x, _, batch = pool.batch(everything, None, stream, 0)
    model.standardise(x, batch)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps, eta_min=settings.lr / 50)
    model.train()
    for step in range(1, settings.steps + 1):
        picked = torch.randint(len(graphs), (settings.batch,), device=device).repeat(settings.copies)
        drawn = pool.batch(picked, noise, stream, step * len(picked))
        losses = (_loss(member, drawn, pool.y[picked], settings) for member in model.members)
        descend(optimiser, sum(losses, start=torch.zeros((), device=device)))
        schedule.step()
        if progress is not None and (step % TELL_EVERY == 0 or step == settings.steps):
            progress(step, settings.steps, "training")
    return model.eval()


def _loss(
    member: nn.Module, drawn: tuple[Tensor, Tensor, Tensor], labels: Tensor, settings: EnsembleSettings
) -> Tensor:
    """Cross-entropy of each part of the member's answer, and how much copies of the same graph differ in the last."""
    assert isinstance(member, Member)
    parts = member.parts(*drawn)
    loss = torch.stack([functional.cross_entropy(part, labels) for part in parts]).sum()
    if settings.copies > 1:
        log = parts[-1].log_softmax(dim=-1).view(settings.copies, settings.batch, -1)
        mean = log.exp().mean(dim=0)
        loss = loss + settings.consistency * (mean * (mean.clamp(min=TINY).log() - log)).sum(dim=-1).mean()
    return loss
