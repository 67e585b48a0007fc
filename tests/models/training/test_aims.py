"""At which sizes proofs count: where links say more than features, everywhere; elsewhere at few changes, within bounds."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.datasets import Dataset, Split
from unswayed.errors import DoubtfulSetting
from unswayed.models.training.aims import Aims, aims_of
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.ballots import fit_ballots
from unswayed.models.training.classroom import Classroom, classroom_of, known_labels, plain_panels
from unswayed.models.training.view import view

SIZES = BallotSettings().judged_at


def graph(degree: float, telling: float, *, friends: bool) -> tuple[Dataset, Split]:
    """Two classes; features tell them apart as much as said, links go to friends of the own class or to anybody."""
    torch.manual_seed(0)
    y = torch.arange(160) % 2
    edges = erdos_renyi_graph(160, degree / 160)
    edges = edges[:, y[edges[0]] == y[edges[1]]] if friends else edges
    x = torch.randn(160, 4) + telling * torch.nn.functional.one_hot(y, 4)
    mixed = torch.randperm(160)
    return Dataset("two", "node", 4, 2, data=Data(x=x, edge_index=edges, y=y)), Split(
        mixed[:50], mixed[50:90], mixed[90:]
    )


def room_of(dataset: Dataset, split: Split) -> Classroom:
    seen = view(dataset, split, "transductive")
    panels = plain_panels(dataset.labels, torch.cat([split.train, split.val]), split.val)
    return Classroom(seen, panels, SIZES, "any", torch.ones(2))


def silent(*, right: bool) -> us.BallotNetwork:
    """A network of features alone: the first two columns decide, rightly or the other way round."""
    network = us.BallotNetwork(4, 2, hidden=2, voters="two-hop")
    with torch.no_grad():
        for weight in network.own.parameters():
            weight.zero_()
        network.own[0].weight[0, 0] = network.own[0].weight[1, 1] = 1.0
        network.own[3].weight.copy_(torch.eye(2) if right else 1 - torch.eye(2))
        network.own_weight.fill_(1.0)
        network.label_weight.fill_(0.0)
    return network.eval()


def test_every_size_counts_where_links_say_more() -> None:
    dataset, split = graph(60, 0.0, friends=True)
    aims = aims_of(room_of(dataset, split), silent(right=True))
    assert not aims.features_lead
    assert aims.score([0.9] * len(SIZES)) == pytest.approx(0.9)
    assert aims.score([0.85] + [0.9] * (len(SIZES) - 1)) == 0.0  # ballots are right about everybody
    assert aims_of(room_of(dataset, split), None) == aims


def test_where_links_say_less_than_the_most_common_label_they_may_be_given_up() -> None:
    dataset, split = graph(4, 0.0, friends=False)
    room = room_of(dataset, split)
    judges = dataset.labels[split.val]
    assert room.most_common == pytest.approx(float(judges.bincount().max()) / len(judges))
    assert aims_of(room, None) == Aims()


@pytest.mark.parametrize(("size", "at"), [(1, (0, 1, 2)), (2, (0, 1, 2, 3, 4)), (5, (0, 1, 2, 3, 5, 10))])
def test_nobody_judges_beyond_twice_the_attack(size: int, at: tuple[int, ...]) -> None:
    assert BallotSettings(attack_size=size).judged_at == at


def test_sizes_shrink_with_the_nodes_in_sight() -> None:
    dataset, split = graph(60, 0.0, friends=True)
    few = Split(split.train[:20], split.train[20:32], torch.cat([split.train[32:], split.val, split.test]))
    room = classroom_of(dataset, view(dataset, few, "inductive"), BallotSettings())
    assert room.in_sight == pytest.approx(2 * 32 / 160)
    ballots = us.LabelBallots(2)
    proofs = us.prove(
        ballots.freeze(room.seen.data, known=room.known), us.Row(room.seen.data, room.panels[0].judges)
    )
    right = proofs.label == room.seen.data.y[room.panels[0].judges].numpy()

    def held(size: int) -> float:
        return float((right & (proofs.size >= size)).mean())

    # 0.4 of 0, 1, 2, 3, 5 and 10 changes
    at = [
        held(0),
        0.6 * held(0) + 0.4 * held(1),
        0.2 * held(0) + 0.8 * held(1),
        0.8 * held(1) + 0.2 * held(2),
    ]
    assert room.proved(ballots) == pytest.approx([*at, held(2), held(4)])
    assert held(0) > held(2) > held(4)  # or nothing was compared
    halved = view(dataset, Split(split.train, split.val, split.test), "inductive")
    assert classroom_of(dataset, halved, BallotSettings()).in_sight == 1.0


def test_networks_that_saw_few_of_the_nodes_keep_what_links_say() -> None:
    dataset, split = graph(60, 0.3, friends=True)
    few = Split(split.train[:20], split.train[20:32], torch.cat([split.train[32:], split.val, split.test]))
    settings = BallotSettings(steps=20, taus=(2.0,), distil=False)
    network = fit_ballots(dataset, few, protocol="inductive", settings=settings)
    threat, truth = us.Row(dataset.graph, few.test), dataset.labels[few.test].numpy()
    known = known_labels(dataset.labels, torch.cat([few.train, few.val]))
    untrained = us.prove(us.LabelBallots(2).freeze(dataset.graph, known=known), threat)
    proved = us.prove(network, threat).accuracy(truth, at=(0, 1, 5))
    assert (proved >= untrained.accuracy(truth, at=(0, 1, 5)) - 0.05).all()


def test_judges_that_see_few_links_take_no_chance_for_a_gain() -> None:
    dataset, split = graph(60, 0.0, friends=True)
    room = room_of(dataset, split)
    plain, wrong = us.LabelBallots(2), silent(right=False)
    held = room.held(plain)
    assert held.shape == (len(SIZES), len(split.val))
    assert room.proved(plain) == pytest.approx(held.mean(dim=1).tolist())
    assert not room.clearly_better(plain, plain)
    assert room.clearly_better(plain, wrong)
    assert not room.clearly_better(wrong, plain)
    # of few judges one may be right by chance
    one = replace(room, panels=plain_panels(dataset.labels, split.train, split.val[:1]))
    some = replace(room, panels=plain_panels(dataset.labels, split.train, split.val[:3]))
    assert not one.clearly_better(plain, wrong)
    assert some.weight.tolist() == [1.0] * 3


def scarce() -> tuple[Dataset, Split]:
    """Five groups, 60 nodes without features, a fifth of whose labels are known: the labelled nodes have hardly a link in sight."""
    torch.manual_seed(2)
    y = torch.arange(60) % 5
    edges = torch.combinations(torch.arange(60)).T
    likely = torch.where(y[edges[0]] == y[edges[1]], 0.7, 0.06)
    edges = edges[:, torch.rand(edges.shape[1]) < likely]
    data = Data(x=torch.ones(60, 1), edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=y)
    order = torch.cat([torch.arange(10), 10 + torch.randperm(50)])
    return Dataset("scarce", "node", 0, 5, data=data), Split(order[:10], order[10:15], order[15:])


def test_what_few_links_show_is_not_learnt_by_heart() -> None:
    dataset, split = scarce()
    with pytest.warns(DoubtfulSetting, match="Nothing is learnt: labelled nodes have . links in sight"):
        network = fit_ballots(dataset, split, protocol="inductive")
    threat = us.Row(dataset.graph, split.test)
    known = known_labels(dataset.labels, torch.cat([split.train, split.val]))
    untrained = us.prove(us.LabelBallots(5).freeze(dataset.graph, known=known), threat)
    proofs = us.prove(network, threat)
    assert (proofs.label == untrained.label).all()
    assert (proofs.size == untrained.size).all()
    assert untrained.accuracy(dataset.labels[split.test], at=[0]) > 0.9


def test_links_are_not_given_up_by_judges_that_hardly_see_any() -> None:
    dataset, split = scarce()
    room = classroom_of(dataset, view(dataset, split, "inductive"), BallotSettings())
    assert not room.enough_to_learn
    right = room.proved(room.untrained)[0]
    assert 0.2 < right < 1.0
    assert aims_of(room, None).score([right - 0.01] + [1.0] * (len(SIZES) - 1)) == 0.0
    assert aims_of(room, None).score([right] + [1.0] * (len(SIZES) - 1)) > 0.0
    whole = classroom_of(dataset, view(dataset, split, "transductive"), BallotSettings())
    assert aims_of(whole, None).least == (pytest.approx(0.9 * whole.proved(whole.untrained)[0]),)


def test_few_changes_count_where_features_say_more_and_nothing_is_lost_behind_the_degree_wall() -> None:
    dataset, split = graph(4, 4.0, friends=False)
    aims = aims_of(room_of(dataset, split), silent(right=True))
    assert aims.features_lead
    assert aims.counted == (0, 1, 2)
    assert aims.least[0] == 0.0  # nearly everybody has a link
    assert aims.least[-1] > 0.8  # hardly anybody has more than ten
    flat = [aims.least[-1]] * len(SIZES)
    assert aims.score(flat) == pytest.approx(flat[0])
    assert aims.score([1.0] * (len(SIZES) - 1) + [flat[0] - 0.1]) == 0.0


def test_a_size_that_is_named_counts_also_where_features_say_more() -> None:
    dataset, split = graph(4, 4.0, friends=False)
    usual, named = BallotSettings(), BallotSettings(attack_size=5)
    assert usual.withstood == named.withstood == 5
    assert usual.judged_at == named.judged_at
    own, room = silent(right=True), room_of(dataset, split)
    assert aims_of(room, own, usual.counted_to).counted == (0, 1, 2)
    assert aims_of(room, own, named.counted_to).counted == tuple(
        SIZES.index(size) for size in (0, 1, 2, 3, 5)
    )
    assert aims_of(room, own, BallotSettings(attack_size=1).counted_to).counted == (0, 1)


def test_the_degree_wall_is_that_of_the_whole_graph() -> None:
    dataset, split = graph(17, 4.0, friends=False)
    degree = torch.bincount(dataset.graph.edge_index[0], minlength=160)[split.val]
    hidden = classroom_of(dataset, view(dataset, split, "inductive"), BallotSettings(meaning=False))
    in_sight = torch.bincount(hidden.links.target, minlength=hidden.links.nodes)[hidden.seen.val]
    assert float((degree > SIZES[-1]).float().mean()) > 0.5 > float((in_sight > SIZES[-1]).float().mean())
    assert aims_of(hidden, silent(right=True)).least == (0.0,) * len(SIZES)


def test_a_network_that_leans_on_features_proves_no_less_than_they_do() -> None:
    dataset, split = graph(12, 2.0, friends=False)
    settings = BallotSettings(steps=20, taus=(10.0,), distil=False)
    network = fit_ballots(dataset, split, settings=replace(settings, presume=False))
    assert network.seen is None
    proofs = us.prove(network, us.Row(dataset.graph, split.val))
    alone = network.thaw().freeze(Data(x=dataset.graph.x, edge_index=dataset.graph.edge_index[:, :0]))
    floor = us.prove(
        alone, us.Row(Data(x=dataset.graph.x, edge_index=dataset.graph.edge_index[:, :0]), split.val)
    )
    y = dataset.labels[split.val]
    assert proofs.accuracy(y, at=[0, 1, 2]).mean() >= float((floor.label == y.numpy()).mean()) - 0.03


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_links_are_not_given_up_for_sizes_behind_the_degree_wall(protocol: str) -> None:
    """Some six links a node, nearly all to the own class: ten changes take everything, but up to five links say more than features."""
    torch.manual_seed(0)
    y = torch.arange(600) % 2
    chance = torch.where(y[:, None] == y, 11.7 / 600, 1.3 / 600)
    edges = torch.triu(torch.rand(600, 600) < chance, 1).nonzero().t()
    x = torch.randn(600, 4) + 0.8 * torch.nn.functional.one_hot(y, 4)
    mixed = torch.randperm(600)
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=y)
    split = Split(mixed[:150], mixed[150:300], mixed[300:])
    settings = BallotSettings(steps=20, taus=(2.0,))
    network = fit_ballots(
        Dataset("six", "node", 4, 2, data=data), split, protocol=protocol, settings=settings
    )
    proved = us.prove(network, us.Row(data, split.test)).accuracy(y[split.test], at=[0, 1, 2])
    assert (proved > [0.85, 0.8, 0.75]).all()  # features alone are right about .7
