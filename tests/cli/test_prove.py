"""`unswayed prove`: what it says, keeps and refuses."""

import json
import shlex
from functools import partial

import numpy as np
import pytest
import torch

import unswayed as us
from unswayed.datasets import read_csv
from unswayed.models.training import pairs
from unswayed.models.training.pairs import PairSettings

FILES = ["--edges", "E.csv", "--features", "X.csv", "--labels", "Y.csv", "--no-floor"]
BALLOTS = """
import unswayed as us
import torch

def labels(num_classes):
    return us.LabelBallots(num_classes)

def network(num_features, num_classes):
    torch.manual_seed(0)
    return us.BallotNetwork(num_features, num_classes, hidden=4)
"""


def known_of(dataset, parts):
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(dataset.labels, -1)
    known[told] = dataset.labels[told]
    return known


def test_prove_says_what_the_library_says(call_json, here):
    found = call_json("prove", *FILES)
    dataset, parts = read_csv(here / "E.csv", here / "X.csv", here / "Y.csv")
    model = us.LabelBallots(2).freeze(dataset.graph, known=known_of(dataset, parts))
    proofs = us.prove(model, us.Row(dataset.graph, parts.test))
    assert [row["size"] for row in found["targets"]] == proofs.size.tolist()
    assert [row["label"] for row in found["targets"]] == proofs.label.tolist()
    assert found["method"] == "exact"
    assert found["confidence"] is None
    assert not {"noise", "alpha", "bounds", "samples"} & set(found)
    accuracy = found["certified_accuracy"]
    expected = proofs.accuracy(dataset.labels[parts.test], at=[int(k) for k in accuracy])
    assert list(accuracy.values()) == expected.tolist()


def test_a_report_beside_the_document_leaves_stdout_to_the_document(call_json, here):
    assert call_json("prove", *FILES, "--report", "r.html")["report"] == "r.html"
    assert (here / "r.html").exists()


def test_the_floor_is_found_for_proofs_too(call_json):
    found = call_json("prove", *FILES[:-1])
    assert set(found["floor"]) == {"name", "accuracy"}


def test_prove_prints_a_table_and_who_stays_flagged(call):
    code, out, err = call("prove", *FILES, "--positive", "1", "--report", "r.html")
    assert code == 0
    for words in (
        "certified accuracy",
        "The weakest nodes",
        "are proofs",
        "stays flagged",
        "The report is in r.html",
    ):
        assert words in out
    assert "Proving 4 targets" in err


def test_recall_is_in_the_document(call_json, here):
    found = call_json("prove", *FILES, "--positive", "1")
    dataset, parts = read_csv(here / "E.csv", here / "X.csv", here / "Y.csv")
    model = us.LabelBallots(2).freeze(dataset.graph, known=known_of(dataset, parts))
    proofs = us.prove(model, us.Row(dataset.graph, parts.test))
    sizes = [int(k) for k in found["recall"]]
    assert found["positive"] == "1"
    assert list(found["recall"].values()) == proofs.recall(dataset.labels[parts.test], 1, at=sizes).tolist()


def test_the_printed_command_does_the_same_again(call_json):
    first = call_json("prove", *FILES, "--nodes", "1,2", "--seed", "3")
    words = shlex.split(first["command"])
    assert words[:2] == ["unswayed", "prove"]
    assert call_json(*words[1:], "--no-floor")["targets"] == first["targets"]


def test_a_store_keeps_proofs_for_report_explain_and_attack(call, call_json, here, monkeypatch):
    first = call_json("prove", *FILES, "--store", "run")
    monkeypatch.setattr("unswayed.cli.proving.prove", None)  # nothing is proven twice
    assert call_json("prove", *FILES, "--store", "run")["targets"] == first["targets"]
    assert us.load("run").size.tolist() == [target["size"] for target in first["targets"]]
    assert call("report", "run", "--out", "r.html")[0] == 0
    assert '"attack":[' in (here / "r.html").read_text()
    told = call_json("explain", "9", "--store", "run")
    row = next(row for row in first["targets"] if row["target"] == "9")
    assert told["size"] == row["size"]
    assert len(told["witness"]) == row["size"] + 1
    assert {"voices", "for", "against", "margin"} <= set(told)
    attacked = call_json("attack", "--store", "run")["attacks"]["attacked"]
    assert attacked["9"]["size"] == len(attacked["9"]["entries"]) == row["size"] + 1
    assert attacked["9"]["kind"] == "witness"
    code, out, _ = call("attack", "--store", "run")
    assert code == 0
    assert "lower and upper bound meet" in out


def test_explain_tells_who_speaks_and_the_cheapest_attack(call):
    call("prove", *FILES, "--store", "run")
    code, out, _ = call("explain", "9", "--store", "run")
    assert code == 0
    for words in ("says", "side", "speaks for", "A cheapest attack makes 1 change", "a link to"):
        assert words in out


def test_explain_proves_a_node_afresh(call_json):
    row = next(row for row in call_json("prove", *FILES)["targets"] if row["target"] == "9")
    told = call_json("explain", "9", *FILES[:-1], "--model", "label-ballots")
    assert (told["size"], told["label"]) == (row["size"], row.get("answer", str(row["label"])))
    assert len(told["witness"]) == row["size"] + 1


@pytest.mark.parametrize("factory", ["labels", "network"])
def test_a_ballot_model_of_ones_own_is_frozen_with_the_known_labels(call_json, here, factory):
    (here / "ballots.py").write_text(BALLOTS)
    found = call_json("prove", *FILES, "--model", f"ballots.py:{factory}")
    assert found["method"] == "exact"


def test_a_vote_of_groups(call_json, monkeypatch):
    from unswayed.models.training import hashed

    monkeypatch.setattr(hashed, "HASHED", hashed.CleanSettings(steps=5, check_every=5))
    found = call_json("prove", *FILES, "--model", "hashed:sage", "--groups", "5")
    assert found["method"] == "hashed"
    assert found["groups"] == 5
    assert max(row["size"] for row in found["targets"]) <= 2


@pytest.fixture
def rings(monkeypatch):
    """Twelve graphs in place of whatever dataset is named."""
    from torch_geometric.data import Data

    from unswayed.cli import proving
    from unswayed.datasets import Dataset, Split

    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    both = torch.cat([ring, ring.flip(0)], dim=1)
    graphs = tuple(
        Data(x=torch.eye(3)[:3] * (1 + i % 2), edge_index=both, y=torch.tensor([i % 2])) for i in range(12)
    )
    dataset = Dataset("rings", "graph", 3, 2, graphs=graphs)
    parts = Split(torch.arange(6), torch.arange(6, 8), torch.arange(8, 12))
    monkeypatch.setattr(proving, "read_dataset", lambda *words, **more: (dataset, parts))
    monkeypatch.setattr(pairs, "PairSettings", partial(PairSettings, silent=("counts-linear",), steps=40))


@pytest.mark.usefixtures("rings")
def test_graphs_are_proved_by_their_pairs(call_json):
    found = call_json("prove", "--dataset", "rings", "--model", "ballots", "--no-floor")
    assert [row["target"] for row in found["targets"]] == ["8", "9", "10", "11"]
    assert found["method"] == "exact"


@pytest.mark.usefixtures("rings")
def test_what_is_for_nodes_is_refused_for_graphs_before_training(call):
    code, _, err = call(*shlex.split("prove --dataset rings --model ballots --positive 1 --precision 0.5"))
    assert code == 2
    assert "--precision is for nodes" in err
    assert "Training" not in err


PROVE = " ".join(["prove", *FILES])
BAD = {
    "no data named": ("prove", "--dataset"),
    "a model that is no sum": (f"{PROVE} --model gcn", "certify"),
    "an unknown network to hash": (f"{PROVE} --model hashed:transformer", "hashed:"),
    "a factory that is no ballot model": (f"{PROVE} --model mine.py:build", "poll"),
    "a missing factory file": (f"{PROVE} --model none.py:build", "none.py"),
    "voters without ballots": (f"{PROVE} --voters features", "--voters is for"),
    "attack size without ballots": (f"{PROVE} --attack-size 5", "--attack-size is for"),
    "precision without ballots": (f"{PROVE} --positive 1 --precision 0.5", "--precision is for"),
    "precision of no label": (f"{PROVE} --model ballots --precision 0.5", "--positive"),
    "precision above 1": (f"{PROVE} --model ballots --positive 1 --precision 35", "share"),
    "precision among one kind alone": (
        f"{PROVE} --labels onlyones.csv --model ballots --positive 1 --precision 0.5",
        "All of the 2 validation nodes are 1",
    ),
    "attack size 0": (f"{PROVE} --model ballots --attack-size 0", "1 or more"),
    "groups without hashing": (f"{PROVE} --groups 5", "--groups is for"),
    "no groups": (f"{PROVE} --model hashed:gcn --groups 0", "2 or more"),
    "an unknown kind of voter": (f"{PROVE} --model ballots --voters loud", "--voters"),
    "an unknown positive label": (f"{PROVE} --positive fraud", "fraud"),
    "label ballots under all pairs": (f"{PROVE} --threat all-pairs", "--voters features"),
    "an absent node": (f"{PROVE} --nodes 99", "99"),
    "a store that is a file": (f"{PROVE} --store E.csv", "folder"),
    "a card that is not there": (f"{PROVE} --device cuda:7", "device"),
    "a report at another alpha": ("report run --alpha 0.01", "alpha"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(call, here, case):
    command, word = BAD[case]
    rows = [row for row in (here / "Y.csv").read_text().splitlines() if not row.endswith("0,val")]
    (here / "onlyones.csv").write_text("\n".join(rows))
    if command.startswith("report"):
        call("prove", *FILES, "--store", "run")
    code, out, err = call(*shlex.split(command))
    assert code == 2
    assert out == ""
    said = [line for line in err.splitlines() if line.startswith("unswayed: ")]
    assert len(said) == 1
    assert word in said[0]
    assert "Traceback" not in err
    assert "Training" not in err


def test_what_cannot_be_proved_is_refused_before_a_floor_is_trained_for_it(call):
    code, _, err = call(*shlex.split(f"{PROVE} --model mine.py:build"))
    assert code == 2
    assert "floor" not in err


def test_a_store_of_another_command_is_refused(call):
    call("prove", *FILES, "--store", "run")
    code, _, err = call("prove", *FILES, "--store", "run", "--nodes", "1")
    assert code == 2
    assert "another command" in err


def without_last(path):
    """The file without its last row."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def other_labels(path):
    """The same nodes and split, every label of the two turned round."""
    head, *rows = path.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    path.write_text("\n".join([head, *(f"{node},{1 - int(label)},{part}" for node, label, part in cells)]))


@pytest.mark.parametrize(("file", "change"), [("E.csv", without_last), ("Y.csv", other_labels)])
def test_proofs_in_a_store_are_not_shown_for_files_that_have_changed_since(call, here, file, change):
    call("prove", *FILES, "--store", "run")
    change(here / file)
    code, out, err = call("prove", *FILES, "--store", "run")
    assert code == 2
    assert out == ""
    assert "other content of the files" in " ".join(err.split())


def test_an_attack_on_files_shows_no_proofs_of_others(call, call_json, here):
    ask = [*FILES[:-1], "--model", "label-ballots", "--store", "run"]
    first = call_json("attack", *ask)
    assert (
        first["attacks"]
        == call_json("attack", *ask)["attacks"]
        == call_json("attack", "--store", "run")["attacks"]
    )
    without_last(here / "E.csv")
    code, out, err = call("attack", *ask)
    assert (code, out) == (2, "")
    assert "other content of the files" in " ".join(err.split())


def test_a_model_of_ones_own_is_proved_again_since_its_code_or_weights_may_have_changed(call_json, here):
    (here / "ballots.py").write_text(BALLOTS)
    ask = ["prove", *FILES, "--model", "ballots.py:network", "--store", "run"]
    first = call_json(*ask)
    weights = BALLOTS.replace("    return us.BallotNetwork(", "    net = us.BallotNetwork(")
    (here / "ballots.py").write_text(
        f"{weights}    torch.nn.init.constant_(net.own_weight, 5.0)\n    return net\n"
    )
    second, stored = call_json(*ask), call_json("report", "run")
    fresh = call_json(*ask[:-2])
    assert second["targets"] == stored["targets"] == fresh["targets"] != first["targets"]


def test_votes_never_go_into_a_folder_of_proofs(call, here):
    """A report of it would show the proofs under the name of the votes."""
    call("prove", *FILES, "--store", "run")
    record = (here / "run" / "run.json").read_bytes()
    code, _, err = call("certify", *FILES, "--model", "mine.py:build", "--samples", "200", "--store", "run")
    assert code == 2
    assert "holds proofs" in err
    assert (here / "run" / "run.json").read_bytes() == record


def test_labels_of_targets_are_never_told(call_json, here):
    """Whatever the test nodes' labels are, the proofs are the same."""
    first = call_json("prove", *FILES)
    text = (here / "Y.csv").read_text()
    for node in range(8, 12):
        text = text.replace(f"\n{node},{node % 2},", f"\n{node},{1 - node % 2},")
    (here / "Y.csv").write_text(text)
    again = call_json("prove", *FILES)
    assert [row["size"] for row in again["targets"]] == [row["size"] for row in first["targets"]]
    assert np.array_equal([r["label"] for r in again["targets"]], [r["label"] for r in first["targets"]])


@pytest.mark.parametrize("version", ["0.0.9", None])
def test_proofs_of_another_version_are_said_to_be_and_made_again(call, call_json, here, version):
    first = call_json("prove", *FILES, "--store", "run")
    assert first["version"] == us.__version__
    record = json.loads((here / "run" / "run.json").read_text())
    del record["version"]  # as runs were stored before they told it
    told = {} if version is None else {"version": version}
    (here / "run" / "run.json").write_text(json.dumps({**record, **told}))
    maker = f"made by unswayed {version or '(an earlier version)'}"
    code, out, err = call("report", "run", "--out", "r.html", "--json")
    assert code == 0
    assert maker in " ".join(err.split())
    assert json.loads(out)["version"] == (version or "(an earlier version)")
    assert f"unswayed {version or '(an earlier version)'}" in (here / "r.html").read_text()
    _, _, err = call("prove", *FILES, "--store", "run")
    assert "which proves again" in " ".join(err.split())
    _, _, err = call("prove", *FILES, "--store", "run")
    assert "already" in err


def test_proofs_of_another_version_never_pass_for_new_ones_that_were_not_stored(call, here, monkeypatch):
    """Whatever ends a run between its record and its proofs, the next one proves again."""
    call("prove", *FILES, "--store", "run")
    record = json.loads((here / "run" / "run.json").read_text())
    (here / "run" / "run.json").write_text(json.dumps({**record, "version": "0.0.9"}))
    with monkeypatch.context() as halfway:
        halfway.setattr("unswayed.cli.proving.keep_weights", lambda *_: 1 / 0)
        assert call("prove", *FILES, "--store", "run")[0] == 1
    code, _, err = call("prove", *FILES, "--store", "run")
    assert code == 0
    assert "already" not in err
    assert "already" in call("prove", *FILES, "--store", "run")[2]
