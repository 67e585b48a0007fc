"""`unswayed prove` where like does not go with like: said, heeded, and read off nobody who is asked about."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import unswayed as us
from unswayed.cli.provers import LABELS, make_model
from unswayed.datasets import read_csv

FILES = ["--edges", "E.csv", "--features", "X.csv", "--labels", "Y.csv"]
NAMES = [f"u{i}" for i in range(160)]
KIND = np.arange(160) % 3


@pytest.fixture
def market(tmp_path, monkeypatch):
    """Three kinds, who deal mostly with the other kinds, as files and as what is read from them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pairs = [
        (i, j) for i in range(160) for j in range(i) if rng.random() < (0.01 if KIND[i] == KIND[j] else 0.12)
    ]
    rows = [(NAMES[i], NAMES[j]) for i, j in pairs]
    pd.DataFrame(rows, columns=["source", "target"]).to_csv("E.csv", index=False)
    pd.DataFrame({"node": NAMES, "age": rng.normal(size=160)}).to_csv("X.csv", index=False)
    part = np.array(["train", "val", "test"])[np.minimum(rng.permutation(160) // 40, 2)]
    pd.DataFrame({"node": NAMES, "label": KIND, "split": part}).to_csv("Y.csv", index=False)
    return read_csv("E.csv", "X.csv", "Y.csv")


def test_it_is_said_and_most_are_proved_right(call, call_json, market):
    code, _, err = call("prove", *FILES, "--no-floor")
    assert code == 0
    assert "linked to other labels more often than to their own" in " ".join(err.split())
    accuracy = call_json("prove", *FILES, "--no-floor")["certified_accuracy"]
    assert accuracy["0"] > 0.7
    assert accuracy["1"] > 0.4


def test_strangers_are_listened_to_also_where_all_of_them_are_asked_about(call_json, market):
    """No stranger has a link left to read hearsay off, as in every graph whose labels are all told, or asked about."""
    dataset, parts = market
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(dataset.labels, -1).index_copy(0, told, dataset.labels[told])
    model = us.LabelBallots(3, meaning=us.meaning_of(dataset.graph, known)).freeze(dataset.graph, known=known)
    best = us.prove(model, us.Row(dataset.graph, parts.test)).accuracy(
        dataset.labels[parts.test], at=[0, 1, 3]
    )
    found = call_json("prove", *FILES, "--no-floor")["certified_accuracy"]
    assert np.abs([found["0"], found["1"], found["3"]] - best).max() < 0.06
    everybody = call_json("prove", *FILES, "--no-floor", "--nodes", "all")["certified_accuracy"]
    assert everybody["0"] > 0.7


def test_of_a_network_it_is_said_too_and_that_few_choose_it(call, market, monkeypatch):
    def fit(dataset, parts, **how):
        meaning = us.meaning_of(dataset.graph, dataset.labels)
        return us.LabelBallots(3, meaning=meaning).freeze(dataset.graph, known=dataset.labels)

    monkeypatch.setattr("unswayed.models.training.ballots.fit_ballots", fit)
    _, _, err = call("prove", *FILES, "--no-floor", "--model", "ballots", "--nodes", "u3")
    said = " ".join(err.split())
    assert "linked to other labels more often than to their own" in said
    assert (
        "Only 40 validation nodes choose the network, so chance has a say; compare with --model label-ballots"
        in said
    )


def test_what_labels_mean_is_the_same_whatever_links_those_asked_about_have(market):
    dataset, parts = market
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(dataset.labels, -1).index_copy(0, told, dataset.labels[told])
    targets = SimpleNamespace(ids=parts.test)
    plan = SimpleNamespace(model=LABELS, dataset=dataset, known=known, targets=targets)
    before, plain = make_model(plan).meaning, us.meaning_of(dataset.graph, known)
    alike = told[dataset.labels[told] == dataset.labels[parts.test[0]]]
    more = torch.stack([parts.test[0].expand(len(alike)), alike])
    dataset.graph.edge_index = torch.cat([dataset.graph.edge_index, more, more.flip(0)], dim=1)
    assert before is not None
    assert torch.equal(make_model(plan).meaning, before)
    assert not torch.equal(us.meaning_of(dataset.graph, known), plain)  # which takes all links there are


def test_what_labels_mean_is_the_same_whatever_labels_those_asked_about_have(market):
    """Validation nodes judged a meaning that was made of their own labels."""
    dataset, parts = market
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(dataset.labels, -1).index_copy(0, told, dataset.labels[told])
    other = known.index_copy(0, parts.val, (known[parts.val] + 1) % 3)
    targets = SimpleNamespace(ids=parts.val)
    one, two = (
        make_model(SimpleNamespace(model=LABELS, dataset=dataset, known=labels, targets=targets)).meaning
        for labels in (known, other)
    )
    assert one is not None
    assert torch.equal(one, two)


def test_who_asks_about_everybody_is_told_that_the_share_flatters(call, market):
    for nodes, flattered in (("all", True), ("val", False)):
        _, _, err = call("prove", *FILES, "--no-floor", "--nodes", nodes)
        assert ("right more often than others would be" in " ".join(err.split())) == flattered
