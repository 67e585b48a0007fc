"""One graph and split of the experiment on hiding, and what its methods share."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.hiding import Case
from unswayed.experiments.kept import Arrays, Facts
from unswayed.models.training import fit
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import view

TARGETS = 300  # test nodes that are certified


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

    def known(self, *parts: Tensor) -> Tensor:
        """int64[n]: the labels of these nodes, −1 elsewhere."""
        labels, told = self.dataset.labels, torch.cat(parts)
        return torch.full_like(labels, -1).index_copy(0, told, labels[told])

    @cached_property
    def own(self) -> Tensor:
        """float32[n, C]: what a perceptron that learnt from labels alone makes of each node's features, as shares."""
        network = fit(
            "mlp",
            self.dataset,
            self.parts,
            protocol=self.case.protocol,
            seed=self.case.seed,
            device=self.device,
        ).cpu()
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
