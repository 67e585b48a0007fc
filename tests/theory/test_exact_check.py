"""A small version of `benchmarks/checks/exact_check.py`, which shares no code with the package's regions and limits."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.checks import exact_check as check
from benchmarks.checks import exact_hiding as hiding
from unswayed.theory import AddDelete, Flip, certified_size


def test_no_size_is_above_the_exact_one():
    rng, tally = np.random.default_rng(12), Counter()
    while tally["cases"] < 1000:
        tally.update(check.check_group(rng, 50))
    assert tally["above"] == tally["unsafe"] == tally["below"] == tally["loose"] == 0
    assert tally["abstained"] < 0.8 * tally["cases"]
    assert min(tally["Flip"], tally["AddDelete"], tally["strict"], tally["paper"]) > 100


@pytest.mark.parametrize("noise", [Flip(0.65), AddDelete(0.15, 0.35)])
def test_every_size_in_turn_gives_the_same_answer(noise):
    """The search jumps; this one does not, so it also checks that certification is monotone."""
    rng = np.random.default_rng(5)
    for _ in range(25):
        p_top = rng.uniform(0.5, 1) ** rng.choice([1, 0.05])
        p_rest = rng.uniform(0, 1 - p_top)
        expected = check.slow_size(Fraction(p_top), Fraction(p_rest), noise, 7)
        assert certified_size(p_top, p_rest, noise, 7) == expected


def test_the_check_would_notice_an_unsafe_limit_and_a_size_too_large():
    assert check.limit_fault(0.87, 900, 1000, Fraction(1, 1000), upper=False) == "unsafe"
    assert check.limit_fault(0.80, 900, 1000, Fraction(1, 1000), upper=False) == "loose"
    row = np.array([950, 50])
    level = Fraction(0.01) / 2
    verdict = check.judge(row, 0, 0.9275, 0.0725, 9, 1000, level, "strict", Flip(0.7), 20)
    assert verdict["above"] == 1


def test_no_size_under_noise_that_only_hides_is_above_or_below_the_exact_one():
    rng, tally = np.random.default_rng(5), Counter()
    for _ in range(60):
        tally.update(hiding.check_group(rng, 10))
    assert tally["above"] == tally["below"] == 0
    assert tally["settled"] > 80
    assert min(tally[law] for law in ("Keep", "AddDelete", "Hide", "Mask")) >= 20
