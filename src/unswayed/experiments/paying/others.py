"""Two further methods: whole graphs whose pairs vote, and rare labels that are to stay flagged."""

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import unswayed as us
from unswayed.ballots.links import Links
from unswayed.ballots.networks import BallotNetwork
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying.bench import CHANGES, Bench
from unswayed.models import build
from unswayed.models.training import fit
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.ballots import mixtures
from unswayed.models.training.clean import fit_clean
from unswayed.models.training.keeping import seeded
from unswayed.models.training.pairs import fit_pairs
from unswayed.models.training.view import alone, view

JUDGED_AT = (0, 1, 5, 10)
CUTS = np.linspace(0.02, 0.98, 97)  # shares of validation nodes that are flagged
FLAG = 1


def pairs(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, for whole graphs: any links of the graph may change."""
    dataset, parts = bench.dataset, bench.parts
    network = fit_pairs(dataset, parts, seed=bench.case.seed, device=bench.device)
    tested = [dataset.graphs[place] for place in parts.test.tolist()]
    proofs = us.prove(network, us.AllPairs(tested))
    right = float((proofs.label == dataset.labels[parts.test].numpy()).mean())
    facts = {"threat": "all-pairs", "task": "graph", "base_accuracy": right}
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
    shift, chosen = _loudest(bench, _candidates(bench), wanted)
    arrays, facts = bench.proved(chosen)
    own = {"features alone": answers[parts.test].numpy()}
    return {**arrays, **own}, {**facts, "shift": shift, "task": "flag"}


def _candidates(bench: Bench) -> list[BallotNetwork]:
    """A network that learnt to be proved, and label ballots beside own scores that learnt alone, said more or less loudly, or alone."""
    case, settings = bench.case, BallotSettings(balanced=True, distil=False, presume=False)
    trained = fit(
        "ballots", bench.dataset, bench.parts, protocol=case.protocol, seed=case.seed, device=bench.device, settings=settings
    )  # fmt: skip
    assert isinstance(trained, BallotNetwork)
    return [trained.cpu().thaw(), *mixtures(bench.dataset, bench.parts, case.protocol, case.seed, settings)]


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


def _loudest(bench: Bench, networks: list[BallotNetwork], wanted: float) -> tuple[float, BallotNetwork]:
    """The shift, and the network frozen with it, that proves the most recall on validation nodes at this precision or more.

    Where none is so precise, the most precise one.
    """
    parts, links = bench.parts, Links.of(bench.dataset.graph)
    known, truth = bench.known(parts.train, parts.val), bench.dataset.labels[parts.val].numpy()
    threat = us.Row(bench.dataset.graph, parts.val)

    def merit(option: tuple[float, BallotNetwork]) -> tuple[float, float]:
        proofs = us.prove(shifted(option[1], option[0]).freeze(links, known=known), threat)
        precise = _precision(proofs.label, truth)
        recall = float(proofs.recall(truth, positive=FLAG, at=JUDGED_AT).mean())
        return min(precise, wanted), recall

    options = [
        (shift, network) for network in networks for shift in _shifts(network, links, known, parts.val)
    ]
    shift, network = max(options, key=merit)
    return shift, shifted(network, shift).freeze(links, known=known)


def _shifts(network: BallotNetwork, links: Links, known: Tensor, nodes: Tensor) -> list[float]:
    """How much louder the flag must be said, by the node itself and over each link, for more and more of these nodes to be flagged."""
    frozen = copy.deepcopy(network).freeze(links, known=known)
    with torch.no_grad():
        score = frozen(links.x, torch.stack([links.voter, links.target]))[nodes]
    weight = network.tau + torch.bincount(links.target, minlength=links.nodes)[nodes]
    behind = (score[:, 1 - FLAG] - score[:, FLAG]) / weight
    return [float(shift) for shift in np.quantile(behind.numpy(), CUTS[::2])]


def shifted(network: BallotNetwork, shift: float) -> BallotNetwork:
    """The same network, in which every node and link says the flag by so much louder."""
    louder = copy.deepcopy(network).thaw()
    last: Any = louder.own[-1]  # type: ignore[index]
    with torch.no_grad():
        last.weight.mul_(louder.own_weight)
        last.bias.mul_(louder.own_weight)
        last.bias[FLAG] += shift
        louder.own_weight.fill_(1.0)
    return louder.eval()


def _precision(said: npt.NDArray[Any], truth: npt.NDArray[Any]) -> float:
    """The share of flagged nodes that are rightly so; 0 where none is."""
    flagged = said == FLAG
    return float((truth[flagged] == FLAG).mean()) if flagged.any() else 0.0


def _f1(flagged: npt.NDArray[np.bool_], truth: npt.NDArray[Any]) -> float:
    right = float((flagged & (truth == FLAG)).sum())
    return 2 * right / float(flagged.sum() + (truth == FLAG).sum())
