"""What edges carry beside their ends is read, or refused on every road, never dropped in silence."""

import copy

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, GCNConv, global_mean_pool
from torch_geometric.utils import to_networkx

from unswayed.errors import UnsoundModel
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question
from unswayed.sampling.threats import AllPairs, Row
from unswayed.theory.noise import Flip

from .small import CLASSES, FEATURES, Node, engine


def test_edge_attributes_are_refused_only_where_forward_takes_them(data):
    class Takes(Node):
        def forward(self, x, edge_index, weights=None):
            return super().forward(x, edge_index)

    class TakesAnything(Node):
        def forward(self, x, edge_index, **more):
            return super().forward(x, edge_index)

    data.edge_attr = torch.ones(data.num_edges, 2)
    engine(Node(), Row(data, [0])).count(0, 2)
    gin = GIN(FEATURES, 8, 2, CLASSES)  # names edge_attr but says it is not supported
    engine(gin, Row(data, [0])).count(0, 2)
    for model in (Takes(), TakesAnything()):
        with pytest.raises(UnsoundModel, match="edge_attr"):
            engine(model, Row(data, [0]))
    data.edge_attr, data.edge_weight = None, torch.ones(data.num_edges)
    with pytest.raises(UnsoundModel, match="edge_weight"):
        engine(GCN(FEATURES, 8, 2, CLASSES), Row(data, [0]))


def test_weights_are_refused_whichever_of_several_graphs_carries_them():
    """The largest alone was looked at, and the weights of the others were left out."""

    class Weighed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(2, 2)

        def forward(self, x, edge_index, edge_weight=None, batch=None):
            return global_mean_pool(self.conv(x, edge_index, edge_weight), batch)

    link = torch.tensor([[0, 1], [1, 0]])
    large, small = (Data(x=torch.randn(n, 2), edge_index=link) for n in (5, 4))
    engine(Weighed(), AllPairs([large, small])).count(0, 2)
    small.edge_weight = torch.ones(2)
    for graphs in ([large, small], [small, large]):
        with pytest.raises(UnsoundModel, match="edge_weight"):
            engine(Weighed(), AllPairs(graphs))


def weigh(data, name):
    return data[name]


def swallowed(data):
    try:
        return data.edge_weight * 1.0
    except Exception:
        return None


ROADS = {
    "attribute": lambda data: data.edge_weight,
    "getattr": lambda data: getattr(data, "edge_weight", None),
    "item": lambda data: data["edge_weight"],
    "helper": lambda data: weigh(data, "edge_weight"),
    "name made up": lambda data: data["edge_" + "weight"],
    "store": lambda data: data._store["edge_weight"],
    "stores": lambda data: data.edge_stores[0].edge_weight,
    "dict": lambda data: data.to_dict()["edge_weight"],
    "values": lambda data: dict(data._store.items())["edge_weight"],
    "copy": lambda data: copy.copy(data).edge_weight,
    "clone": lambda data: data.clone().to("cpu").edge_weight,
    "if there": lambda data: data.edge_weight if "edge_weight" in data else None,
    "if not none": lambda data: data.edge_weight.float() if data.edge_weight is not None else None,
    "swallowed": swallowed,
    "torch": lambda data: torch.relu(data.edge_weight),
    "list": lambda data: torch.cat([data.edge_weight, data.edge_weight]),
    "shape": lambda data: torch.ones(data.edge_weight.shape[0]),
    "length": lambda data: torch.ones(len(data.edge_weight)),
    "numpy": lambda data: torch.as_tensor(np.asarray(data.edge_weight) + 0.0),
    "python": lambda data: torch.tensor([float(w) for w in data.edge_weight]),
    "another name": lambda data: data.strength,
    "of the graph": lambda data: data.scale * torch.ones(data.num_edges),
}


class Weighted(Node):
    """Reads the weights of its data by some road."""

    def __init__(self, road):
        super().__init__()
        self.road = road

    def forward(self, data):
        weight = self.road(data)
        return self.second(self.first(data.x, data.edge_index, weight).relu(), data.edge_index)


@pytest.mark.parametrize("kind", ["auto", "generic"])
@pytest.mark.parametrize("road", ROADS)
def test_edge_weights_are_refused_by_every_road(data, road, kind):
    data.edge_weight = torch.rand(data.num_edges)
    data.strength, data.scale = torch.rand(data.num_edges), torch.ones(1)
    for threat in (Row(data, [0]), AllPairs(data, [0])):
        with pytest.raises(UnsoundModel, match=r"edge_weight|strength|scale"):
            choose(Question(Weighted(ROADS[road]), threat, Flip(0.7), engine=kind))


def test_data_with_edge_weights_that_are_not_read_is_asked_as_it_is(data):
    plain = engine(Weighted(lambda data: None), Row(data, [0])).count(0, 40)
    data.edge_weight = torch.rand(data.num_edges)
    moved = Weighted(
        lambda data: data.to("cpu").clone().contiguous().x[:0, 0] if data.num_edges < 0 else None
    )
    there = Weighted(lambda data: None if data.edge_weight is not None else 1 / 0)
    for model in (Weighted(lambda data: None), moved, there):
        assert engine(model, Row(data, [0])).count(0, 40).tolist() == plain.tolist()


class Scaled(Data):
    @property
    def scale(self):
        return -1.0


def test_a_data_class_with_code_of_its_own_is_refused_where_it_could_be_read(data):
    class Reads(Node):
        def forward(self, data):
            return super().forward(data.x, data.edge_index) * getattr(data, "scale", 1.0)

    own = Scaled(x=data.x, edge_index=data.edge_index)
    engine(Node(), Row(own, [0])).count(0, 2)
    with pytest.raises(UnsoundModel, match="Scaled"):
        engine(Reads(), Row(own, [0]))


def test_weights_of_a_networkx_graph_are_not_dropped_in_silence(data):
    graph = to_networkx(data, to_undirected=True)
    for _, attributes in graph.nodes(data=True):
        attributes["x"] = [1.0] * FEATURES
    engine(GCN(FEATURES, 8, 2, CLASSES), Row(graph, [0])).count(0, 2)
    nx.set_edge_attributes(graph, 0.5, "weight")
    with pytest.raises(UnsoundModel, match="edge weight"):
        engine(GCN(FEATURES, 8, 2, CLASSES), Row(graph, [0]))
