"""A service knows nodes by the names that their graph gives them."""

import networkx as nx
import pytest
import torch

import unswayed as us
from unswayed.errors import InputError

NAMED = {
    "numbers in another order": [(4, 2), (2, 0), (0, 1), (1, 3), (3, 4), (4, 0), (5, 4), (6, 1)],
    "pairs of numbers": [((0, 1), (0, 0)), ((0, 0), (1, 0)), ((1, 0), (1, 1)), ((1, 1), (2, 1))],
    "text": [("ann", "bob"), ("bob", "cem"), ("cem", "dee"), ("eve", "cem")],
}


@pytest.mark.parametrize("names", NAMED)
def test_nodes_that_have_names_are_answered_for_by_name(names, tmp_path):
    """A node's number in the graph's own order may be another node's name."""
    graph = nx.Graph(NAMED[names])
    nodes = sorted(graph)
    known = torch.arange(len(nodes)) % 2
    model = us.LabelBallots(2).freeze(graph, known=torch.where(torch.arange(len(nodes)) == 1, -1, known))
    service = us.Smoothed(model, None, graph)
    service.save(tmp_path / "service")
    direct = us.prove(model, us.Row(graph, nodes))
    for one in (service, us.Smoothed.load(tmp_path / "service", model)):
        mine = one.certify(nodes)
        assert mine.targets.tolist() == direct.targets.tolist()
        assert mine.about.target_names == direct.about.target_names
        assert (mine.label.tolist(), mine.size.tolist()) == (direct.label.tolist(), direct.size.tolist())


def test_a_threat_that_calls_the_same_nodes_by_other_names_is_refused():
    graph = nx.Graph(NAMED["text"])
    model = us.LabelBallots(2).freeze(graph, known=torch.arange(5) % 2)
    service = us.Smoothed(model, None, graph)
    other = nx.relabel_nodes(graph, {"ann": "bob", "bob": "ann"})
    assert service.certify(us.Row(graph, ["ann"])).targets.tolist() == [0]
    with pytest.raises(InputError, match="another graph"):
        service.certify(us.Row(other, ["ann"]))


@pytest.mark.parametrize("noise", [None, us.Flip(0.9)])
def test_nodes_numbered_in_another_order_are_not_those_of_a_service(noise):
    """A graph whose nodes come as 0, 1, 2, … has no names, and was taken for one whose nodes come otherwise."""
    links = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)]
    ordered, moved = nx.Graph(), nx.Graph()
    for graph, order in ((ordered, range(4)), (moved, (3, 0, 1, 2))):
        graph.add_nodes_from(order)
        graph.add_edges_from(links)
    model = us.LabelBallots(2).freeze(moved, known=torch.tensor([1, 0, 0, 1]))
    service = us.Smoothed(model, noise, moved, samples=20, progress=False)
    assert len(service.certify(us.Row(moved, [0]))) == 1
    with pytest.raises(InputError, match="another graph"):
        service.certify(us.Row(ordered, [0]))
    with pytest.raises(InputError, match="in another order"):
        us.Smoothed(model, noise, ordered, samples=20, progress=False)


def test_a_service_without_noise_tells_of_no_samples_and_no_level():
    graph = nx.Graph(NAMED["text"])
    model = us.LabelBallots(2).freeze(graph, known=torch.arange(5) % 2)
    told = us.Smoothed(model, None, graph, classes=["no", "yes"]).about["settings"]
    assert told == {"noise": None, "classes": ["no", "yes"]}


def test_features_that_are_no_numbers_or_not_enough_are_refused_in_words():
    club = nx.convert_node_labels_to_integers(nx.Graph(NAMED["text"]))
    for node in club:
        club.nodes[node]["x"] = [1.0, 2.0]
    with pytest.raises(InputError, match="must be numbers, one row each"):
        us.Row.new(club, x=[["one", "two"]], neighbours=[[0]])
    with pytest.raises(InputError, match=r"^1 node arrives, so their features must have shape"):
        us.Row.new(club, x=torch.zeros(2, 2), neighbours=[[0]])
