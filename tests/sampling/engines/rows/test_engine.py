"""The row engine's votes against the generic engine's, sample by sample."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import coalesce, erdos_renyi_graph

from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.rows import attended, sorting
from unswayed.sampling.engines.rows import engine as row_engine
from unswayed.sampling.engines.rows.engine import RowEngine, RowLogits
from unswayed.sampling.engines.rows.sums import Flips, TargetSum
from unswayed.sampling.question import Question
from unswayed.sampling.stream import Stream
from unswayed.sampling.threats import Row
from unswayed.theory.noise import AddDelete, Flip

from ..zoo import ZOO

COUPLED = ("gcn-elu", "pyg-gcn", "gcn-then-gat")  # attached nodes have states that depend on the whole row
NOISES = [Flip(beta=0.7), AddDelete(p_add=0.1, p_delete=0.4), Flip(beta=0.3)]


def question(
    name: str, seed: int, shared: bool = True, dtype: torch.dtype | None = torch.float64
) -> Question:
    torch.manual_seed(seed)
    n = 20 + 7 * (seed % 4)
    edges = erdos_renyi_graph(n, 0.12)
    if seed % 2:
        edges = coalesce(torch.cat([edges, torch.tensor([[2, 5], [2, 5]])], dim=1))
    data = Data(x=torch.randn(n, 5), edge_index=edges, num_nodes=n)
    model = ZOO[name](5, 3).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    nodes = torch.randperm(n)[:7]
    return Question(model, Row(data, nodes), NOISES[seed % 3], seed=seed, shared=shared, dtype=dtype)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_votes_equal_the_generic_engines(name: str, seed: int) -> None:
    asked = question(name, seed, shared=seed != 2)
    kind = PlanEngine if name in COUPLED else RowEngine
    assert (RowEngine.supports(asked) is None) == (kind is RowEngine)
    fast, slow = kind(asked), GenericEngine(asked)
    ours, theirs = fast.count(3, 90), slow.count(3, 90)
    assert theirs.sum() == 7 * 87
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(fast.count(10, 25, (4, 1)), slow.count(10, 25, (4, 1)))


def test_auto_picks_it() -> None:
    assert choose(question("gat", 0)).name == "row"


@pytest.mark.parametrize("name", ["gat", "gat-no-loops", "gatv2"])
def test_attention_scores_that_differ_by_hundreds_lose_nothing(name: str) -> None:
    asked = question(name, 0, dtype=None)
    with torch.no_grad():
        for parameter in asked.model.parameters():
            parameter.mul_(8)
    fast, slow = RowEngine(asked), GenericEngine(asked)
    assert fast.safe is not None
    np.testing.assert_array_equal(fast.count(0, 60), slow.count(0, 60))


@pytest.mark.parametrize("name", ["gat", "gat-no-loops", "gat-residual"])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_way_of_summing_attention_gives_the_same_logits(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question(name, seed)
    with torch.no_grad():
        for parameter in asked.model.parameters():
            parameter.mul_(0.5)  # scores apart, yet close enough to be sorted
    n = asked.threat.graph.num_nodes
    drawn = asked.stream.flips(0, 50, n, asked.noise)

    def logits() -> torch.Tensor:
        engine = RowEngine(asked)
        ask = RowLogits(engine.known, engine.nodes)
        first, second = ask.sums.values()
        found.append((type(first), type(second.signs)))
        with torch.no_grad():
            return ask(drawn)

    found: list[tuple[type, type]] = []
    ours = logits()
    monkeypatch.setattr(sorting, "UNLIKE", -1.0)
    monkeypatch.setattr(attended, "SPREAD", -1.0)
    torch.testing.assert_close(ours, logits(), rtol=1e-10, atol=1e-10)
    assert found == [(sorting.SortedSum, attended.Signs), (TargetSum, type(None))]


@pytest.mark.parametrize("name", ["gat", "gat-no-loops"])
def test_a_target_that_outweighs_all_others_overflows_nothing(name: str) -> None:
    asked = question(name, 1, dtype=torch.float32)
    engine, n = RowEngine(asked), asked.threat.graph.num_nodes
    drawn = asked.stream.flips(0, 50, n, asked.noise)
    ask = RowLogits(engine.known, engine.nodes)
    _, attended = ask.sums.values()
    values, sender, receiver, extra = attended.layer.send(torch.randn(50, 7, 8))
    own = values, sender + 200, receiver, extra
    with torch.no_grad():
        ours = attended(drawn, Flips.of(drawn, ask.near, torch.float32), own)
        assert attended.signs is not None
        attended.signs = None
        torch.testing.assert_close(ours, attended(drawn, Flips.of(drawn, ask.near, torch.float32), own))
    assert ours.isfinite().all()


@pytest.mark.parametrize("slope", [-3.0, 0.0, 1.0, 8.0])
def test_any_slope_of_attention(slope: float) -> None:
    asked = question("gat-no-loops", 0, dtype=None)
    for layer in (asked.model.first, asked.model.second):
        layer.negative_slope = slope
        layer.att_src.data.mul_(0.1)
        layer.att_dst.data.mul_(8)
    targets = tuple(range(7))
    ours, theirs = (engine(asked).answers(0, 64, targets) for engine in (RowEngine, GenericEngine))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("by_sorting", [True, False])
def test_rows_that_lose_every_entry_send_nothing_to_attention_without_loops(
    by_sorting: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_sorting:
        monkeypatch.setattr(sorting, "UNLIKE", -1.0)
    asked = replace(question("gat-residual", 1, dtype=dtype), noise=AddDelete(p_add=0.02, p_delete=0.9))
    fast, slow = RowEngine(asked), GenericEngine(asked)
    np.testing.assert_array_equal(fast.count(0, 200), slow.count(0, 200))


@pytest.mark.parametrize("room", [0, 3 * 30 * 100, 10**9])
def test_what_is_kept_between_blocks_changes_no_vote(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(row_engine.KEPT, "cpu", room)
    monkeypatch.setattr(row_engine.RowEngine, "_targets_at_once", lambda self: 2)
    asked = question("gat", 0)
    engine, fresh = RowEngine(asked), RowEngine(asked)
    for start in (0, 40, 80):
        fresh.kept.clear()
        np.testing.assert_array_equal(engine.count(start, start + 40), fresh.count(start, start + 40))
    np.testing.assert_array_equal(engine.count(0, 40, (3, 1)), fresh.count(0, 40, (3, 1)))
    held = sum(map(len, engine.kept))
    assert held * engine.known.around.n * engine.width <= room
    assert (held > 0) == (room > 0)


class Cancelling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.one, self.two = GraphConv(3, 8), GraphConv(8, 3)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def huge(size: float) -> Data:
    """Some nodes' features are so large, one way or the other, that what is left where they meet depends on the order of the sum."""
    torch.manual_seed(0)
    edges = torch.randint(0, 40, (2, 120))
    data = Data(x=torch.randn(40, 3), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    data.x[:20] += size * torch.where(torch.arange(20) % 2 == 0, 1.0, -1.0)[:, None]
    return data


def test_equal_noisy_rows_get_equal_logits_whichever_clean_row_they_came_from(monkeypatch):
    threat, changed, usual = Row(huge(1e8), [5]), torch.tensor([1, 2, 8, 30]), Stream.flips
    flipped = torch.zeros(40, dtype=torch.bool).index_fill(0, changed, True)
    asked = Question(Cancelling().eval(), threat, Flip(0.7))
    before = choose(asked).answers(0, 40, (0,))
    attacked = choose(replace(asked, threat=threat.attacked(0, changed)))
    monkeypatch.setattr(Stream, "flips", lambda *a, **k: (usual(*a, **k)[0] ^ flipped,) * 2)
    assert torch.equal(before, attacked.answers(0, 40, (0,)))


@pytest.mark.parametrize(
    ("size", "double", "known"), [(1e8, False, False), (1e8, True, True), (1.0, False, True)]
)
def test_huge_features_are_left_to_engines_with_one_order_of_sums(size, double, known):
    model, data = Cancelling().eval(), huge(size)
    if double:
        model, data.x = model.double(), data.x.double()
    obstacle = RowEngine.supports(Question(model, Row(data, [5]), Flip(0.7)))
    assert obstacle is None if known else "order of sums" in obstacle
