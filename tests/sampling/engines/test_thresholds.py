"""Thresholds that were set by hand: right below one, single precision still says what double precision says."""

from dataclasses import replace

import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor

from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.graphs.edges import Edges, Listed, Weighing
from unswayed.sampling.engines.plans.attention import Attention
from unswayed.sampling.engines.plans.surroundings import Surroundings
from unswayed.sampling.engines.rows.attended import SPREAD, _moderate
from unswayed.sampling.engines.rows.engine import HUGE, WILD, RowEngine
from unswayed.sampling.engines.rows.sorting import UNLIKE, SortedSum
from unswayed.sampling.engines.rows.sums import RANGE, Flips, Near, ordinary

from .rows.test_engine import question

N = 40


@pytest.mark.parametrize("times", [RANGE, HUGE])
def test_what_is_ordinary_is_measured_by_the_middle_of_those_that_send(times: float) -> None:
    usual = torch.cat([torch.zeros(9, 2), torch.ones(5, 2)])  # most send nothing
    for size, expected in ((0.99 * times, True), (1.01 * times, False), (-1.01 * times, False)):
        assert ordinary(torch.cat([usual, torch.tensor([[0.0, size]])]), times) == expected
    assert ordinary(usual[:9], times)


def test_what_is_taken_away_again_leaves_millionths() -> None:
    values = torch.linspace(0.5, 2, 1001)
    largest = RANGE * values.median()
    assert float(((values + largest) - largest - values).abs().max()) < 5e-6 * float(values.median())


def scores(reach: float) -> tuple[Attention, tuple[Tensor, ...]]:
    """A layer and what nodes send whose scores, for any receiver, lie so far apart; the last node's is the highest."""
    torch.manual_seed(0)
    layer = Attention(gnn.GATConv(3, 4, negative_slope=1.0, add_self_loops=False))
    values = torch.rand(N, 1, 4) + 0.5
    sender = torch.linspace(0, reach, N)[:, None, None]
    return layer, (values, sender, torch.randn(N, 1, 1), torch.zeros(N, 4))


def test_sorted_sums_keep_what_is_left_when_the_heaviest_neighbour_is_gone() -> None:
    layer, sent = scores(0.999 * UNLIKE)
    assert SortedSum.suits(layer, sent)
    assert not SortedSum.suits(*scores(1.001 * UNLIKE))
    nodes, heavy = torch.tensor([0, 7]), torch.tensor([N - 1, N - 2, N - 3])
    edges = torch.cat(
        [torch.stack([nodes[:1].expand(3), heavy]), torch.stack([heavy, nodes[:1].expand(3)])], 1
    )
    around = Surroundings.of(edges, N, torch.float32)
    flips = torch.rand((50, N), generator=torch.Generator().manual_seed(1)) < 0.3
    flips[:, heavy] = True  # the sum over all flipped entries has them, and they are gone
    near = Near(around, nodes)
    total = SortedSum(layer, sent, near)
    ours = total(Flips.of((flips, flips), near, torch.float32))
    values, sender, receiver, _ = (t.double() for t in sent)
    for t, node in enumerate(nodes):
        rows = (flips ^ around.adjacent(node[None])).index_fill(1, node, False).double()
        weight = (layer.score(sender, receiver[node]) - total.shift[t].double()).exp()
        expected = rows @ torch.cat([weight[..., None] * values, weight[..., None]], -1).flatten(1)
        torch.testing.assert_close(ours[:, t].double(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("share", "row"), [(0.99, True), (1.01, False)])
def test_scores_of_first_layers_up_to_what_is_wild(share: float, row: bool) -> None:
    asked = question("gat", 1, dtype=None)
    layer = asked.model.first
    with torch.no_grad():
        reach = RowEngine(asked).known
        (first,) = [i for i in reach.plan.rounds if reach.plan.steps[i].depth == 1]
        layer.att_src.mul_(share * WILD / reach.plan.steps[first].layer.spread(reach.sent[first]))
    engine, targets = RowEngine(asked), tuple(range(7))
    assert (engine.safe is None) == row
    exact = GenericEngine(replace(asked, dtype=torch.float64)).answers(0, 60, targets)
    torch.testing.assert_close(engine.answers(0, 60, targets).double(), exact, rtol=5e-3, atol=5e-3)


def test_products_of_exponentials_stay_far_from_underflow() -> None:
    values = torch.ones(3, 1, 2)
    for reach, expected in ((0.99 * SPREAD, True), (1.01 * SPREAD, False)):
        assert _moderate([(values, torch.tensor([0.0, reach, 1.0]).view(3, 1, 1))]) == expected
    assert torch.tensor(-SPREAD).exp() * 1e-7 > torch.finfo(torch.float32).tiny


@pytest.mark.parametrize("end", [0.999, -0.999])
@torch.no_grad()
def test_weights_whose_scores_are_not_far_from_zero_neither_overflow_nor_vanish(end: float) -> None:
    layer, (values, sender, receiver, extra) = scores(1.0)
    sender, receiver = torch.full_like(sender, end * Weighing.FAR), torch.zeros_like(receiver)
    assert layer.bound((values, sender, receiver, extra)) < Weighing.FAR
    starts = torch.arange(N + 1) * N
    around = Listed(
        Edges(starts, torch.arange(N).repeat(N), N), torch.full((1, N, 1), float(N)), torch.zeros(1, N, 1)
    )
    said = around.attend(layer, tuple(t[None] for t in (values, sender, receiver)))
    torch.testing.assert_close(said[0], values.mean(0, keepdim=True).expand_as(said[0]))
