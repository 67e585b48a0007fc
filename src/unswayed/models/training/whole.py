"""Training under noise on the whole graph: every step sees a fresh noisy version of all of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unswayed.models.training.keeping import Best, Progress, ThinDropout
from unswayed.models.training.stepping import descend
from unswayed.models.training.view import View
from unswayed.sampling.engines.asking.whole import transform_first
from unswayed.sampling.inputs import pair_entries, read_graph
from unswayed.sampling.sparse_graphs import noisy_edges
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise


@dataclass(frozen=True)
class WholeSettings:
    """Adam on one noisy graph a step; kept are the weights that are right on the most validation nodes whatever the noise."""

    steps: int = 600
    lr: float = 0.01
    input_dropout: float = 0.5
    check_every: int = 20
    check_graphs: int = 8  # noisy graphs for each noise at a check


def fit_whole(
    model: nn.Module,
    seen: View,
    targets: Tensor,
    noises: Sequence[Noise],
    *,
    seed: int = 0,
    settings: WholeSettings | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """The model trained towards soft labels `targets` [n, C] under all of the `noises` in turn; it reads no test label.

    Its noise has the purpose "train", so none of it is drawn again when the model is certified.
    """
    chosen = settings or WholeSettings()
    graph = read_graph(seen.data)
    clean = pair_entries(graph.pairs).to(seen.data.x.device)
    stream, twin, best = Stream(seed, "train"), transform_first(model), Best()
    features = ThinDropout(seen.data.x, chosen.input_dropout)
    optimiser = torch.optim.Adam(model.parameters(), lr=chosen.lr)
    checks = [
        noisy_edges(graph, clean, stream, noise, chosen.steps, chosen.steps + chosen.check_graphs)
        for noise in noises
    ]
    for step in range(1, chosen.steps + 1):
        twin.train()
        edges = noisy_edges(graph, clean, stream, noises[step % len(noises)], step - 1, step)
        descend(optimiser, functional.cross_entropy(twin(features(), edges), targets))
        if step % chosen.check_every == 0 or step == chosen.steps:
            best.offer(_score(twin, seen, checks, chosen.check_graphs), model)
            if progress is not None:
                progress(step, chosen.steps, f"validation {best.score:.3f}")
    return best.restore(model)


@torch.no_grad()
def _score(model: nn.Module, seen: View, checks: Sequence[Tensor], count: int) -> float:
    """The share of validation nodes answered right in every one of the noisy graphs, averaged over the noises.

    A certificate needs a label that nearly all noisy graphs agree on, so being right on average is not enough.
    """
    model.eval()
    n, labels = len(seen.data.y), seen.data.y[seen.val]
    repeated = seen.data.x.repeat(count, 1)
    scores = []
    for edges in checks:
        answers = model(repeated, edges).argmax(dim=1).view(count, n)
        scores.append(float((answers[:, seen.val] == labels).all(dim=0).float().mean()))
    return sum(scores) / len(scores)
