"""Noises, thresholds, directions, attributes and fake nodes, on the command line."""

import json

import pandas as pd
import pytest

import unswayed as us

from .words import plain


def test_kept_seats_are_certified(call_json, own):
    found = call_json("certify", *plain(own), "--keep", "2/5")
    assert found["noise"] == {"kind": "keep", "kept": 2, "seats": 5}
    assert "--keep 2/5" in found["command"]
    assert all(row["adds"] >= row["size"] for row in found["targets"])


def test_what_stays_flagged_is_told_everywhere(call, call_json, own, here):
    code, out, _ = call("certify", *own, "--positive", "1", "--store", "run", "--report", "r.html")
    assert code == 0
    assert "1 stays flagged" in out
    assert "that are truly 1" in " ".join(out.split())
    assert "Stays flagged" in (here / "r.html").read_text()
    found = call_json("report", "run", "--out", "again.html")
    certs = us.certify(us.load("run"))
    sizes = [int(k) for k in found["recall"]]
    assert list(found["recall"].values()) == certs.recall([0, 1, 0, 1], 1, at=sizes).tolist()
    shares = zip(certs.precision([0, 1, 0, 1], 1, at=sizes).tolist(), found["recall"].values(), strict=True)
    assert list(found["precision"].values()) == [None if (p, r) == (1, 0) else p for p, r in shares]
    assert None in found["precision"].values()  # nothing is flagged without an attack
    assert "Stays flagged" in (here / "again.html").read_text()


def test_the_command_that_does_it_again_says_what_stays_flagged(call_json, own, here):
    proved = call_json("prove", *own[:6], "--no-floor", "--positive", "1", "--store", "p", "--nodes", "all")
    assert proved["command"].endswith("--positive 1")
    again = call_json("prove", *proved["command"].split()[2:], "--no-floor", "--store", "p")
    assert again["recall"] == proved["recall"]


def test_a_threshold_is_for_models_of_one_number(call, own):
    code, _, err = call("certify", *own, "--threshold", "0", "--positive", "1")
    assert code == 2
    assert "this one answers several" in err
    code, _, err = call("certify", *own[:6], "--model", "sage", "--threshold", "0", "--positive", "1")
    assert code == 2
    assert "sage answers one for each label" in err
    assert "Training" not in err


def test_a_table_has_a_row_for_each_target(call, call_json, own, here):
    found = call_json("certify", *own, "--csv", "c.csv", "--store", "run")
    table = pd.read_csv(here / "c.csv", dtype=str)
    assert table.target.tolist() == [row["target"] for row in found["targets"]]
    assert table["size"].astype(int).tolist() == [row["size"] for row in found["targets"]]
    assert table.truth.tolist() == [str(row["truth"]) for row in found["targets"]]
    code, out, _ = call("report", "run", "--csv", "again.csv")
    assert code == 0
    assert "its table in again.csv" in out
    assert (here / "again.csv").read_bytes() == (here / "c.csv").read_bytes()
    code, _, err = call("prove", *own[:6], "--no-floor", "--store", "proofs")
    assert code == 0, err
    code, out, err = call("prove", *own[:6], "--no-floor", "--store", "proofs", "--csv", "p.csv")
    assert code == 0, err  # the same proofs, whatever is written of them
    assert "The table is in p.csv." in out
    assert pd.read_csv(here / "p.csv").columns.tolist()[:5] == ["target", "label", "answer", "truth", "size"]


def test_a_model_of_one_logit_is_certified_with_a_threshold(call, call_json, own, here):
    (here / "mine.py").write_text((here / "mine.py").read_text() + "\ndef one(): return Net(3, 1)\n")
    words = [word.replace(":build", ":one") for word in own]
    code, _, err = call("certify", *words)
    assert code == 2
    assert "threshold=0 for a logit" in err
    found = call_json("certify", *words, "--threshold", "0", "--positive", "1")
    assert set(found["recall"]) == set(found["precision"])
    assert "--threshold 0.0 --positive 1" in found["command"]


def test_a_model_of_one_logit_is_swept_and_attacked_with_the_same_threshold(call, call_json, own, here):
    words = [word for word in own if word not in ("--model", "mine.py:build", "--beta", "0.9")]
    words += ["--model", "mine.py:flat", "--threshold", "-5", "--positive", "1"]
    swept = call_json("frontier", *words, "--betas", "0.8,0.9", "--want-size", "0")
    assert "--threshold -5.0 --positive 1" in swept["command"]
    tried = ["--no-beyond", "--attempts", "1", "--judge-samples", "100", "--kind", "random"]
    attacks = [word for word in words if word != "--no-floor"]
    code, out, err = call("attack", *attacks, "--beta", "0.9", *tried)
    assert code == 0, err
    assert "none succeeded" in out


def test_one_account_can_be_asked_about_though_it_is_not_positive(call, own):
    code, out, err = call("certify", *own, "--positive", "1", "--nodes", "8")
    assert code == 0
    assert "None of the targets is known to be 1" in " ".join(err.split())
    assert "stays flagged" not in out


def test_above_the_threshold_is_the_positive_label_wherever_its_name_sorts(call, call_json, own, here):
    mine = (here / "mine.py").read_text()
    (here / "mine.py").write_text(mine + "\ndef one(): return Net(3, 1)\n")
    words, shares = [word.replace(":build", ":one") for word in own], {}
    lines = (here / "Y.csv").read_text().splitlines()
    for positive in ("fraud", "z-fraud"):
        named = [line.replace(",1,", f",{positive},").replace(",0,", ",ok,") for line in lines]
        (here / "Y.csv").write_text("\n".join(named) + "\n")
        code, _, err = call("certify", *words, "--threshold", "0")
        assert code == 2
        assert f"--positive: {min(positive, 'ok')} or" in " ".join(err.split())
        found = call_json("certify", *words, "--threshold", "0", "--positive", positive)
        place = sorted([positive, "ok"]).index(positive)
        shares[positive] = (found["base"], [row["label"] == place for row in found["targets"]])
    assert shares["fraud"] == shares["z-fraud"]


def test_a_factory_is_trained_under_noise_and_kept(call, call_json, own, here):
    words = [*own, "--recipe", "noise", "--store", "run"]
    code, _, err = call("certify", *words)
    assert code == 0
    assert "Training mine.py:build on E.csv (noise, transductive) …" in " ".join(err.split())
    assert "as its factory makes it" not in err
    assert (here / "run" / "weights.safetensors").exists()
    why = "1 thread; equal seeds give equal weights with any number"  # of one that torch has here
    assert f"Trained with {why.partition(';')[0]}." in " ".join(err.split())
    code, _, err = call("certify", *words)  # goes on with the weights that were kept
    assert code == 0
    assert "Training" not in err
    found = call_json("certify", *words, "--report", "r.html")
    assert "--recipe noise" in found["command"]
    assert found["training"]["threads"] == why
    assert why in (here / "r.html").read_text()
    said = (here / "Y.csv").read_text().replace("3,1,train", "3,0,train")
    (here / "Y.csv").write_text(said)  # the weights would be those of other labels
    code, _, err = call("certify", *words)
    assert code == 2
    assert "another content of the files" in " ".join(err.split())


ATTRIBUTES = """
import torch
from torch_geometric.nn import GraphConv

class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GraphConv(3, 2)
    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(x, edge_index, edge_weight)

def likeness(i, j, x):
    return 1 / (1 + (x[i] - x[j]).abs().sum(dim=1))

def even(i, j):
    return ((i + j) % 2).float()
"""


@pytest.mark.parametrize(("threat", "links"), [("row", "in"), ("all-pairs", "all")])
def test_directed_edges_are_certified_as_such(call_json, own, here, threat, links):
    found = call_json("certify", *own, "--directed", "--threat", threat, "--store", "run")
    dataset, _ = us.datasets.read_csv("E.csv", "X.csv", "Y.csv", directed=True)
    assert not dataset.graph.is_undirected()
    threat = us.Directed(dataset.graph, [8, 9, 10, 11], links)
    votes = us.load("run")
    assert votes.provenance["threat"]["arcs"] == threat.describe()["arcs"]
    assert votes.provenance["threat"]["links"] == links
    assert [row["size"] for row in found["targets"]] == us.certify(votes).size.tolist()
    assert "--directed" in found["command"]


@pytest.mark.parametrize("function", ["likeness", "even"])
def test_edges_have_the_attributes_that_a_function_gives_them(call_json, own, here, function):
    (here / "weights.py").write_text(ATTRIBUTES)
    words = [word.replace("mine.py:build", "weights.py:Weighted") for word in own]
    found = call_json("certify", *words, "--edge-attr", f"weights.py:{function}", "--store", "run")
    namespace = {}
    exec(ATTRIBUTES, namespace)
    dataset, _ = us.datasets.read_csv("E.csv", "X.csv", "Y.csv")
    x, given = dataset.graph.x, namespace[function]
    attributes = given if function == "even" else lambda i, j: given(i, j, x)
    threat = us.Row(dataset.graph, [8, 9, 10, 11], edge_attr=attributes)
    votes = us.poll(namespace["Weighted"](), threat, us.load("run").noise, samples=us.load("run").samples[0])
    assert votes.counts.tolist() == us.load("run").counts.tolist()
    assert f"--edge-attr weights.py:{function}" in found["command"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--directed", "--threat", "inject", "--hide", "0.9/0.5"], "knows neither --directed"),
        (["--directed", "--recipe", "noise"], "noise of undirected edges"),
        (["--edge-attr", "mine.py:build", "--recipe", "noise"], "trains without edge attributes"),
        (["--edge-attr", "none.py:f"], "There is no file none.py; --edge-attr takes file.py:function."),
        (["--edge-attr", "mine.py:none"], "mine.py has no function 'none'"),
    ],
)
def test_what_directions_and_attributes_do_not_go_with_is_said(call, own, more, sentence):
    words = plain(own) if "--hide" in more else own
    code, _, err = call("certify", *words, *more)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_directions_and_attributes_are_for_ones_own(call):
    code, _, err = call("certify", "--dataset", "karate", "--directed")
    assert (code, "for your own --edges" in err) == (2, True)
    code, _, err = call("certify", "--dataset", "karate", "--edge-attr", "a.py:f")
    assert (code, "for a model of your own" in err) == (2, True)


def test_fake_nodes_are_certified_against_from_the_command_line(call_json, own, here):
    asked = ("certify", *plain(own), "--threat", "inject", "--hide", "0.9/0.25")
    few = call_json(*asked, "--links", "1", "--store", "run")
    assert few["noise"] == us.Hide(0.9, 0.25, links=1).to_dict()
    for words in ("--threat inject", "--hide 0.9/0.25", "--links 1"):
        assert words in few["command"]
    many = call_json(*asked)
    assert many["noise"]["links"] is None
    sizes = [[row["size"] for row in found["targets"]] for found in (few, many)]
    assert all(a >= b for a, b in zip(*sizes, strict=True))
    assert us.certify(us.load("run")).size.tolist() == sizes[0]


def test_fake_nodes_are_of_one_kind_and_nothing_is_said_of_deletions(call, call_json, own, here):
    asked = ("certify", *plain(own), "--threat", "inject", "--hide", "0.9/0.25", "--store", "run")
    _, out, err = call(*asked, "--report", "r.html")
    assert "additions alone" not in out + err
    assert "deletions alone" not in out + err
    found = call_json(*asked)
    for told in (found, found["targets"][0], call_json("explain", "9", "--store", "run")):
        assert not any(name.endswith(("adds", "deletes")) for name in told)
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "median K of additions alone" not in page
    assert "Adds and deletes" not in page
    facts = json.loads(page.split('id="facts">')[1].split("</script>")[0])
    assert {"adds", "deletes"}.isdisjoint(facts["columns"])
    assert {"adds", "deletes"}.isdisjoint(us.certify(us.load("run")).to_frame().columns)
    _, out, _ = call("certify", *own)
    assert "deletions alone" in out


def test_no_answer_is_no_rival_where_that_is_asked_for(call_json, own, here):
    found = call_json("certify", *own, "--rivals", "labels", "--store", "run")
    assert found["rivals"] == "labels"
    assert "--rivals labels" in found["command"]
    assert call_json("report", "run", "--out", "r.html")["rivals"] == "labels"
    certs = us.certify(us.load("run"), rivals="labels")
    assert [row["size"] for row in found["targets"]] == certs.size.tolist()
