import networkx
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed import prospects
from unswayed.ballots.meaning import suited
from unswayed.models.floors import Floor, floor


def communities(n, inside, outside, seed=0):
    """Two communities of n nodes and all labels; links with these chances."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(2 * n) % 2
    chance = torch.where(y[:, None] == y, inside, outside)
    half = torch.triu(torch.rand(2 * n, 2 * n, generator=generator) < chance, 1).nonzero().t()
    return Data(
        edge_index=torch.cat([half, half.flip(0)], dim=1), y=y, num_nodes=2 * n, x=torch.ones(2 * n, 1)
    )


def half_known(data, seed=0):
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    known = torch.full_like(data.y, -1)
    known[order[: data.num_nodes // 2]] = data.y[order[: data.num_nodes // 2]]
    return known


def test_dense_communities_can_be_proved_and_the_estimate_is_close_to_what_is_proved():
    data = communities(150, 0.3, 0.05)
    known = half_known(data)
    ahead = us.prospect(data, known)
    assert ahead.way == "prove"
    assert f"Label ballots can pay up to K = {ahead.largest}: prove (label ballots)" in str(ahead)
    assert "a network trained from them (ballots) may reach further" in str(ahead)
    assert ahead.floor == pytest.approx(0.5, abs=0.05)
    proofs = us.prove(us.LabelBallots(2).freeze(data, known=known), us.Row(data, torch.arange(300)))
    for k in (1, 5, 10, 20):
        assert ahead.certified(k) == pytest.approx(proofs.accuracy(data.y, at=[k])[0], abs=0.1)


def test_nodes_that_are_far_from_right_do_not_hide_those_that_are_proved():
    """A tenth of all nodes sit amid another class: what these lose takes much of what all others lead by."""
    data = communities(150, 0.3, 0.0)
    lost = torch.arange(300) % 10 == 0  # of class 0, linked to class 1 alone
    other = (data.y == 1).nonzero()[:, 0]
    there = torch.stack([lost.nonzero()[:, 0].repeat_interleave(len(other)), other.repeat(int(lost.sum()))])
    kept = data.edge_index[:, ~lost[data.edge_index].any(dim=0)]
    data.edge_index = torch.cat([kept, there, there.flip(0)], dim=1)
    known = half_known(data)
    proofs = us.prove(
        suited(data, known, 2).freeze(data, known=known), us.Row(data, (known < 0).nonzero()[:, 0])
    )
    held = proofs.accuracy(data.y[known < 0], at=[5])[0]
    assert held > 0.6
    assert us.prospect(data, known).certified(5) == pytest.approx(held, abs=0.1)


def test_nodes_whose_names_are_numbers_are_judged_by_their_own_labels():
    """In a networkx graph node 5 need not be the fifth."""
    data = communities(40, 0.4, 0.03)
    order = torch.randperm(80, generator=torch.Generator().manual_seed(1)).tolist()
    graph = networkx.Graph()
    graph.add_nodes_from(order)
    graph.add_edges_from(data.edge_index.T.tolist())
    mine, theirs = us.prospect(data, data.y), us.prospect(graph, data.y[order])
    assert theirs.base == mine.base > 0.9
    assert sorted(theirs.sizes) == sorted(mine.sizes)


def test_labels_have_no_part_in_the_meaning_that_they_judge():
    """Twenty kinds that never deal with their own, and tell nothing else: read off the judges themselves, meanings were right for .42."""
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(20, (600,), generator=generator)
    pairs = torch.randint(600, (2, 3300), generator=generator)
    pairs = pairs[:, y[pairs[0]] != y[pairs[1]]]
    data = Data(edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes=600)
    ahead = us.prospect(data, torch.where(torch.rand(600, generator=generator) < 0.3, y, -1))
    assert ahead.unlike
    assert ahead.base < 0.1
    assert ahead.way == "drop the edges"


def test_label_ballots_just_below_the_floor_are_worth_training():
    data = communities(150, 0.3, 0.05)
    known = half_known(data)
    proved = us.prospect(data, known).certified(1)
    ahead = us.prospect(data, known, floor=min(proved + 0.02, 1.0))
    assert ahead.near
    assert ahead.way == "prove"
    assert "prove (ballots)" in str(ahead)
    assert ahead.largest == 0
    thin = communities(150, 0.012, 0.002)
    assert not us.prospect(thin, half_known(thin), floor=0.9).near


def test_what_is_proved_about_as_much_is_not_told_as_less():
    data = communities(150, 0.08, 0.03)
    known = half_known(data)
    proved = us.prospect(data, known).certified(1)
    assert 0.5 < proved < 0.98
    for more, words in ((-0.01, "prove about as much as a"), (0.01, "prove 0.01 less than a")):
        assert words in str(us.prospect(data, known, floor=proved + more))


def test_of_a_rare_label_it_is_said_what_else_to_ask():
    data = communities(60, 0.3, 0.05)
    known = half_known(data)
    assert "fit_flags" not in str(us.prospect(data, known))
    rare = known.clone()
    rare[(known == 1).nonzero()[5:, 0]] = -1
    ahead = us.prospect(data, rare)
    assert ahead.rarer == pytest.approx(5 / int((rare >= 0).sum()))
    assert f"the rarer has {ahead.rarer:.0%} here" in str(ahead)
    assert "fit_flags" in str(ahead)
    assert f"Of {int((rare >= 0).sum())} whose label is known" in str(ahead)


def test_where_links_say_nothing_the_edges_are_to_be_dropped():
    data = communities(150, 0.05, 0.05)
    ahead = us.prospect(data, half_known(data), floor=0.8)
    assert ahead.way == "drop the edges"
    assert ahead.largest == 0
    assert "drop the edges" in str(ahead)


def test_a_floor_that_has_not_read_the_features_is_no_model_without_edges():
    data = communities(150, 0.3, 0.05)
    known = half_known(data)
    bare = us.prospect(data, known)  # one column of ones tells nothing
    assert "the most common label is right for 5" in str(bare)
    assert "without edges" not in str(bare)
    assert "features" not in str(bare)
    data.x = torch.nn.functional.one_hot(data.y, 2).float()
    told = us.prospect(data, known)
    assert told.unread
    assert str(told).endswith("so give its accuracy as the floor.")
    assert told.to_dict()["floor_of"] == "the most common label"
    given = us.prospect(data, known, floor=1.0)
    assert "a model without edges is right for 100%" in str(given)
    assert not given.unread


def test_the_wall_of_degrees_is_counted():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    ahead = us.prospect(Data(edge_index=path, num_nodes=3), torch.tensor([0, 0, 1]))
    assert [ahead.above(k) for k in (0, 1, 2)] == [1.0, pytest.approx(1 / 3), 0.0]


def test_a_strong_network_on_a_thin_graph_is_sent_to_little_noise():
    data = communities(150, 0.012, 0.002)
    ahead = us.prospect(data, half_known(data), floor=0.78, accuracy=0.9)
    assert ahead.way == "smooth"


@pytest.mark.parametrize(
    ("known", "more", "sentence"),
    [
        ([-1, -1, 0], {}, "at least two"),
        ([0, 1], {}, "each of the 3 nodes"),
        ([0, 1, 1], {"floor": 2.0}, "between 0 and 1"),
        ([0, 1, 1], {"floor": floor}, "between 0 and 1"),  # the function, in place of what it found
        ([0, 1, 1], {"floor": "0.7"}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_estimated_is_one_sentence(known, more, sentence):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    with pytest.raises(us.errors.InputError, match=sentence):
        us.prospect(data, torch.tensor(known), **more)


def test_json_holds_the_sentence():
    data = communities(30, 0.5, 0.1)
    told = us.prospect(data, half_known(data)).to_dict()
    assert set(told["at"]) == {str(k) for k in prospects.BUDGETS}
    assert told["sentence"].startswith("Of all nodes")


def test_what_floor_has_found_is_a_floor_by_validation_nodes_alone():
    data = communities(150, 0.3, 0.05)
    known = half_known(data)
    for tested in (0.7, float("nan")):  # NaN where no label of a test target is known
        found = Floor("mlp", data.y, validation=0.6, accuracy=tested)
        assert str(us.prospect(data, known, floor=found)) == str(us.prospect(data, known, floor=0.6))
