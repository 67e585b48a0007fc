"""Proofs keep what they were made of: saved, sliced and explained, they say the same."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import unswayed as us
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, StoreError
from unswayed.theory.ballots import Linear
from unswayed.theory.electorate import Electorate
from unswayed.theory.records import Injected, Several
from unswayed.theory.roll import Roll

WORDS = {"words": {"unit": "node"}}


def about(count, entries, classes=3):
    return About(np.arange(count) + 5, np.full(count, entries), classes, threat={"kind": "row", **WORDS})


def electorate():
    rng = np.random.default_rng(0)
    ballots, own = rng.integers(-9, 10, (12, 3)), rng.integers(-3, 4, (6, 3))
    voter = np.array([2, 3, 4, 8, 0, 5, 7, 1, 6, 9, 10, 11])
    start = np.array([0, 4, 4, 7, 9, 11, 12])
    return Electorate(Roll(ballots, 12), own, own * 2, start, voter, voter, np.arange(6), np.full(6, 11))  # fmt: skip


def written_out():
    rng = np.random.default_rng(1)
    parts = [
        Linear.of_scores(
            rng.integers(-20, 20, (t, 3)), rng.integers(-5, 6, (1, n, 3)), rng.random((t, n)) < 0.5
        )
        for t, n in ((2, 6), (1, 3), (2, 5))
    ]
    return Several.of(parts, [np.array([4, 0]), np.array([2]), np.array([1, 3])])


def fakes():
    spare = np.array([[0, 5, 9], [4, 0, 3]])
    return Injected(np.array([0, 1]), spare, np.array([2, 1]), np.array([50, 50]))


MADE = {"electorate": (electorate, 11), "written out": (written_out, 6), "fakes": (fakes, 50)}


@pytest.fixture(params=list(MADE))
def proofs(request):
    make, entries = MADE[request.param]
    record = make()
    return us.Proofs.of(record, about(len(record), entries), unit_scale=4.0, exact=request.param != "fakes")


def alike(one, other):
    assert type(one) is type(other)
    for change in ("any", "adds", "deletes"):
        assert np.array_equal(one.sizes(change), other.sizes(change))
    assert np.array_equal(one.label, other.label)
    assert np.array_equal(one.grid(3, 2), other.grid(3, 2))
    assert one.to_json() == other.to_json()
    assert one.explanation(0).to_json() == other.explanation(0).to_json()


def test_nothing_is_lost_on_disk_or_in_a_pickle(proofs, tmp_path):
    proofs.save(tmp_path / "proofs.npz")
    alike(proofs, us.load(tmp_path / "proofs.npz"))
    alike(proofs, pickle.loads(pickle.dumps(proofs)))


def test_some_targets_are_as_among_all(proofs):
    mask = np.arange(len(proofs)) % 2 == 1
    some = proofs[mask]
    for change in ("any", "adds", "deletes"):
        assert np.array_equal(some.sizes(change), proofs.sizes(change)[mask])
    assert np.array_equal(some.grid(2, 2), proofs.grid(2, 2)[mask])
    assert some.statement(0) == proofs.statement(1)
    assert [one.label[0] for one in proofs] == proofs.label.tolist()


def test_a_proof_needs_no_confidence_and_doubts_nothing(proofs):
    assert proofs.method == "exact"
    assert proofs.confidence is None
    assert proofs.doubtful == 0
    assert not proofs.abstained.any()
    assert proofs.statement(0).startswith("Node 5: proven, ")
    assert json.loads(json.dumps(proofs.to_json()))["method"] == "exact"
    assert {"runner_up", "margin"} <= set(proofs.to_frame().columns)
    assert proofs.settings()["Method"].endswith("without noise")
    assert all(text for _, text in proofs.reading())


def test_the_runner_up_is_the_nearest_class():
    proofs = us.Proofs.of(electorate(), about(6, 11), unit_scale=4.0)
    scores, label = proofs.record.scores, proofs.label
    for i in range(6):
        rest = [c for c in range(3) if c != label[i]]
        assert proofs.margin[i] == min(scores[i, label[i]] - scores[i, c] for c in rest) / 4
        assert proofs.margin[i] == (scores[i, label[i]] - scores[i, proofs.runner_up[i]]) / 4


def test_an_explanation_tells_who_speaks_how_loudly_and_what_would_flip_it():
    proofs = us.Proofs.of(electorate(), about(6, 11), unit_scale=4.0)
    record, told = proofs.record, proofs.explanation(0)
    rival = int(proofs.runner_up[0])
    for voice in told.facts["voices"]:
        effect = record.roll.ballots[voice["entry"]] + record.own[0]
        assert voice["says"] == (effect[proofs.label[0]] - effect[rival]) / 4
    assert sorted(voice["entry"] for voice in told.facts["voices"]) == [2, 3, 4, 8]
    assert told.facts["witness"] == proofs.witness(0).tolist()
    assert "cheapest attack" in " ".join(told.sentences)
    sides = [sum(np.sign(voice["says"]) == side for voice in told.facts["voices"]) for side in (1, -1)]
    verbs = ["speaks" if number == 1 else "speak" for number in sides]
    assert 1 in sides  # or the verb could not fail
    assert f"{sides[0]} of 4 entries that are there {verbs[0]} for" in told.sentences[-2]
    assert f"{sides[1]} {verbs[1]} against it" in told.sentences[-2]
    assert sum(bar.share for bar in told.bars) == pytest.approx(1)
    facts = told.facts
    assert facts["for"] - facts["against"] + facts["alone"] == pytest.approx(facts["margin"])
    ahead = proofs.label[0] if facts["alone"] > 0 else rival
    assert facts["alone"] != 0
    assert f"Without any entry {ahead} leads by {abs(facts['alone']):.3g}." in told.sentences[-2]


def test_what_one_change_can_move_is_said_once_and_for_sure():
    """2 ahead, and the one entry says 3 against it: K = 0, exactly."""
    scores, says = np.array([[2, 0]]), np.array([[[0, 3]]])
    record = Several.of([Linear.of_scores(scores, says, np.array([[False]]))])
    proofs = us.Proofs.of(record, about(1, 1, classes=2))
    assert proofs.size.tolist() == [0]
    told = proofs.statement(0)
    assert "the label is 0, but a single changed entry can already move it." in told
    assert "It leads label 1 by 2, which one change can use up." in told
    assert "might" not in told
    tied = Several.of([Linear.of_scores(np.zeros((1, 2), int), says, np.array([[False]]))])
    assert "It ties with label 1, and ties go to the lower class." in us.Proofs.of(
        tied, about(1, 1, classes=2)
    ).statement(0)
    loose = us.Proofs.of(record, about(1, 1, classes=2), exact=False)
    assert "might already move it" in loose.statement(0)


def test_binary_rows_are_an_input_each():
    threat = {"kind": "bits", "words": {"unit": "input"}}
    proofs = us.Proofs.of(electorate(), About(np.arange(6), np.full(6, 11), 3, threat=threat))
    assert "answer for an input is" in " ".join(text for _, text in proofs.reading())


def test_a_negative_position_counts_from_the_end():
    proofs = us.Proofs.of(electorate(), about(6, 11))
    assert np.array_equal(proofs.witness(-1), proofs.witness(5))


def test_a_witness_is_asked_for_by_name_too_and_of_no_stranger():
    proofs = us.Proofs.of(electorate(), about(6, 11)).named(targets=list("abcdef"))
    assert np.array_equal(proofs.witness("b"), proofs.witness(1))
    for stranger in ("z", 6, -7):
        with pytest.raises(InputError, match=r"[tT]arget"):
            proofs.witness(stranger)


def test_nothing_is_promised_where_the_record_promises_nothing():
    record = Several.of([Linear([0, 0], [[0, -1, 3], [0, 1, 3]], [[[0, 1, 1]]] * 2, [[False]] * 2)])
    proofs = us.Proofs.of(record, about(2, 1))
    assert proofs.label.tolist() == [-1, 0]
    assert proofs.size.tolist() == [-1, 1]
    assert not proofs.grid(1, 1)[0].any()
    assert "no guarantee" in proofs.statement(0)


def test_a_wrong_change_or_grid_is_refused(proofs):
    with pytest.raises(InputError, match="change must be one of"):
        proofs.sizes("all")
    with pytest.raises(InputError, match="adds must be"):
        proofs.grid(-1, 0)


def test_a_file_that_states_more_than_its_margins_prove_is_refused(proofs, tmp_path):
    room = ~proofs.abstained & (proofs.size < proofs.about.entries)
    for change in ({"size": proofs.size + room}, {"label": np.where(room, 2 - proofs.label, proofs.label)}):
        replace(proofs, **change).save(tmp_path / "bold.npz")
        with pytest.raises(StoreError, match="than its own margins prove"):
            us.load(tmp_path / "bold.npz")
