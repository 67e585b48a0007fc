"""What each method of the experiment does with one graph, protocol and split: exact proofs, votes of groups, noise."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import unswayed as us
from unswayed.ballots.fixed import SCALE
from unswayed.ballots.links import Links, codes
from unswayed.datasets import Dataset, split
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying import DRAWN, LIMIT, TIES_LOST, TRAINING_ALONE
from unswayed.experiments.paying.bench import CHANGES, Bench
from unswayed.experiments.paying.others import flags, pairs
from unswayed.models import build
from unswayed.models.floors import floor, most_common
from unswayed.models.side_by_side import side_by_side
from unswayed.models.structure_free import all_floors
from unswayed.models.training import fit
from unswayed.models.training.hashed import fit_hashed
from unswayed.models.training.own_scores import APART, MEMBERS

GROUPS = (10, 20, 40)  # of the hashed vote; the validation nodes choose
MOST_POLLED = 500  # test targets that are asked under noise
MOST_CHOOSING = 500  # validation targets that choose the noise
NOISES = (
    *(us.Flip(beta=beta) for beta in (0.95, 0.9, 0.8, 0.7)),
    *(us.AddDelete(p_add=a, p_delete=r) for a, r in ((0.01, 0.6), (0.03, 0.8), (0.1, 0.9))),
    *(us.AddDelete(p_add=0.0, p_delete=r) for r in (0.8, 0.9, 0.95)),
    *(us.Keep(kept=s, seats=d) for s, d in ((1, 50), (3, 30), (5, 50), (9, 100))),
)
# networks of nodes with features: what each learns under, and the noises it is asked under
TRAINED_UNDER = {
    us.Flip(beta=0.9): (us.Flip(beta=0.9),),
    us.AddDelete(p_add=0.01, p_delete=0.6): (us.AddDelete(p_add=0.01, p_delete=0.6),),
    us.AddDelete(p_add=0.0, p_delete=0.95): tuple(
        us.AddDelete(p_add=0.0, p_delete=r) for r in (0.8, 0.9, 0.95)
    ),
    us.Keep(kept=2, seats=50): tuple(us.Keep(kept=s, seats=d) for s, d in ((1, 50), (2, 50), (5, 50))),
}
HIDDEN = 64  # channels of each of these networks
EXACT_BITS = 24  # whole numbers up to 2 to this power are exact in single precision
JUDGED_AT = (0, 1, 2, 3, 5, 10)


def floors(bench: Bench) -> tuple[Arrays, Facts]:
    """What every structure-free model answers for the test targets; of graphs, what folds chose."""
    if bench.dataset.task == "graph":
        best = floor(bench.dataset, bench.parts, seed=bench.case.seed, device=bench.device)
        return {"counts": best.predictions[bench.parts.test].numpy()}, {"model": best.name}
    found = all_floors(
        bench.dataset, bench.parts, seed=bench.case.seed, device=bench.device, taught_already=bench.taught
    )
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
    right = float((proofs.label == bench.common()["truth"]).mean())
    facts = {"threat": "all-pairs", "model": name, "groups": vote.groups, "base_accuracy": right}
    return {"label": proofs.label, **{change: proofs.sizes(change) for change in CHANGES}}, facts


class Tally(nn.Module):
    """The sum of what neighbours say; what they say is given as features."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = SimpleConv("sum")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of every node."""
        out: Tensor = self.sum(x, edge_index)
        return out


def smoothed(bench: Bench) -> tuple[Arrays, Facts]:
    """The votes of label ballots under every noise, and (of nodes with features) of networks trained under some.

    Nothing is certified here: the validation nodes' votes choose later, the test nodes' votes certify. While choosing, the
    validation nodes' labels speak for nobody.
    """
    graph, parts = bench.dataset.graph, bench.parts
    nodes = {"val": parts.val[:MOST_CHOOSING], "test": parts.test[:MOST_POLLED]}
    known = {"val": bench.known(parts.train), "test": bench.known(parts.train, parts.val)}
    arrays: Arrays = {}
    tried: list[Facts] = []

    def ask(model: nn.Module, about: Facts, noise: Any, data: dict[str, Data]) -> None:
        for part, targets in nodes.items():
            name, purpose = f"{part}-{len(tried)}", "select" if part == "val" else "certify"
            if name not in bench.heard:
                votes = us.poll(
                    model, us.Row(data[part], targets), noise, samples=bench.samples, device=bench.device,
                    purpose=purpose, progress=False,
                )  # fmt: skip
                arrays[name] = votes.counts.astype(np.int32)
        tried.append({**about, "noise": noise.to_dict()})

    said = {
        part: Data(x=ballots_of(bench.dataset, known[part]), edge_index=graph.edge_index) for part in nodes
    }
    heard = {"model": "label ballots", **bench.about(bench.label_ballots)}
    for noise in NOISES:
        ask(Tally().eval(), heard, noise, said)
    bench.heard.update(arrays)
    plain = Data(x=graph.x, edge_index=graph.edge_index)
    for noises, network in mean_networks(bench) if bench.dataset.num_features else ():
        about = {"model": "sage", **bench.about(copy.deepcopy(network).cpu())}
        for noise in noises:
            ask(network, about, noise, {"val": plain, "test": plain})
    degree = torch.bincount(graph.edge_index[0], minlength=len(bench.dataset.labels))
    arrays |= {f"{part}-ones": degree[targets].numpy() for part, targets in nodes.items()}
    arrays["val-truth"] = bench.dataset.labels[nodes["val"]].numpy()
    facts = {"threat": "row", "tried": tried, "samples": bench.samples, "entries": len(degree) - 1}
    return {**bench.heard, **arrays}, facts


def mean_networks(bench: Bench) -> Iterator[tuple[tuple[Any, ...], nn.Module]]:
    """(noises to be asked under, network): the mean of as many networks that learnt under noise as a floor has perceptrons."""
    dataset, soft = bench.dataset, bench.soft_labels()

    def member(noise: Any, number: int) -> nn.Module:
        return fit(
            "sage", dataset, bench.parts, recipe="distill", noise=noise, protocol=bench.case.protocol,
            seed=bench.case.seed + APART * number, device=bench.device, teacher=soft,
        )  # fmt: skip

    for noise, noises in TRAINED_UNDER.items():
        wide = build("sage", dataset.num_features, dataset.num_classes, hidden=HIDDEN * MEMBERS)
        parts = [member(noise, number).state_dict() for number in range(MEMBERS)]
        wide.load_state_dict(side_by_side(parts))
        yield noises, wide.to(bench.device)


def ballots_of(dataset: Dataset, known: Tensor) -> Tensor:
    """float32[n, C]: what every node says to a node whose own label is unknown, in whole numbers.

    So small that all of them together are added without rounding, in any order: ties are ties wherever they are asked.
    """
    frozen = us.LabelBallots(dataset.num_classes).freeze(dataset.graph, known=known)
    levels = 2.0 ** (EXACT_BITS - len(known).bit_length())
    return (frozen.ballot_table[: len(known)].double() / SCALE * levels).round().float()


METHOD_OF: dict[str, Callable[[Bench], tuple[Arrays, Facts]]] = {
    "floors": floors,
    "label ballots": label_ballots,
    "trained": trained,
    "hashed": hashed,
    LIMIT: every_label,
    DRAWN: drawn,
    "smoothed": smoothed,
    "pairs": pairs,
    "flags": flags,
}
