"""Two further methods: whole graphs whose pairs vote, and rare labels that are to stay flagged."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying.bench import CHANGES, Bench
from unswayed.models import build
from unswayed.models.floors.judging import most_common
from unswayed.models.training.clean import fit_clean
from unswayed.models.training.flags import fit_flags
from unswayed.models.training.keeping import seeded
from unswayed.models.training.pairs import fit_pairs
from unswayed.models.training.view import alone, view

CUTS = np.linspace(0.02, 0.98, 97)  # shares of validation nodes that are flagged
FLAG = 1


def pairs(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, for whole graphs: any links of the graph may change."""
    dataset, parts = bench.dataset, bench.parts
    network = fit_pairs(dataset, parts, seed=bench.case.seed, device=bench.device)
    tested = [dataset.graphs[place] for place in parts.test.tolist()]
    bare = [
        Data(x=graph.x, edge_index=graph.edge_index[:, :0], num_nodes=graph.num_nodes) for graph in tested
    ]
    proofs, without = (us.prove(network, us.AllPairs(graphs)) for graphs in (tested, bare))
    truth = dataset.labels[parts.test].numpy()
    right, edgeless = (float((own.label == truth).mean()) for own in (proofs, without))
    facts = {"threat": "all-pairs", "task": "graph", "base_accuracy": right, "accuracy_edgeless": edgeless}
    return {"label": proofs.label, **{change: proofs.sizes(change) for change in CHANGES}}, facts


def flags(bench: Bench) -> tuple[Arrays, Facts]:
    """Which rare nodes stay flagged, at no less precision on validation nodes than a model of features alone.

    Both thresholds are chosen on validation nodes: that of the features by the F1 score, that of the ballots by the recall
    that is proved at several sizes.
    """
    dataset, parts = bench.dataset, bench.parts
    heard = torch.from_numpy(_features_alone(bench))
    truth = dataset.labels[parts.val].numpy()
    cuts = np.quantile(heard[parts.val].numpy(), CUTS)
    cut = max(cuts, key=lambda cut: _f1(heard[parts.val].numpy() >= cut, truth))
    answers = (heard >= cut).long()
    wanted = _precision(answers[parts.val].numpy(), truth)
    chosen = fit_flags(
        dataset, parts, precision=wanted, positive=FLAG, protocol=bench.case.protocol, seed=bench.case.seed,
        device=bench.device,
    )  # fmt: skip
    arrays, facts = bench.proved(chosen.cpu())
    common = most_common(dataset.labels, parts)  # flags nobody, and is right most often without an edge
    own = {"features alone": answers[parts.test].numpy(), "majority": np.full(len(parts.test), common)}
    return {**arrays, **own}, {**facts, "task": "flag"}


def _features_alone(bench: Bench) -> npt.NDArray[np.float64]:
    """How much more a perceptron on features says the flag than not, for every node."""
    dataset, seed = bench.dataset, bench.case.seed
    seen = view(dataset, bench.parts, bench.case.protocol).to(bench.device)
    bare, _ = alone(seen, seen.train)
    model = build("mlp", dataset.num_features, dataset.num_classes, seed=seed, hidden=64).to(bench.device)
    with seeded(seed, bench.device):
        fit_clean(model, bare)
    with torch.no_grad():
        said = model(dataset.graph.x.to(bench.device), bare.data.edge_index)
    return np.asarray((said[:, FLAG] - said[:, 1 - FLAG]).cpu().double().numpy())


def _precision(said: npt.NDArray[Any], truth: npt.NDArray[Any]) -> float:
    """The share of flagged nodes that are rightly so; 0 where none is."""
    flagged = said == FLAG
    return float((truth[flagged] == FLAG).mean()) if flagged.any() else 0.0


def _f1(flagged: npt.NDArray[np.bool_], truth: npt.NDArray[Any]) -> float:
    right = float((flagged & (truth == FLAG)).sum())
    return 2 * right / float(flagged.sum() + (truth == FLAG).sum())
