"""Models that were saved, loaded or altered: what is proved is what they answer."""

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.ballots.networks import BallotNetwork
from unswayed.errors import InputError, UnsoundModel, Unsupported


def graph(nodes: int = 30, seed: int = 0) -> Data:
    torch.manual_seed(seed)
    edges = torch.randint(0, nodes, (2, 3 * nodes))
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1)
    return Data(x=torch.randn(nodes, 4), edge_index=edges, num_nodes=nodes, y=torch.arange(nodes) % 3)


def speaking(voters: str, tau: float = 2.0) -> BallotNetwork:
    torch.manual_seed(1)
    network = BallotNetwork(4, 3, voters=voters, tau=tau)
    with torch.no_grad():
        network.own_weight.fill_(0.5)
        network.voice_weight.fill_(0.3)
    return network


class TestLoading:
    def test_tables_of_other_voters_are_refused(self) -> None:
        data = graph()
        stored = speaking("two-hop").freeze(data, known=data.y).state_dict()
        with pytest.raises(InputError, match="same voters"):
            BallotNetwork(4, 3).load_state_dict(stored)
        stored = speaking("features").freeze(data, known=data.y).state_dict()
        with pytest.raises(InputError, match="same voters"):
            BallotNetwork(4, 3, voters="two-hop").load_state_dict(stored)

    def test_fake_nodes_have_no_bound_where_voters_read_links(self) -> None:
        data = graph()
        assert speaking("two-hop").freeze(data, known=data.y).reach is None
        with pytest.raises(Unsupported):
            us.prove(speaking("two-hop").freeze(data, known=data.y), us.Inject(data, [0, 1]))

    def test_tau_travels_so_that_arrivals_get_the_same_answer(self) -> None:
        data = graph()
        saved = speaking("features", tau=50.0).freeze(data, known=data.y)
        loaded = BallotNetwork(4, 3)
        loaded.load_state_dict(saved.state_dict())
        assert loaded.tau == 50.0
        threat = us.Row.new(data, torch.randn(5, 4), [[0, 1, 2], [3], [4, 5], [6], [7, 8, 9]])
        one, two = us.prove(saved, threat), us.prove(loaded.eval(), threat)
        assert (one.label == two.label).all()
        assert (one.size == two.size).all()
        assert saved.table_hash == loaded.table_hash

    def test_the_hash_sees_the_weights_that_arrivals_are_scored_with(self) -> None:
        data = graph()
        network = speaking("features").freeze(data, known=data.y)
        before = network.table_hash
        with torch.no_grad():
            network.own_weight.add_(1.0)
        assert network.table_hash != before


def test_ballots_changed_in_place_are_proved_anew() -> None:
    data = graph()
    network = speaking("features").freeze(data, known=data.y)
    threat = us.Row(data, torch.arange(10))
    us.prove(network, threat)
    network.ballot_table.neg_()
    fresh = speaking("features").freeze(data, known=data.y)
    fresh.ballot_table = -fresh.ballot_table
    now, anew = us.prove(network, threat), us.prove(fresh, threat)
    assert (now.size == anew.size).all()
    assert (now.label == anew.label).all()


@pytest.mark.parametrize(
    "disguise",
    [
        lambda d: d**2,
        lambda d: 1 / (1 + d),
        torch.sqrt,
        lambda d: d.log1p().round(decimals=2),
        lambda d: d.clamp(max=6),
    ],
)
def test_features_that_the_degree_decides_may_not_vote(disguise) -> None:  # type: ignore[no-untyped-def]
    data = graph(60)
    degree = torch.bincount(data.edge_index[0], minlength=60).float()
    noise = torch.randn(60)
    data.x = torch.stack([noise, disguise(degree)], dim=1)
    with pytest.raises(UnsoundModel, match="degree"):
        BallotNetwork(2, 3).freeze(data, known=data.y)
    data.x = torch.stack([noise, disguise(degree)[torch.randperm(60)]], dim=1)
    BallotNetwork(2, 3).freeze(data, known=data.y)
