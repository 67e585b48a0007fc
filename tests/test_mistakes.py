"""What people do wrong in Python, and the one sentence that it gets."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GraphSAGE

import unswayed as us
from unswayed.errors import InputError
from unswayed.watching import Watch

NAMES = ["ann", "ben", "cem", "dan"]


def graph(**more):
    ring = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    data = Data(x=torch.eye(4), edge_index=ring, **more)
    data.node_names = NAMES
    return data


def model():
    torch.manual_seed(0)
    return GraphSAGE(4, 4, 2, 2)


def votes(**more):
    return us.poll(model(), us.Row(graph(), ["ben", "dan"]), us.Flip(0.9), samples=50, **more)


def test_a_statement_is_asked_for_by_name_or_position():
    certs = us.certify(votes())
    assert certs.statement("dan") == certs.statement(1)
    with pytest.raises(InputError, match="no target 'ann'; the first targets are 'ben', 'dan'"):
        certs.statement("ann")
    for wrong in (2, -1, True, 0.5):
        with pytest.raises(InputError, match="by position from 0 to 1"):
            certs.statement(wrong)


def test_proofs_name_their_classes_like_polls():
    ballots = us.LabelBallots(2).freeze(graph(), known=[0, 1, -1, 1])
    proofs = us.prove(ballots, us.Row(graph(), ["ann", "cem"]), classes=["honest", "fraud"])
    assert proofs.about.class_names == ("honest", "fraud")
    assert proofs.recall(["honest", "fraud"], positive="fraud") == float(proofs.label[1] == 1)


@pytest.mark.parametrize("asked", [{}, {"threshold": 0.5}])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (us.Row(graph(), [0]), "The model comes first"),
        ("sage", "The model is a name, 'sage'"),
        (model().state_dict(), "load_state_dict"),
        (GraphSAGE, "is the class GraphSAGE"),
    ],
)
def test_what_is_no_model_is_said(wrong, words, asked):
    with pytest.raises(InputError, match=words):
        us.poll(wrong, us.Row(graph(), [0]), us.Flip(0.9), samples=10, **asked)


@pytest.mark.parametrize("x", [torch.eye(4)[:, :3], torch.eye(4, dtype=torch.float64)])
def test_features_that_do_not_fit_the_model_are_said(x):
    data = graph()
    data.x = x
    with pytest.raises(InputError, match=rf"{x.shape[1]} features a node, {str(x.dtype)[6:]}"):
        us.poll(model(), us.Row(data, [0]), us.Flip(0.9), samples=10)


@pytest.mark.parametrize(
    ("alpha", "end"),
    [
        (0.999, "give alpha=0.001."),
        (99.9, "for confidence 99.9% give alpha=0.001."),
        (0, "not 0."),
        ("0.001", "not '0.001'."),
    ],
)
def test_a_level_is_refused_for_its_own_reason(alpha, end):
    with pytest.raises(InputError) as refused:
        us.certify(votes(), alpha=alpha)
    assert str(refused.value).endswith(end)


@pytest.mark.parametrize(
    "ask", [lambda y: us.LabelBallots(2).freeze(graph(), known=y), lambda y: us.prospect(graph(), y)]
)
def test_known_labels_by_name_are_refused_in_words(ask):
    with pytest.raises(InputError, match="number the names first"):
        ask(["honest", "fraud", "honest", "fraud"])


def test_files_where_folders_are_meant_and_folders_that_are_missing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder"):
        votes(store=tmp_path / "file")
    with pytest.raises(InputError, match="There is no folder"):
        us.write_report(tmp_path / "nowhere" / "page.html", us.certify(votes()))


def test_a_noise_shows_itself_as_it_was_typed_and_makes_itself_again():
    for noise in (us.Flip(0.9), us.AddDelete(0.0005, 0.4), us.Keep(5, 50), us.Hide(0.9, 0.5), us.Flip(1 / 3)):
        assert eval(repr(noise), vars(us)) == noise
    assert repr(us.AddDelete(0.01, 0.4)) == "AddDelete(p_add=0.01, p_delete=0.4)"


def test_one_target_is_one_and_notes_fit_a_screen():
    assert repr(us.Row(graph(), [0])).startswith("Row(1 target, ")
    counted = votes()
    assert "<100 answers>" in str(counted.notes)
    assert len(counted.notes["audit"]["heard"]) == 100


def test_what_warms_up_does_not_count_as_time_left(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr("unswayed.watching.time.monotonic", lambda: clock[0])
    watch = Watch("polling", 1_000, wanted=True)
    watch._say = said.append
    # the first answer takes a second, the others 10 ms each
    for at, answers in (
        (1.0, 1),
        (1.1, 10),
        (1.2, 10),
    ):
        clock[0] = at
        watch(answers)
    assert said == ["polling: 100 answers a second, about 10 s left."]
    watch.close()


def test_ballots_take_known_labels_from_a_table():
    pd = pytest.importorskip("pandas")
    known = pd.Series([0, 1, -1, 1], index=NAMES)
    plain = us.LabelBallots(2).freeze(graph(), known=known.to_numpy())
    table = us.LabelBallots(2).freeze(graph(), known=known)
    threat = us.Row(graph(), NAMES)
    np.testing.assert_array_equal(us.prove(plain, threat).size, us.prove(table, threat).size)


def test_label_ballots_without_labels_prove_nothing():
    with pytest.raises(InputError, match="known=labels"):
        us.LabelBallots(2).freeze(graph())


def test_a_number_that_is_another_nodes_name_is_refused():
    data = graph()
    data.node_names = ["1", "2", "3", "4"]
    assert us.Row(data, ["3"]).targets.tolist() == [2]
    with pytest.raises(InputError, match="position 3 or the one called '3'"):
        us.Row(data, [3])
    data.node_names = ["0", "1", "2", "3"]  # the same node either way
    assert us.Row(data, [3]).targets.tolist() == us.Row(data, ["3"]).targets.tolist() == [3]


def test_a_relation_is_named_by_its_word_and_the_module_is_asked_through_it():
    shop = HeteroData()
    shop["account"].x, shop["device"].x = torch.eye(4), torch.eye(2)
    shop["account", "uses", "device"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
    threat = us.Relation(shop, "uses", [0, 3], links="out")
    assert threat.relation == ("account", "uses", "device")
    with pytest.raises(InputError, match=r"threat\.asking\(module\)"):
        us.poll(model(), threat, us.Flip(0.9), samples=10)


def test_rows_with_other_columns_than_the_classifier_was_fitted_on_are_refused():
    pd, linear = pytest.importorskip("pandas"), pytest.importorskip("sklearn.linear_model")
    table = pd.DataFrame(np.eye(6, 3, dtype=bool), columns=list("abc"))
    fitted = linear.LogisticRegression().fit(table, [0, 1, 0, 1, 0, 1])
    assert len(us.prove(fitted, us.Bits(table))) == 6  # and scikit-learn has nothing to warn of
    for ask in (us.prove, lambda *asked: us.poll(*asked, us.Flip(0.9), samples=10)):
        with pytest.raises(InputError, match="column 0 is 'b' here and 'a' there"):
            ask(fitted, us.Bits(table[list("bac")]))
        with pytest.raises(InputError, match="have 2 columns, but the classifier was fitted on 3"):
            ask(fitted, us.Bits(table.to_numpy()[:, :2]))


def test_why_no_faster_engine_speaks_of_this_threat_alone():
    arcs = Data(x=torch.eye(4), edge_index=graph().edge_index[:, ::2])
    counted = us.poll(model(), us.Directed(arcs, [0]), us.Flip(0.9), samples=20)
    assert counted.notes["why"] == "there is none for this threat and noise"


def test_a_service_takes_a_threshold_and_knows_its_keywords():
    torch.manual_seed(0)
    one = GraphSAGE(4, 4, 2, 1).eval()
    kept = us.Smoothed(one, us.Flip(0.9), graph(), threshold=0, samples=50, audit=0)
    plain = us.Smoothed(us.flagged(one, 0), us.Flip(0.9), graph(), samples=50, audit=0)
    assert kept.predict("ann", seed=1).tolist() == plain.predict("ann", seed=1).tolist()
    with pytest.raises(InputError, match=r"Smoothed has no keyword 'sample'; did you mean samples=\?"):
        us.Smoothed(one, us.Flip(0.9), graph(), sample=50)
