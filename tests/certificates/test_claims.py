"""How often whole claims are false, from drawn noise to certified sizes: `benchmarks/checks/coverage_claims.py`, in small."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.checks import coverage_claims
from unswayed.theory import bounds

TIMES, SAMPLES, ALPHA = 2_000, 200, 0.05
# what a rate of alpha exceeds once in a million runs
ALLOWED = float(stats.binom.isf(1e-6, TIMES, ALPHA)) / TIMES


def rate(case, method):
    return coverage_claims.false_rate(case, method, ALPHA, SAMPLES, TIMES, np.random.default_rng(5))


@pytest.mark.parametrize("case", list(coverage_claims.CASES))
def test_claims_are_false_no_more_often_than_alpha(case):
    """The attack leaves a tie, so every claim that covers it is false; the bounds spend what they may, so that it shows."""
    found = {method: rate(case, method) for method in ("strict", "tight", "anytime")}
    assert max(found.values()) <= ALLOWED
    assert found["strict"] > 0.005
    assert found["tight"] > 0.015


@pytest.mark.parametrize("case", list(coverage_claims.CASES))
def test_a_level_spent_six_times_would_be_noticed(case, monkeypatch):
    level = bounds.divisor
    monkeypatch.setattr(bounds, "divisor", lambda *about: level(*about) / 6)
    assert rate(case, "strict") > ALLOWED


def test_a_service_names_the_less_probable_label_no_more_often_than_alpha():
    wrong = coverage_claims.wrong_predictions(ALPHA, 101, TIMES // 200)
    assert 0.003 < wrong <= ALLOWED
