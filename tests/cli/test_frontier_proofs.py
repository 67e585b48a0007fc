"""`unswayed frontier` on graphs where links tell the label so clearly that no noise is needed."""

import numpy as np
import pytest
import torch

FILES = ["--edges", "E.csv", "--features", "X.csv", "--labels", "Y.csv", "--no-floor"]


@pytest.fixture
def groups(here):
    """60 accounts in two groups that link within each other, or (None) with anybody."""

    def write(like):
        rng = np.random.default_rng(0)
        pairs = [(i, j) for i in range(60) for j in range(i) if like is None or ((i + j) % 2 == 0) == like]
        kept = [pairs[k] for k in rng.permutation(len(pairs))[:300]]
        (here / "E.csv").write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in kept))
        (here / "X.csv").write_text("node,a\n" + "".join(f"{i},{rng.normal():.3f}\n" for i in range(60)))
        parts = ["train", "train", "val", "val", "test", "test"] * 10
        rows = "".join(f"{i},{i % 2},{part}\n" for i, part in enumerate(parts))
        (here / "Y.csv").write_text(f"node,label,split\n{rows}")

    return write


def test_frontier_names_proofs_where_these_are_expected_to_hold_more(call, groups):
    groups(True)
    words = ["frontier", *FILES, "--betas", "0.9", "--samples", "200", "--count", "10", "--want-size", "2"]
    _, out, _ = call(*words)
    assert "Label ballots need no noise" in out
    command = "unswayed prove --edges E.csv --features X.csv --labels Y.csv --model label-ballots"
    assert out.rstrip().endswith(command)
    assert "Label ballots" not in call(*words, "--threat", "all-pairs")[1]
    groups(None)
    assert "Label ballots" not in call(*words)[1]


def test_frontier_says_how_far_proofs_pay_where_more_was_wanted(call, groups):
    """What it said of noise was all that it said there."""
    groups(True)
    words = ["frontier", *FILES, "--betas", "0.8", "--samples", "2000", "--count", "10", "--want-size", "10"]
    _, out, _ = call(*words)
    said = " ".join(out.split())
    assert "right at K = 10, and to pay up to K = " in said
    assert out.rstrip().endswith("--model label-ballots")


def test_frontier_warns_of_a_model_that_says_the_same_to_all(call, call_json, groups, here):
    groups(True)
    (here / "same.py").write_text(
        "import torch\n\ndef same():\n    return lambda x, edge_index: torch.eye(2)[[1] * len(x)]\n\n"
        "def never():\n    return lambda x, edge_index: torch.eye(2)[[int(i % 4 != 1) for i in range(len(x))]]\n"
    )
    options = "--betas 0.7 --samples 100 --count 10 --want-size 1 --model same.py:same"
    words = ["frontier", *FILES, *options.split()]
    code, out, err = call(*words)
    assert code == 0
    said = " ".join(out.split())
    assert "No setting is recommended for K = 1. Beware: under this noise the model gives every node" in said
    assert "← take" not in out
    assert "unswayed certify" not in out
    assert "so leave --no-floor out" in " ".join(err.split())
    found = call_json(*words)
    assert found["rows"][0]["beware"].startswith("Beware")
    assert not found["rows"][0]["recommended"]
    assert found["command"] is None
    _, out, _ = call(*words[:-1], "same.py:never", "--positive", "0", "--count", "20")
    assert "No setting keeps a target that is truly 0 flagged against K = 1" in " ".join(out.split())
    assert "--positive 0 --precision P" in " ".join(out.split())


def test_frontier_judges_by_nodes_that_no_teacher_has_told_of(call, groups, monkeypatch):
    """Where test nodes are strangers those that are asked about are, too: the others choose the weights."""
    from unswayed.cli import models

    groups(True)
    seen = []

    def made(plan):
        seen.append(plan)
        return lambda x, edge_index: x[:, :1] * torch.tensor([1.0, -1.0])

    monkeypatch.setattr(models, "make_model", made)
    words = ["frontier", *FILES, "--betas", "0.9", "--samples", "100", "--count", "15", "--recipe", "distill"]
    for protocol, judges in (("inductive", 10), ("transductive", 15)):
        _, _, err = call(*words, "--protocol", protocol)
        assert f"on {judges} validation targets" in err
    inductive, whole = seen
    assert set(inductive.targets.ids.tolist()) <= set(inductive.split.test.tolist())
    assert len(inductive.split.val) == 10
    assert len(whole.split.val) == 20


def test_what_is_foretold_does_not_depend_on_how_many_noise_is_chosen_on(call_json, groups, monkeypatch):
    """The floor of a few targets stands beside their certificates; the prospect goes by all validation nodes, as in Python."""
    from unswayed.models import floors

    groups(True)
    answers = torch.arange(60) % 2
    answers[2:4] = 1 - answers[2:4]  # the first that are asked about
    found = floors.Floor("mlp", answers, 0.9, 1.0)
    monkeypatch.setattr(floors, "floor", lambda *asked, **more: found)
    files = [word for word in FILES if word != "--no-floor"]
    told = [
        call_json("frontier", *files, "--betas", "0.9", "--samples", "100", "--count", count)
        for count in ("4", "20")
    ]
    assert [one["floor"] for one in told] == [0.5, 0.9]
    assert [one["prospect"]["floor"] for one in told] == [0.9, 0.9]
    assert "; a model without edges is right for 90%." in told[0]["prospect"]["sentence"]


def test_where_the_edges_had_better_go_no_noise_is_recommended(call, call_json, groups, monkeypatch):
    from unswayed.models import floors

    groups(None)
    found = floors.Floor("mlp", torch.arange(60) % 2, 1.0, 1.0)
    monkeypatch.setattr(floors, "floor", lambda *asked, **more: found)
    files = [word for word in FILES if word != "--no-floor"]
    words = ["frontier", *files, "--betas", "0.9", "--samples", "100", "--count", "10", "--want-size", "1"]
    assert call_json(*words)["prospect"]["way"] == "drop the edges"
    assert call_json(*words)["command"] is None
    _, out, _ = call(*words)
    assert "← take" not in out
    assert " ".join(out.split()).endswith(
        "so none is recommended: drop the edges, which nobody can then forge."
    )


def test_where_a_network_may_pay_a_little_its_command_comes_last(call, groups, monkeypatch):
    from unswayed.models import floors

    groups(True)
    found = floors.Floor("mlp", torch.arange(60) % 2, 1.0, 1.0)
    monkeypatch.setattr(floors, "floor", lambda *asked, **more: found)
    files = [word for word in FILES if word != "--no-floor"]
    words = ["frontier", *files, "--betas", "0.9", "--samples", "100", "--count", "10", "--want-size", "1"]
    _, out, err = call(*words)
    assert "prove (ballots)" in " ".join(err.split())
    assert out.rstrip().endswith(
        "unswayed prove --edges E.csv --features X.csv --labels Y.csv --model ballots"
    )
