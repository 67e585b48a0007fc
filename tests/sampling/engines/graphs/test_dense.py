"""The dense engine's votes against the generic engine's, sample by sample."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, erdos_renyi_graph

from unswayed.models import build
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.engine import spans
from unswayed.sampling.engines.graphs.dense import DenseEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs
from unswayed.theory.noise import AddDelete, Flip

from ..zoo import mlp


class Pooled(nn.Module):
    """Convolutions with a readout after each, or after the last only."""

    def __init__(self, convs: list[Any], width: int, readout: Any, every: bool = False) -> None:
        super().__init__()
        self.convs, self.readout, self.every = nn.ModuleList(convs), readout, every
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        seen = []
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            seen.append(self.readout(x, batch))
        return self.head(torch.cat(seen, dim=-1) if self.every else seen[-1])


MODELS: dict[str, Any] = {
    "gin-sum": lambda: Pooled(
        [gnn.GINConv(mlp(4, 8)), *[gnn.GINConv(mlp(8, 8)) for _ in range(4)]], 8, gnn.global_add_pool
    ),
    "gin-every": lambda: Pooled(
        [gnn.GINConv(mlp(4, 8), train_eps=True), gnn.GINConv(mlp(8, 8))], 16, gnn.global_add_pool, True
    ),
    "gcn-mean": lambda: Pooled(
        [gnn.GCNConv(4, 8), gnn.GCNConv(8, 8), gnn.GCNConv(8, 8)], 8, gnn.global_mean_pool
    ),
    "gcn-max": lambda: Pooled(
        [gnn.GCNConv(4, 8, add_self_loops=False), gnn.GCNConv(8, 8)], 8, gnn.global_max_pool
    ),
    "sage": lambda: Pooled([gnn.SAGEConv(4, 8), gnn.SAGEConv(8, 8)], 8, gnn.global_mean_pool),
    "gat": lambda: Pooled([gnn.GATConv(4, 4, heads=2), gnn.GATv2Conv(8, 8)], 8, gnn.global_add_pool),
}


def question(name: str, seed: int) -> Question:
    torch.manual_seed(seed)
    graphs = []
    for n in (5, 9, 9, 1, 13):
        edges = erdos_renyi_graph(n, 0.3) if n > 1 else torch.zeros((2, 0), dtype=torch.int64)
        if n == 9:
            edges = coalesce(torch.cat([edges, torch.tensor([[2], [2]])], dim=1))
        graphs.append(Data(x=torch.randn(n, 4), edge_index=edges, num_nodes=n))
    model = MODELS[name]().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    noise = [Flip(beta=0.8), AddDelete(p_add=0.05, p_delete=0.4)][seed % 2]
    return Question(model, AllPairs(graphs), noise, seed=seed, shared=seed != 1, dtype=torch.float64)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_votes_equal_the_generic_engines(name: str, seed: int) -> None:
    asked = question(name, seed)
    assert DenseEngine.supports(asked) is None
    fast, slow = DenseEngine(asked), GenericEngine(asked)
    np.testing.assert_array_equal(fast.count(5, 70), slow.count(5, 70))
    np.testing.assert_array_equal(fast.count(0, 9, (4, 1)), slow.count(0, 9, (4, 1)))


def test_chunks_of_any_size_give_the_same_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question("gin-sum", 0)
    whole = DenseEngine(asked).count(3, 50)
    monkeypatch.setattr("unswayed.sampling.engines.graphs.dense.NUMBERS", {"cpu": 1})
    monkeypatch.setattr("unswayed.sampling.engines.graphs.dense.SPAN", {"cpu": 1})
    np.testing.assert_array_equal(DenseEngine(asked).count(3, 50), whole)


def test_spans_hold_every_sample_once_and_begin_at_multiples_of_four() -> None:
    for start, stop, longest in [(3, 50, 7), (0, 10_000, 829), (5, 6, 1), (9, 9, 100)]:
        runs = list(spans(start, stop, longest))
        assert [i for run in runs for i in run] == list(range(start, stop))
        assert all(run.start % 4 == 0 for run in runs[1:])
        assert all(len(run) <= max(4, longest) for run in runs)


def test_auto_picks_it() -> None:
    assert choose(question("gin-every", 0)).name == "dense"


def test_degrees_counted_under_the_noise_are_understood() -> None:
    torch.manual_seed(0)
    graphs = [
        Data(x=torch.ones(n, 1), edge_index=erdos_renyi_graph(n, 0.5), num_nodes=n) for n in (4, 12, 70)
    ]
    asked = Question(
        build("gin", 0, 3, task="graph").eval(), AllPairs(graphs), Flip(beta=0.7), dtype=torch.float64
    )
    fast, slow = choose(replace(asked, engine="fast")), GenericEngine(asked)
    np.testing.assert_array_equal(fast.count(0, 60), slow.count(0, 60))


def test_a_model_that_does_not_pool_is_refused() -> None:
    asked = question("gin-sum", 0)
    flat = Question(gnn.GIN(4, 8, 2, 3).eval(), asked.threat, asked.noise)
    assert "not pooled" in str(DenseEngine.supports(flat))
