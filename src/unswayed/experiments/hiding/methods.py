"""What each method does with one graph and split: noise that only hides, votes of groups, exact ballots, floors."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import unswayed as us
from unswayed.ballots.hashed import Hashed
from unswayed.experiments.hiding.bench import Bench
from unswayed.experiments.hiding.shared import deletions
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying.methods import Hearsay
from unswayed.experiments.paying.smoothing import Tally, ballots_of
from unswayed.models.floors.every import all_floors
from unswayed.models.training import fit
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.hashed import fit_hashed

CHOOSING = 200  # validation nodes that choose
KEEPS = ((1, 20), (1, 50), (2, 50), (5, 50), (2, 100))
DELETES = (0.8, 0.9, 0.95, 0.98)
HIDES = ((0.8, 0.8), (0.9, 0.0), (0.95, 0.0), (0.97, 0.0), (0.99, 0.0))  # nodes hidden, edges lost
# what networks learn under: few links or none, as each noise leaves them
LEARNT_KEEP, LEARNT_DELETE = us.Keep(2, 50), us.AddDelete(p_add=0, p_delete=0.95)
GROUPS = (20, 40, 80)  # of the hashed votes; the validation nodes choose
JUDGED_AT = (0, 1, 2, 5, 10)
AUDITED = 30  # answers of each poll that are asked again: a network is polled ten times
FEWER = 5  # whole graphs are asked about so many times less often than rows


def floors(bench: Bench) -> tuple[Arrays, Facts]:
    """What every structure-free model answers for the test nodes."""
    found = all_floors(
        bench.dataset, bench.parts, seed=bench.case.seed, device=bench.device,
        taught_already={bench.case.protocol: bench.teacher},
    )  # fmt: skip
    return {name: own.predictions[bench.parts.test].cpu().numpy() for name, own in found.items()}, {}


class OwnAndLabels(nn.Module):
    """What a node's own features say, and the sum of what is known of its neighbours: half of the columns each."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = SimpleConv("sum")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of every node; a node without links answers from its features."""
        own, labels = x.chunk(2, dim=1)
        out: Tensor = own + self.sum(labels, edge_index)
        return out


def label_floor(bench: Bench) -> tuple[Arrays, Facts]:
    """The majority, and a perceptron that learns from labels alone."""
    labels, parts = bench.dataset.labels, bench.parts
    said = bench.own.argmax(dim=1)[parts.test]
    majority = labels[parts.train].bincount().argmax().expand(len(parts.test))
    return {"majority": majority.numpy(), "labels": said.numpy()}, {}


def _smoothed(
    bench: Bench,
    threat: Any,
    noises: Sequence[Any],
    samples: int,
    model: nn.Module,
    told: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Arrays, Facts]:
    """The votes of the base under each noise; validation nodes choose later, test nodes certify.

    `told` makes features of known labels; while validation nodes choose, their own labels are not among these.
    """
    known = {"val": (bench.parts.train,), "test": (bench.parts.train, bench.parts.val)}
    data = {
        part: bench.plain
        if told is None
        else Data(x=told(bench.known(*who)), edge_index=bench.plain.edge_index)
        for part, who in known.items()
    }
    nodes = {"val": bench.parts.val[:CHOOSING], "test": bench.parts.test}
    arrays: Arrays = {"val-truth": bench.dataset.labels[nodes["val"]].numpy()}
    tried: list[Facts] = []
    for noise in noises:
        for part, targets in nodes.items():
            votes = us.poll(
                model, threat(data[part], targets), noise, samples=samples, device=bench.device,
                purpose="select" if part == "val" else "certify", progress=False, audit=AUDITED,
            )  # fmt: skip
            assert votes.ones is not None
            arrays[f"{part}-{len(tried)}"] = votes.counts.astype(np.int32)
            arrays[f"{part}-ones"] = votes.ones
        tried.append({"model": "sage" if told is None else "labels", "noise": votes.noise.to_dict()})
    how = {"tried": tried, "samples": samples, "entries": int(votes.entries[0])}
    return arrays, {**how, **bench.about(model, data["test"])}


def _one_hot(bench: Bench) -> Callable[[Tensor], Tensor]:
    """Known labels as features, a column a class."""
    return lambda known: functional.one_hot(known + 1, bench.dataset.num_classes + 1)[:, 1:].float()


def keep_labels(bench: Bench) -> tuple[Arrays, Facts]:
    """The sum of label ballots of a few links."""
    noises = [us.Keep(*pair) for pair in KEEPS]
    return _smoothed(bench, us.Row, noises, bench.samples, Tally().eval(), partial(ballots_of, bench.dataset))


def delete_labels(bench: Bench) -> tuple[Arrays, Facts]:
    """The sum of label ballots of the links that are not deleted."""
    noises = [us.AddDelete(p_add=0, p_delete=p) for p in DELETES]
    return _smoothed(bench, us.Row, noises, bench.samples, Tally().eval(), partial(ballots_of, bench.dataset))


def hide_labels(bench: Bench) -> tuple[Arrays, Facts]:
    """What a node's own features say and its neighbours' known labels, where nodes and edges are hidden."""
    noises = [us.Hide(nodes=n, edges=e) for n, e in HIDES]
    samples, labels = max(1000, bench.samples // FEWER), _one_hot(bench)

    def told(known: Tensor) -> Tensor:
        return torch.cat([bench.own, labels(known)], dim=1)

    return _smoothed(bench, us.Inject, noises, samples, OwnAndLabels().eval(), told)


def keep(bench: Bench) -> tuple[Arrays, Facts]:
    """A few of a node's links are kept."""
    noises = [us.Keep(*pair) for pair in KEEPS]
    return _smoothed(bench, us.Row, noises, bench.samples, bench.network(LEARNT_KEEP))


def delete(bench: Bench) -> tuple[Arrays, Facts]:
    """Links are deleted, none is added."""
    noises = [us.AddDelete(p_add=0, p_delete=p) for p in DELETES]
    return _smoothed(bench, us.Row, noises, bench.samples, bench.network(LEARNT_DELETE))


def hide(bench: Bench) -> tuple[Arrays, Facts]:
    """Nodes and edges are hidden; how many links a fake node has is asked later, since no vote depends on it."""
    noises = [us.Hide(nodes=n, edges=e) for n, e in HIDES]
    return _smoothed(
        bench, us.Inject, noises, max(1000, bench.samples // FEWER), bench.network(LEARNT_DELETE)
    )


def _proved(bench: Bench, model: Any, threat: Any) -> tuple[Arrays, Facts]:
    proofs = us.prove(model, threat(bench.plain, bench.parts.test))
    return {"label": proofs.label, "adds": proofs.sizes("adds")}, {}


def label_ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, without any training."""
    known = bench.known(bench.parts.train, bench.parts.val)
    frozen = us.LabelBallots(bench.dataset.num_classes).freeze(bench.dataset.graph, known=known)
    return {**_proved(bench, frozen, us.Row)[0]}, {"model": "label ballots", **bench.about(frozen)}


def label_votes(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, without any training: neighbours say the labels that are known of them, and nothing else."""
    known, classes = bench.known(bench.parts.train, bench.parts.val), bench.dataset.num_classes
    network = us.BallotNetwork(bench.dataset.num_features, classes, voters="features").eval()
    frozen = network.freeze(bench.plain, known=known)
    return {**_proved(bench, frozen, us.Inject)[0]}, {"model": "label votes", **bench.about(frozen)}


def hash_labels(bench: Bench) -> tuple[Arrays, Facts]:
    """A vote of label ballots of separate groups of edges; the validation nodes choose how many."""
    parts, heard = bench.parts, _one_hot(bench)
    judges, edges = parts.val[:CHOOSING], bench.plain.edge_index
    truth = bench.dataset.labels[judges].numpy()
    asked = {name: Data(x=heard(known), edge_index=edges) for name, known in (
        ("val", bench.known(parts.train)), ("test", bench.known(parts.train, parts.val)),
    )}  # fmt: skip

    def score(vote: Any) -> float:
        proofs = us.prove(vote, us.AllPairs(asked["val"], judges))
        return float(proofs.accuracy(truth, at=JUDGED_AT, change="adds").mean())

    votes = [us.Hashed(Hearsay(bench.dataset.num_classes), groups).eval() for groups in GROUPS]
    vote = max(votes, key=score)
    proofs = us.prove(vote, us.AllPairs(asked["test"], parts.test))
    right = float((proofs.label == bench.common()["truth"]).mean())
    facts = {"model": "label ballots", "groups": vote.groups, "base_accuracy": right}
    return {"label": proofs.label, "adds": proofs.sizes("adds")}, facts


def _hashed(bench: Bench, by: str, threat: Any) -> tuple[Arrays, Facts]:
    """A vote of answers on separate groups; the validation nodes choose how many."""
    judges = bench.parts.val[:CHOOSING]
    truth = bench.dataset.labels[judges].numpy()

    def made(groups: int) -> Any:
        learnt = fit_hashed(
            "sage", bench.dataset, bench.parts, groups=groups, protocol=bench.case.protocol, seed=bench.case.seed,
            device=bench.device, teacher=bench.teacher,
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


def ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact, by one network that has learnt to withstand additions."""
    network = fit(
        "ballots", bench.dataset, bench.parts, protocol=bench.case.protocol, seed=bench.case.seed,
        device=bench.device, settings=BallotSettings(change="adds"), teacher=bench.teacher,
    ).cpu()  # fmt: skip
    return {**_proved(bench, network, us.Row)[0]}, {"model": "ballots", **bench.about(network)}


def _snapshot(bench: Bench, threat: Any) -> tuple[Arrays, Facts]:
    """A node's own features, and what the teacher once said of its neighbours; the validation nodes choose how loud each is."""
    judges = bench.parts.val[:CHOOSING]
    truth = bench.dataset.labels[judges].numpy()

    def score(network: us.BallotNetwork) -> float:
        proofs = us.prove(
            network.freeze(bench.plain, known=bench.told(bench.parts.train)), threat(bench.plain, judges)
        )
        return float(proofs.accuracy(truth, at=JUDGED_AT, change="adds").mean())

    network = max(bench.mixtures(), key=score)
    frozen = network.freeze(bench.plain, known=bench.told(bench.parts.train, bench.parts.val))
    frozen.keep(seen=bench.shaped)
    return {**_proved(bench, frozen, threat)[0]}, {"model": "snapshot ballots", **bench.about(frozen)}


def snapshot_ballots(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact against links: anybody may be linked to, and says what was said of it once."""
    return _snapshot(bench, us.Row)


def snapshot_votes(bench: Bench) -> tuple[Arrays, Facts]:
    """Exact against fake nodes, of which nothing was ever said."""
    return _snapshot(bench, us.Inject)


METHOD_OF: dict[str, Callable[[Bench], tuple[Arrays, Facts]]] = {
    "label floor": label_floor,
    "keep labels": keep_labels,
    "delete labels": delete_labels,
    "hash labels": hash_labels,
    "label ballots": label_ballots,
    "hide labels": hide_labels,
    "label votes": label_votes,
    "floors": floors,
    "keep": keep,
    "delete": delete,
    "hide": hide,
    "hashed": hashed,
    "hashed by nodes": hashed_by_nodes,
    "ballots": ballots,
    "snapshot ballots": snapshot_ballots,
    "snapshot votes": snapshot_votes,
    "deletions": deletions,
}
