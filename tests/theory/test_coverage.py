"""How often certificates are false in simulation: `benchmarks/checks/coverage.py`, in small."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.checks import coverage
from unswayed.theory import AddDelete, Flip, bound_votes, bounds, certified_size, worst_case


def allowed(repetitions: int, alpha: float) -> float:
    """What a rate of exactly alpha would exceed once in a million runs."""
    return float(stats.binom.isf(1e-6, repetitions, alpha)) / repetitions


@pytest.mark.parametrize("method", ["strict", "tight", "anytime"])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("law", list(coverage.LAWS))
def test_false_certificates_are_as_rare_as_promised(law, alpha, method):
    rng = np.random.default_rng(7)
    rate = coverage.false_rate(coverage.LAWS[law], 300, alpha, method, 10_000, rng)
    assert rate <= allowed(10_000, alpha)


@pytest.mark.parametrize("method", ["strict", "tight", "anytime"])
@pytest.mark.parametrize("law", [name for name in coverage.LAWS if "no answer" in name])
def test_false_certificates_are_as_rare_where_no_answer_is_no_rival(law, method):
    rate = coverage.false_rate(
        coverage.LAWS[law], 300, 0.05, method, 10_000, np.random.default_rng(17), "labels"
    )
    assert rate <= allowed(10_000, 0.05)


def test_two_labels_without_limits_of_their_own_would_fail(monkeypatch):
    """Where no answer is no rival, two labels need an upper limit each; a level for one limit is spent too often."""
    rng = np.random.default_rng(18)
    monkeypatch.setattr(bounds, "divisor", lambda classes, method, rivals: 1)
    assert coverage.false_rate([0.5, 0.2], 300, 0.05, "strict", 10_000, rng, "labels") > allowed(10_000, 0.05)


def test_the_simulation_has_power(monkeypatch):
    """Two classes in a tie spend nearly all of alpha; spending it twice is noticed."""
    rng = np.random.default_rng(8)
    assert coverage.false_rate([0.5, 0.5], 300, 0.05, "strict", 10_000, rng) > 0.03
    monkeypatch.setattr(bounds, "divisor", lambda classes, method, rivals: 1)
    assert coverage.false_rate([0.5, 0.5], 300, 0.05, "strict", 10_000, rng) > allowed(10_000, 0.05)


@pytest.mark.parametrize("method", ["strict", "tight", "anytime"])
@pytest.mark.parametrize("noise", [Flip(0.7), AddDelete(0.1, 0.4), AddDelete(0.02, 0.8)])
def test_the_worst_classifier_is_falsely_certified_no_more_often_than_promised(noise, method):
    """One entry is 1 and one is 0; for some classifier, changing both leaves exactly a tie, so size 2 is always false."""
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        kept, _ = worst_case(middle, 1 - middle, noise, adds=1, deletes=1)
        low, high = (low, middle) if kept > 0.5 else (middle, high)
    votes = np.random.default_rng(13).binomial(2_000, low, size=10_000)
    found = bound_votes(np.column_stack([votes, 2_000 - votes]), 2_000, 0.05, method)
    size = certified_size(found.p_top, found.p_rest, noise, 2, ones=1)
    rate = float(((size == 2) & (found.label == 0)).mean())
    assert rate <= allowed(10_000, 0.05)
    assert method == "anytime" or rate > 0.01  # it can fail: the bounds spend what they may


def test_a_family_with_shared_noise_holds_together():
    rate = coverage.family_false_rate(50, 200, 0.05, 200, np.random.default_rng(9))
    assert rate <= allowed(200, 0.05)


@pytest.mark.parametrize("law", ["2 classes, tie", "3 classes, two tied", "7 classes, clear"])
def test_anytime_bounds_survive_fifty_looks(law):
    rate = coverage.looking_false_rate(
        coverage.LAWS[law], 50, 20, 0.05, "anytime", 2000, np.random.default_rng(10)
    )
    assert rate <= allowed(2000, 0.05)


def test_bounds_of_one_look_do_not_survive_fifty():
    rate = coverage.looking_false_rate([0.5, 0.5], 50, 20, 0.05, "strict", 1000, np.random.default_rng(11))
    assert rate > 2 * allowed(1000, 0.05)


def test_the_best_of_several_noise_levels_holds():
    laws = [np.array(law) for law in ([0.5, 0.5], [0.52, 0.48], [0.48, 0.52])]
    noises = [Flip(beta) for beta in (0.6, 0.7, 0.8)]
    rate = coverage.levels_false_rate(laws, 300, 0.05, noises, 10_000, np.random.default_rng(12))
    assert rate <= allowed(10_000, 0.05)
