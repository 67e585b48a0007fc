"""The baseline of the bench asks about the same noisy graphs as the engines, and the document is plain JSON."""

import io
import json
from typing import Any

import pytest
import torch
import torch_geometric.nn as gnn
from rich.console import Console
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from unswayed.cli.bench import _table as table_of
from unswayed.datasets.made import block_model
from unswayed.experiments import bench
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Pairs, Row
from unswayed.theory.noise import AddDelete, Flip


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = gnn.GCNConv(4, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(gnn.global_add_pool(self.conv(x, edge_index).relu(), batch))


def question(kind: str) -> Question:
    torch.manual_seed(0)
    graphs = [
        Data(x=torch.randn(n, 4), edge_index=erdos_renyi_graph(n, 0.3), num_nodes=n) for n in (14, 9, 11)
    ]
    threat: Any = Row(graphs[0], [3, 0, 7]) if kind == "row" else AllPairs(graphs)
    if kind == "pairs":
        threat = Pairs(graphs[0], [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], [3, 0, 7])
    model = Pooled() if kind == "all-pairs" else gnn.GCN(4, 8, 2, 3)
    noise = AddDelete(p_add=0.2, p_delete=0.5) if kind == "pairs" else Flip(beta=0.7)
    return Question(model.eval(), threat, noise, seed=5)


@pytest.mark.parametrize("kind", ["row", "all-pairs"])
def test_one_at_a_time_gives_the_engines_votes(kind: str) -> None:
    asked = question(kind)
    seconds, labels = bench.one_at_a_time(asked, 60)
    assert seconds > 0
    votes = choose(asked).count(0, 20)
    for target in range(3):
        mine = torch.bincount(torch.as_tensor(labels[target::3]), minlength=3)
        assert mine.tolist() == votes[target].tolist()


def test_one_graph_that_votes_for_several_nodes_gives_the_engines_votes() -> None:
    asked = question("pairs")
    _, labels = bench.one_at_a_time(asked, 20)
    assert bench.votes_of_one(asked) == 3
    assert (choose(asked).labels(0, 20).numpy() == labels).all()


@pytest.mark.parametrize("model", ["sage", "gcn-3"])
def test_models_are_trained_on_the_features_that_they_are_asked_with(model: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(bench.datasets, "load", lambda name: block_model())
    asked = bench.question_of(bench.Case("blocks", model, targets=2, features=5), "cpu")
    assert asked.threat.graph.x.shape == (300, 5)
    assert choose(asked).count(0, 10).sum() == 20


def test_the_audit_is_timed_apart() -> None:
    asked = question("row")
    audit = bench.audited(asked, choose(asked), samples=50)
    # fewer answers than a poll's 300: all of them
    assert (len(audit.heard), audit.number("same")) == (
        150,
        150,
    )
    assert audit.seconds > 0


def test_the_document_is_strict_json() -> None:
    line = bench.Line(
        "d", "m", "row", "row", 10, 1.0, 1e5, 20, 1.0, 1, 1.0, 10.0, 10.0, 1.0, "", "", 300, 299, 0.5
    )
    document = json.loads(json.dumps(bench.document([line], "unswayed bench"), allow_nan=False))
    assert document["rows"][0]["times_baseline"] == 10.0
    assert document["rows"][0]["audited_seconds"] == 1e5 + 0.5
    assert document["machine"]["versions"]["torch"] == torch.__version__


def test_the_table_cuts_no_number_in_a_narrow_terminal() -> None:
    line = bench.Line(
        "cora", "gcn-mean", "pairs", "plan", 10, 1.0, 1177.3, 20, 17.9, 1, 51.0, 5887.0, 10.0, 1.0,
        "AddDelete(p_add=0.05, p_delete=0.5)", "", 300, 299, 4.0,
    )  # fmt: skip
    console = Console(width=80, file=io.StringIO())
    console.print(table_of([line]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for number in ("1,177.30", "1,181.30", "51,000", "17,900", "5,887", "100.0%"):
        assert number in shown
