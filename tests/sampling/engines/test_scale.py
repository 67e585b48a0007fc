"""Features of any scale: what a row has lost leaves nothing behind in the sums over what is there."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, SAGEConv, SimpleConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.question import Question

N, F, H, C = 60, 6, 8, 3
SAMPLES = 24
TARGETS = list(range(0, N, 6))


class Net(nn.Module):
    def __init__(self, one: nn.Module, two: nn.Module) -> None:
        super().__init__()
        self.one, self.two = one, two

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index)


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(F, H), nn.Linear(H, C)
        self.mean = SimpleConv("mean", combine_root="self_loop")

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.mean(self.two(self.mean(self.one(x), edge_index).relu()), edge_index)


MODELS = {
    "gcn-mean": Mean,
    "gcn": lambda: Net(GCNConv(F, H), GCNConv(H, C)),
    "gcn-bare": lambda: Net(
        GCNConv(F, H, add_self_loops=False, bias=False), GCNConv(H, C, add_self_loops=False, bias=False)
    ),
    "gcn-sum": lambda: Net(GCNConv(F, H, normalize=False), GCNConv(H, C, normalize=False)),
    "sage": lambda: Net(SAGEConv(F, H), SAGEConv(H, C)),
    "sage-normal": lambda: Net(
        SAGEConv(F, H, normalize=True, root_weight=False, bias=False), SAGEConv(H, C, root_weight=False)
    ),
    "graph": lambda: Net(GraphConv(F, H), GraphConv(H, C)),
    "gin": lambda: Net(GINConv(nn.Linear(F, H)), GINConv(nn.Linear(H, C))),
    "gat": lambda: Net(GATConv(F, 4, heads=2), GATConv(H, C)),
    "gat-bare": lambda: Net(
        GATConv(F, 4, heads=2, add_self_loops=False, bias=False), GATConv(H, C, add_self_loops=False)
    ),
    "gatv2": lambda: Net(GATv2Conv(F, 4, heads=2), GATv2Conv(H, C)),
}


def model_of(kind: str) -> nn.Module:
    torch.manual_seed(3)
    model = MODELS[kind]().eval()
    if "gat" in kind:  # scores of very large features would decide all by themselves
        for name, value in model.named_parameters():
            if "att" in name:
                value.data.zero_()
    return model


def graph(scale: float) -> Data:
    """Every target has the neighbour 1, whose features have this scale; few other nodes have it."""
    torch.manual_seed(0)
    random = erdos_renyi_graph(N, 0.08)
    star = torch.tensor([[1, t] for t in TARGETS]).T
    edges = torch.cat([random[:, (random != 1).all(dim=0)], star, star.flip(0)], dim=1)
    data = Data(x=torch.randn(N, F), edge_index=torch.unique(edges, dim=1))
    data.x[1] *= scale
    return data


def split(model: nn.Module, data: Data, noise: us.Flip) -> tuple[int, int]:
    """(answers that differ from the module's by more than rounding, all): the engine itself, whatever a probe would say."""
    question = Question(model, us.Row(data, TARGETS), noise)
    labels, alone = RowEngine(question).labels(0, SAMPLES), Alone(question)
    wrong = 0
    for target in range(len(question.threat)):
        for sample in range(SAMPLES):
            said = alone.answer(sample, target)
            best, ours = said.max(), said[labels[sample, target]]
            wrong += bool(best - ours > 1e-5 * said.abs().max())
    return wrong, labels.numel()


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e9])
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_large_features_of_lost_neighbours_leave_nothing_behind(kind: str, scale: float) -> None:
    noise = us.AddDelete(p_add=0.01, p_delete=0.6)
    assert split(model_of(kind), graph(scale), noise)[0] == 0


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_and_so_where_zeros_and_ones_flip_alike(kind: str) -> None:
    assert split(model_of(kind), graph(1e9), us.Flip(0.8))[0] == 0


@pytest.mark.parametrize("noise", [us.AddDelete(p_add=1e-6, p_delete=0.99), us.Flip(0.001)], ids=str)
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_rows_that_lose_all_they_had_are_empty(kind: str, noise: us.Flip) -> None:
    data = graph(1.0)
    if isinstance(noise, us.Flip):  # every pair is an edge, so nearly all rows lose all of it
        data = Data(x=data.x, edge_index=torch.combinations(torch.arange(N)).T)
        data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    model = model_of(kind)
    for name, value in model.named_parameters():
        if "bias" in name:  # then an empty row without self-loops ties, and any residue would decide
            value.data.zero_()
    assert split(model, data, noise)[0] == 0
    question = Question(model, us.Row(data, TARGETS), noise)
    alone, engine = Alone(question), RowEngine(question)
    ours, theirs = (
        engine.answers(0, 6, tuple(range(len(TARGETS)))),
        alone.answers(range(6), tuple(range(len(TARGETS)))),
    )
    zero = (theirs == 0).all(dim=-1)
    assert bool((ours[zero] == 0).all())
