"""A service answers what poll, certify and prove would, and says no more than its votes prove."""

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError, RefusedVotes, StoreError, UnsoundModel
from unswayed.serving import sampled
from unswayed.serving.sampled import fresh

N, CLASSES = 30, 3
FLIP = us.Flip(beta=0.8)


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(N, 4), edge_index=erdos_renyi_graph(N, 0.15))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return GraphSAGE(4, 8, 2, CLASSES)


@pytest.fixture(scope="module")
def service(model, data):
    return us.Smoothed(model, FLIP, data, samples=400, alpha=0.01, audit=20)


@pytest.fixture
def arrivals(data):
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(5))
    return us.Row.new(data, x, [[0, 7, 9], []])


def ballots(data):
    labels = torch.arange(N) % CLASSES
    return us.LabelBallots(CLASSES).freeze(data, known=torch.where(torch.arange(N) % 2 == 0, labels, -1))


def test_a_seed_gives_the_votes_of_poll(service, model, data, arrivals):
    for nodes, threat in (([3, 8, 3 + 9], us.Row(data, [3, 8, 12])), (arrivals, arrivals)):
        mine = service.certify(nodes, seed=11)
        theirs = us.certify(us.poll(model, threat, FLIP, samples=400, seed=11), alpha=0.01)
        assert mine.votes == theirs.votes
        assert mine.votes.provenance == theirs.votes.provenance
        assert (mine.label.tolist(), mine.size.tolist()) == (theirs.label.tolist(), theirs.size.tolist())
        again = service.predict(nodes, seed=11)
        assert again.tolist() == service.predict(nodes, seed=11).tolist()
        certified = mine.label >= 0
        assert again[certified].tolist() == mine.label[certified].tolist()  # a size takes more than a label


def test_a_model_that_cannot_be_copied_is_left_in_its_mode(model, data, service):
    class Single(GraphSAGE):
        def __deepcopy__(self, memo):
            raise TypeError("there is one of me")

    single = Single(4, 8, 2, CLASSES, dropout=0.5)
    single.load_state_dict(model.state_dict())
    single.convs[0].eval()
    before = [module.training for module in single.modules()]
    other = us.Smoothed(single, FLIP, data, samples=400, alpha=0.01, audit=20)
    counts = [one.certify([3, 8], seed=11).votes.counts.tolist() for one in (other, service)]
    assert counts[0] == counts[1]
    assert [module.training for module in single.modules()] == before


def test_three_layers_and_those_who_arrive_one_or_several_at_a_time(data):
    torch.manual_seed(4)
    model, noise = GraphSAGE(4, 8, 3, CLASSES), us.Flip(0.8)
    service = us.Smoothed(model, noise, data, samples=60, audit=0)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(6))
    for rows, linked in (([0], [[1, 2]]), ([1], [[5]]), ([0, 2], [[1, 2], []]), ([2, 1], [[9], [0, 1]])):
        threat = us.Row.new(data, x[rows], linked)
        votes = us.poll(model, threat, noise, samples=60, seed=2, engine="generic")
        assert service.certify(threat, seed=2).votes == votes
    assert service.certify([4], seed=2).votes == us.poll(model, us.Row(data, [4]), noise, samples=60, seed=2)


@pytest.mark.parametrize("noise", [us.AddDelete(0.01, 0.4), us.Keep(2, 8)])
def test_other_noises_are_served_too(model, data, noise):
    service = us.Smoothed(model, noise, data, samples=200, audit=10)
    votes = us.poll(model, us.Row(data, [1, 2]), noise, samples=200, seed=3)
    assert service.certify([1, 2], seed=3).votes == votes


def test_noise_is_fresh_and_secret_by_default(service):
    seeds = {service.certify(0, samples=4).votes.provenance["seed"] for _ in range(20)}
    assert len(seeds) == 20


def test_seeds_do_not_repeat():
    seeds = [fresh() for _ in range(200_000)]
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) > 2**63


def test_the_model_is_checked_once(model, data, monkeypatch):
    service = us.Smoothed(model, FLIP, data, samples=50, audit=0)
    monkeypatch.setattr(sampled, "choose", lambda question: pytest.fail("an engine was chosen again"))
    service.predict([0, 5])
    service.certify(range(N))


def test_what_happens_to_model_and_graph_later_changes_nothing(data):
    torch.manual_seed(2)
    model, graph = GCN(4, 8, 2, CLASSES), copy.deepcopy(data)
    service = us.Smoothed(model, FLIP, graph, samples=300, audit=0)
    before = service.certify([2, 4], seed=1).votes
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        graph.x.zero_()
    assert service.certify([2, 4], seed=1).votes == before


def test_a_model_that_cannot_be_copied_is_refused_once_it_has_changed(data):
    inner = GraphSAGE(4, 8, 2, CLASSES).eval()
    service = us.Smoothed(lambda x, edge_index: inner(x, edge_index), FLIP, data, samples=50, audit=10)
    before = service.certify([1], seed=1).votes
    assert service.certify([1], seed=1).votes == before
    with torch.no_grad():
        next(inner.parameters()).mul_(-1)
    for ask in (service.certify, service.predict, service.audit):
        with pytest.raises(UnsoundModel, match="has changed since this service was made"):
            ask([1])


class Holding(torch.nn.Module):
    """A copy of it holds the same function, and with it the same network."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, edge_index):
        return self.function(x, edge_index)


@pytest.mark.parametrize(
    ("made", "noise"),
    [(Holding, FLIP), (lambda f: us.Hashed(f, 10), None), (lambda f: us.Hashed(Holding(f), 10), None)],
)
def test_a_model_whose_copy_still_holds_what_others_train_is_refused_once_that_has_changed(
    data, arrivals, made, noise
):
    inner = GraphSAGE(4, 8, 2, CLASSES).eval()
    service = us.Smoothed(made(lambda x, edge_index: inner(x, edge_index)), noise, data, samples=50, audit=10)
    service.certify([1], seed=1)
    with torch.no_grad():
        next(inner.parameters()).mul_(-1)
    for ask in (service.certify, service.predict, service.audit):
        for nodes in ([1], arrivals):
            with pytest.raises(UnsoundModel, match="has changed since this service was made"):
                ask(nodes)


def test_a_copy_of_its_own_is_not_hashed_again_for_every_request(service, data, monkeypatch):
    exact = us.Smoothed(ballots(data), None, data)
    monkeypatch.setattr("unswayed.serving.unchanged.describe_model", lambda model: pytest.fail("hashed"))
    service.predict([0])
    exact.predict([0])


def test_proofs_that_come_out_otherwise_are_refused_from_then_on(data, monkeypatch):
    service = us.Smoothed(ballots(data), None, data)
    with monkeypatch.context() as other:
        other.setattr("unswayed.serving.exact.prove", lambda model, threat: us.prove(model, threat)[::-1])
        with pytest.raises(RefusedVotes, match="proved again"):
            service.audit()
    with pytest.raises(RefusedVotes, match="proved again"):
        service.certify([0])
    assert service.audit()["agreed"] == N
    assert len(service.certify([0])) == 1


def test_a_saved_service_answers_the_same_elsewhere(service, model, data, arrivals, tmp_path):
    service.save(tmp_path / "service")
    twin = us.Smoothed.load(tmp_path / "service", copy.deepcopy(model))
    for nodes in ([0, 9], arrivals):
        mine, theirs = service.certify(nodes, seed=4), twin.certify(nodes, seed=4)
        assert (mine.label.tolist(), mine.size.tolist()) == (theirs.label.tolist(), theirs.size.tolist())
        assert mine.votes == theirs.votes
    assert twin.about == service.about | {"engines": twin.about["engines"]}
    with pytest.raises(StoreError, match="another model"):
        us.Smoothed.load(tmp_path / "service", GraphSAGE(4, 8, 2, CLASSES))
    (tmp_path / "broken").write_bytes((tmp_path / "service").read_bytes()[:-40])
    with pytest.raises(StoreError, match="not a readable"):
        us.Smoothed.load(tmp_path / "broken", model)
    votes = service.certify([0], seed=1).votes
    votes.save(tmp_path / "votes")
    with pytest.raises(StoreError, match="no file of a service"):
        us.Smoothed.load(tmp_path / "votes", model)


def test_the_audit_is_told_and_a_disagreement_refuses_every_request(model, data, monkeypatch):
    service = us.Smoothed(model, FLIP, data, samples=50, audit=30)
    assert service.about["audit"]["asked"] == service.about["audit"]["agreed"] == 30
    assert "Of 30 answers of the service" in service.certify([0]).statement(0)
    engine = service._asked.engines["row"]
    monkeypatch.setattr(type(engine), "labels", lambda self, a, b, t=None: torch.full((b - a, len(t)), 2))
    assert service.about["refused"] is None
    with pytest.raises(RefusedVotes):
        service.audit(answers=60)
    assert "were not what the row engine had counted" in service.about["refused"]
    for call in (service.predict, service.certify):
        with pytest.raises(RefusedVotes):
            call([0])
    monkeypatch.undo()
    assert service.audit(answers=10)["agreed"] == 10
    assert service.about["refused"] is None
    assert len(service.predict([0])) == 1


def test_labels_know_the_seed_that_decided_them(service, data):
    said = service.predict(range(N))
    assert said.seed != service.predict(range(N)).seed
    assert np.array_equal(service.predict(range(N), seed=said.seed), said)
    assert pickle.loads(pickle.dumps(said)).seed == said[:3].seed == said.seed
    assert us.Smoothed(ballots(data), None, data).predict([0]).seed is None


def test_labels_have_names_and_stay_numbers(model, data, tmp_path):
    names = np.array(["fine", "odd", "fraud"])
    given = {"samples": 400, "alpha": 0.01, "classes": names, "audit": 0}
    made = us.Smoothed(model, FLIP, data, **given), us.Smoothed(ballots(data), None, data, classes=names)
    made[0].save(tmp_path / "service")
    for service in (*made, us.Smoothed.load(tmp_path / "service", model)):
        said, certs = service.predict([0, 5, 9], seed=3), service.certify([0, 5, 9], seed=3)
        expected = [None if label < 0 else str(names[label]) for label in said.tolist()]
        assert said.answer.tolist() == expected
        assert any(expected)
        assert said.dtype == np.int64
        assert certs.about.class_names == ("fine", "odd", "fraud")
        assert said[1:].answer.tolist() == expected[1:]
        assert pickle.loads(pickle.dumps(said)).answer.tolist() == expected
        assert type(said == 1) is np.ndarray
    with pytest.raises(InputError, match="names"):
        us.Smoothed(ballots(data), None, data, classes=["one", "two"])


def test_labels_without_names_are_numbers(service):
    said = service.predict([0, 5], seed=3)
    assert said.answer.tolist() == [None if label < 0 else label for label in said.tolist()]


def test_ballots_answer_exactly_by_the_same_calls(data, tmp_path):
    net = ballots(data)
    service = us.Smoothed(net, None, data)
    threat, new = us.Row(data, [2, 7]), us.Row.new(data, torch.zeros(1, 4), [[0, 4, 6]])
    for nodes, asked in (([2, 7], threat), (new, new)):
        proofs = us.prove(net, asked)
        assert service.predict(nodes).tolist() == proofs.label.tolist()
        assert service.certify(nodes).size.tolist() == proofs.size.tolist()
        assert service.certify(nodes).confidence is None
    service.save(tmp_path / "service")
    assert (
        us.Smoothed.load(tmp_path / "service", ballots(data)).certify([3]).size == service.certify([3]).size
    )
    assert service.audit()["agreed"] == N


def test_a_hashed_model_answers_exactly_too(model, data):
    service = us.Smoothed(us.Hashed(model, 9), None, data)
    proofs = us.prove(us.Hashed(model, 9), us.Row(data, [5, 6]))
    assert service.certify([5, 6]).size.tolist() == proofs.size.tolist()


def test_requests_from_many_threads_are_answered_one_by_one(service):
    wanted, found = service.certify([1, 2], seed=9).votes.counts.tolist(), []
    ask = lambda: found.append(service.certify([1, 2], seed=9).votes.counts.tolist())  # noqa: E731
    crowd = [threading.Thread(target=ask) for _ in range(12)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert found == [wanted] * 12


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([N], "between 0 and 29"),
        ([], "at least one node"),
        ([0.5], "whole numbers"),
        (["a"], "node"),
    ],
)
def test_bad_nodes_are_refused(service, nodes, words):
    with pytest.raises(InputError, match=words):
        service.predict(nodes)


def test_a_model_of_nodes_is_refused_for_a_whole_graph_in_words_also_after_nodes(service, data):
    listed = [[0, 1], [0, 2]]
    for nodes, whole in (
        (us.AllPairs(data, [0, 1]), us.AllPairs([data])),
        (us.Pairs(data, listed, [0, 1]), us.Pairs(data, listed)),
    ):
        assert len(service.certify(nodes, seed=1)) == 2
        with pytest.raises(UnsoundModel, match="one row a graph"):
            service.certify(whole, seed=1)


@pytest.mark.parametrize("change", ["features", "links"])
def test_a_threat_about_another_graph_is_refused_whichever_threat_it_is(service, data, change):
    kept = (data.edge_index != data.edge_index[0, 0]).all(dim=0)
    other = Data(x=data.x.clone(), edge_index=data.edge_index[:, kept])
    if change == "features":
        other = Data(x=data.x + 1, edge_index=data.edge_index)
    listed = [[0, 1], [0, 2]]
    for make in (us.Row, us.AllPairs, lambda graph, nodes: us.Pairs(graph, listed, nodes)):
        assert len(service.certify(make(data, [0, 1]), seed=1)) == 2
        with pytest.raises(InputError, match="another graph"):
            service.certify(make(other, [0, 1]), seed=1)


class Told(torch.nn.Module):
    """Says what the data says of each node."""

    def forward(self, data):
        return torch.nn.functional.one_hot(data.told, CLASSES).float()


@pytest.mark.parametrize("make", [us.Row, us.AllPairs])
def test_what_a_graph_says_beside_its_features_is_what_the_service_knows(data, make):
    mine, same, other = (copy.copy(data) for _ in range(3))
    mine.told, other.told = torch.zeros(N, dtype=torch.int64), torch.ones(N, dtype=torch.int64)
    same.told = mine.told.clone()
    service = us.Smoothed(Told(), FLIP, mine, samples=50, audit=0)
    assert service.certify(make(same, [0, 1]), seed=1).label.tolist() == [0, 0]
    with pytest.raises(InputError, match="another graph"):
        service.certify(make(other, [0, 1]), seed=1)


def test_bad_settings_are_refused(model, data):
    for wrong in (
        {"samples": 0},
        {"alpha": 0.5},
        {"bounds": "loose"},
        {"rivals": "some"},
        {"engine": "warp"},
    ):
        with pytest.raises(InputError):
            us.Smoothed(model, FLIP, data, audit=0, **wrong)
    service = us.Smoothed(model, FLIP, data, audit=0, samples=10)
    other = us.Row(Data(x=data.x + 1, edge_index=data.edge_index), [0])
    with pytest.raises(InputError, match="another graph"):
        service.predict(other)
    with pytest.raises(InputError, match="answers"):
        us.Smoothed(model, FLIP, data, audit=-1)


def test_an_undecided_node_is_abstained_on(data):
    class Coin(torch.nn.Module):
        def forward(self, x, edge_index):
            odd = torch.bincount(edge_index[1], minlength=len(x)) % 2
            return torch.nn.functional.one_hot(odd, 2).double()

    service = us.Smoothed(Coin(), us.Flip(beta=0.51), data, samples=200, alpha=0.001, audit=0)
    labels = np.concatenate([service.predict([i % N]) for i in range(60)])
    assert (labels == -1).mean() > 0.95


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_service_says_how_it_gets_into_another_process(service, way):
    with pytest.raises(InputError, match="neither pickled nor copied: save it"):
        way(service)
