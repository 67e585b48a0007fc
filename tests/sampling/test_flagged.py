"""One number above a threshold is a class: as the model itself says, one graph at a time, by every engine."""

import copy
import math

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphSAGE, global_mean_pool

import unswayed as us
from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.question import Question


def graph():
    torch.manual_seed(3)
    edges = torch.randint(0, 20, (2, 40))
    edges = edges[:, edges[0] != edges[1]]
    return Data(x=torch.randn(20, 4), edge_index=torch.cat([edges, edges.flip(0)], 1))


class Net(nn.Module):
    """One logit a node, as [n, 1] or [n], before or after a sigmoid."""

    def __init__(self, flat=False, sigmoid=False):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = GCNConv(4, 8), GCNConv(8, 1)
        self.flat, self.sigmoid = flat, sigmoid

    def forward(self, x, edge_index):
        out = self.two(self.one(x, edge_index).relu(), edge_index)
        out = out.sigmoid() if self.sigmoid else out
        return out.squeeze(-1) if self.flat else out


class OfData(Net):
    def forward(self, data):
        return super().forward(data.x, data.edge_index)


class Pooled(Net):
    def forward(self, x, edge_index, batch=None):
        return global_mean_pool(super().forward(x, edge_index), batch)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(4, 1)

    def forward(self, x, adj):
        return self.lin(adj @ x)


def expected(model, question, threshold, samples):
    """Votes of the bare model, asked one graph at a time, its number compared with the threshold here."""
    counts = torch.zeros(len(question.threat), 2, dtype=torch.int64)
    layouts = [question.threat.layout(i) for i in range(len(question.threat))]
    for target, layout in enumerate(layouts):
        node = int(question.threat.nodes[target])
        for sample in range(samples):
            flips = question.stream.flips(sample, sample + 1, layout.drawn, question.noise)
            edges = layout.listed(layout.clean ^ torch.where(layout.clean, flips[1], flips[0]))
            with torch.no_grad():
                out = model.eval()(layout.graph.x, edges)
            counts[target, int(out.reshape(-1)[node] > threshold)] += 1
    return counts.tolist()


@pytest.mark.parametrize(
    ("net", "threshold"),
    [
        (Net(), 0),
        (Net(), 0.3),
        (Net(flat=True), 0),
        (Net(sigmoid=True), 0.5),
        (Net(flat=True, sigmoid=True), 0.6),
        (GraphSAGE(4, 8, 2, 1), 0),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "generic"])
def test_votes_are_those_of_the_number_itself(net, threshold, engine):
    threat, noise = us.Row(graph(), [0, 3, 7]), us.Flip(0.9)
    votes = us.poll(net, threat, noise, samples=100, threshold=threshold, engine=engine)
    question = Question(us.flagged(net, threshold), threat, noise)
    assert votes.counts.tolist() == expected(net, question, threshold, 100)


def test_fast_engines_take_a_single_logit():
    votes = us.poll(GraphSAGE(4, 8, 2, 1), us.Row(graph(), [0, 3]), us.Flip(0.9), samples=50, threshold=0)
    assert votes.notes["engine"] != "generic"


@pytest.mark.parametrize("net", [OfData(), Dense()])
def test_other_styles_are_asked_their_own_way(net):
    votes = us.poll(net, us.Row(graph(), [0, 3]), us.Flip(0.9), samples=50, threshold=0)
    assert votes.counts.sum() == 100


def test_whole_graphs_and_rows_of_bits():
    votes = us.poll(Pooled(), us.AllPairs([graph(), graph()]), us.Flip(0.9), samples=50, threshold=0)
    assert votes.counts.sum() == 100
    rows = torch.rand(3, 4) > 0.5
    votes = us.poll(nn.Linear(4, 1), us.Bits(rows), us.Flip(0.9), samples=50, threshold=0)
    assert votes.counts.sum() == 150


def test_the_threshold_is_part_of_what_is_certified(tmp_path):
    net = Net()
    us.poll(net, us.Row(graph(), [0]), us.Flip(0.9), samples=50, threshold=0, store=tmp_path)
    with pytest.raises(InputError, match="model"):
        us.poll(net, us.Row(graph(), [0]), us.Flip(0.9), samples=50, threshold=0.5, store=tmp_path)


def test_a_tie_is_not_flagged_and_nothing_is_rounded():
    linear = nn.Linear(2, 1, dtype=torch.float64)
    out = us.flagged(linear, 0.1).two(
        torch.tensor([[0.1], [math.nextafter(0.1, 0)], [math.nextafter(0.1, 1)]], dtype=torch.float64)
    )
    assert out.argmax(1).tolist() == [0, 0, 1]


def test_the_model_itself_stays_as_it_is():
    net = Net().train()
    before = copy.deepcopy(net.state_dict())
    us.poll(net, us.Row(graph(), [0]), us.Flip(0.9), samples=20, threshold=0)
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.parametrize("flat", [True, False])
def test_one_number_without_a_threshold_is_refused_in_words(flat):
    with pytest.raises(UnsoundModel, match="threshold=0 for a logit"):
        us.poll(Net(flat=flat), us.Row(graph(), [0]), us.Flip(0.9), samples=20)


@pytest.mark.parametrize("threshold", [True, "0", float("nan"), float("inf")])
def test_thresholds_are_numbers(threshold):
    with pytest.raises(InputError, match="threshold"):
        us.flagged(Net(), threshold)


def test_a_threshold_is_for_modules():
    with pytest.raises(InputError, match="labels instead"):
        us.flagged(lambda x: x, 0)
    with pytest.raises(InputError, match="Net"):
        us.flagged(Net, 0)


class Weighted(Net):
    def forward(self, x, edge_index, edge_weight=None):
        return self.two(self.one(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


class NeedsWeights(Net):
    def forward(self, x, edge_index, edge_attr):
        return self.two(self.one(x, edge_index, edge_attr[:, 0]).relu(), edge_index)


class WithBatch(Net):
    def forward(self, x, edge_index, edge_weight=None, batch=None):
        return global_mean_pool(
            self.two(x=self.one(x, edge_index, edge_weight), edge_index=edge_index), batch
        )


class NeedsKinds(Net):
    def forward(self, x, edge_index, node_type):
        return super().forward(x, edge_index)


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
@pytest.mark.parametrize("net", [Weighted(), NeedsWeights(), WithBatch()])
def test_edge_data_that_the_model_would_read_is_never_dropped(net, name):
    data = graph()
    data[name] = torch.rand(data.edge_index.shape[1], 1)
    with pytest.raises(UnsoundModel, match="edge"):
        us.poll(net, us.Row(data, [0]), us.Flip(0.9), samples=20, threshold=0)


class Made(nn.Module):
    """A model together with the edge data it is to get."""

    def __init__(self, net, made):
        super().__init__()
        self.net, self.made = net, made

    def forward(self, x, edge_index):
        return self.net(x, edge_index, self.made(*edge_index))


@pytest.mark.parametrize("net", [Weighted(), NeedsWeights()])
def test_edge_data_made_from_end_nodes_reaches_the_model(net):
    data = graph()

    def made(first, second):
        weight = (data.x[first, 0] - 2 * data.x[second, 1]).abs() + 0.1
        return weight if isinstance(net, Weighted) else weight[:, None]

    rows = us.Row(data, [0, 1], edge_attr=made)
    question = Question(us.flagged(net, 0.01), rows, us.Flip(0.8), classes=2)
    found = us.poll(net, rows, us.Flip(0.8), samples=40, threshold=0.01).counts.tolist()
    assert found == expected(Made(net, made), question, 0.01, 40)


def test_what_else_the_model_needs_is_said():
    with pytest.raises(UnsoundModel, match="needs node_type"):
        us.poll(NeedsKinds(), us.Row(graph(), [0]), us.Flip(0.9), samples=20, threshold=0)


def test_the_flag_may_be_the_first_class():
    net, rows = Net(), us.Row(graph(), [0, 1, 2])
    one, other = (
        us.poll(us.flagged(net, 0.01, label=label), rows, us.Flip(0.8), samples=200).counts
        for label in (1, 0)
    )
    assert (one == other[:, ::-1]).all()
    with pytest.raises(InputError, match="label must be 0 or 1"):
        us.flagged(net, 0, label=2)


class Silenced(Net):
    """Says exactly 0 of many nodes."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index).relu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("label", [1, 0])
def test_a_number_at_the_threshold_is_not_above_it_whichever_class_is_flagged(label, dtype):
    data, net = graph(), Silenced().to(dtype).eval()
    above = (net(data.x.to(dtype), data.edge_index) > 0)[:, 0]
    said = us.flagged(net, 0, label=label)(data.x.to(dtype), data.edge_index).argmax(dim=1)
    assert 0 < int(above.sum()) < len(above)
    assert ((said == label) == above).all()
