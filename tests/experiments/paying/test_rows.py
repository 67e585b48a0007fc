"""From kept results to rows: floors, gains, what is refused and what is not done again."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import unswayed as us
from unswayed.datasets import split
from unswayed.errors import InputError
from unswayed.experiments.paying import (
    DRAWN,
    FORETOLD,
    LIMIT,
    Case,
    Result,
    bench,
    cases,
    page,
    prepare,
    results,
)
from unswayed.experiments.paying.rows import AT, allowed, gains, rows_of, with_new_floors
from unswayed.models.floors.every import ALL_SEEN

from ..shared import FIELDS

OWN_FIELDS = {"method", "budget", "base_accuracy", "floors", "wall"}


def test_rows_say_everything_and_what_was_done_is_not_done_again(kept, blocks):
    said = []
    prepare(cases((0, 1), ["highschool"], ["inductive"], ["label ballots"]), runs=kept, say=said.append)
    assert said == []
    rows = rows_of(results(kept))
    assert all(set(row) >= FIELDS | OWN_FIELDS for row in rows)
    ways = ("label ballots", "hashed", "smoothed", "smoothed Flip", "smoothed AddDelete")
    # without features nothing is learnt, so both protocols have the same rows
    found = {(row["method"], row["protocol"]) for row in rows}
    assert found == set(product(ways, ("inductive", "transductive")))
    assert list(cases((0,), ["highschool"], methods=["hashed", "smoothed"])) == [
        Case("highschool", "inductive", 0, method) for method in ("hashed", "smoothed")
    ]
    assert len(list(cases((0,), ["cora"], methods=["hashed", "smoothed"]))) == 4
    assert {row["budget"] for row in rows} == {"any", "adds", "deletes"}
    for row in rows:
        shares = [row["certified_accuracy"][str(k)] for k in AT]
        assert shares == sorted(shares, reverse=True)
        assert row["floor"] == row["floors"]["majority"]
        assert row["alpha"] == (0.001 if "smoothed" in row["method"] else None)
        # nobody says anything where there is no link: the first class, or no answer
        assert row["accuracy_edgeless"] < 0.5 < row["base_accuracy"]


def test_the_proved_rows_are_what_prove_says(kept, blocks):
    parts = split(blocks, 1, test="rest")
    half = parts.test[: (len(parts.test) + 1) // 2]
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(blocks.labels, -1)
    known[told] = blocks.labels[told]
    proofs = us.prove(us.LabelBallots(3).freeze(blocks.graph, known=known), us.Row(blocks.graph, half))
    row = next(
        row
        for row in rows_of(results(kept))
        if (row["method"], row["seed"], row["budget"]) == ("label ballots", 1, "deletes")
    )
    size, right = proofs.sizes("deletes"), proofs.label == blocks.labels[half].numpy()
    assert row["certified_accuracy"]["3"] == pytest.approx(np.mean(right & (size >= 3)))


def test_labels_drawn_at_random_are_told_with_ties_lost_too(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "load", lambda name, fetch: blocks)
    prepare(cases((0,), ["highschool"], methods=[DRAWN]), runs=tmp_path, say=lambda words: None)
    (kept,) = results(tmp_path)
    parts = split(blocks, 0, test="rest", draw="nodes")
    truth, size = blocks.labels[parts.test].numpy(), kept.arrays["ties are lost"]
    assert kept.arrays["truth"].tolist() == truth.tolist()
    proven = np.where(kept.arrays["label"] == truth, kept.arrays["any"], -1)
    assert (size <= proven).all()
    assert (size[truth == 2] == proven[truth == 2]).all()  # the last class loses every tie anyway
    row = next(row for row in rows_of([kept]) if row["budget"] == "any")
    assert row["certified_if"]["ties are lost"]["3"] == pytest.approx(np.mean(size >= 3))
    assert row["floor"] == row["floors"]["majority"]
    assert "| highschool | ties are lost | 1 |" in page.drawn([row])
    # its targets are others: their floors are nobody else's
    assert rows_of([replace(kept, case=Case("highschool", "inductive", 0, "label ballots"))], [row]) == []


def test_with_every_label_told_the_targets_own_stays_unsaid(kept, blocks):
    prepare(cases((0, 1), ["highschool"], methods=[LIMIT]), runs=kept, say=lambda words: None)
    rows = [row for row in rows_of(results(kept)) if row["method"] == LIMIT and row["budget"] == "any"]
    assert [(row["protocol"], row["seed"]) for row in rows] == [("inductive", 0), ("inductive", 1)]
    nodes = split(blocks, 0, test="rest").test
    half, y = nodes[: (len(nodes) + 1) // 2], blocks.labels
    one, other = blocks.graph.edge_index
    votes = torch.zeros(len(y), 3).index_put_((one, y[other]), torch.tensor(1.0), accumulate=True)[half]
    assert rows[0]["certified_accuracy"]["0"] == pytest.approx(
        float((votes.argmax(1) == y[half]).float().mean())
    )
    told = page.limit(rows_of(results(kept)))
    assert "| highschool | every label told | 2 |" in told
    assert "| highschool | proved, untrained label ballots | 2 |" in told


def test_what_is_foretold_is_read_off_labelled_nodes_and_stands_beside_what_was_proved(kept, blocks):
    prepare(cases((0, 1), ["highschool"], methods=[FORETOLD]), runs=kept, say=lambda words: None)
    rows = rows_of(results(kept))
    row = next(row for row in rows if row["method"] == FORETOLD)
    parts = split(blocks, 0, test="rest")
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(blocks.labels, -1).index_copy(0, told, blocks.labels[told])
    ahead = us.prospect(blocks.graph, known, floor=row["floor"])
    assert row["test_targets"] == len(told)
    assert row["certified_accuracy"] == {
        k: pytest.approx(ahead.certified(int(k))) for k in row["certified_accuracy"]
    }
    assert (row["way"], row["largest"], row["budget"]) == (ahead.way, ahead.largest, "any")
    line = page.foretold(rows).splitlines()[-1]
    assert line.startswith("| highschool | 2 | 0.")
    assert line.endswith(
        f"| {ahead.way} (K ≤ {np.median([r['largest'] for r in rows if r['method'] == FORETOLD]):.0f}) |"
    )


def test_floors_that_were_not_measured_again_are_those_of_earlier_rows(kept):
    every = results(kept)
    alone = [result for result in every if result.case.method == "label ballots"]
    assert rows_of(alone) == []
    earlier = rows_of(every)
    assert rows_of(alone, earlier) == [row for row in earlier if row["method"] == "label ballots"]
    fewer = [{**row, "test_targets": row["test_targets"] - 1, "floors": {"majority": 0.0}} for row in earlier]
    others = [{**row, "test_targets": row["test_targets"] + 1} for row in earlier]
    for known in (fewer + others, others + fewer):  # of other targets: those of the most
        assert rows_of(alone, known) == rows_of(alone, earlier)


def test_gains_are_against_the_strongest_floor_that_the_protocol_allows():
    heights = {"majority": 0.1, "labels": 0.5, "distilled inductive": 0.6, "distilled transductive": 0.8}
    assert allowed(heights, "inductive", "trained") == ["majority", "labels", "distilled inductive"]
    row = {"floors": heights, "certified_accuracy": {str(k): 0.9 for k in AT}, "method": "trained"}
    assert gains([{**row, "protocol": "inductive"}])[0, 0] == pytest.approx(0.3)
    assert gains([{**row, "protocol": "transductive"}])[0, 0] == pytest.approx(0.1)


def test_networks_that_learnt_of_validation_nodes_are_held_against_a_floor_that_did():
    heights = {"majority": 0.1, "distilled inductive": 0.6, ALL_SEEN: 0.7, "distilled transductive": 0.8}
    row = {"floors": heights, "certified_accuracy": {str(k): 0.9 for k in AT}, "protocol": "inductive"}
    for method, gain in (("trained", 0.3), ("hashed", 0.2), ("smoothed Keep", 0.2), ("smoothed", 0.2)):
        assert gains([{**row, "method": method}])[0, 0] == pytest.approx(gain)
    older = {**row, "method": "smoothed", "floors": {"majority": 0.1, "distilled inductive": 0.5}}
    assert gains([{**row, "method": "smoothed"}, older])[:, 0] == pytest.approx([0.3, 0.4])


def test_rows_of_earlier_runs_stand_beside_floors_that_were_measured_again():
    truth, said = np.array([0, 1, 0, 1]), np.array([0, 1, 0, 0])
    floors = Result(
        Case("cora", "inductive", 3, "floors"),
        {"truth": truth, "degree": truth, "labels": said, ALL_SEEN: truth},
        {},
    )
    row = {"dataset": "cora", "seed": 3, "protocol": "inductive", "method": "smoothed", "test_targets": 4, "floor": 0.1, "floors": {}}  # fmt: skip
    other = {**row, "seed": 4}
    assert with_new_floors([{**row, "method": "trained"}, row, other], [floors]) == [
        {**row, "method": "trained", "floor": 0.75, "floors": {"labels": 0.75, ALL_SEEN: 1.0}},
        {**row, "floor": 1.0, "floors": {"labels": 0.75, ALL_SEEN: 1.0}},
        other,
    ]


def test_a_run_that_is_out_of_time_begins_nothing(tmp_path):
    said = []
    assert prepare(cases((0,), ["cora"]), runs=tmp_path, stop_after=-1, say=said.append) > 0
    assert said[-1].startswith("Out of time")


def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="'karate'"):
        list(cases((0,), ["karate"]))
    with pytest.raises(InputError, match="no result"):
        page.publish([], Path("nowhere"))


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    case = Case("cora", "inductive", 3, "label ballots")
    Result(case, {"label": np.arange(3)}, {"threat": "row"}).write(tmp_path)
    back = Result.read(case.path(tmp_path), Case)
    assert (back.case, back.facts) == (case, {"threat": "row"})
    assert back.arrays["label"].tolist() == [0, 1, 2]
