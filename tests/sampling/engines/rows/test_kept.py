"""Votes of rows of which a few links are kept, against the generic engine's and the classifier asked one graph at a time."""

import time

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import coalesce, erdos_renyi_graph

import unswayed as us
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.rows import kept
from unswayed.sampling.engines.rows.kept import KeptEngine
from unswayed.sampling.question import Question

from ..zoo import ZOO

NOISES = [us.Keep(1, 1), us.Keep(3, 8), us.Keep(7, 40)]


def question(name: str, seed: int) -> Question:
    torch.manual_seed(seed)
    n = 26
    hub = torch.stack([torch.zeros(20, dtype=torch.long), torch.arange(1, 21)])
    loops = torch.tensor([[2, 0], [2, 0]]) if seed % 2 else torch.zeros((2, 0), dtype=torch.long)
    edges = coalesce(torch.cat([erdos_renyi_graph(n, 0.1), hub, hub.flip(0), loops], dim=1))
    alone = (edges != 25).all(dim=0)  # node 25 has no neighbour
    data = Data(x=torch.randn(n, 5), edge_index=edges[:, alone], num_nodes=n)
    model = ZOO[name](5, 3).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    nodes = [0, 25, 2, *range(5, 9)]
    return Question(model, us.Row(data, nodes), NOISES[seed % 3], seed=seed, dtype=torch.float64)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_votes_equal_the_generic_engines(name: str, seed: int) -> None:
    asked = question(name, seed)
    if (obstacle := KeptEngine.supports(asked)) is not None:
        assert "degrees of both ends" in obstacle
        assert choose(asked).name in ("row", "plan")
        return
    fast, slow = KeptEngine(asked), GenericEngine(asked)
    np.testing.assert_array_equal(fast.count(3, 90), slow.count(3, 90))
    np.testing.assert_array_equal(fast.count(10, 25, (4, 1)), slow.count(10, 25, (4, 1)))


@pytest.mark.parametrize("name", ["sage", "gat"])
@pytest.mark.parametrize("answers", [8, 24, 2**20])
def test_votes_do_not_depend_on_how_the_work_is_cut(monkeypatch, name: str, answers: int) -> None:
    asked = question(name, 1)
    whole = KeptEngine(asked).labels(2, 41)
    engine = KeptEngine(asked)
    monkeypatch.setattr(kept, "NEIGHBOURS", 12)
    monkeypatch.setattr(kept, "OWN", {"cpu": answers * engine.known.width})
    assert len(list(kept.runs(engine.known.around, engine.nodes, kept.NEIGHBOURS))) > 2
    assert torch.equal(engine.labels(2, 41), whole)
    assert engine.labels(5, 5).shape == (0, 7)


@pytest.mark.parametrize("name", ["sage", "gat", "gatv2", "gin"])
@pytest.mark.parametrize("noise", [None, us.AddDelete(p_add=0, p_delete=0.5)])
def test_logits_are_those_of_one_graph_at_a_time(name: str, noise) -> None:
    asked = question(name, 1)
    targets = tuple(range(len(asked.threat)))
    ours = KeptEngine(asked).answers(4, 9, targets, noise)
    theirs = Alone(asked).answers(range(4, 9), targets, noise)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


def test_it_is_taken_where_links_are_kept_and_moves() -> None:
    asked = question("sage", 1)
    engine = choose(asked)
    assert engine.name == "kept"
    other = Question(asked.model, us.Row(asked.threat.data, [3, 0]), asked.noise, seed=5, dtype=torch.float64)
    np.testing.assert_array_equal(engine.moved(other).count(0, 50), GenericEngine(other).count(0, 50))
    plain = Question(asked.model, asked.threat, us.Flip(0.7))
    assert "no fixed number" in KeptEngine.supports(plain)


def test_what_the_clean_row_loses_leaves_nothing_behind() -> None:
    """A neighbour whose features are enormous does not blur the samples in which it is not kept."""
    asked = question("sage", 1)
    asked.threat.graph.x[1] *= 1e12
    model = asked.model.float()
    asked = Question(model, asked.threat, us.Keep(2, 8))
    np.testing.assert_array_equal(KeptEngine(asked).count(0, 300), GenericEngine(asked).count(0, 300))


def _seconds(n: int) -> float:
    torch.manual_seed(0)
    ends = torch.randint(0, n, (2, 5 * n))
    data = Data(x=torch.randn(n, 4), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    asked = Question(GraphSAGE(4, 4, 2, 2).eval(), us.Row(data, range(8)), us.Keep(5, 50))
    engine = KeptEngine(asked)
    engine.labels(0, 500)
    times = []
    for _ in range(5):
        begin = time.process_time()
        engine.labels(0, 500)
        times.append(time.process_time() - begin)
    return min(times)


def test_a_larger_graph_costs_no_more() -> None:
    assert _seconds(30_000) < 4 * _seconds(300)  # a hundred times the nodes
