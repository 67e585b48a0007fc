"""Numbers published for this certificate, and the ceiling that unanimous votes cannot pass."""

from fractions import Fraction

import numpy as np
import pytest

from unswayed.theory import Flip, ceiling, certified_size
from unswayed.theory.regions import Flips, exact_masses

PUBLISHED = {
    Fraction(7, 10): [
        0.785714285714, 0.9, 0.905714285714, 0.944163265306, 0.971441399417,
        0.974403265306, 0.982781399417, 0.990454428322, 0.992783279417, 0.994455180322,
    ],
    Fraction(8, 10): [0.875, 0.96875, 0.9921875, 0.99275, 0.9969875],
}  # fmt: skip
CASES = [(beta, k, value) for beta, values in PUBLISHED.items() for k, value in enumerate(values, start=1)]
CEILINGS = {
    10_000: (63, 14, 6, 2),
    50_000: (81, 19, 7, 3),
    100_000: (90, 21, 9, 4),
    1_000_000: (116, 27, 11, 5),
}


def threshold(law: Flips, k: int) -> Fraction:
    """The p_top at which k stops being certified when p_rest = 1 − p_top: where Pr(Y∈A) is one half."""
    p = mass = Fraction(0)
    for x, y in zip(*exact_masses(law, deletes=k), strict=True):
        if mass + y >= Fraction(1, 2):
            return p + (Fraction(1, 2) - mass) * x / y
        p, mass = p + x, mass + y
    raise AssertionError("the masses do not reach one half")


@pytest.mark.parametrize(("beta", "k", "value"), CASES)
def test_published_thresholds(beta, k, value):
    assert abs(threshold(beta, k) - Fraction(value)) < Fraction(1, 10**11)
    assert abs(threshold(Flip(float(beta)), k) - Fraction(value)) < Fraction(1, 10**8)


@pytest.mark.parametrize(("beta", "k", "value"), CASES)
def test_the_size_steps_at_the_threshold_and_at_no_other_float(beta, k, value):
    exact = threshold(beta, k)
    below = np.nextafter(float(exact), 0) if Fraction(float(exact)) > exact else float(exact)
    above = np.nextafter(below, 1)
    sizes = certified_size([below, above], [1 - below, 1 - above], beta, cap=100)
    assert sizes[0] < k <= sizes[1]


@pytest.mark.parametrize("samples", CEILINGS)
def test_ceiling_of_unanimous_votes(samples):
    betas = (0.6, 0.7, 0.8, 0.9)
    assert tuple(ceiling(Flip(b), samples, alpha=0.002, classes=2) for b in betas) == CEILINGS[samples]
    assert tuple(ceiling(Flip(b), samples, alpha=0.009, classes=7) for b in betas) == CEILINGS[samples]
    assert tuple(ceiling(Flip(b), samples, 0.007, 7, method="paper") for b in betas) == CEILINGS[samples]


def test_more_than_two_classes_matter():
    """Knowing that the runner-up is rare, and not only that the rest is, moves K from 1 to 4."""
    assert certified_size(0.89, [0.02, 0.11], Flip(0.7), cap=2707).tolist() == [4, 1]
