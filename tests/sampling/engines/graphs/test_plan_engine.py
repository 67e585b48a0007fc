"""The plan engine against the model itself asked one graph at a time, in double precision, in both arrangements."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, erdos_renyi_graph

from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.graphs.edges import Weighing
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine, node_plan
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Pairs, Row, Threat
from unswayed.theory.noise import AddDelete, Flip, Noise

from ..zoo import DEEP, ZOO

NODES = 26
NOISES: list[Noise] = [Flip(beta=0.7), AddDelete(p_add=0.03, p_delete=0.6)]
GLOBAL = ("graph-norm", "layer-norm", "pyg-layer-norm")  # one node moves all others


def graph(seed: int, loops: bool = False) -> Data:
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(NODES, 0.12)
    if loops:
        edges = coalesce(torch.cat([edges, torch.tensor([[2, 5], [2, 5]])], dim=1))
    return Data(x=torch.randn(NODES, 5, dtype=torch.float64), edge_index=edges, num_nodes=NODES)


def model_of(name: str, data: Data, scale: float = 0.5) -> nn.Module:
    model = {**ZOO, **DEEP}[name](5, 3).double().eval()
    if name == "lazy":
        model(data.x, data.edge_index)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=scale)
    return model


def asked(
    name: str, noise: Noise, threat: type[Threat] = Row, scale: float = 0.5, loops: bool = True
) -> Question:
    data = graph(len(name), loops)
    nodes = torch.tensor([0, 2, 5, 11])
    if threat is Pairs:
        pairs = torch.randint(0, NODES, (60, 2))
        pairs = torch.unique(pairs[pairs[:, 0] != pairs[:, 1]].sort(dim=1).values, dim=0)
        return Question(model_of(name, data, scale), Pairs(data, pairs.T, nodes), noise, dtype=torch.float64)
    return Question(model_of(name, data, scale), Row(data, nodes), noise, dtype=torch.float64)


def compare(question: Question, samples: int = 5, way: str = "") -> None:
    assert PlanEngine.supports(question) is None
    engine, targets = PlanEngine(question), tuple(range(len(question.threat)))
    engine.chosen, engine.tried = way, samples  # the first arrangement where this one is none
    ours = engine.answers(0, samples, targets)
    theirs = Alone(question).answers(range(samples), targets)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    assert torch.equal(engine.labels(0, samples), theirs.argmax(-1))


@pytest.mark.parametrize("way", ["star", "touched"])
@pytest.mark.parametrize("name", [*DEEP, "gcn-mean", "gcn-elu", "gat-residual", "sage", "gin", "one-layer"])
def test_logits_are_those_of_one_graph_at_a_time(name: str, way: str) -> None:
    for noise in NOISES:
        compare(asked(name, noise), way=way)


@pytest.mark.parametrize("way", ["touched", "switched"])
@pytest.mark.parametrize("name", [*(name for name in DEEP if name not in GLOBAL), "sage", "gcn-mean"])
def test_listed_pairs_are_those_of_one_graph_at_a_time(name: str, way: str) -> None:
    for noise in (AddDelete(p_add=0.05, p_delete=0.5), Flip(beta=0.6)):
        compare(asked(name, noise, Pairs), way=way)


@pytest.mark.parametrize("name", GLOBAL)
def test_listed_pairs_and_statistics_of_the_graph_are_left_to_the_generic_engine(name: str) -> None:
    obstacle = PlanEngine.supports(asked(name, NOISES[1], Pairs))
    assert obstacle is not None
    assert "all nodes" in obstacle


@pytest.mark.parametrize("way", ["star", "touched"])
@pytest.mark.parametrize("name", ["gat-3", "gat-3-no-loops", "gatv2-3", "transformer", "gated"])
def test_scores_that_differ_by_hundreds_lose_nothing(name: str, way: str) -> None:
    compare(asked(name, NOISES[1], scale=4.0), way=way)


@pytest.mark.parametrize("way", ["star", "touched"])
@pytest.mark.parametrize("name", ["gat-3", "gatv2-3", "transformer"])
def test_scores_measured_from_the_largest_are_the_same(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Weighing, "FAR", -1.0)
    for noise in NOISES:
        compare(asked(name, noise), way=way)


@pytest.mark.parametrize("way", ["star", "touched"])
@pytest.mark.parametrize("name", ["gat-3-no-loops", "transformer", "max", "sage-3", "appnp-then-gcn"])
def test_rows_that_lose_every_link(name: str, way: str) -> None:
    compare(asked(name, AddDelete(p_add=0.0, p_delete=0.9), loops=False), samples=24, way=way)


class Again(nn.Module):
    """Four symmetric sums; what goes into the second is read once more after it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.spread = gnn.GCNConv(5, 6), gnn.APPNP(1, 0.3)
        self.third, self.last = gnn.GCNConv(6, 6), gnn.GCNConv(6, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        x = self.third(self.spread(x, edge_index).relu() + x, edge_index)
        return self.last(x.relu(), edge_index)


@pytest.mark.parametrize("way", ["star", "touched", "switched"])
def test_only_states_that_nothing_else_reads_are_scaled_where_they_are(way: str) -> None:
    question = asked("gcn-3", NOISES[0], Row if way == "star" else Pairs)
    torch.manual_seed(0)
    question = replace(question, model=Again().double().eval())
    plan = node_plan(question.model)
    assert [layer.into for layer in plan.rounds.values()] == [False, False, True, True]
    compare(question, way=way)


def test_equal_structures_get_equal_sums_whichever_graph_the_noise_was_added_to() -> None:
    """A very large feature that is attached in one clean graph only leaves nothing behind once noise has removed it."""
    question = replace(asked("sage-3", NOISES[1], loops=False), dtype=torch.float32)
    threat: Tensor = question.threat  # type: ignore[assignment]
    row = threat.clean(0)  # type: ignore[attr-defined]
    v = int((~row).nonzero()[3])
    attacked = question.threat.attacked(0, torch.tensor([v]))
    for changed in (question.threat, attacked):
        changed.graph.x[v] = 1e12  # type: ignore[attr-defined]
    one, other = PlanEngine(question), PlanEngine(replace(question, threat=attacked))
    kept = torch.rand(8, NODES) < 0.4
    kept[:, v] = False
    for touching in (False, True):
        said = []
        for engine in (one, other):
            ask = engine._asker((0,))
            flips = (ask.layout.clean ^ kept,) * 2
            with torch.no_grad():
                said.append(ask.by_touch(flips) if touching else ask.by_star(flips))
        assert torch.equal(*said)


@pytest.mark.parametrize("name", ["gcn-3", "gat-3", "sage-3"])
def test_some_links_of_one_target_leave_its_others_where_they_are(name: str) -> None:
    data = graph(3)
    pairs = [(4, v) for v in range(12, 20)]
    compare(Question(model_of(name, data), Pairs(data, pairs, [4]), Flip(beta=0.7), dtype=torch.float64))


def test_auto_picks_it_and_a_bench_can_say_why_not() -> None:
    assert choose(asked("gcn-3", NOISES[0])).name == "plan"
    slow = choose(replace(asked("graph-norm", NOISES[1], Pairs), engine="auto"))
    assert slow.name == "generic"
    assert "plan:" in slow.why


@pytest.mark.parametrize("sizes", [{"STATES": 1}, {"SPAN": 1}, {"KEPT": 0}])
def test_chunks_of_any_size_give_the_same_votes(
    sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PlanEngine(asked("gat-3", NOISES[0]))
    whole = engine.labels(0, 50)
    for size, value in sizes.items():
        monkeypatch.setattr(f"unswayed.sampling.engines.graphs.plan_engine.{size}", {"cpu": value})
    assert torch.equal(PlanEngine(engine.question).labels(0, 50), whole)
