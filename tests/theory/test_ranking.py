"""The test that the most voted outcome is the most probable one, and the `tight` bounds built on it."""

from fractions import Fraction
from itertools import product
from math import comb, factorial

import numpy as np
import pytest

from unswayed.theory import bound_votes
from unswayed.theory.binomial import lower_limit, upper_limit
from unswayed.theory.ranking import leads


def exact_p_value(x: int, r: int) -> Fraction:
    """Pr(Bin(n, ½) ≥ x) / Pr(Bin(n, ½) > n/2) for n = x + r."""
    n = x + r
    tail = sum(comb(n, i) for i in range(x, n + 1))
    return Fraction(tail, sum(comb(n, i) for i in range(n // 2 + 1, n + 1)))


@pytest.mark.parametrize("alpha", [0.05, 0.001, 1e-9])
def test_the_test_is_never_more_generous_than_the_exact_one(alpha):
    x, r = (grid.ravel() for grid in np.meshgrid(np.arange(0, 70), np.arange(0, 40)))
    got = leads(x, r, alpha)
    differs = 0
    for top, second, sure in zip(x.tolist(), r.tolist(), got, strict=True):
        exact = top > second and exact_p_value(top, second) <= Fraction(alpha)
        assert exact or not sure
        differs += exact != sure
    assert got.any()
    assert differs <= 2


def counts_of(d: int, outcomes: int):
    return (c for c in product(range(d + 1), repeat=outcomes) if sum(c) == d)


@pytest.mark.parametrize("law", [(1 / 3, 1 / 3, 1 / 3), (0.4, 0.4, 0.2), (0.5, 0.5, 0.0), (0.36, 0.34, 0.3)])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.02])
def test_a_wrong_winner_is_declared_no_more_often_than_stated(law, alpha):
    """Exactly, by enumerating every table of votes. Whatever the rule for ties: ties are never declared."""
    d, false, declared = 17, 0.0, 0.0
    best = int(np.argmax(law))
    for counts in counts_of(d, 3):
        order = np.sort(counts)
        if not leads(order[-1:], order[-2:-1], alpha)[0]:
            continue
        p = factorial(d) * np.prod([q**c / factorial(c) for q, c in zip(law, counts, strict=True)])
        declared += p
        false += p * (int(np.argmax(counts)) != best)
    assert declared > 0
    assert false <= alpha


def test_tight_abstains_where_the_winner_is_not_proved():
    got = bound_votes([[52, 48, 0], [90, 10, 0], [30, 10, 0], [30, 30, 0]], 100, 0.05, "tight")
    assert (got.p_top <= got.p_rest).tolist() == [True, False, True, True]
    assert (got.p_top[0], got.p_rest[0]) == (0, 1)


def test_tight_spends_alpha_as_documented():
    """A tenth on the test, the rest in halves on the two limits; with two classes, all the rest on the one limit."""
    alpha, top, second = 0.05, 66, 34
    assert alpha / 10 < exact_p_value(62, 38) <= alpha
    assert exact_p_value(top, second) <= alpha / 10
    got = bound_votes([[62, 38, 0], [top, second, 0]], 100, alpha, "tight")
    assert got.p_top[0] == 0
    each = 9 * alpha / 20
    assert got.p_top[1] == pytest.approx(lower_limit(np.array([top]), np.array([100]), each)[0], rel=1e-12)
    assert got.p_rest[1] == pytest.approx(
        upper_limit(np.array([second]), np.array([100]), each)[0], rel=1e-12
    )
    pair = bound_votes([[top, second]], 100, alpha, "tight")
    assert pair.p_top[0] == pytest.approx(
        lower_limit(np.array([top]), np.array([100]), 0.9 * alpha)[0], rel=1e-12
    )
    assert pair.p_rest[0] == 1 - pair.p_top[0]


@pytest.mark.parametrize("family_size", [1, 7, 1000])
def test_tight_tests_each_of_a_family_at_its_share_of_a_tenth(family_size):
    top, level = np.arange(55, 95), Fraction(0.05) / 10 / family_size
    votes = np.column_stack([top, 100 - top, np.zeros_like(top)])
    got = bound_votes(votes, 100, 0.05, "tight", family_size)
    sure = [exact_p_value(x, 100 - x) <= level for x in top.tolist()]
    assert 0 < sum(sure) < len(sure)
    assert abs((got.p_top > 0).sum() - sum(sure)) <= 1  # Pr(a tie) is bounded, not computed
    assert not (got.p_top > 0)[~np.array(sure)].any()


def test_levels_that_are_missed_by_one_rounding_prove_nothing():
    """x votes to none have p-value 2^(1−x) for odd x; the next smaller level is not reached."""
    for x in range(3, 990, 2):
        assert not leads(np.array([x]), np.array([0]), float(np.nextafter(2.0 ** (1 - x), 0)))[0]
        assert leads(np.array([x]), np.array([0]), 2.0 ** (1 - x) * (1 + 1e-9))[0]


def test_tight_is_tighter_than_strict_and_than_the_published_bounds():
    votes = [[9990, 5, 5, 0, 0, 0, 0], [9000, 500, 300, 100, 100, 0, 0], [10_000, 0, 0, 0, 0, 0, 0]]
    tight, strict, paper = (
        bound_votes(votes, 10_000, 0.001, method) for method in ("tight", "strict", "paper")
    )
    for other in (strict, paper):
        assert (tight.p_top > other.p_top).all()
        assert (tight.p_rest < other.p_rest).all()


def test_the_number_of_classes_costs_tight_nothing():
    few = bound_votes([[900, 60, 40]], 1000, 0.01, "tight")
    many = bound_votes([[900, 60, 40] + [0] * 97], 1000, 0.01, "tight")
    assert (few.p_top, few.p_rest) == (many.p_top, many.p_rest)
