"""What each method of the experiment does with one graph, protocol and split: exact proofs, votes of groups."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.links import Links, codes
from unswayed.datasets import split
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying import DRAWN, FORETOLD, LIMIT, TIES_LOST, TRAINING_ALONE
from unswayed.experiments.paying.bench import CHANGES, Bench
from unswayed.experiments.paying.others import flags, pairs
from unswayed.experiments.paying.smoothing import smoothed
from unswayed.models.floors import floor
from unswayed.models.floors.judging import most_common
from unswayed.models.training import fit
from unswayed.models.training.hashed import fit_hashed

GROUPS = (10, 20, 40)  # of the hashed vote; the validation nodes choose
JUDGED_AT = (0, 1, 2, 3, 5, 10)


def floors(bench: Bench) -> tuple[Arrays, Facts]:
    """What every structure-free model answers for the test targets; of graphs, what folds chose."""
    if bench.dataset.task == "graph":
        best = floor(bench.dataset, bench.parts, seed=bench.case.seed, device=bench.device)
        return {"counts": best.predictions[bench.parts.test].numpy()}, {"model": best.name}
    found = bench.floors()
    return {name: own.predictions[bench.parts.test].numpy() for name, own in found.items()}, {}


def label_ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, without any training."""
    return bench.proved(bench.label_ballots)


def every_label(bench: Bench) -> tuple[Arrays, Facts]:
    """Label ballots to which every voter's true label is told: no certificate that one could have, but what links allow."""
    told = us.LabelBallots(bench.dataset.num_classes)
    arrays, facts = bench.proved(told.freeze(bench.dataset.graph, known=bench.dataset.labels))
    return arrays, {**facts, "model": "label ballots"}


def drawn(bench: Bench) -> tuple[Arrays, Facts]:
    """Label ballots where known labels are drawn whatever their classes, and every other node is tested.

    Also what would be proved if ties were lost, and if besides training labels alone spoke.
    """
    parts = split(bench.dataset, bench.case.seed, test="rest", draw="nodes")
    own = replace(bench, parts=parts)
    arrays, facts = own.proved(own.label_ballots)
    lost = {
        TIES_LOST: sizes_if_ties_are_lost(own, own.known(parts.train, parts.val)),
        TRAINING_ALONE: sizes_if_ties_are_lost(own, own.known(parts.train)),
    }
    majority = np.full(len(parts.test), most_common(bench.dataset.labels, parts))
    alone = {} if bench.dataset.num_features else {"majority": majority}
    return {**own.common(), **arrays, **alone, **lost}, {**facts, "model": "label ballots"}


def sizes_if_ties_are_lost(bench: Bench, known: Tensor) -> np.ndarray:
    """int[targets]: K of the true class if it gave way in every tie, as the class with the last number does; −1 where it lost.

    So each class in turn takes the last number, and its nodes are proved.
    """
    graph, test, last = bench.dataset.graph, bench.parts.test, bench.dataset.num_classes - 1
    truth, found = bench.dataset.labels[test].numpy(), np.full(len(test), -1)
    for c in np.unique(truth).tolist():
        turned = torch.where(known == c, last, torch.where(known == last, c, known))
        network = us.LabelBallots(last + 1).freeze(graph, known=turned)
        proofs = us.prove(network, us.Row(graph, test[torch.from_numpy(truth == c)]))
        found[truth == c] = np.where(proofs.label == last, proofs.size, -1)
    return found


def foretold(bench: Bench) -> tuple[Arrays, Facts]:
    """What `prospect` expects before anything is certified: of the labelled nodes, by a floor that no test node has judged."""
    graph, labels = bench.dataset.graph, bench.dataset.labels
    told = torch.cat([bench.parts.train, bench.parts.val])
    height = floor(
        bench.dataset, bench.parts, protocol="inductive", seed=bench.case.seed, device=bench.device
    )
    ahead = us.prospect(graph, bench.known(told), floor=height.validation)
    truth = labels[told.sort().values].numpy()
    judges = {"truth": truth, "label": np.where(ahead.sizes >= 0, truth, -1), "any": ahead.sizes}
    degree = ahead.degrees[told.sort().values.numpy()]
    facts = {"model": "label ballots", "base_accuracy": ahead.base, "floor": ahead.floor}
    return {**judges, "degree": degree}, {
        **facts,
        "threat": "row",
        "way": ahead.way,
        "largest": ahead.largest,
    }


def trained(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, by one network for all sizes that has learnt to be proved."""
    network = fit(
        "ballots",
        bench.dataset,
        bench.parts,
        protocol=bench.case.protocol,
        seed=bench.case.seed,
        device=bench.device,
        teacher=bench.taught.get(bench.case.protocol),
    )
    return bench.proved(network.cpu())


class Hearsay(nn.Module):
    """Label ballots of whatever links it is given; features are known labels, a column a class. No link, no answer."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.ballots = us.LabelBallots(classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of every node."""
        code, nodes = codes(edge_index, len(x)), len(x)
        links = Links(nodes, code % nodes, code // nodes)
        known = torch.where(x.sum(dim=1) > 0, x.argmax(dim=1), -1)
        scores = self.ballots.score(links, self.ballots.speak(links, known))
        alone = torch.bincount(links.target, minlength=nodes) == 0
        return scores.masked_fill(alone[:, None], torch.nan)


def hashed(bench: Bench) -> tuple[Arrays, Facts]:
    """A vote of answers on separate groups of edges; any edge of the whole graph may be attacked.

    Label ballots of each group alone, or (of nodes with features) a network that has learnt on such groups; the validation
    nodes choose, whose own labels never speak for themselves.
    """
    graph, parts, case = bench.dataset.graph, bench.parts, bench.case
    known = bench.known(parts.train, parts.val)
    told = functional.one_hot(known + 1, bench.dataset.num_classes + 1)[:, 1:].float()
    heard = Data(x=told, edge_index=graph.edge_index)
    choices: list[tuple[str, Any, Data]] = [
        ("label ballots", us.Hashed(Hearsay(bench.dataset.num_classes), groups).eval(), heard)
        for groups in GROUPS
    ]
    for groups in GROUPS if bench.dataset.num_features else ():
        vote = fit_hashed(
            "sage", bench.dataset, parts, groups=groups, protocol=case.protocol, seed=case.seed, device=bench.device
        ).cpu()  # fmt: skip
        choices.append(("sage", vote, Data(x=graph.x, edge_index=graph.edge_index)))
    truth = bench.dataset.labels[parts.val].numpy()

    def score(choice: tuple[str, Any, Data]) -> float:
        proofs = us.prove(choice[1], us.AllPairs(choice[2], parts.val))
        return float(proofs.accuracy(truth, at=JUDGED_AT).mean())

    name, vote, data = max(choices, key=score)
    proofs = us.prove(vote, us.AllPairs(data, parts.test))
    bare = Data(x=data.x, edge_index=data.edge_index[:, :0])
    asked = (proofs, us.prove(vote, us.AllPairs(bare, parts.test)))
    right, edgeless = (float((own.label == bench.common()["truth"]).mean()) for own in asked)
    facts = {
        "threat": "all-pairs", "model": name, "groups": vote.groups,
        "base_accuracy": right, "accuracy_edgeless": edgeless,
    }  # fmt: skip
    return {"label": proofs.label, **{change: proofs.sizes(change) for change in CHANGES}}, facts


METHOD_OF: dict[str, Callable[[Bench], tuple[Arrays, Facts]]] = {
    "floors": floors,
    "label ballots": label_ballots,
    "trained": trained,
    "hashed": hashed,
    LIMIT: every_label,
    FORETOLD: foretold,
    DRAWN: drawn,
    "smoothed": smoothed,
    "pairs": pairs,
    "flags": flags,
}
