"""Training pair ballots: a network for whole graphs whose edges vote, learnt from the labels of graphs."""

import torch

from unswayed.ballots.pairs import PairBallots
from unswayed.datasets import Dataset, Split
from unswayed.models.training.graphs import CLEAN, GraphSettings, fit_graphs
from unswayed.models.training.keeping import Progress, seeded


def fit_pairs(
    dataset: Dataset,
    split: Split,
    *,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    settings: GraphSettings | None = None,
) -> PairBallots:
    """Pair ballots in evaluation mode, with the weights that did best on validation graphs; `prove` freezes them."""
    with seeded(seed, device):
        torch.manual_seed(seed)
        network = PairBallots(dataset.num_features, dataset.num_classes).to(device)
        fit_graphs(
            network,
            dataset,
            split,
            None,
            seed=seed,
            device=device,
            settings=settings or CLEAN,
            progress=progress,
        )
    return network.cpu().eval()
