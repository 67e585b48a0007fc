"""A small version of `benchmarks/checks/drawn_labels.py`, counted by hand on two cliques."""

import json

import pytest
import torch
from torch_geometric.data import Data

from benchmarks.checks import drawn_labels as check
from unswayed.datasets import Dataset

SHARE, SIZE = 0.2, 20


@pytest.fixture
def cliques():
    """Two classes who are linked to all of their own and to nobody else; a label is known, or follows from those that are."""
    y = torch.arange(2 * SIZE) % 2
    edges = ((y[:, None] == y) & ~torch.eye(2 * SIZE, dtype=torch.bool)).nonzero().t()
    return Dataset("cliques", "node", 0, 2, data=Data(x=torch.ones(2 * SIZE, 1), edge_index=edges, y=y))


def test_one_friend_who_is_left_decides_and_none_loses(cliques):
    withstood = SIZE - 2
    assert check.certified(cliques, SHARE, 0, [0, withstood, withstood + 1]) == [1.0, 1.0, 0.0]


def test_a_row_that_is_far_off_fails_the_check(cliques, monkeypatch, capsys):
    monkeypatch.setattr(check, "load", lambda name, fetch: cliques)
    monkeypatch.setattr(check, "TRIALS", {"near": (SHARE, {0: 100}), "far": (SHARE, {0: 97})})
    for name, code in (("near", 0), ("far", 1)):
        monkeypatch.setattr("sys.argv", ["check", "--datasets", name, "--draws", "2"])
        with pytest.raises(SystemExit) as end:
            check.main()
        assert end.value.code == code
        assert json.loads(capsys.readouterr().out)["mean"] == [1.0]
