"""The benchmark of large graphs, on a small one: every kind of point, and a graph as it says."""

import json

import numpy as np
import pytest
import torch

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
    old, new = {"kind": "keep", "n": 9, "seconds": 1}, {"kind": "keep", "n": 9, "seconds": 2}
    other = {"kind": "prove", "n": 5, "seconds": 3}
    path = tmp_path / "scale.json"
    assert scale.merged([old, other], path) == [other, old]
    assert scale.merged([new], path) == [other, new]
    assert json.loads(path.read_text())["rows"] == [other, new]


def test_the_curves_are_drawn(tmp_path):
    rows = [
        {"kind": kind, "n": n, "cpu_seconds": n / 9, "peak_gib": 1.0} for kind in scale.KINDS for n in (9, 99)
    ]
    scale.draw(rows, tmp_path / "scale")
    assert (tmp_path / "scale.svg").stat().st_size > (tmp_path / "scale.png").stat().st_size / 100 > 0
