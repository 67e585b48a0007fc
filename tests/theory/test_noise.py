"""Noise whose probabilities are exactly what is drawn."""

import json
from fractions import Fraction

import numpy as np
import pytest

from unswayed.errors import InputError, Unsupported
from unswayed.theory import AddDelete, Flip, Hide, Keep, Mask, certified_size, grid, noise_from_dict

NOISES = [
    Flip(0.7),
    AddDelete(0.001, 0.4),
    AddDelete(0, 0.9),
    AddDelete(0.2, 0),
    Keep(5, 50),
    Hide(0.5, 0.25),
]


def test_probabilities_are_dyadic_and_near_what_was_asked():
    for beta in (0.7, 0.6, 1 / 3, 0.999):
        noise = Flip(beta)
        assert Fraction(noise.beta) * 2**32 == int(noise.beta * 2**32)
        assert abs(noise.beta - beta) <= 2**-33
        assert Fraction(noise.p_add) == Fraction(noise.p_delete) == 1 - Fraction(noise.beta)


def test_equal_noise_is_equal_and_survives_json():
    for noise in (*NOISES, Hide(0.5, 0.25, 3)):
        again = noise_from_dict(json.loads(json.dumps(noise.to_dict())))
        assert again == noise
        assert hash(again) == hash(noise)
        assert eval(repr(noise)) == noise
    assert Flip(0.7) != Flip(0.6)
    assert AddDelete(0.3, 0.3) != Flip(0.7)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), 1e-11, 1 - 1e-11, "0.7", None, True])
def test_what_cannot_be_drawn_is_refused(bad):
    with pytest.raises(InputError, match=r"beta"):
        Flip(bad)
    if bad is True or bad != 0:
        with pytest.raises(InputError, match=r"p_delete"):
            AddDelete(0.1, bad)
        with pytest.raises(InputError, match=r"nodes"):
            Hide(bad, 0.5)


def test_one_probability_may_be_zero_but_not_both():
    assert AddDelete(0, 0.9).thresholds[0] == 0
    assert AddDelete(0.1, 0.0).thresholds[1] == 0
    with pytest.raises(InputError, match="above 0"):
        AddDelete(0, 0)
    with pytest.raises(InputError, match="above 0"):
        Hide(0, 0)
    with pytest.raises(InputError, match="p_add"):
        AddDelete(True, 0.5)


@pytest.mark.parametrize("bad", [(0, 5), (6, 5), (1.5, 5), (True, 5), (1, 2**31), (-1, 3), (1, None)])
def test_seats_that_cannot_be_drawn_are_refused(bad):
    with pytest.raises(InputError, match=r"Keep|kept|seats"):
        Keep(*bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2"])
def test_links_are_a_count(bad):
    with pytest.raises(InputError, match="links"):
        Hide(0.5, 0.5, bad)


def test_noise_that_only_hides_has_its_own_law():
    """Certainty certifies only what is hidden half of the time."""
    assert certified_size(1.0, 0.0, AddDelete(0, 0.875), 1_000) == 5
    assert certified_size(1.0, 0.0, AddDelete(0.875, 0), 1_000) == 5
    assert certified_size(1.0, 0.0, AddDelete(0.875, 1e-9), 1_000) == 1_000
    assert certified_size(0.999, 0.001, Keep(5, 50), 5_000, ones=[3, 90, 500], change="adds").tolist() == [
        6,
        13,
        73,
    ]
    assert certified_size(0.9, 0.1, Hide(0.9, 0.5, 1), 100, ones=0) > certified_size(
        0.9, 0.1, Hide(0.9, 0.5), 100, ones=0
    )
    with pytest.raises(InputError, match="ones="):
        certified_size(0.9, 0.1, Keep(5, 50), 100)


def test_a_cell_of_keep_counts_only_if_all_smaller_ones_hold():
    cells = grid(0.824, 0.0176, Keep(1, 14), adds=7, deletes=4, ones=3)
    assert cells[0, 3]
    assert not cells[6].any()
    assert (cells[:, 3] == cells[:, 4]).all()  # there is nothing more to delete
    smaller = np.minimum.accumulate(np.minimum.accumulate(cells, axis=0), axis=1)
    assert (cells == smaller).all()


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "other"},
        {"kind": "flip"},
        {"kind": "flip", "beta": 0.7, "more": 1},
        {"kind": "other", "beta": 0.7},
        {"kind": "zero", "p_add": 0.1, "p_delete": 0.2},
        {"kind": "a", "p_add": 0.1, "p_delete": 0.2},
    ],
)
def test_unknown_descriptions_are_refused(bad):
    with pytest.raises(InputError, match="noise"):
        noise_from_dict(bad)


def test_every_noise_speaks_for_itself():
    for noise in NOISES:
        assert noise_from_dict(noise.to_dict()) == noise
        assert noise.words()
        assert all(f"{value:.6g}" in noise.brief for value in noise.options().values() if value is not None)
    assert Flip(0.7).symmetric
    assert AddDelete(0.25, 0.25).symmetric
    assert not AddDelete(0.25, 0.5).symmetric


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(InputError, match="'flip', 'add-delete'"):
        noise_from_dict({"kind": "none"})


def test_what_is_seen_on_average():
    assert Keep(5, 50).expected(10, 1000) == 1
    assert Keep(5, 50).expected(100, 1000) == 5
    assert Hide(0.5, 0.25).expected(80, 7) == 80 * 0.75 * 0.25
    assert Mask(0.25, 0.5).expected(80, 8) == 42
    assert AddDelete(0.25, 0.5).expected(80, 8) == 42


def test_masks_are_drawn_like_entries_and_say_so():
    noise = Mask(features=0.25, edges=0.5)
    assert noise.thresholds == (2**30, 2**31)
    assert noise.stand_in == AddDelete(0.25, 0.5)
    assert noise.counts == Hide(0.5, 0.5).counts == "nodes"
    assert AddDelete(0.25, 0.5).counts == Keep(1, 2).counts == "entries"
    assert not noise.only_hides
    assert Mask(0, 0.5).features == Mask(0.5, 0).edges == 0
    assert "masked with probability 0.25" in noise.words()
    assert noise_from_dict(noise.to_dict()) == noise
    with pytest.raises(InputError, match="above 0"):
        Mask(0, 0)
    for bad in (-0.1, 1, float("nan")):
        with pytest.raises(InputError, match="features"):
            Mask(bad, 0.5)
        with pytest.raises(InputError, match="edges"):
            Mask(0.5, bad)
    with pytest.raises(Unsupported, match="certify_intercepted"):
        certified_size(0.9, 0.1, noise, 10)
