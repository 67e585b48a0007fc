"""The benchmark of large graphs, on a small one: every kind of point, and a graph as it says."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import unswayed as us
from benchmarks.speed import scale


def test_degrees_follow_a_power_law_and_features_lie_in_a_file(tmp_path):
    data = scale.power_law(3000, tmp_path)
    degree = torch.bincount(data.edge_index[0], minlength=3000).float()
    assert degree.mean() == scale.DEGREE
    assert degree.max() > 4 * scale.DEGREE
    first, second = data.edge_index
    assert (data.y[first] == data.y[second]).float().mean() > 0.4
    assert np.array_equal(np.load(tmp_path / "x.npy"), data.x.numpy())


@pytest.mark.parametrize("kind", scale.KINDS)
def test_every_kind_gives_a_row(kind):
    row = scale.point(kind, 1000, targets=5, samples=20, audit=2)
    assert row["peak_gib"] >= row["before_gib"] > 0
    assert row.get("audit_agreed", 2) == 2
    assert row["mean_size"] >= -1


def test_rows_that_were_not_measured_again_stay(tmp_path):
    old = {"kind": "keep", "n": 9, "device": "CPU", "seconds": 1}
    new, card = old | {"seconds": 2}, old | {"device": "a card"}
    other = {"kind": "prove", "n": 5, "device": "CPU", "seconds": 3}
    path = tmp_path / "scale.json"
    assert scale.merged([old, other], path) == [other, old]
    assert scale.merged([new, card], path) == [other, new, card]
    assert json.loads(path.read_text())["rows"] == [other, new, card]


@pytest.mark.parametrize("kind", scale.KINDS)
def test_what_a_card_says_is_held_against_the_cpu(kind, monkeypatch):
    monkeypatch.setattr(scale, "COMPARED", 3)
    row = scale.point(kind, 1000, targets=5, samples=20, audit=0, device="cpu:0")  # stands for a card
    assert row["compared"] == (5 if kind == "prove" else 60)
    assert row["differing"] == 0


def test_votes_and_proofs_that_differ_are_counted():
    noise, of = us.Flip(beta=0.8), {"starts": [0], "stops": [4], "entries": 12}
    here = us.Votes(np.array([[[4, 0], [1, 3]]]), noise=noise, **of)
    there = us.Votes(np.array([[[3, 1], [1, 3], [0, 4]]]), noise=noise, **of)
    assert scale.against_cpu(there, here) == {"compared": 8, "differing": 1}
    sizes = [SimpleNamespace(size=np.array(size)) for size in ([1, 2, 3], [1, 3])]
    assert scale.against_cpu(*sizes) == {"compared": 2, "differing": 1}


def test_rows_of_a_card_are_published_beside_those_of_a_processor(tmp_path, monkeypatch):
    rows = [
        {
            "kind": kind,
            "n": n,
            "device": device,
            "cpu_seconds": n / 9,
            "seconds": n / 99,
            "peak_gib": 1.0,
            **more,
        }
        for device, more in (("CPU", {}), ("a card", {"card_gib": 2.0}))
        for kind in scale.KINDS
        for n in (9, 99)
    ]
    scale.merged(rows[:6], tmp_path / "scale.json")
    (tmp_path / "other").mkdir()
    scale.merged(rows[6:], tmp_path / "other" / "scale.json")
    monkeypatch.setattr(
        "sys.argv", ["scale", "--out", str(tmp_path), "--join", str(tmp_path / "other" / "scale.json")]
    )
    scale.main()
    assert len(scale.read(tmp_path / "scale.json")) == 12
    drawn = (tmp_path / "scale.svg").read_text()
    assert all(f"<!-- {kind}, {device} -->" in drawn for kind in scale.KINDS for device in ("CPU", "a card"))
    assert (tmp_path / "scale.png").stat().st_size > 1000
