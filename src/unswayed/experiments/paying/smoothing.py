"""What is asked under noise of one graph, protocol and split: label ballots, networks that learnt under noise, and a model without links."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import unswayed as us
from unswayed.ballots.fixed import SCALE
from unswayed.datasets import Dataset
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying.bench import Bench
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.floors.every import ALL_SEEN, fair
from unswayed.models.side_by_side import side_by_side
from unswayed.models.training import fit
from unswayed.models.training.own_scores import APART, MEMBERS

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
    """The votes of label ballots under every noise and, of nodes with features, of networks trained under some of them.

    A model that reads no link is always among what may be chosen, as it is among what is proved. Nothing is certified here: the
    validation nodes' votes choose later, the test nodes' votes certify. While choosing, the validation nodes' labels speak for nobody.
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
    if bench.dataset.num_features:
        silent = reads_no_link(bench)
        right = {"base_accuracy": silent.accuracy, "accuracy_edgeless": silent.accuracy}
        for noise in NOISES:
            for part, targets in nodes.items():
                arrays[f"{part}-{len(tried)}"] = all_votes(bench, silent.predictions[targets])
            tried.append({"model": f"{silent.name}, no links", **right, "noise": noise.to_dict()})
    degree = torch.bincount(graph.edge_index[0], minlength=len(bench.dataset.labels))
    arrays |= {f"{part}-ones": degree[targets].numpy() for part, targets in nodes.items()}
    arrays["val-truth"] = bench.dataset.labels[nodes["val"]].numpy()
    facts = {"threat": "row", "tried": tried, "samples": bench.samples, "entries": len(degree) - 1}
    return {**bench.heard, **arrays}, facts


def reads_no_link(bench: Bench) -> Floor:
    """The structure-free model of this protocol that did best on validation nodes, of those which these may judge.

    What learnt a teacher's word of validation nodes, but sees nothing of test nodes, does better on the former than it ever will.
    """
    found = bench.floors()
    names = [name for name in fair(found, bench.case.protocol) if name != ALL_SEEN]
    return max((found[name] for name in names), key=lambda own: own.validation)


def all_votes(bench: Bench, answers: Tensor) -> np.ndarray:
    """int32[targets, C]: every vote for these answers, since what reads no link answers the same under any noise."""
    said = functional.one_hot(answers, bench.dataset.num_classes)
    return (bench.samples * said).numpy().astype(np.int32)


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
