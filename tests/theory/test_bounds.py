"""Limits proved against ball arithmetic, and the rules that turn votes into them."""

import warnings
from fractions import Fraction

import flint
import numpy as np
import pytest
from scipy import special, stats

from unswayed.errors import InputError
from unswayed.theory import AddDelete, Flip, binomial, bound_votes, ceiling, certified_size, is_certified
from unswayed.theory.binomial import lower_limit, upper_limit
from unswayed.theory.bounds import divisor


def tail(p: float, x: int, d: int, upper: bool):
    ball = flint.arb(p)
    return (1 - ball).beta_lower(d - x, x + 1, 1) if upper else ball.beta_lower(x, d - x + 1, 1)


def counts_to_try(d: int) -> np.ndarray:
    spread = np.linspace(0, d, 7).astype(int)
    edges = np.r_[0:4, d - 3 : d + 1]
    return np.unique(np.clip(np.r_[spread, edges], 0, d))


def test_scipy_alone_would_not_do():
    """The library's quantile is unsafe for about half of all counts: rounding outward is needed, not only nice."""
    counts, d, level = np.arange(20_500, 49_500, 1500), 50_000, 0.001 / 9
    plain = special.betaincinv(counts, d - counts + 1, level)
    with flint.ctx.workprec(128):
        unsafe = [
            not tail(p, int(x), d, upper=False) <= flint.arb(level)
            for x, p in zip(counts, plain, strict=True)
        ]
    assert any(unsafe)
    assert np.isnan(special.betaincinv(0, d + 1, level))


def test_what_floats_cannot_prove_goes_to_balls(monkeypatch):
    expected = (
        lower_limit(np.array([70]), np.array([100]), 0.01),
        upper_limit(np.array([70]), np.array([100]), 0.01),
    )
    monkeypatch.setattr(binomial, "SLACK", np.inf)
    got = (
        lower_limit(np.array([70]), np.array([100]), 0.01),
        upper_limit(np.array([70]), np.array([100]), 0.01),
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    with flint.ctx.workprec(128):
        assert tail(got[0][0], 70, 100, upper=False) <= flint.arb(0.01)
        assert tail(got[1][0], 70, 100, upper=True) <= flint.arb(0.01)


def test_stated_error_of_the_tail_covers_the_truth():
    rng = np.random.default_rng(0)
    for d in (5, 17, 60, 2000, 10**6):
        a = rng.integers(1, d, 12).astype(float)
        p = a / d * rng.uniform(0.5, 0.999, 12)
        deviations = np.tile([1.0, 3, 6, 9], 3) * np.sqrt(a / d * (1 - a / d) / d)
        p = np.where(np.arange(12) < 8, np.maximum(a / d - deviations, p), p)  # where limits are sought
        value, error, _ = binomial.log_tail(a, d - a, p, 1 - p)
        with flint.ctx.workprec(256):
            for x, at, log_tail, slack in zip(a, p, value, error, strict=True):
                truth = tail(float(at), int(x), d, upper=False).log()
                assert abs(truth - flint.arb(float(log_tail))) <= flint.arb(float(slack))


@pytest.mark.parametrize("factor", [0.99, 0.999, 1.001])
@pytest.mark.parametrize("count", [1, 50, 97])
def test_a_start_far_from_the_limit_gives_the_same_one(monkeypatch, factor, count):
    args = np.array([count]), np.array([100]), 0.01
    expected, start = (lower_limit(*args)[0], upper_limit(*args)[0]), binomial._start
    monkeypatch.setattr(binomial, "_start", lambda *a: start(*a) * factor)
    monkeypatch.setattr(binomial, "_by_balls", None)
    assert lower_limit(*args)[0] == pytest.approx(expected[0], rel=1e-11)
    assert upper_limit(*args)[0] == pytest.approx(expected[1], rel=1e-11)


@pytest.mark.parametrize("count", [1, 2, 33, 99])
def test_balls_find_the_limit_that_floats_prove(count):
    level = np.log(0.01)
    args = np.array([count]), np.array([100]), 0.01
    assert binomial._by_balls(count, 100, level, upper=False) == pytest.approx(
        lower_limit(*args)[0], rel=1e-11
    )
    assert binomial._by_balls(count, 100, level, upper=True) == pytest.approx(
        upper_limit(*args)[0], rel=1e-11
    )


def test_every_term_of_the_tail_is_granted_its_roundings():
    a, p = np.array([1.0, 16, 900, 999, 500]), np.array([0.0002, 0.01, 0.85, 0.9, 0.4])
    b, mean = 1000 - a, 1000 * p
    _, error, _ = binomial.log_tail(a, b, p, 1 - p)
    _, terms = binomial._remainder(a, b, p / (1 - p))
    logs = np.abs(a * np.log(a / mean)) + np.abs(b * np.log(b / (1000 - mean)))
    assert (terms > 7).all()
    assert (error >= 2.0**-53 * (0.999 * 64 * (logs + 2 * np.abs(a - mean) + 32) + 8 * terms)).all()


def test_excess_over_stirling_is_exact_on_both_sides_of_its_series():
    z = np.r_[0.1, 0.2, 1.0, 2.0, 14.9:18.1:0.1, 100.0, 1e8]
    with flint.ctx.workprec(256):
        for at, got in zip(z, binomial.excess(z), strict=True):
            ball = flint.arb(float(at))
            stirling = (ball - 0.5) * ball.log() - ball + (2 * flint.arb.pi()).log() / 2
            assert abs(ball.lgamma() - stirling - flint.arb(float(got))) < 1e-14


@pytest.mark.parametrize("d", [10, 997, 1_000_000])
@pytest.mark.parametrize("alpha", [0.99, 0.05, 1e-12])
def test_two_tails_prove_a_limit(monkeypatch, d, alpha):
    """scipy's quantile and one step outward: more would cost time alone, so nothing else notices them."""
    asked, original = [], binomial.log_tail
    monkeypatch.setattr(binomial, "log_tail", lambda *a: asked.append(a) or original(*a))
    counts = np.unique([1, d // 3, d // 2, d * 9 // 10])
    for limit in (lower_limit, upper_limit):
        asked.clear()
        limit(counts, np.full(counts.shape, d), alpha)
        assert len(asked) <= 2


@pytest.mark.parametrize("alpha", [0.999, 0.6, 1e-40, 1e-250])
def test_limits_are_safe_at_levels_nobody_asks_for(alpha):
    """Above one half, where the limit lies beyond the share, and where scipy has no quantile."""
    for d in (2, 3, 97):
        counts = np.unique([1, d // 2, d - 1])
        low, high = (limit(counts, np.full(counts.shape, d), alpha) for limit in (lower_limit, upper_limit))
        with flint.ctx.workprec(1024):
            for x, below, above in zip(counts.tolist(), low, high, strict=True):
                assert tail(below, x, d, upper=False) <= flint.arb(alpha)
                assert above == 1 or tail(above, x, d, upper=True) <= flint.arb(alpha)


def test_strict_and_paper_spend_alpha_as_documented():
    votes, d, alpha = np.array([[900, 60, 40]]), 1000, 0.01
    for method, parts in (("strict", 5), ("paper", 3)):
        got = bound_votes(votes, d, alpha, method)
        assert got.label.tolist() == [0]
        assert got.p_top[0] == pytest.approx(stats.beta.ppf(alpha / parts, 900, 101), rel=1e-9)
        assert got.p_rest[0] == pytest.approx(stats.beta.isf(alpha / parts, 61, 940), rel=1e-9)


def test_two_classes_leave_the_rest():
    got = bound_votes([[800, 200], [800, 150]], 1000, 0.01)
    np.testing.assert_allclose(got.p_top, stats.beta.ppf(0.005, 800, 201), rtol=1e-9)
    assert (got.p_rest == 1 - got.p_top).all()


def test_two_classes_leave_the_rest_rounded_up_where_less_than_half_is_proved():
    got = bound_votes([[52, 48], [505, 495]], [100, 1000], 0.01)
    assert (got.p_top < 0.5).all()
    assert (got.p_rest == np.nextafter(1 - got.p_top, 1)).all()


def test_no_answer_is_an_outcome_that_is_never_the_label():
    got = bound_votes([[300, 50, 50]], 1000, 0.01)
    assert got.label.tolist() == [0]
    assert got.p_rest[0] > 0.6 > got.p_top[0]
    np.testing.assert_allclose(got.p_rest, upper_limit(np.array([600]), np.array([1000]), 0.01, 5))


def test_the_rest_never_exceeds_what_the_top_leaves():
    got = bound_votes([[990, 10, 0], [40, 30, 30]], [1000, 100], 0.001)
    assert (got.p_rest <= np.nextafter(1 - got.p_top, 2)).all()
    assert all(
        Fraction(r) >= 1 - Fraction(t) for t, r in zip(got.p_top, got.p_rest, strict=True) if r == 1 - t
    )


def test_ties_go_to_the_lowest_label():
    assert bound_votes([[5, 5, 0], [0, 5, 5]], 10, 0.05).label.tolist() == [0, 1]


def test_a_family_divides_alpha():
    votes, one = [[95, 3, 2]], 1e-12
    together = bound_votes(votes, 100, one, family_size=20_000)
    apart = bound_votes(votes, 100, one / 20_000)
    np.testing.assert_allclose(together.p_top, apart.p_top, rtol=1e-11)
    assert together.p_top < bound_votes(votes, 100, one).p_top


def test_targets_may_have_their_own_numbers_of_samples():
    both = bound_votes([[90, 5, 5], [900, 50, 50]], [100, 1000], 0.01)
    alone = bound_votes([[900, 50, 50]], 1000, 0.01)
    assert both.p_top[1] == alone.p_top[0]


def test_ceiling_uses_the_level_of_the_bounds():
    noise = Flip(0.7)
    assert ceiling(noise, 50_000, 0.001, classes=7, method="paper") >= ceiling(
        noise, 50_000, 0.001, classes=7
    )
    assert ceiling(noise, 50_000, 0.001, classes=7, cap=5) == 5
    assert ceiling(Flip(0.5), 100, 0.001, classes=2, cap=123) == 123
    asymmetric = AddDelete(0.01, 0.4)
    best = bound_votes([[2000, 0, 0]], 2000, 0.01)
    expected = certified_size(best.p_top, best.p_rest, asymmetric, cap=1000)
    assert ceiling(asymmetric, 2000, 0.01, classes=3) == expected[0]


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_ceiling_is_the_size_of_unanimous_votes(classes):
    for samples in range(100, 4000, 97):
        best = bound_votes([[0] * (classes - 1) + [samples]], samples, 0.001)
        expected = certified_size(best.p_top, best.p_rest, Flip(0.6), cap=10**6)
        assert ceiling(Flip(0.6), samples, 0.001, classes) == expected[0]
    assert ceiling(Flip(0.5), 100, 0.001, classes) == 10**6


def test_ceiling_of_one_kind_of_change_and_of_targets_that_lack_one():
    noise = AddDelete(0.01, 0.4)
    adds, deletes = (ceiling(noise, 2000, 0.01, classes=3, cap=50, ones=ones) for ones in (0, 50))
    best = bound_votes([[2000, 0, 0]], 2000, 0.01)
    steps = range(51)
    assert adds == sum(is_certified(best.p_top, best.p_rest, noise, adds=k)[0] for k in steps) - 1
    assert deletes == sum(is_certified(best.p_top, best.p_rest, noise, deletes=k)[0] for k in steps) - 1
    assert ceiling(noise, 2000, 0.01, classes=3, cap=[50, 50], ones=[25, 50]) == deletes > adds


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[-1, 5]], 10, 0.01), "negative"),
        (([[6, 5]], 10, 0.01), "more votes than samples"),
        (([[1.5, 2]], 10, 0.01), "whole numbers"),
        (([[np.nan, 2]], 10, 0.01), "whole numbers"),
        (([5, 5], 10, 0.01), "shape"),
        (([[5]], 10, 0.01), "two classes"),
        (([[5, 5]], 0, 0.01), "at least one sample"),
        (([[5, 5]], [10, 10], 0.01), "one a target"),
        (([[5, 5]], 10, 0.0), "alpha"),
        (([[5, 5]], 10, 1.0), "alpha"),
        (([[5, 5]], 10, np.nan), "alpha"),
        (([[5, 5]], 10, 0.01, "generous"), "Unknown bounds"),
        (([[5, 5]], 10, 0.01, "strict", 0), "family_size"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words):
    with pytest.raises(InputError, match=words):
        bound_votes(*arguments)


def test_many_targets_raise_no_warnings():
    rng = np.random.default_rng(3)
    votes = np.stack([rng.multinomial(5000, p) for p in rng.dirichlet(np.full(7, 0.2), size=500)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = bound_votes(votes, 5000, 1e-9)
    assert np.isfinite(got.p_top).all()
    assert np.isfinite(got.p_rest).all()


@pytest.mark.parametrize("d", [1, 2, 10, 997, 50_000, 1_000_000, 100_000_000])
@pytest.mark.parametrize("alpha", [0.05, 0.001 / 9, 1e-12, 1e-12 / 20_000, 1e-30])
def test_limits_are_safe_and_within_a_part_in_1e11(d, alpha):
    counts = counts_to_try(d)
    samples = np.full(counts.shape, d)
    low, high = lower_limit(counts, samples, alpha), upper_limit(counts, samples, alpha)
    with flint.ctx.workprec(192):
        level = flint.arb(alpha)
        for x, below, above in zip(counts.tolist(), low, high, strict=True):
            assert 0 <= below <= x / d <= above <= 1
            if x == 0:
                assert below == 0
            else:
                assert tail(below, x, d, upper=False) <= level
                assert below * (1 + 1e-11) >= 1 or tail(below * (1 + 1e-11), x, d, upper=False) > level
            if x == d:
                assert above == 1
            else:
                assert above == 1 or tail(above, x, d, upper=True) <= level
                assert tail(above * (1 - 1e-11), x, d, upper=True) > level


def test_no_answer_is_no_rival_where_labels_alone_are():
    counts, d = [[700, 20, 10]], 1000
    every, labels = (bound_votes(counts, d, 0.001, rivals=rivals) for rivals in ("all", "labels"))
    assert every.p_top == labels.p_top
    assert every.p_rest[0] > 0.27 > 0.06 > labels.p_rest[0] > 0.02
    assert labels.p_rest[0] == upper_limit(np.array([20]), np.array([d]), 0.001, 5)[0]


@pytest.mark.parametrize(
    ("method", "parts"), [("strict", 4), ("paper", 2), ("tight", 20 / 9), ("anytime", 2)]
)
def test_two_labels_get_limits_of_their_own_where_no_answer_is_no_rival(method, parts):
    assert divisor(2, method, "labels") == parts
    got = bound_votes([[700, 20]], 1000, 0.001, method, rivals="labels")
    assert 0.02 < got.p_rest[0] < 0.06 < 1 - got.p_top[0]
    assert divisor(3, "strict", "labels") == divisor(3, "strict") == 5
    assert divisor(3, "anytime", "labels") == 3


def test_the_published_gain():
    """80% answered, 99% of them alike, at keep probability 0.7: three entries instead of one."""
    assert certified_size(0.792, [0.2, 0.008], Flip(0.7), 100).tolist() == [1, 3]


def test_unknown_rivals_are_refused():
    with pytest.raises(InputError, match="all, labels"):
        bound_votes([[5, 1]], 6, 0.01, rivals="none")


def test_the_ceiling_knows_the_rivals():
    assert ceiling(Flip(0.7), 10_000, 0.001, 2, rivals="labels") <= ceiling(Flip(0.7), 10_000, 0.001, 2)
