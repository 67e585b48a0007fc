"""What a newcomer does wrong is answered in one sentence that says what to do, never by a stack of somebody else's code."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GraphSAGE

import unswayed as us
from unswayed.errors import DoubtfulSetting, InputError

NOISE = us.Flip(0.9)
VOTES = us.Votes.from_counts([[99, 1]], NOISE, 9)


def graph():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    return Data(x=torch.ones(4, 3), edge_index=torch.cat([edges, edges.flip(0)], 1))


def net():
    return GraphSAGE(3, 4, 2, 2)


WRONG = {
    "a class instead of a model": (lambda: us.poll(GraphSAGE, us.Row(graph(), [0]), NOISE), r"GraphSAGE\(…\)"),
    "a class to be proved": (lambda: us.prove(us.LabelBallots, us.Row(graph(), [0])), r"LabelBallots\(…\)"),
    "certificates certified": (lambda: us.certify(us.certify(VOTES)), "certificates already"),
    "certificates certified for places": (lambda: us.certify_top(us.certify(VOTES), 1), "certificates already"),
    "a report of votes": (lambda: us.write_report("r.html", VOTES), "certify them first"),
    "a misspelt keyword": (lambda: us.poll(net(), us.Row(graph(), [0]), NOISE, sample=9), "did you mean samples="),
    "another": (lambda: us.certify(VOTES, aplha=0.01), "did you mean alpha="),
    "one that nobody has": (lambda: us.certify(VOTES, colour=1), "it takes votes, alpha"),
    "one of a report": (lambda: us.write_report("r.html", us.certify(VOTES), thruth=[0]), "did you mean truth="),
    "a table of edges": (lambda: us.Row(pd.DataFrame({"source": [0], "target": [1]}), [0]), "from_pandas_edgelist"),
    "several kinds of nodes": (lambda: us.Row(HeteroData(), [0]), "relation that is attacked"),
    "node names without names": (lambda: us.Row(graph(), ["ann"]), "node_names"),
    "text in Bits": (lambda: us.Bits([["a", "b"]]), "binarise"),
    "text in a DataFrame": (lambda: us.Bits(pd.DataFrame({"a": ["x", "y"]})), "binarise"),
    "a graph without features": (
        lambda: us.poll(net(), us.Row(nx.path_graph(4), [0]), NOISE, samples=100),
        "no node features",
    ),
    "a graph without features, named": (
        lambda: us.poll(net(), us.Row(nx.Graph([("a", "b"), ("b", "c")]), ["a"]), NOISE, samples=100),
        "attribute 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_it_is_said_in_one_sentence(case):
    go, word = WRONG[case]
    with pytest.raises(InputError, match=word) as found:
        go()
    assert "\n" not in str(found.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_card_that_is_not_there():
    with pytest.raises(InputError, match="device='cpu'"):
        us.poll(net(), us.Row(graph(), [0]), NOISE, samples=100, device="cuda")


def test_an_unknown_keyword_is_a_type_error_too():
    with pytest.raises(TypeError):
        us.certify(VOTES, aplha=0.01)


@pytest.fixture(scope="module")
def forest():
    x = pd.DataFrame(np.random.default_rng(0).random((60, 4)) > 0.5, columns=list("abcd"))
    return RandomForestClassifier(5, random_state=0).fit(x, x["a"]), x


def test_a_forest_fitted_on_a_table_takes_a_table_without_a_word(forest):
    model, x = forest
    certs = us.certify(us.poll(model, us.Bits(x[:5]), NOISE, samples=200))
    assert certs.accuracy(x["a"][:5]) > 0


def test_a_forest_fitted_on_a_table_warns_once_of_rows_without_names(forest):
    model, x = forest
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plain = us.poll(model, us.Bits(x.to_numpy()[:5]), NOISE, samples=2_000)
    assert [warning.category for warning in said] == [DoubtfulSetting]
    assert plain.counts.tolist() == us.poll(model, us.Bits(x[:5]), NOISE, samples=2_000).counts.tolist()


@pytest.mark.parametrize("columns", [list("bacd"), list("abcx")])
def test_columns_in_another_order_are_refused(forest, columns):
    model, x = forest
    table = x[:5].set_axis(columns, axis=1)
    with pytest.raises(InputError, match="column"):
        us.poll(model, us.Bits(table), NOISE, samples=100)
