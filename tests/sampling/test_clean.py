"""The model itself on the structure as it is."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, global_add_pool
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.clean import clean_labels
from unswayed.sampling.question import Question

FLIP = us.Flip(0.7)


def graph(seed, n=12):
    torch.manual_seed(seed)
    return Data(x=torch.randn(n, 4), edge_index=erdos_renyi_graph(n, 0.3))


def test_nodes_graphs_arrivals_and_bits_get_the_labels_of_a_plain_call():
    torch.manual_seed(1)
    data, net = graph(0), GCN(4, 8, 2, 3).eval()
    plain = net(data.x, data.edge_index).argmax(1)
    for threat in (us.Row(data, [0, 5, 7]), us.AllPairs(data, [0, 5, 7])):
        assert clean_labels(Question(net, threat, FLIP)).tolist() == plain[[0, 5, 7]].tolist()
    x = torch.randn(2, 4)
    said = []
    for i, linked in enumerate(([0, 3], [2])):
        new = torch.tensor([[v, 12] for v in linked] + [[12, v] for v in linked]).T
        said.append(int(net(torch.cat([data.x, x[[i]]]), torch.cat([data.edge_index, new], 1))[12].argmax()))
    assert clean_labels(Question(net, us.Row.new(data, x, [[0, 3], [2]]), FLIP)).tolist() == said
    bits = np.array([[True, False, True], [False, False, False]])
    count = Question(lambda rows: rows.sum(1), us.Bits(bits), FLIP, classes=4)
    assert clean_labels(count).tolist() == [2, 0]


def test_whole_graphs_are_asked_one_by_one():
    torch.manual_seed(2)
    inner = GIN(4, 8, 2, 3).eval()

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x, edge_index, batch=None):
            return global_add_pool(self.inner(x, edge_index), batch)

    graphs = [graph(3, 5), graph(4, 8)]
    alone = [int(inner(one.x, one.edge_index).sum(0).argmax()) for one in graphs]
    assert clean_labels(Question(Pooled().eval(), us.AllPairs(graphs), FLIP)).tolist() == alone
