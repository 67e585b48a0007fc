"""One graph, protocol and split of the experiment, and what several methods share."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import unswayed as us
from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.paying import Case
from unswayed.models.floors import Floor
from unswayed.models.floors.every import all_floors
from unswayed.models.training.teacher import taught
from unswayed.models.training.view import view

CHANGES = ("any", "adds", "deletes")


@dataclass(frozen=True, eq=False)
class Bench:
    """One graph, protocol and split, and what several methods share."""

    case: Case
    dataset: Dataset
    parts: Split
    device: str
    samples: int
    taught: dict[str, Tensor] = field(default_factory=dict)  # what a teacher said, by protocol
    heard: Arrays = field(default_factory=dict)  # votes that no training decides, by name
    measured: dict[str, Floor] = field(default_factory=dict)  # structure-free models, by name

    @classmethod
    def of(cls, case: Case, *, device: str = "cpu", samples: int = 10_000) -> "Bench":
        """The bench of a case; data are fetched where they are missing.

        Half of the nodes without a label are tested; the other half is there, as in life, and nothing is asked about it.
        """
        dataset = load(case.dataset, fetch=True)
        if dataset.task == "graph":
            return cls(case, dataset, split(dataset, case.seed), device, samples)
        parts = split(dataset, case.seed, test="rest")
        half = replace(parts, test=parts.test[: (len(parts.test) + 1) // 2])
        return cls(case, dataset, half, device, samples)

    def serves(self, case: Case) -> bool:
        """Whether the case is of the same graph and split."""
        return (case.dataset, case.seed) == (self.case.dataset, self.case.seed)

    def for_case(self, case: Case) -> "Bench":
        """The bench of another case that it serves."""
        return replace(self, case=case)

    def common(self) -> Arrays:
        """What every result holds: the truth and the degree of the test targets; of whole graphs, how many links there are and can be."""
        test = self.parts.test
        own = {"truth": self.dataset.labels[test].numpy()}
        if self.dataset.task == "graph":
            graphs = [self.dataset.graphs[place] for place in test.tolist()]
            links = [graph.edge_index.shape[1] // 2 for graph in graphs]
            pairs = [graph.num_nodes * (graph.num_nodes - 1) // 2 for graph in graphs]
            return {**own, "degree": np.array(links), "pairs": np.array(pairs)}
        degree = torch.bincount(self.dataset.graph.edge_index[0], minlength=len(self.dataset.labels))
        return {**own, "degree": degree[test].numpy()}

    def known(self, *parts: Tensor) -> Tensor:
        """int64[n]: the labels of these nodes, −1 elsewhere."""
        labels, told = self.dataset.labels, torch.cat(parts)
        return torch.full_like(labels, -1).index_copy(0, told, labels[told])

    @cached_property
    def label_ballots(self) -> us.LabelBallots:
        """Label ballots with all known labels, frozen."""
        known = self.known(self.parts.train, self.parts.val)
        return us.LabelBallots(self.dataset.num_classes).freeze(self.dataset.graph, known=known)

    def soft_labels(self) -> Tensor:
        """What networks under noise learn: of every node that may be seen, the word of the best teacher."""
        protocol = self.case.protocol
        if protocol not in self.taught:
            seen = view(self.dataset, self.parts, protocol).to(self.device)
            classes = self.dataset.num_classes
            self.taught[protocol] = taught(seen, classes, seed=self.case.seed, device=self.device)
        return self.taught[protocol]

    def floors(self) -> dict[str, Floor]:
        """Every structure-free model of this graph and split, by name."""
        if not self.measured:
            found = all_floors(
                self.dataset, self.parts, seed=self.case.seed, device=self.device, taught_already=self.taught
            )
            self.measured.update(found)
        return self.measured

    def right(self, model: nn.Module, edges: Tensor) -> float:
        """The share of test nodes about which the model is right on a graph with these edges."""
        with torch.no_grad():
            said = model(self.dataset.graph.x, edges).argmax(dim=1)
        return float((said == self.dataset.labels)[self.parts.test].float().mean())

    def about(self, model: nn.Module) -> Facts:
        """Accuracy with all edges and with none."""
        edges = self.dataset.graph.edge_index
        return {
            "base_accuracy": self.right(model, edges),
            "accuracy_edgeless": self.right(model, edges[:, :0]),
        }

    def proved(self, network: Any) -> tuple[Arrays, Facts]:
        """What is proved of each test node by a network that is frozen."""
        proofs = us.prove(network, us.Row(self.dataset.graph, self.parts.test))
        sizes = {change: proofs.sizes(change) for change in CHANGES}
        return {"label": proofs.label, **sizes}, {"threat": "row", **self.about(network)}
