"""Fast and generic engines agree over random graphs, weights, nodes, noise and layers, in the precision that is used."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, erdos_renyi_graph

from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Row
from unswayed.theory.noise import AddDelete, Flip

from .rows.test_engine import COUPLED
from .zoo import ZOO

SAMPLES = 24
TIE = 1e-4  # a label may differ only where the two largest logits are this close

noises = st.one_of(
    st.floats(0.02, 0.98).map(lambda beta: Flip(beta=beta)),
    st.tuples(st.floats(0.01, 0.9), st.floats(0.01, 0.9)).map(lambda p: AddDelete(p_add=p[0], p_delete=p[1])),
)


@pytest.mark.slow
@given(
    name=st.sampled_from(sorted(ZOO)),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 45),
    density=st.floats(0.0, 0.6),
    scale=st.floats(0.05, 2.0),
    noise=noises,
    shared=st.booleans(),
    loops=st.booleans(),
)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_votes_agree_but_for_ties(name, seed, n, density, scale, noise, shared, loops) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(seed % 2**31)
    edges = erdos_renyi_graph(n, density)
    if loops:
        edges = coalesce(torch.cat([edges, torch.tensor([[0, n - 1], [0, n - 1]])], dim=1))
    model = ZOO[name](5, 3).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=scale)
    nodes = torch.randperm(n)[:3]
    threat = Row(Data(x=torch.randn(n, 5), edge_index=edges, num_nodes=n), nodes)
    asked = Question(model, threat, noise, seed=seed, shared=shared)
    fast, slow = (PlanEngine if name in COUPLED else RowEngine)(asked), GenericEngine(asked)
    if np.array_equal(fast.count(0, SAMPLES), slow.count(0, SAMPLES)):
        return
    for target in range(len(nodes)):
        for sample in range(SAMPLES):
            ours = fast.count(sample, sample + 1, (target,))
            if not np.array_equal(ours, slow.count(sample, sample + 1, (target,))):
                top = Alone(asked).answer(sample, target).topk(2).values
                assert float(top[0] - top[1]) < TIE


@pytest.mark.parametrize("sizes", [{"FLOATS": 1}, {"PAYLOAD": 1}, {"SPAN": 1}, {"NEAR": 1}, {"OWN": 1}])
@pytest.mark.parametrize("name", ["gcn-mean", "gcn", "gat"])
def test_chunks_of_any_size_give_the_same_votes(
    name: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    data = Data(x=torch.randn(25, 5), edge_index=erdos_renyi_graph(25, 0.2), num_nodes=25)
    model = ZOO[name](5, 3).eval()
    asked = Question(model, Row(data, torch.arange(9)), Flip(beta=0.6), dtype=torch.float64)
    engine = RowEngine(asked)
    whole = engine.count(0, 50)
    for size, value in sizes.items():
        monkeypatch.setattr(f"unswayed.sampling.engines.rows.engine.{size}", {"cpu": value})
    np.testing.assert_array_equal(engine.count(0, 50), whole)


def test_threads_do_not_change_votes() -> None:
    torch.manual_seed(2)
    data = Data(x=torch.randn(40, 5), edge_index=erdos_renyi_graph(40, 0.2), num_nodes=40)
    engine = RowEngine(Question(ZOO["gat"](5, 3).eval(), Row(data, torch.arange(9)), Flip(beta=0.6)))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = engine.count(0, 3000)
        torch.set_num_threads(2)
        np.testing.assert_array_equal(engine.count(0, 3000), alone)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
