"""Classes and nodes that have names keep them: in votes, certificates, files, JSON, statements, reports and shares."""

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

import unswayed as us
from unswayed.errors import InputError
from unswayed.report.html import render
from unswayed.report.summary import summarise

X = np.random.default_rng(0).random((80, 6)) > 0.5
TRUE = X[:, 0].astype(int)
NAMES = [("bad", "good"), (1, 2), (-1, 1), (False, True), (0, 1)]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("way", ["poll", "prove"])
def test_accuracy_is_that_of_the_labels_the_classifier_was_fitted_with(names, way):
    y = np.array(names)[TRUE]
    if way == "prove":
        certs = us.prove(LogisticRegression().fit(X, y), us.Bits(X[:20]))
    else:
        model = DecisionTreeClassifier(random_state=0).fit(X, y)
        certs = us.certify(us.poll(model, us.Bits(X[:20]), us.Flip(0.9), samples=300))
    assert certs.accuracy(y[:20]) == pytest.approx(1.0)
    assert certs.recall(y[:20], positive=names[1]) == pytest.approx(1.0)
    assert certs.answer.tolist() == y[:20].tolist()
    with pytest.raises(InputError, match="none of the classes"):
        certs.accuracy(["other"] * 20)


def test_a_name_that_the_classifier_has_for_another_class_is_refused():
    """Every "ham" would have been certified as "spam"."""
    model = LogisticRegression().fit(X, np.array(["ham", "spam"])[TRUE])
    rows = us.Bits(X[:5])
    for ask in (
        lambda **more: us.poll(model, rows, us.Flip(0.9), samples=50, **more),
        lambda **more: us.prove(model, rows, **more),
    ):
        with pytest.raises(InputError, match="has for its class 1; names come in its order: ham, spam"):
            ask(classes=["spam", "ham"])
        for classes in (["ham", "spam"], ["good", "bad"]):
            ask(classes=classes)


@pytest.fixture
def spam(tmp_path):
    model = DecisionTreeClassifier(random_state=0).fit(X, np.array(["ham", "spam"])[TRUE])
    rows = pd.DataFrame(X[:5], index=[f"mail{i}" for i in range(5)])
    return us.poll(model, us.Bits(rows), us.Flip(0.9), samples=300, store=tmp_path / "run")


def test_names_go_with_the_votes(spam, tmp_path):
    assert spam.class_names == ("ham", "spam")
    for votes in (us.load(tmp_path / "run"), spam.first(300)):
        assert us.certify(votes).about.class_names == ("ham", "spam")
        assert us.certify(votes).about.target_names == tuple(f"mail{i}" for i in range(5))
    assert us.certify(spam.take(np.array([3]))).about.target_names == ("mail3",)


def test_names_go_through_files_json_frames_and_statements(spam, tmp_path):
    certs = us.certify(spam)
    certs.save(tmp_path / "c.npz")
    again = us.load(tmp_path / "c.npz")
    said = [("ham", "spam")[label] for label in certs.label]
    for own in (certs, again, certs[[0, 1, 2, 3, 4]]):
        assert own.to_frame()["answer"].tolist() == said
        document = json.loads(json.dumps(own.to_json()))
        assert [row["answer"] for row in document["targets"]] == said
        assert document["classes"] == ["ham", "spam"]
        assert own.statement(0).startswith("Input mail0:")
        assert f"label is {said[0]}," in own.statement(0)
    page = render(summarise(certs, truth=said))
    assert '"classes":["ham","spam"]' in page
    assert '"mail0"' in page


def test_an_abstention_has_no_answer():
    votes = us.Votes.from_counts([[51, 49], [99, 1]], us.Flip(0.7), 9, classes=["ham", "spam"])
    certs = us.certify(votes)
    assert certs.answer.tolist() == [None, "ham"]
    assert certs.to_json()["targets"][0]["answer"] is None


def test_classes_without_names_have_no_column_for_them():
    certs = us.certify(us.Votes.from_counts([[99, 1]], us.Flip(0.7), 9))
    assert "answer" not in certs.to_frame()
    assert certs.answer.tolist() == [0]
    with pytest.raises(InputError, match="named"):
        certs.accuracy(["ham"])
    assert certs.named(classes=["ham", "spam"]).accuracy(["ham"]) == 1
    with pytest.raises(InputError, match="2 classes but 3"):
        certs.named(classes=["a", "b", "c"])


def test_names_do_not_make_another_question(tmp_path):
    """Votes of one question are joined and resumed, however its classes are called."""
    data = ring()
    settings = {"samples": 1_000, "store": tmp_path}
    us.poll(Spread(), us.Row(data, [0]), us.Flip(0.9), classes=["a", "b"], **settings)
    more = us.poll(
        Spread(), us.Row(data, [0]), us.Flip(0.9), classes=["c", "d"], **(settings | {"samples": 2_000})
    )
    assert more.samples.tolist() == [2_000]
    assert more.class_names == us.load(settings["store"]).class_names == ("c", "d")


def test_who_names_classes_and_nodes_anew_is_answered_in_these_names(tmp_path):
    """A label that another call had named the other way round would be the wrong one."""
    ask = {"samples": 300, "store": tmp_path / "run"}
    for classes, people in ((["ham", "spam"], "abcdef"), (["spam", "ham"], "uvwxyz")):
        found = us.poll(Spread(), us.Row(ring(list(people)), [0, 3]), us.Flip(0.9), classes=classes, **ask)
        for votes in (found, us.load(tmp_path / "run")):
            certs = us.certify(votes)
            assert certs.answer.tolist() == [classes[0], classes[1]]
            assert certs.about.target_names == (people[0], people[3])
    unnamed = us.poll(Spread(), us.Row(ring(list("uvwxyz")), [0, 3]), us.Flip(0.9), **ask)
    assert unnamed.class_names == ("spam", "ham")  # nobody says otherwise


class Spread(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = SimpleConv("mean", combine_root="self_loop")

    def forward(self, x, edge_index):
        return self.mean(x, edge_index)


def ring(names=None):
    edges = torch.stack([torch.arange(6), torch.arange(1, 7) % 6])
    x = torch.eye(2)[torch.tensor([0, 0, 0, 1, 1, 1])]
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1))
    if names is not None:
        data.node_names = names
    return data


def test_nodes_are_asked_for_by_the_names_of_the_data():
    people = ["ann", "bob", "cem", "dee", "eve", "fay"]
    threat = us.Row(ring(people), ["dee", "ann"])
    assert threat.targets.tolist() == [3, 0]
    certs = us.certify(us.poll(Spread(), threat, us.Flip(0.9), samples=300, classes=["honest", "fraud"]))
    assert certs.to_frame()["target"].tolist() == ["dee", "ann"]
    assert certs.answer.tolist() == ["fraud", "honest"]
    assert certs.statement(0).startswith("Node dee:")
    assert us.Row(ring(people), [3, 0]).targets.tolist() == [3, 0]  # numbers stay numbers
    assert us.Pairs(ring(people), [("ann", "cem")], ["bob"]).pairs.tolist() == [[0], [2]]
    assert us.AllPairs(ring(people), ["fay"]).targets.tolist() == [5]


def test_proofs_name_the_ends_of_an_attack():
    people = ["ann", "bob", "cem", "dee", "eve", "fay"]
    known = torch.tensor([0, 0, 0, 1, 1, 1])
    data = ring(people)
    ballots = us.LabelBallots(2).freeze(data, known=known)
    proofs = us.prove(ballots, us.Row(data, ["bob"])).named(classes=["honest", "fraud"])
    told = proofs.explanation(0)
    assert told.name == "bob"
    assert {bar.name for bar in told.bars} <= set(people)
    assert "links to " in " ".join(told.sentences)
    assert not any(character.isdigit() for character in told.sentences[-1].partition("links to ")[2])
    runner_up = next(column for column in proofs.evidence() if column.name == "runner_up")
    assert runner_up.shown(0) == "fraud"
    assert '"names":["honest","fraud"]' in render(summarise(proofs))


def test_networkx_nodes_are_asked_for_as_the_graph_calls_them():
    graph = nx.Graph([("ann", "bob"), ("bob", "cem")])
    assert us.Row(graph, ["cem", "ann"]).targets.tolist() == [2, 0]
    assert us.Row(graph, graph.nodes).targets.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="in an order"):
        us.Row(graph, {"ann", "bob"})  # another one in every process
    shuffled = nx.Graph([(2, 1), (1, 0)])  # its own order is 2, 1, 0
    threat = us.Row(shuffled, [2])
    assert threat.targets.tolist() == [0]
    assert threat.ones.tolist() == [shuffled.degree[2]]
    assert threat.describe()["words"]["names"] == {"0": "2", "1": "1", "2": "0"}
    assert us.Row(shuffled, torch.tensor([0])).targets.tolist() == [2]
    assert us.Row(shuffled, [True, False, False]).targets.tolist() == [0]  # a mask goes by the graph's order
    for pairs in ([(2, 1)], np.array([[2, 1]]), torch.tensor([[2, 1]])):
        assert us.Pairs(shuffled, pairs, [2]).pairs.tolist() == [[0], [1]]
    three = torch.tensor([[2, 2, 1], [1, 0, 0]])  # as an edge_index
    assert us.Pairs(shuffled, three, [2]).pairs.tolist() == [[0, 0, 1], [1, 2, 2]]


def test_whose_features_are_rewritten_is_said_by_name_too():
    graph = nx.Graph([(2, 1), (1, 0)])
    nx.set_node_attributes(graph, {0: [1.0], 1: [2.0], 2: [3.0]}, "x")
    assert us.Intercept(graph, [2, 0]).targets.tolist() == us.Row(graph, [2, 0]).targets.tolist() == [0, 2]
    people = nx.relabel_nodes(graph, {0: "ann", 1: "bob", 2: "cem"})
    assert us.Intercept(people, ["ann"]).called()[2] == "ann"


def test_a_node_that_arrives_bears_the_name_of_no_other():
    """Its number is one more than that of the last node, and was taken for the name of another."""
    graph = nx.Graph([(1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (1, 3), (5, 2)])
    model = us.LabelBallots(2).freeze(graph, known=[0, 1, 0, 1, 0])
    newcomers = us.Row.new(graph, None, [[4], [2, 3]])
    proofs = us.prove(model, newcomers)
    assert proofs.about.target_names == ("new 0", "new 1")
    assert proofs.statement("new 1") == proofs.statement(1)
    with pytest.raises(InputError, match="no target '5'"):
        proofs.statement("5")
    votes = us.poll(us.BallotNetwork(0, 2).eval(), newcomers, us.Flip(0.9), samples=50)
    assert us.certify(votes).about.target_names == ("new 0", "new 1")
    taken = us.Row.new(nx.relabel_nodes(graph, {1: "new 1"}), None, [[4], [2, 3]])
    assert taken.called() == {0: "new 1", 1: "2", 2: "3", 3: "4", 4: "5", 5: "very new 0", 6: "very new 1"}
    assert us.Row.new(nx.path_graph(3), None, [[0]]).called() == {}


@pytest.mark.parametrize(
    ("names", "nodes", "word"),
    [
        (None, ["ann"], "data.node_names"),
        (None, "ann", "data.node_names"),
        (list("abcdef"), ["zoe"], "first nodes are 'a', 'b'"),
        (list("abc"), [0], "each of the 6 nodes"),
        (list("aabcde"), [0], "5 of 6"),
    ],
)
def test_names_that_lead_nowhere_are_refused(names, nodes, word):
    with pytest.raises(InputError, match=word):
        us.Row(ring(names), nodes)


def named(**names):
    votes = us.Votes.from_counts([[1000, 0], [0, 1000]], us.Flip(beta=0.7), 9)
    return us.certify(votes).named(**names)


@pytest.mark.parametrize("classes", [["a", "a"], ["1", 1], [1, 1.0]])
def test_classes_of_one_name_are_refused_before_anything_is_asked(classes):
    row = us.Row(ring(), [0])
    calls = (
        lambda: named(classes=classes),
        lambda: us.prove(NeverAsked(), row, classes=classes),
        lambda: us.poll(NeverAsked(), row, us.Flip(beta=0.7), classes=classes),
    )
    for call in calls:
        with pytest.raises(InputError, match="Two classes are called"):
            call()


class NeverAsked:
    def __call__(self, *question):
        raise AssertionError

    prove_under = __call__


@pytest.mark.parametrize("classes", [["a", "b", "c"], ["a"]])
def test_as_many_names_as_classes(classes):
    with pytest.raises(InputError, match=f"2 classes but {len(classes)} names"):
        named(classes=classes)


def test_a_number_that_is_a_name_is_one_unless_it_is_the_position_of_another():
    certs = named(targets=[7, 0])
    assert certs.statement(7) == certs.statement("7") == certs[0].statement(0)
    assert "Target 0:" in certs.statement(1)  # which is nobody's name
    with pytest.raises(InputError, match="'0', or pick the position first"):
        certs.statement(0)
    assert "label 0" in named(targets=[0, 1]).statement(0)


def test_a_name_that_two_targets_have_names_neither(tmp_path):
    certs = named(targets=["twin", "twin"])
    with pytest.raises(InputError, match="'twin' is the name of several targets"):
        certs.statement("twin")
    assert "label 1" in certs.statement(1)
    assert "label 0" in certs[[0, 0]].statement("twin")


def test_numbers_of_numpy_and_torch_are_read_as_others_are():
    data = ring(["5", "4", "3", "2", "1", "0"])
    for one in (np.int64(1), np.int32(1), torch.tensor(1)):
        with pytest.raises(InputError, match="may mean the node at position 1 or the one called '1'"):
            us.Row(data, [one])
    graph = nx.Graph([(10, 1), (0, 7)])
    wanted = [10, 1, 0, 7].index(0), [10, 1, 0, 7].index(7)
    assert us.Row(graph, [np.False_, np.False_, np.True_, np.True_]).targets.tolist() == [*wanted]
    assert us.Row(graph, [torch.tensor(0), np.int64(7)]).targets.tolist() == [*wanted]
