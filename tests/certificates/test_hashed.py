"""Proofs by groups as certificates: the protocol, the words, the file."""

from dataclasses import replace

import numpy as np
import pytest

import unswayed as us
from unswayed.certificates.hashed import HashedProofs
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, StoreError

COUNTS = [[9, 1, 0], [3, 3, 3], [0, 0, 0], [1, 0, 8]]


def proofs():
    about = About(targets=[4, 5, 6, 7], entries=[20, 20, 20, 3], ones=[2, 2, 2, 1], classes=3)
    return HashedProofs.of_counts(COUNTS, 10, "edges", about)


def test_label_and_size_and_what_they_rest_on():
    found = proofs()
    assert found.label.tolist() == [0, 0, -1, 2]
    assert found.size.tolist() == [4, 0, -1, 3]
    assert found.sizes("deletes").tolist() == [2, 0, -1, 1]
    assert found.sizes("adds").tolist() == [4, 0, -1, 2]
    assert (found.method, found.confidence, found.ceiling) == ("hashed", None, 5)
    assert "9 say 0 and 1 say 1" in found.statement(0)
    assert "None of the 10 groups" in found.statement(2)


def test_the_grid_agrees_with_the_sizes():
    found = proofs()
    cells = found.grid(6, 6)
    for i in range(3):
        assert [cells[i, k, 0] for k in range(7)] == [min(k, 18) <= found.size[i] for k in range(7)]
    assert cells[0, 2, 6]  # only two can be deleted
    assert cells[3].all()  # all entries are covered


def test_it_is_saved_and_read_back(tmp_path):
    proofs().save(tmp_path / "proofs.npz")
    again = us.load(tmp_path / "proofs.npz")
    assert isinstance(again, HashedProofs)
    assert np.array_equal(again.counts, proofs().counts)
    assert (again.groups, again.by) == (10, "edges")
    assert again[1:3].size.tolist() == [0, -1]


def test_an_explanation_shows_every_group():
    told = proofs().explanation(0)
    assert [(bar.name, bar.value) for bar in told.bars] == [("0", "9"), ("1", "1")]
    assert proofs().explanation(1).bars[-1].name == "no answer"
    assert told.to_json()["groups"] == 10


def test_one_attacker_reaches_those_whose_size_is_smaller():
    found = proofs()
    assert [found.shared(b) for b in (0, 1, 4, 5)] == [0, 1, 2, 3]


def test_counts_that_do_not_fit_the_groups_are_refused():
    about = About(targets=[0], entries=[5], classes=2)
    with pytest.raises(InputError, match="share 3 groups"):
        HashedProofs.of_counts([[3, 1]], 3, "edges", about)


def test_a_file_that_states_more_than_its_counts_prove_is_refused(tmp_path):
    made = proofs()
    replace(made, size=made.size + np.eye(4, dtype=int)[0]).save(tmp_path / "bold.npz")
    with pytest.raises(StoreError, match="than its own counts prove"):
        us.load(tmp_path / "bold.npz")
