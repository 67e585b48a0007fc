import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Split, from_data, split
from unswayed.errors import DoubtfulSetting, InputError
from unswayed.models.floors import floor
from unswayed.models.training import fit
from unswayed.models.training.pairs import PairSettings, Voting


@pytest.fixture
def club():
    from torch_geometric.datasets import KarateClub

    data = KarateClub()[0]
    part = torch.arange(34) % 3
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    return data


def test_a_graph_of_ones_own_is_trained_and_proved(club):
    dataset, parts = from_data(club), Split(club.train_mask, club.val_mask, club.test_mask)
    assert (dataset.task, dataset.num_features, dataset.num_classes) == ("node", 34, 4)
    assert parts.val.tolist() == list(range(1, 34, 3))
    network = fit("ballots", dataset, parts)
    proofs = us.prove(network, us.Row(club, parts.test))  # of the same graph as the user's own object
    said = network(club.x, club.edge_index).argmax(dim=1)[parts.test]
    assert np.array_equal(proofs.label, said.numpy())


def test_networks_frozen_on_nodes_with_names_know_them(club):
    """A graph whose nodes came in another order was proved by the tables of others."""
    club.node_names = [f"n{node}" for node in range(34)]
    model = us.LabelBallots(4).freeze(from_data(club).graph, known=club.y)
    assert us.prove(model, us.Row(club, ["n2"])).about.target_names == ("n2",)
    moved = Data(edge_index=club.edge_index, num_nodes=34)
    moved.node_names = club.node_names[::-1]
    with pytest.raises(InputError, match="in another order"):
        us.prove(model, us.Row(moved, ["n2"]))
    club.node_names = ["n0"] * 34
    with pytest.raises(InputError, match="a different name for each of the 34 nodes"):
        from_data(club)


@pytest.mark.parametrize("more", [{"recipe": "noise"}, {"noise": us.Flip(0.9)}])
def test_a_ballot_network_takes_no_recipe_and_no_noise(club, more):
    parts = Split(club.train_mask, club.val_mask, club.test_mask)
    with pytest.raises(InputError, match="know no recipes"):
        fit("ballots", from_data(club), parts, **more)


@pytest.mark.parametrize(
    ("names", "words"),
    [(["edge_attr"], "edge_attr is"), (["edge_weight", "edge_attr"], "edge_weight and edge_attr are")],
)
def test_what_edges_carry_is_said_not_to_be_read(club, names, words):
    for name in names:
        club[name] = torch.ones(club.num_edges)
    with pytest.warns(DoubtfulSetting, match=f"{words} not learnt from"):
        dataset = from_data(club)
    assert all(name not in dataset.graph for name in names)
    club.y = club.y[:1]
    with pytest.warns(DoubtfulSetting, match=f"{words} not learnt from"):
        from_data([club], classes=4)


def test_graphs_of_ones_own_are_a_dataset():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(edge_index=edges, num_nodes=2 + i, y=torch.tensor([[i % 2.0]])) for i in range(20)]
    dataset = from_data(graphs, classes=3)
    assert (dataset.task, dataset.num_features, dataset.num_classes) == ("graph", 0, 3)
    assert dataset.labels.tolist() == [0, 1] * 10
    assert dataset.graphs[1].x.tolist() == [[1.0]] * 3
    quick = PairSettings(voting=(Voting(1, True, 0.5),), silent=("counts-linear",), steps=50, warm_up=10)
    network = fit("ballots", dataset, split(dataset, 0), settings=quick)
    proofs = us.prove(network, us.AllPairs(graphs))
    assert isinstance(network, us.PairBallots)
    assert np.array_equal(proofs.label, [int(network(g.x, g.edge_index).argmax()) for g in dataset.graphs])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": None}, "y must hold the class of each node"),
        ({"y": torch.zeros(3)}, "y must hold the class of each node"),
        ({"y": torch.full((34,), 0.5)}, "as a whole number"),
        ({"y": torch.full((34,), torch.nan)}, "at least two classes"),
        ({"y": torch.zeros(34)}, "at least two classes; 1 are too few"),
        ({"x": torch.zeros(34)}, "must be a table of nodes by numbers"),
        ({"edge_index": None}, "no edge_index"),
    ],
)
def test_data_that_is_no_dataset_is_refused(club, change, sentence):
    for name, value in change.items():
        club[name] = value
    with pytest.raises(InputError, match=sentence):
        from_data(club)


def test_a_label_that_is_nan_is_unknown(club):
    club.y = club.y.double()
    club.y[3] = torch.nan
    assert from_data(club).labels.tolist() == [*club.y[:3].tolist(), -1, *club.y[4:].tolist()]


def test_graphs_that_do_not_belong_together_are_refused(club):
    with pytest.raises(InputError, match="2 are too few"):
        from_data(club, classes=2)
    edges, y = club.edge_index[:, :0], torch.tensor([1])
    with pytest.raises(InputError, match="Some graphs have 1 features a node, others 2"):
        from_data([Data(x=torch.ones(3, width), edge_index=edges, y=y) for width in (1, 2)])
    for wrong in ([], club.x, "cora"):
        with pytest.raises(InputError, match=r"from_data takes a Data.*from_networkx makes one"):
            from_data(wrong)


@pytest.mark.parametrize("train", [lambda dataset, parts: fit("sage", dataset, parts), floor])
def test_training_says_what_it_takes(club, train):
    parts = Split(club.train_mask, club.val_mask, club.test_mask)
    with pytest.raises(InputError, match=r"A dataset is expected, not Data; .*from_data"):
        train(club, parts)
    with pytest.raises(InputError, match="A split is expected, not tuple"):
        train(from_data(club), (club.train_mask, club.val_mask, club.test_mask))
    with pytest.raises(InputError, match="beyond the 34"):
        train(from_data(club), Split([0], [1], [34]))


@pytest.mark.parametrize("part", ["train_mask", "val_mask"])
def test_targets_without_a_label_are_not_learnt_as_class_0(club, part):
    club.y[club[part].nonzero()[0]] = -1
    parts = Split(club.train_mask, club.val_mask, club.test_mask)
    with pytest.raises(InputError, match="without a label"):
        fit("sage", from_data(club), parts)


@pytest.mark.parametrize("train", [[-1], [0.5], [[3]]])
def test_parts_are_masks_or_numbers_in_one_row(train):
    with pytest.raises(InputError, match="train must be a mask, or numbers"):
        Split(train, [1], [2])


def test_what_is_printed_of_a_floor_or_a_prospect_is_short(club):
    parts = Split(club.train_mask, club.val_mask, club.test_mask)
    assert repr(parts) == "Split(12 train, 11 val, 11 test)"
    assert repr(from_data(club)) == "Dataset(own: 34 nodes, 34 features, 4 classes)"
    assert "tensor" not in repr(floor(from_data(club), parts))
    assert "array" not in repr(us.prospect(club, club.y))
