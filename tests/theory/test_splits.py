"""Splits proved in bulk: whatever is called sure is certified, and sizes are those of asking about every split."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from unswayed.theory import AddDelete, ceiling, certified_size, entrywise
from unswayed.theory.entrywise import certify_pairs
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.splits import surely_certified, tails

NOISES = [
    AddDelete(0.4, 0.5),
    AddDelete(0.45, 0.5),
    AddDelete(0.2, 0.7),
    AddDelete(0.6, 0.55),
    AddDelete(0.05, 0.9),
]


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.45), (0.1, 0.7), (0.9, 0.95)])
def test_tails_stay_within_their_stated_error(p, q):
    first, second = np.array([300, 100, 0, 499]), np.array([200, 400, 500, 1])
    mean = np.rint(first * p + second * q).astype(int)
    t = mean[:, None] + np.array([-40, -5, 0, 1, 9, 30])
    found, error = tails(first, second, p, q, t)
    assert error < 1e-10
    for i in range(4):
        parts = [stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((first[i], p), (second[i], q))]
        pmf = np.convolve(*parts)
        for j in range(t.shape[1]):
            assert abs(found[i, j] - pmf[max(t[i, j], 0) :].sum()) < error / 4


@pytest.mark.parametrize("trials", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("p", "q"), [(0.35, 0.15), (0.02, 0.9), (0.001, 0.4)])
def test_tails_of_few_entries_stay_within_their_stated_error(trials, p, q):
    first = np.arange(trials + 1)
    t = np.tile(np.arange(-1, min(trials, 5) + 2), (trials + 1, 1))
    found, error = tails(first, trials - first, p, q, t)
    for i in first:
        parts = [stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((i, p), (trials - i, q))]
        pmf = np.convolve(*parts)
        for j in np.flatnonzero(np.isfinite(found[i])):
            assert abs(found[i, j] - pmf[max(t[i, j], 0) :].sum()) < error


def test_one_target_has_the_size_it_has_among_many():
    rng, noise = np.random.default_rng(0), AddDelete(0.15, 0.35)
    top = rng.uniform(0.5, 1, 300) ** rng.choice([1, 0.05], 300)
    rest = rng.uniform(0, 1 - top)
    together = certified_size(top, rest, noise, 12)
    alone = [int(certified_size(a, b, noise, 12)) for a, b in zip(top, rest, strict=True)]
    assert alone == together.tolist()
    assert max(alone) > 3


def test_places_outside_of_a_period_are_not_guessed():
    found, _ = tails(np.array([300]), np.array([200]), 0.5, 0.5, np.array([[-5, 250, 700]]))
    assert np.isnan(found[0, [0, 2]]).all()
    assert 0.5 < found[0, 1] < 0.53


@pytest.mark.parametrize("noise", NOISES)
def test_what_is_sure_is_certified(noise):
    rng, sure, beyond = np.random.default_rng(3), 0, 0
    for _ in range(8):
        top = float(rng.uniform(0.7, 0.999))
        rest = float((1 - top) * rng.choice([1.0, 0.3]))
        k = int(certified_size(top, rest, noise, 400)) + int(rng.integers(-1, 4))
        deletes = np.arange(max(k, 1) + 1)
        found = surely_certified(top, rest, noise.p_add, noise.p_delete, deletes[-1] - deletes, deletes)
        asked = [
            bool(certify_pairs(np.array([top]), np.array([rest]), noise, int(deletes[-1] - d), int(d))[0])
            for d in deletes
        ]
        assert not (found & ~np.array(asked)).any()
        sure, beyond = sure + int(found.sum()), beyond + int((~np.array(asked)).sum())
    assert sure > 30
    assert beyond > 0


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ones", [None, 12, 300])
def test_sizes_are_those_of_every_split(noise, ones, monkeypatch):
    pairs = np.array([0.9, 0.99, 0.999, 0.7]), np.array([0.1, 0.001, 0.001, 0.05])
    quick = certified_size(*pairs, noise, 320, ones=ones)
    monkeypatch.setattr(entrywise, "LONE", 0)  # every split, one by one
    assert quick.tolist() == certified_size(*pairs, noise, 320, ones=ones).tolist()
    assert quick.max() > 30


def test_an_interior_split_that_fails_first_is_found():
    """Among 967 changed entries the split with 20 deletions fails like the one with none, those between do not."""
    found = ceiling(AddDelete(0.45, 0.5), 10_000, 0.001, 7)
    assert found == 966


def test_noise_that_hides_nearly_everything_certifies_far_and_fast():
    assert ceiling(AddDelete(0.499, 0.5), 10_000, 0.001, 7, cap=50_000) == 50_000
    far = int(certified_size(0.999, 0.001, AddDelete(0.47, 0.5), 100_000))
    assert far > 1_000
    for adds in (0, far):
        a, b = exact_worst_case(Fraction(0.999), Fraction(0.001), AddDelete(0.47, 0.5), adds, far - adds)
        assert a > b


def test_nothing_is_sure_where_regions_cannot_be_told_apart():
    assert not surely_certified(0.9, 0.1, 0.5, 0.5 - 1e-8, np.array([3]), np.array([4])).any()


@pytest.mark.parametrize("seed", range(4))
def test_small_sizes_are_exact_too(seed):
    """Alone each target is looked at in bulk; the definition, in fractions, is asked about every split."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        noise = AddDelete(float(rng.uniform(0.02, 0.9)), float(rng.uniform(0.02, 0.9)))
        top = float(rng.uniform(0.4, 1)) ** float(rng.choice([1, 0.1]))
        rest, cap = float(min(top, 1 - top) * rng.uniform(0, 1)), 10
        exact = [
            all(
                np.greater(*exact_worst_case(Fraction(top), Fraction(rest), noise, a, k - a))
                for a in range(k + 1)
            )
            for k in range(1, cap + 1)
        ]
        assert certified_size(top, rest, noise, cap) == (exact.index(False) if False in exact else cap)
