"""Listed links: the same noisy structure gets the same logits bit for bit, whichever clean graph it came from."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from unswayed.sampling.engines.graphs.edges import Edges
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Pairs
from unswayed.theory.noise import AddDelete

from .test_plan_engine import graph, model_of

NOISE = AddDelete(p_add=0.1, p_delete=0.5)


def logits_of(data: Data, pairs: Tensor, present: Tensor, name: str) -> Tensor:
    """[S, T, C] of these noisy structures, in single precision, for whatever links the data has among the pairs."""
    torch.manual_seed(0)
    model = model_of(name, data).float()
    engine = PlanEngine(Question(model, Pairs(data, pairs, [0, 2, 5]), NOISE, dtype=torch.float32))
    ask = engine._asker((0, 1, 2))
    flips = present ^ ask.layout.clean
    with torch.no_grad():
        return ask.switched((flips, flips))


@pytest.mark.parametrize("name", ["gcn-3", "sage-3", "gat-3", "max", "sgc"])
def test_the_clean_graph_leaves_nothing_behind(name: str) -> None:
    data = graph(1)
    data.x[7] = 1e4  # what it sends would show in the last places of anything that it was once added to
    pairs = torch.tensor([[0, 0, 2, 5, 3, 7], [7, 9, 7, 11, 7, 12]])
    present = torch.rand((9, 6), generator=torch.Generator().manual_seed(3)) < 0.5
    code = data.edge_index[0] * 100 + data.edge_index[1]
    listed = torch.isin(code, torch.cat([pairs[0] * 100 + pairs[1], pairs[1] * 100 + pairs[0]]))
    rest = data.edge_index[:, ~listed]
    said = []
    for kept in (slice(0, 0), slice(0, 3), slice(0, 6)):
        clean = Data(x=data.x, edge_index=torch.cat([rest, to_undirected(pairs[:, kept])], 1), num_nodes=26)
        said.append(logits_of(clean, pairs, present, name))
    assert torch.equal(said[0], said[1])
    assert torch.equal(said[0], said[2])


def test_some_edges_are_those_asked_for() -> None:
    edges = Edges(torch.tensor([0, 2, 2, 5]), torch.tensor([1, 2, 0, 1, 3]), 4)
    some = edges.some(torch.tensor([False, True, True, False, True]))
    assert some.starts.tolist() == [0, 1, 1, 3]
    assert some.senders.tolist() == [2, 0, 3]
    assert some.to.tolist() == [0, 2, 2]
