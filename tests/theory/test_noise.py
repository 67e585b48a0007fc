"""Noise whose probabilities are exactly what is drawn."""

import json
from fractions import Fraction

import pytest

from unswayed.errors import InputError
from unswayed.theory import AddDelete, Flip, noise_from_dict


def test_probabilities_are_dyadic_and_near_what_was_asked():
    for beta in (0.7, 0.6, 1 / 3, 0.999):
        noise = Flip(beta)
        assert Fraction(noise.beta) * 2**32 == int(noise.beta * 2**32)
        assert abs(noise.beta - beta) <= 2**-33
        assert Fraction(noise.p_add) == Fraction(noise.p_delete) == 1 - Fraction(noise.beta)


def test_equal_noise_is_equal_and_survives_json():
    for noise in (Flip(0.7), AddDelete(0.001, 0.4)):
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
    with pytest.raises(InputError, match=r"p_delete"):
        AddDelete(0.1, bad)


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
    for noise in (Flip(0.7), AddDelete(0.01, 0.4)):
        assert noise_from_dict(noise.to_dict()) == noise
        assert noise.words()
        assert all(f"{value:.6g}" in noise.brief for value in noise.options().values())
    assert Flip(0.7).symmetric
    assert AddDelete(0.25, 0.25).symmetric
    assert not AddDelete(0.25, 0.5).symmetric


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(InputError, match="'flip', 'add-delete'"):
        noise_from_dict({"kind": "none"})
