"""One graph and split of the experiment on hiding, and what its methods share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.hiding import Case
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.models.training import fit
from unswayed.models.training.own_scores import MEMBERS, OwnScores
from unswayed.models.training.teacher import taught
from unswayed.models.training.view import View, view

TARGETS = 300  # test nodes that are certified
WIDE = 64  # hidden channels of each perceptron that a node speaks for itself by
# how much a node's own word weighs beside its neighbours', and how far it usually leads, in their votes
TAUS, LEADS = (2.0, 10.0, 50.0), (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)


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
        """Soft labels that networks and own scores learn: of networks or of label ballots, whoever did better on validation nodes."""
        return taught(self.seen, self.dataset.num_classes, seed=self.case.seed, device=self.device)

    def network(self, noise: Any) -> nn.Module:
        """The base of what is smoothed: a GraphSAGE that has learnt, under this noise, what the teacher says."""
        return fit(
            "sage", self.dataset, self.parts, recipe="distill", noise=noise, protocol=self.case.protocol,
            seed=self.case.seed, device=self.device, teacher=self.teacher,
        )  # fmt: skip

    def learnt(self, name: str) -> nn.Module:
        """A network that has learnt the labels on the clean graph."""
        return fit(
            name, self.dataset, self.parts, protocol=self.case.protocol, seed=self.case.seed, device=self.device
        )  # fmt: skip

    @cached_property
    def seen(self) -> View:
        """What may be seen before the attack: under the inductive protocol, no test node."""
        return view(self.dataset, self.parts, self.case.protocol).to(self.device)

    @cached_property
    def shaped(self) -> Tensor:
        """bool[n]: the nodes whose links shaped what the teacher said."""
        shaped = torch.zeros(len(self.dataset.labels), dtype=torch.bool)
        shaped[self.seen.kept.cpu()] = True
        return shaped

    def told(self, *parts: Tensor) -> Tensor:
        """int64[n]: the labels of these nodes, what the teacher said of others that it saw, −1 of those that it did not see."""
        said = torch.full_like(self.dataset.labels, -1)
        said[self.seen.kept.cpu()] = self.teacher.argmax(dim=1).cpu()
        known = self.known(*parts)
        return torch.where(known >= 0, known, said)

    def mixtures(self) -> Iterator[us.BallotNetwork]:
        """Networks of own scores, which learnt from the teacher or from labels, and labels that neighbours say: one louder, or the other."""
        features, classes, x = self.dataset.num_features, self.dataset.num_classes, self.plain.x

        def network(tau: float, wide: int = WIDE * MEMBERS, seed: int = self.case.seed) -> us.BallotNetwork:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                drawn = us.BallotNetwork(features, classes, voters="features", own_hidden=wide, tau=tau)
            return drawn.eval()

        learning = OwnScores(
            lambda seed: network(1.0, WIDE, seed).own.to(self.device),
            self.seen, classes, self.case.seed, self.device,
        )  # fmt: skip
        weights, *_ = learning.best(self.case.protocol, distil=True, teacher=self.teacher)
        for tau, lead in product(TAUS, LEADS):
            mixed = network(tau)
            mixed.own.load_state_dict(weights)
            with torch.no_grad():
                first, second = mixed.own(x[self.parts.val]).topk(2, dim=1).values.T
                mixed.own_weight.fill_(lead / float((first - second).median()))
            yield mixed

    def known(self, *parts: Tensor) -> Tensor:
        """int64[n]: the labels of these nodes, −1 elsewhere."""
        labels, told = self.dataset.labels, torch.cat(parts)
        return torch.full_like(labels, -1).index_copy(0, told, labels[told])

    @cached_property
    def own(self) -> Tensor:
        """float32[n, C]: what a perceptron that learnt from labels alone makes of each node's features, as shares."""
        network = self.learnt("mlp").cpu()
        with torch.no_grad():
            shares: Tensor = network(self.plain.x, self.plain.edge_index).softmax(dim=1)
        return shares

    def about(self, model: nn.Module, data: Data | None = None) -> Facts:
        """Accuracy on the test nodes with all edges and with none."""
        edges, model = self.plain.edge_index, model.cpu()
        x = self.plain.x if data is None else data.x
        with torch.no_grad():
            said = [model(x, index).argmax(dim=1) for index in (edges, edges[:, :0])]
        right = [float((own == self.dataset.labels)[self.parts.test].float().mean()) for own in said]
        model.to(self.device)
        return {"base_accuracy": right[0], "accuracy_edgeless": right[1]}
