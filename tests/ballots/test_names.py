"""Tables are read by place: a graph whose nodes have other names, or another order, is not the one they were made for."""

import copy

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.networks import BallotNetwork, Snapshot
from unswayed.errors import InputError


def test_a_snapshot_of_nodes_in_another_order_is_refused():
    """A networkx graph lists nodes as they came: each would speak for another, and those whose links were seen be targets."""
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    shuffled, text = nx.Graph([(4, 0), (3, 4)]), {node: f"n{node}" for node in range(5)}
    shuffled.add_nodes_from(range(5))
    graph = nx.Graph()
    graph.add_nodes_from(range(5))
    trusted = graph.copy()
    graph.add_edges_from(links)
    trusted.add_edges_from(shuffled.edges)

    class Degrees(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.bincount(edge_index[1], minlength=5).float()[:, None]

    def frozen(seen, asked):
        return BallotNetwork(0, 2, voters=Snapshot(Degrees(), seen)).freeze(asked)

    assert frozen(trusted, graph).seen.tolist() == [True, False, False, True, True]
    unnamed = Data(edge_index=torch.tensor([[4, 0], [0, 4]]), num_nodes=5)
    frozen(unnamed, nx.relabel_nodes(graph, text))
    for seen, asked in (
        (shuffled, graph),
        (graph, shuffled),
        (shuffled, unnamed),
        (nx.relabel_nodes(shuffled, {node: str(node) for node in range(5)}), unnamed),
        (nx.relabel_nodes(shuffled, text), nx.relabel_nodes(graph, text)),
    ):
        with pytest.raises(InputError, match="in another order"):
            frozen(seen, asked)


def test_a_graph_with_its_nodes_in_another_order_than_the_frozen_one_is_refused():
    """A networkx graph lists nodes as its links came: tomorrow's gave "a" the tables of another node, and its label and K."""
    links = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("e", "a"), ("f", "d"), ("e", "f")]
    today, tomorrow, labels = nx.Graph(links), nx.Graph([*links[::-1], ("b", "d")]), dict(zip("abcdef", (0, 0, 1, 1, 0, 1), strict=True))  # fmt: skip
    assert list(today) != list(tomorrow)
    net = BallotNetwork(0, 2).freeze(today, known=[labels[node] for node in today])
    loaded = BallotNetwork(0, 2)
    loaded.load_state_dict(net.state_dict())
    numbered = BallotNetwork(0, 2).freeze(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3))
    for model, threat in (
        (net, us.Row(tomorrow, ["a"])),
        (copy.deepcopy(net), us.AllPairs(tomorrow, ["a"])),
        (loaded.eval(), us.Row.new(tomorrow, None, [["a"]])),
        (numbered, us.Row(nx.Graph([(2, 0), (0, 1)]), [2])),
    ):
        with pytest.raises(InputError, match="in another order"):
            us.prove(model, threat)
    with pytest.raises(InputError, match="in another order"):
        us.poll(net, us.Row(tomorrow, ["a"]), us.Flip(0.9), samples=8, progress=False)
    with pytest.raises(InputError, match="in another order"):
        us.prove(us.Hashed(net, 3), us.AllPairs(tomorrow, ["a"]))
    more = today.copy()
    more.add_edge("b", "d")
    assert us.prove(net, us.Row(more, ["a"])).label == us.prove(net, us.Row(today, ["a"])).label == [0]
    unnamed = Data(
        edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=6
    )  # nobody says what its nodes are called
    assert us.prove(net, us.Row(unnamed, [0])).label == [0]


SQUARE = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)]


def square(order):
    graph = nx.Graph()
    graph.add_nodes_from(order)
    graph.add_edges_from(SQUARE)
    return graph


@pytest.mark.parametrize("way", ["row", "new", "pairs", "groups", "poll"])
@pytest.mark.parametrize("text", [False, True])
def test_tables_of_nodes_that_are_numbers_in_another_order_refuse_a_graph_in_theirs(way, text):
    """A graph whose nodes come as 0, 1, 2, 3 has no names, and node 0 was answered for by the tables of node 3."""
    first = [True, False, False, False]
    ask = {
        "row": lambda model, graph: us.prove(model, us.Row(graph, first)),
        "new": lambda model, graph: us.prove(model, us.Row.new(graph, None, [list(graph)[:2]])),
        "pairs": lambda model, graph: us.prove(model, us.AllPairs(graph, first)),
        "groups": lambda model, graph: us.prove(us.Hashed(model, 3), us.AllPairs(graph, first)),
        "poll": lambda model, graph: us.poll(model, us.Row(graph, first), us.Flip(0.9), samples=8),
    }[way]
    moved, ordered, known = square([3, 0, 1, 2]), square(range(4)), [1, 0, 0, 1]
    if text:
        moved = nx.relabel_nodes(moved, {node: str(node) for node in moved})
    with pytest.raises(InputError, match="in another order"):
        ask(BallotNetwork(0, 2).freeze(moved, known=known), ordered)
    with pytest.raises(InputError, match="in another order"):
        ask(BallotNetwork(0, 2).freeze(ordered, known=known), moved)
    in_order = Data(edge_index=us.Row(ordered, [0]).graph.edge_index, num_nodes=4, node_names=list("0123"))
    for same in (in_order, ordered):
        ask(BallotNetwork(0, 2).freeze(same, known=known), ordered)
