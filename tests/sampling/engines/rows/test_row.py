"""The row forward against the model itself on the rewired graph, in double precision."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, erdos_renyi_graph

from unswayed.errors import InputError, Unsupported
from unswayed.sampling.engines.rows.row import row_logits

from ..zoo import ZOO

NODES = 30


def graph(seed: int, loops: bool) -> Data:
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(NODES, 0.15)
    if loops:
        edges = coalesce(torch.cat([edges, torch.tensor([[3, 7], [3, 7]])], dim=1))
    return Data(x=torch.randn(NODES, 6, dtype=torch.float64), edge_index=edges)


def rewired(model: nn.Module, data: Data, node: int, row: Tensor) -> Tensor:
    """The model's own output after really replacing the row."""
    source, target = data.edge_index
    keep = ((source != node) & (target != node)) | (source == target)
    others = row.nonzero().flatten()
    others = others[others != node]
    here = torch.full_like(others, node)
    edges = torch.cat(
        [data.edge_index[:, keep], torch.stack([others, here]), torch.stack([here, others])], dim=1
    )
    if type(model).__name__ == "Listed":
        return model(Data(x=data.x, edge_index=edges))[node]
    return model(data.x, edges)[node]


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("loops", [False, True])
def test_the_row_forward_and_its_gradient_are_those_of_the_rewired_graph(name: str, loops: bool) -> None:
    data = graph(len(name), loops)
    model = ZOO[name](6, 3).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    nodes, rows = torch.tensor([0, 3, 5, 5, 9]), torch.rand(5, NODES) < 0.3
    rows[4] = False  # a node that loses every edge
    fast = row_logits(model, data, nodes, rows)
    slow = torch.stack([rewired(model, data, int(u), row) for u, row in zip(nodes, rows, strict=True)])
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-9)
    parameters = list(model.parameters())
    ours = torch.autograd.grad(fast.square().sum(), parameters, allow_unused=True)
    theirs = torch.autograd.grad(slow.square().sum(), parameters, allow_unused=True)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-8)


def test_dropout_acts_in_training_mode_only() -> None:
    data, model = graph(0, False), ZOO["gcn"](6, 3).double()
    nodes, rows = torch.tensor([1, 2]), torch.rand(2, NODES) < 0.3
    assert not torch.equal(row_logits(model, data, nodes, rows), row_logits(model, data, nodes, rows))
    model.eval()
    assert torch.equal(row_logits(model, data, nodes, rows), row_logits(model, data, nodes, rows))


def test_rows_of_the_wrong_kind_are_refused() -> None:
    data, model = graph(0, False), ZOO["gcn"](6, 3).double()
    with pytest.raises(InputError, match="rows must be bool"):
        row_logits(model, data, torch.tensor([1]), torch.zeros(1, NODES))


def test_a_third_layer_is_refused_by_name() -> None:
    import torch_geometric.nn as gnn

    model = gnn.GCN(6, 8, 3, 3).double()
    for _ in range(2):
        with pytest.raises(Unsupported, match=r"convs_2.*third round"):
            row_logits(model, graph(0, False), torch.tensor([1]), torch.zeros(1, NODES, dtype=torch.bool))
