"""Laws that hold for any noise and any probabilities."""

import json
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.theory import AddDelete, Flip, bound_votes, certified_size, is_certified, noise_from_dict
from unswayed.theory.regions import exact_masses, masses

SETTINGS = settings(max_examples=60, deadline=None)
keep = st.floats(0.01, 0.99)
probability = st.floats(0, 1)
small = st.integers(0, 7)
noises = st.one_of(st.builds(Flip, keep), st.builds(AddDelete, keep, keep))


@SETTINGS
@given(noises, small, small)
def test_masses_sum_to_one(noise, adds, deletes):
    for exact, rounded in zip(exact_masses(noise, adds, deletes), masses(noise, adds, deletes), strict=True):
        assert sum(exact) == 1
        assert abs(rounded.sum() - 1) < 1e-13


@SETTINGS
@given(noises, probability, probability, probability, st.integers(0, 12))
def test_size_never_falls_as_the_top_rises(noise, low, high, p_rest, cap):
    low, high = sorted((low, high))
    sizes = certified_size([low, high], p_rest, noise, cap)
    assert sizes[0] <= sizes[1]


@SETTINGS
@given(noises, probability, probability, probability, st.integers(0, 12))
def test_size_never_rises_as_the_rest_rises(noise, p_top, low, high, cap):
    low, high = sorted((low, high))
    sizes = certified_size(p_top, [low, high], noise, cap)
    assert sizes[0] >= sizes[1]


@SETTINGS
@given(keep, probability, probability, st.integers(0, 15))
def test_equal_probabilities_are_flips(beta, p_top, p_rest, cap):
    flip = Flip(beta)
    both = AddDelete(flip.p_add, flip.p_delete)
    assert certified_size(p_top, p_rest, both, cap) == certified_size(p_top, p_rest, flip, cap)


@SETTINGS
@given(noises, st.floats(0.6, 1), probability, small, small)
def test_smaller_attacks_are_certified_too(noise, p_top, share, adds, deletes):
    p_rest = share * (1 - p_top)
    larger = is_certified(p_top, p_rest, noise, adds=adds, deletes=deletes)
    assert is_certified(p_top, p_rest, noise, adds=max(adds - 1, 0), deletes=deletes) >= larger
    assert is_certified(p_top, p_rest, noise, adds=adds, deletes=max(deletes - 1, 0)) >= larger


@SETTINGS
@given(noises)
def test_noise_survives_json(noise):
    assert noise_from_dict(json.loads(json.dumps(noise.to_dict()))) == noise


@SETTINGS
@given(st.lists(st.integers(0, 400), min_size=2, max_size=6), st.integers(1, 300), st.floats(1e-9, 0.3))
def test_bounds_bracket_the_observed_shares(votes, silent, alpha):
    d = sum(votes) + silent
    for method in ("strict", "paper"):
        got = bound_votes([votes], d, alpha, method)
        top = max(votes)
        rest = max(sorted([*votes, silent])[:-1]) if silent <= top else silent
        assert Fraction(got.p_top[0]) <= Fraction(top, d)
        assert got.p_rest[0] >= min(rest / d, 1 - got.p_top[0])
        assert 0 <= got.p_top[0] <= 1
        assert 0 <= got.p_rest[0] <= 1
