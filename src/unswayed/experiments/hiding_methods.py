"""What each method does with one graph and split: noise that only hides, votes of groups, exact ballots, floors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.hashed import Hashed
from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.hiding import Case
from unswayed.experiments.kept import Arrays, Facts
from unswayed.models.structure_free import all_floors
from unswayed.models.training import fit
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.hashed import fit_hashed
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import view

TARGETS, CHOOSING = 300, 200  # test nodes that are certified, and validation nodes that choose
KEEPS = ((2, 20), (3, 30), (5, 50), (10, 50))
DELETES = (0.7, 0.8, 0.9, 0.95)
HIDES = ((0.8, 0.8), (0.9, 0.0), (0.9, 0.8), (0.95, 0.0), (0.97, 0.0))  # nodes hidden, edges lost
GROUPS = (10, 20, 40)  # of the hashed votes; the validation nodes choose
JUDGED_AT = (0, 1, 2, 5, 10)
FEWER = 5  # whole graphs are asked about so many times less often than rows


@dataclass(frozen=True, eq=False)
class Bench:
    """One graph and split, and what several methods share."""

    case: Case
    dataset: Dataset
    parts: Split
    device: str
    samples: int

    @classmethod
    def of(cls, case: Case, device: str, samples: int) -> "Bench":
        """20 labels a class on Photo, else the graph's own split; the first test nodes are certified."""
        dataset = load(case.dataset, fetch=True)
        if case.dataset == "photo":
            dataset = replace(dataset, labelled=None)
        parts = split(dataset, case.seed, test="rest")
        return cls(case, dataset, replace(parts, test=parts.test[:TARGETS]), device, samples)

    def common(self) -> Arrays:
        """What every result holds."""
        return {"truth": self.dataset.labels[self.parts.test].numpy()}

    @cached_property
    def plain(self) -> Data:
        """The graph, without its labels."""
        return Data(x=self.dataset.graph.x, edge_index=self.dataset.graph.edge_index)

    @cached_property
    def teacher(self) -> Tensor:
        """Soft labels that networks and own scores learn."""
        seen = view(self.dataset, self.parts, self.case.protocol).to(self.device)
        return soft_labels(seen, self.dataset.num_classes, seed=self.case.seed, device=self.device)

    @cached_property
    def network(self) -> nn.Module:
        """The one base of all that is smoothed: it has learnt to answer from a few links, or none."""
        noise = us.Keep(5, 50) if self.case.dataset == "photo" else us.AddDelete(p_add=0, p_delete=0.9)
        return fit(
            "sage", self.dataset, self.parts, recipe="distill", noise=noise, protocol=self.case.protocol,
            seed=self.case.seed, device=self.device, teacher=self.teacher,
        )  # fmt: skip

    def about(self, model: nn.Module) -> Facts:
        """Accuracy on the test nodes with all edges and with none."""
        edges, model = self.plain.edge_index, model.cpu()
        with torch.no_grad():
            said = [model(self.plain.x, index).argmax(dim=1) for index in (edges, edges[:, :0])]
        right = [float((own == self.dataset.labels)[self.parts.test].float().mean()) for own in said]
        model.to(self.device)
        return {"base_accuracy": right[0], "accuracy_edgeless": right[1]}


def floors(bench: Bench) -> tuple[Arrays, Facts]:
    """What every structure-free model answers for the test nodes."""
    found = all_floors(bench.dataset, bench.parts, seed=bench.case.seed, device=bench.device)
    return {name: own.predictions[bench.parts.test].cpu().numpy() for name, own in found.items()}, {}


def _smoothed(bench: Bench, threat: Any, noises: Sequence[Any], samples: int) -> tuple[Arrays, Facts]:
    """The votes of the base under each noise; validation nodes choose later, test nodes certify."""
    nodes = {"val": bench.parts.val[:CHOOSING], "test": bench.parts.test}
    arrays: Arrays = {"val-truth": bench.dataset.labels[nodes["val"]].numpy()}
    tried: list[Facts] = []
    for noise in noises:
        for part, targets in nodes.items():
            votes = us.poll(
                bench.network, threat(bench.plain, targets), noise, samples=samples, device=bench.device,
                purpose="select" if part == "val" else "certify", progress=False,
            )  # fmt: skip
            assert votes.ones is not None
            arrays[f"{part}-{len(tried)}"] = votes.counts.astype(np.int32)
            arrays[f"{part}-ones"] = votes.ones
        tried.append({"model": "sage", "noise": votes.noise.to_dict()})
    told = {"tried": tried, "samples": samples, "entries": int(votes.entries[0])}
    return arrays, {**told, **bench.about(bench.network)}


def keep(bench: Bench) -> tuple[Arrays, Facts]:
    """A few of a node's links are kept."""
    return _smoothed(bench, us.Row, [us.Keep(*pair) for pair in KEEPS], bench.samples)


def delete(bench: Bench) -> tuple[Arrays, Facts]:
    """Links are deleted, none is added."""
    return _smoothed(bench, us.Row, [us.AddDelete(p_add=0, p_delete=p) for p in DELETES], bench.samples)


def hide(bench: Bench) -> tuple[Arrays, Facts]:
    """Nodes and edges are hidden; how many links a fake node has is asked later, since no vote depends on it."""
    noises = [us.Hide(nodes=n, edges=e) for n, e in HIDES]
    return _smoothed(bench, us.Inject, noises, max(1000, bench.samples // FEWER))


def _proved(bench: Bench, model: Any, threat: Any) -> tuple[Arrays, Facts]:
    proofs = us.prove(model, threat(bench.plain, bench.parts.test))
    return {"label": proofs.label, "adds": proofs.sizes("adds")}, {}


def _hashed(bench: Bench, by: str, threat: Any) -> tuple[Arrays, Facts]:
    """A vote of answers on separate groups; the validation nodes choose how many."""
    judges = bench.parts.val[:CHOOSING]
    truth = bench.dataset.labels[judges].numpy()

    def made(groups: int) -> Any:
        learnt = fit_hashed(
            "sage", bench.dataset, bench.parts, groups=groups, protocol=bench.case.protocol, seed=bench.case.seed,
            device=bench.device,
        ).cpu()  # fmt: skip
        assert isinstance(learnt, Hashed)
        return learnt if by == "edges" else us.Hashed(learnt.model, groups, by="nodes").eval()

    def score(vote: Any) -> float:
        proofs = us.prove(vote, threat(bench.plain, judges))
        return float(proofs.accuracy(truth, at=JUDGED_AT, change="adds").mean())

    vote = max(map(made, GROUPS), key=score)
    arrays, _ = _proved(bench, vote, threat)
    right = float((arrays["label"] == bench.common()["truth"]).mean())
    return arrays, {"model": "sage", "groups": vote.groups, "base_accuracy": right}


def hashed(bench: Bench) -> tuple[Arrays, Facts]:
    """Edges in groups: any edge of the whole graph may be attacked."""
    return _hashed(bench, "edges", us.AllPairs)


def hashed_by_nodes(bench: Bench) -> tuple[Arrays, Facts]:
    """Nodes in groups: any number of links of so many fake nodes."""
    return _hashed(bench, "nodes", us.Inject)


def _ballots(bench: Bench, settings: BallotSettings, threat: Any) -> tuple[Arrays, Facts]:
    network = fit(
        "ballots", bench.dataset, bench.parts, protocol=bench.case.protocol, seed=bench.case.seed,
        device=bench.device, settings=settings, teacher=bench.teacher,
    ).cpu()  # fmt: skip
    return {**_proved(bench, network, threat)[0]}, {"model": "ballots", **bench.about(network)}


def ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, by one network that has learnt to withstand additions."""
    return _ballots(bench, BallotSettings(change="adds"), us.Row)


def feature_ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, by voters that speak from their own features and labels alone, so that fake nodes move nobody else."""
    return _ballots(bench, BallotSettings(change="adds", voters="features"), us.Inject)


METHOD_OF: dict[str, Callable[[Bench], tuple[Arrays, Facts]]] = {
    "floors": floors,
    "keep": keep,
    "delete": delete,
    "hide": hide,
    "hashed": hashed,
    "hashed by nodes": hashed_by_nodes,
    "ballots": ballots,
    "feature ballots": feature_ballots,
}
