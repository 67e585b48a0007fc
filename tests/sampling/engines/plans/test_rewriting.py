"""Frozen plans against the modules they came from, in double precision: every rewriting is an identity."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.utils import dense_to_sparse

from unswayed.models.networks import GIN, GraphGCN
from unswayed.sampling.engines.graphs.dense import graph_plan
from unswayed.sampling.engines.graphs.matrices import Matrices
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.rewriting import Affine, Scaled, Sum, diagonal, frozen
from unswayed.sampling.engines.plans.steps import Weight


class Mixed(nn.Module):
    """States that are used again after a rectifier and a norm, two values of eps, and a plain sum."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.norm = nn.Linear(4, 6), nn.LayerNorm(6)
        self.first = gnn.GINConv(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), eps=0.5)
        self.second = gnn.GINConv(nn.Linear(6, 3), eps=-0.25)
        self.count = gnn.SimpleConv("sum")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        start = self.lift(x)
        x = start.relu() + self.norm(start).relu()
        x = self.first(x, edge_index).relu() + x + self.count(x, edge_index)
        return gnn.global_add_pool(self.second(x, edge_index), batch)


class MeanAndSum(Mixed):
    """One layer that is no plain sum: the diagonal must stay empty."""

    def __init__(self) -> None:
        super().__init__()
        self.count = gnn.SimpleConv("mean")


class Chained(nn.Module):
    """Linear maps one after the other, inside a layer and after it: each may move before the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = gnn.GINConv(nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5)), eps=0.5)
        self.last = nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return gnn.global_add_pool(self.last(self.conv(x, edge_index)), batch)


MODELS: dict[str, Any] = {
    "gin-batch": lambda: GIN(4, 3, hidden=8, layers=3),
    "gin-layer": lambda: GIN(4, 3, hidden=8, layers=3, norm="layer"),
    "gin-degrees": lambda: GIN(0, 3, hidden=8, layers=2),
    "gcn": lambda: GraphGCN(4, 3, 8, 2),
    "mixed": Mixed,
    "mean": MeanAndSum,
    "chained": Chained,
}


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    model: nn.Module = MODELS[name]().double().eval()
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point() and tensor.dim():
            tensor.data.uniform_(-1, 1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_var.uniform_(0.5, 2)
        if hasattr(module, "steps"):
            module.steps.copy_(torch.arange(module.steps.numel()))
    return model


def ask(plan: Steps, x: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
    """The plan's logits; the adjacency gets the diagonal that the plan expects."""
    own = diagonal(plan)
    if own is not None:
        adjacency = adjacency + torch.diag_embed(loops + own)
    around = Matrices(adjacency, loops)
    return plan.evaluate(x[None], lambda layer, h: layer.over(layer.send(h), around), around.pool)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_frozen_plans_answer_as_the_module_does(name: str) -> None:
    model = model_of(name)
    x = torch.ones(7, 1).double() if name == "gin-degrees" else torch.randn(7, 4).double()
    upper = (torch.rand(5, 7, 7) < 0.4).double().triu(1)
    adjacency, loops = upper + upper.mT, torch.zeros(1, 7).double()
    loops[0, 2] = 1
    plan = frozen(graph_plan(model))
    kept = x.clone()
    ours = ask(plan, x, adjacency, loops)
    theirs = [model(x, dense_to_sparse(a + torch.diag(loops[0]))[0]) for a in adjacency]
    torch.testing.assert_close(ours, torch.cat(theirs))
    torch.testing.assert_close(x, kept, rtol=0, atol=0)
    torch.testing.assert_close(ask(plan, x, adjacency, loops), ours, rtol=0, atol=0)


def test_a_gin_with_batch_norms_is_linear_maps_sums_and_rectifiers() -> None:
    plan = frozen(graph_plan(model_of("gin-batch")))
    inner = [step for step in plan.steps if step.kind == "rowwise" and len(step.inputs) == 1]
    assert all(isinstance(step.run, Affine | Weight) or step.run is torch.relu_ for step in inner)
    assert all(isinstance(layer, Sum) for layer in plan.rounds.values())
    # transformed once for all samples, before the sum
    assert next(iter(plan.rounds.values())).bias is not None


def test_layer_norms_are_scalings_of_centred_maps() -> None:
    runs = [step.run for step in frozen(graph_plan(model_of("gin-layer"))).steps]
    assert sum(isinstance(run, Scaled) for run in runs) == 6
    assert not any(isinstance(run, nn.LayerNorm) for run in runs)


def test_the_diagonal_is_left_to_layers_that_disagree_on_it() -> None:
    assert diagonal(frozen(graph_plan(model_of("mean")))) is None
    mixed: Any = model_of("mixed")
    assert diagonal(frozen(graph_plan(mixed))) == 1 + mixed.second.eps


def test_a_frozen_plan_keeps_its_weights() -> None:
    model = model_of("gin-batch")
    plan = frozen(graph_plan(model))
    x, adjacency, loops = (
        torch.randn(3, 4).double(),
        torch.zeros(2, 3, 3).double(),
        torch.zeros(1, 3).double(),
    )
    with torch.no_grad():
        before = ask(plan, x, adjacency, loops)
        for parameter in model.parameters():
            parameter.zero_()
        torch.testing.assert_close(ask(plan, x, adjacency, loops), before)
