"""Models that were saved, loaded or altered: what is proved is what they answer."""

import copy

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


def test_a_frozen_network_is_asked_again_under_inference_mode() -> None:
    """Torch counts no changes of tensors made there, and asking for their number was an error."""
    data = graph()
    network = speaking("features").freeze(data)
    with torch.inference_mode():
        x = data.x.clone()
        first, again = network(x, data.edge_index), network(x, data.edge_index)
        assert torch.equal(first, again)
        x[0] += 1
        with pytest.raises(InputError, match="not those the model was frozen with"):
            network(x, data.edge_index)


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

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    def test_tables_are_not_rounded_with_the_weights(self, dtype: torch.dtype) -> None:
        """Arrivals were scored with a rounded tau, and so by other scores than the node that each would be."""
        network, data = speaking("features", tau=0.3).bfloat16().freeze(graph()), graph()
        before, x = network.table_hash, torch.randn(5, 4)
        scores = network.own_of_new(x, 5)
        again = network.to(dtype).own_of_new(x, 5)
        assert all(torch.equal(one, other) for one, other in zip(scores, again, strict=True))
        assert network.tau_table is not None
        assert network.tau_table.dtype == torch.float64
        assert us.prove(network, us.Row(data, [0])).size[0] >= 0
        assert network.to(torch.bfloat16).table_hash == before

    def test_features_checked_before_are_checked_again_against_tables_that_were_loaded(self) -> None:
        data, other = graph(), graph()
        other.x = other.x + 1
        model, threat = speaking("features").freeze(data, known=data.y), us.Row(data, [0, 1])
        us.prove(model, threat)
        model.load_state_dict(speaking("features").freeze(other, known=data.y).state_dict())
        with pytest.raises(InputError, match="not those the model was frozen with"):
            us.prove(model, threat)
        with pytest.raises(InputError, match="not those the model was frozen with"):
            model(data.x, data.edge_index)

    def test_weights_that_change_after_freezing_are_noticed_before_arrivals_are_scored(self) -> None:
        data = graph()
        net = speaking("features").freeze(data, known=data.y)
        new = us.Row.new(data, data.x[:2] + 0.1, [[0, 1], [2]])
        before = us.prove(net, new)
        net.tau = 50.0  # of the next freezing
        again = us.prove(copy.deepcopy(net), new)
        assert (again.label.tolist(), again.size.tolist()) == (before.label.tolist(), before.size.tolist())
        with torch.no_grad():
            net.own_weight.mul_(-3)
        for one in (net, copy.deepcopy(net)):
            with pytest.raises(InputError, match="weights have changed since the model was frozen"):
                us.prove(one, new)
        us.prove(net, us.Row(data, [0]))  # which the tables answer alone
        us.prove(net.freeze(data, known=data.y), new)

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


class Contrary(BallotNetwork):
    def forward(self, x, edge_index, batch=None):  # type: ignore[no-untyped-def]
        return -super().forward(x, edge_index, batch)


class Squared(BallotNetwork):
    def _tally(self, x, edge_index, batch):  # type: ignore[no-untyped-def]
        return super()._tally(x, edge_index, batch) ** 2


class Lumped(us.Hashed):
    """All edges of a node with many of them in one group: a group that one edge can move others into."""

    def group_of(self, edge_index):  # type: ignore[no-untyped-def]
        return (super().group_of(edge_index) + edge_index.shape[1]) % self.groups


class Delegate(torch.nn.Module):
    """A model around another that answers otherwise, and passes on whatever it has not itself."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):  # type: ignore[no-untyped-def]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x, edge_index, batch=None):  # type: ignore[no-untyped-def]
        return -self.inner(x, edge_index, batch)


def turned(model):  # type: ignore[no-untyped-def]
    model.register_forward_hook(lambda module, given, said: -said)
    return model


def blinded(model):  # type: ignore[no-untyped-def]
    model.register_forward_pre_hook(lambda module, given: (given[0], given[1][:, :0]))
    return model


def replaced(model):  # type: ignore[no-untyped-def]
    model.forward = lambda x, edge_index, batch=None: -type(model).forward(model, x, edge_index, batch)
    return model


def called_otherwise(model):  # type: ignore[no-untyped-def]
    call = model._call_impl
    model._call_impl = lambda *given, **named: -call(*given, **named)
    return model


def compiled(model):  # type: ignore[no-untyped-def]
    model.compile(backend=lambda module, given: lambda *asked: [-said for said in module(*asked)])
    return model


class TestAnswersOfTheirOwn:
    """Tables and votes prove nothing about a model that does something else with them."""

    @pytest.mark.parametrize("kind", [Contrary, Squared])
    def test_subclasses(self, kind) -> None:  # type: ignore[no-untyped-def]
        data = graph()
        with pytest.raises(UnsoundModel, match="of its own"):
            us.prove(kind(4, 3).freeze(data, known=data.y), us.Row(data, [0]))

    @pytest.mark.parametrize("change", [turned, blinded, replaced, called_otherwise, compiled])
    @pytest.mark.parametrize("kind", ["ballots", "groups", "pairs"])
    def test_hooks_and_instances(self, change, kind) -> None:  # type: ignore[no-untyped-def]
        data = graph()
        asked = {
            "ballots": lambda: (speaking("features").freeze(data, known=data.y), us.Row(data, [0])),
            "groups": lambda: (us.Hashed(speaking("features"), 5).eval(), us.AllPairs(data, [0])),
            "pairs": lambda: (us.PairBallots(4, 3).freeze([data]), us.AllPairs([data])),
        }[kind]
        model, threat = asked()
        us.prove(model, threat)
        with pytest.raises(UnsoundModel, match=r"of its own|forward hook|was compiled"):
            us.prove(change(model), threat)

    @pytest.mark.parametrize("groups", [False, True])
    def test_models_around_others(self, groups: bool) -> None:
        data = graph()
        network = speaking("features").freeze(data, known=data.y)
        inner, threat = (
            (us.Hashed(network, 5).eval(), us.AllPairs(data, [0])) if groups else (network, us.Row(data, [0]))
        )
        us.prove(inner, threat)
        with pytest.raises(Unsupported, match="Delegate is not a sum of ballots"):
            us.prove(Delegate(inner), threat)

    def test_groups_by_another_rule(self) -> None:
        with pytest.raises(UnsoundModel, match="group_of of its own"):
            us.prove(Lumped(speaking("features"), 5), us.AllPairs(graph(), [0]))

    def test_tables_changed_where_torch_does_not_count_it(self) -> None:
        data = graph()
        network = speaking("features").freeze(data, known=data.y)
        us.prove(network, us.Row(data, range(30)))
        network.ballot_table.numpy()[:] *= -1
        changed = us.prove(network, us.Row(data, range(30)))
        fresh = speaking("features").freeze(data, known=data.y)
        fresh.ballot_table = -fresh.ballot_table
        assert changed.size.tolist() == us.prove(fresh, us.Row(data, range(30))).size.tolist()


def test_tables_written_to_behind_torchs_back_are_read_again():
    """What is written through `.data` leaves no trace in a tensor's version."""
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]))
    model = us.LabelBallots(2).freeze(data, known=[0, 1, 0, 1])
    arrival, row = us.Row.new(data, torch.ones(1, 4), [[0, 2]]), us.Row(data, [1])
    before = [us.prove(model, threat) for threat in (arrival, row)]
    model.ballot_table.data.copy_(model.ballot_table.flip(1))
    after = [us.prove(model, threat) for threat in (arrival, row)]
    assert [int(proofs.label[0]) for proofs in before] == [0, 0]
    assert [int(proofs.label[0]) for proofs in after] == [1, 1]
    model.own_table.data.add_(1)
    names = [proofs.model["tables sha256"] for proofs in (*before, *after, us.prove(model, row))]
    assert [names.index(name) for name in names] == [0, 0, 2, 2, 4]


def test_features_written_to_behind_torchs_back_are_refused():
    """Proofs are of the graph that is given, and its features are no longer those that the ballots were made of."""
    data = graph()
    held = data.x.numpy()
    network, row = speaking("features").freeze(data, known=data.y), us.Row(data, range(30))
    before = us.prove(network, row).size.tolist()
    held[:] *= -1
    with pytest.raises(InputError, match="not those the model was frozen with"):
        us.prove(network, us.Row(data, range(30)))
    held[:] *= -1
    assert us.prove(network, us.Row(data, range(30))).size.tolist() == before
