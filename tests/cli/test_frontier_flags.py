"""`unswayed frontier --positive`: what stays flagged stands beside what is right."""

import pytest


@pytest.fixture
def words(own):
    at = own.index("--beta")
    return ["frontier", *own[:at], *own[at + 2 :], "--betas", "0.8,0.9", "--want-size", "1", "--positive"]


def test_recall_is_shown_beside_accuracy(call, call_json, words):
    found = call_json(*words, "1")
    assert found["positive"] == "1"
    assert found["bearers"] == 2
    for row in found["rows"]:
        right, kept = row["certified_accuracy"], row["certified_recall"]
        assert 0 <= kept["0"] <= 1
        assert right["0"] >= kept["0"] / 2  # half of the validation targets bear the label
    _, out, _ = call(*words, "1")
    told = " ".join(out.split())
    assert "Of the 2 validation targets truly 1, certified to stay flagged (recall)" in told
    assert "of those that are truly 1 flagged" in told or "none is recommended" in told


def test_recall_and_additions_apart_from_deletions(call_json, words):
    (first, *_) = call_json(*words, "1", "--want-adds", "1")["rows"]
    assert first["certified_recall_wanted"] == first["certified_recall"].get("1", 0.0)


def test_without_a_bearer_there_is_no_recall(call_json, call, words, here):
    lines = (here / "Y.csv").read_text().splitlines()
    (here / "Y.csv").write_text("\n".join(line for line in lines if not line.endswith("1,val")))
    found = call_json(*words, "1")
    assert found["positive"] is None
    assert all("certified_recall" not in row for row in found["rows"])
    assert "None of the targets is known to be 1" in " ".join(call(*words, "1")[2].split())


def test_without_a_label_no_recall_is_shown(call, words):
    _, out, _ = call(*words[:-1])
    assert "recall" not in out
