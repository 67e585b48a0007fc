"""How often certificates are false in simulation: `benchmarks/coverage.py`, in small."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from unswayed.theory import bounds

PATH = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
SPEC = importlib.util.spec_from_file_location("benchmark_coverage", PATH)
coverage = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(coverage)


def allowed(repetitions: int, alpha: float) -> float:
    """What a rate of exactly alpha would exceed once in a million runs."""
    return float(stats.binom.isf(1e-6, repetitions, alpha)) / repetitions


@pytest.mark.parametrize("method", ["strict"])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("law", list(coverage.LAWS))
def test_false_certificates_are_as_rare_as_promised(law, alpha, method):
    rng = np.random.default_rng(7)
    rate = coverage.false_rate(coverage.LAWS[law], 300, alpha, method, 10_000, rng)
    assert rate <= allowed(10_000, alpha)


def test_the_simulation_has_power(monkeypatch):
    """Two classes in a tie spend nearly all of alpha; spending it twice is noticed."""
    rng = np.random.default_rng(8)
    assert coverage.false_rate([0.5, 0.5], 300, 0.05, "strict", 10_000, rng) > 0.03
    monkeypatch.setattr(bounds, "divisor", lambda classes, method: 1)
    assert coverage.false_rate([0.5, 0.5], 300, 0.05, "strict", 10_000, rng) > allowed(10_000, 0.05)


def test_a_family_with_shared_noise_holds_together():
    rate = coverage.family_false_rate(50, 200, 0.05, 400, np.random.default_rng(9))
    assert rate <= allowed(400, 0.05)
