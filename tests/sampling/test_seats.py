"""Seats drawn without replacement: every set equally likely, and equal numbers for ever."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
import torch
from scipy import stats

from unswayed.errors import InputError
from unswayed.sampling import seats
from unswayed.sampling.seats import below, kept_rows, kept_seats, pick
from unswayed.sampling.stream import Stream


@pytest.mark.parametrize(("count", "kept"), [(5, 1), (5, 2), (6, 3), (4, 4)])
def test_every_set_comes_from_equally_many_draws(count, kept):
    draws = np.array(list(product(*(range(count - t) for t in range(kept)))))
    found = Counter(map(tuple, pick(draws).tolist()))
    assert set(found) == set(combinations(range(count), kept))
    assert len(set(found.values())) == 1


def test_words_beyond_the_last_whole_multiple_are_drawn_again(monkeypatch):
    """With words below 10 and m = 4, the words 8 and 9 are thrown away until a smaller one comes."""
    script = {0: [8, 3, 9], 1: [9, 0, 6], 2: [5, 0, 0]}
    asked = []

    def scripted(stream, start, stop, draws, attempt, targets):
        asked.append(attempt)
        return np.array([[script[attempt]]], dtype=np.uint64)

    monkeypatch.setattr(seats, "WORD", 10)
    monkeypatch.setattr(seats, "words", scripted)
    assert below(Stream(0), 0, 1, np.array([[4, 4, 4]]), [None]).tolist() == [[[1, 3, 2]]]
    assert asked == [0, 1, 2]


def test_a_sample_never_depends_on_its_company():
    whole = kept_seats(Stream(7), 0, 50, 23, 4)
    for start, stop in ((0, 1), (3, 9), (17, 50), (49, 50)):
        assert (kept_seats(Stream(7), start, stop, 23, 4) == whole[start:stop]).all()
    assert (whole != kept_seats(Stream(8), 0, 50, 23, 4)).any()
    assert (whole != kept_seats(Stream(7, "train"), 0, 50, 23, 4)).any()
    assert (whole != kept_seats(Stream(7), 0, 50, 23, 4, target=3)).any()
    assert (np.diff(whole, axis=1) > 0).all()


def test_a_target_never_depends_on_its_company():
    many = seats.kept_by_each(Stream(7), 3, 40, [23, 9, 4], 4, [5, None, 1 << 20])
    for place, (count, target) in enumerate([(23, 5), (9, None), (4, 1 << 20)]):
        assert (many[:, place] == kept_seats(Stream(7), 3, 40, count, 4, target=target)).all()


def test_pinned_draws():
    """Another layout of the counter must get another name."""
    assert seats.NAME == "philox4x32-10/seats-1"
    assert kept_seats(Stream(1), 0, 3, 50, 5).tolist() == PINNED


PINNED = [[8, 28, 34, 35, 48], [1, 8, 9, 30, 48], [0, 9, 12, 20, 28]]


def test_words_are_apart_from_those_of_other_streams():
    ours = seats.words(Stream(5), 0, 64, 16, 0, [None])[:, 0].astype(np.int64)
    dense = Stream(5).words(0, 64, 16).numpy()
    assert not (ours == dense).any()
    assert not (ours == seats.words(Stream(5), 0, 64, 16, 1, [None])[:, 0]).any()


def test_sets_are_uniform():
    drawn = kept_seats(Stream(11), 0, 20_000, 7, 3)
    found = Counter(map(tuple, drawn.tolist()))
    assert len(found) == 35
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


def test_rows_keep_ones_only_and_blanks_are_nobody():
    clean = torch.zeros(20, dtype=torch.bool)
    clean[[3, 8, 19]] = True
    rows = kept_rows(Stream(2), 0, 30_000, clean, kept=2, seats=6)
    assert not rows[:, ~clean].any()
    seen = rows.sum(dim=1)
    expected = np.array([3 * 2 / 2, 9, 3]) / 15  # C(3,j)·C(3,2−j) of C(6,2)
    assert torch.bincount(seen, minlength=3).numpy() / 30_000 == pytest.approx(expected, abs=0.012)
    full = kept_rows(Stream(2), 0, 100, torch.ones(9, dtype=torch.bool), kept=2, seats=6)
    assert (full.sum(dim=1) == 2).all()
    assert not kept_rows(Stream(2), 0, 10, torch.zeros(9, dtype=torch.bool), kept=2, seats=6).any()


def test_what_cannot_be_drawn_is_refused():
    for bad in ((5, 6), (2**32, 2)):
        with pytest.raises(InputError, match="seats"):
            kept_seats(Stream(0), 0, 1, *bad)
