"""The certified size: exact for the floats given, at every edge."""

from fractions import Fraction

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory import AddDelete, Flip, certified_size, entrywise, exact, grid, is_certified, worst_case
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.law import search
from unswayed.theory.regions import rounding

BETA = Flip(0.7)


def slow(p_top, p_rest, noise, cap, ones=None) -> int:
    """K by trying every feasible split of every k in fractions."""
    if p_top <= p_rest:
        return -1
    for k in range(1, cap + 1):
        for adds in range(k + 1):
            if ones is not None and (k - adds > ones or adds > cap - ones):
                continue
            a, b = exact_worst_case(Fraction(p_top), Fraction(p_rest), noise, adds, k - adds)
            if a <= b:
                return k - 1
    return cap


@pytest.mark.parametrize("noise", [Flip(0.7), Flip(0.2), Flip(0.6), AddDelete(0.1, 0.4), AddDelete(0.8, 0.6)])
def test_size_equals_the_exact_one_for_random_pairs(noise):
    rng, cap = np.random.default_rng(1), 12
    p_top = rng.uniform(0, 1, 60) ** rng.choice([1, 0.2, 0.02], 60)
    p_rest = rng.uniform(0, 1, 60) ** 3 * np.minimum(1 - p_top, p_top)
    got = certified_size(p_top, p_rest, noise, cap)
    assert got.tolist() == [slow(a, b, noise, cap) for a, b in zip(p_top, p_rest, strict=True)]
    assert len(set(got.tolist())) > 3


def test_the_first_failing_size_is_not_certified():
    sizes = certified_size(0.95, 0.05, BETA, cap=2707)
    assert is_certified(0.95, 0.05, BETA, deletes=int(sizes))
    assert not is_certified(0.95, 0.05, BETA, deletes=int(sizes) + 1)


def test_a_tie_is_not_certified_and_the_next_float_is():
    """At β = 5/8 and k = 2 the middle regions have ratio 1: p_top − p_rest = ½ is an exact tie."""
    noise = Flip(0.625)
    a, b = exact_worst_case(Fraction(3, 4), Fraction(1, 4), noise, deletes=2)
    assert a == b
    assert certified_size([0.75, np.nextafter(0.75, 1)], 0.25, noise, cap=9).tolist() == [1, 2]
    assert certified_size(0.75, [0.25, np.nextafter(0.25, 0)], noise, cap=9).tolist() == [1, 2]


def test_ties_are_settled_by_integers_when_balls_cannot(monkeypatch):
    asked = []
    original = exact.weights
    monkeypatch.setattr(exact, "weights", lambda *a: asked.append(a[-1]) or original(*a))
    monkeypatch.setattr(exact, "PRECISIONS", (3, 4))  # a tie of few bits, so that no ball can hold it exactly
    assert not exact.decide(0.75, 0.25, Flip(0.625), 0, 2)
    assert asked == [3, 4, None]


@pytest.mark.parametrize("beta", [0.7, 0.5001, 0.5, 0.3])
def test_certainty_reaches_the_cap(beta):
    sizes = certified_size([1.0, 1.0, 0.3, 1e-300], [0.0, 0.5, 0.0, 0.0], Flip(beta), cap=5000)
    assert sizes.tolist() == [5000] * 4


def test_noise_that_hides_everything_certifies_every_size():
    for noise in (Flip(0.5), AddDelete(0.25, 0.75)):
        assert certified_size([0.4, 0.3, 0.5], [0.3, 0.3, 0.5], noise, cap=77).tolist() == [77, -1, -1]
        assert is_certified(0.4, 0.3, noise, adds=3, deletes=4)


def test_certainties_need_no_arithmetic(monkeypatch):
    monkeypatch.setattr(entrywise, "certify_pairs", None)
    assert certified_size([1.0, 0.3, 1.0], [0.5, 0.0, 0.0], BETA, cap=10**6).tolist() == [10**6] * 3
    assert certified_size([0.4, 0.3], 0.3, AddDelete(0.25, 0.75), cap=10**6).tolist() == [10**6, -1]


def test_equal_probabilities_abstain():
    assert certified_size([0.5, 0.3, 0.0], [0.5, 0.3, 0.0], BETA, cap=10).tolist() == [-1, -1, -1]
    assert certified_size(np.nextafter(0.5, 1), 0.5, BETA, cap=10) == 0


def test_rest_is_clipped_to_what_the_top_leaves():
    assert (
        certified_size(0.9, [0.1, 0.4, 0.89], BETA, 99).tolist() == [certified_size(0.9, 0.1, BETA, 99)] * 3
    )
    assert worst_case(0.9, 0.5, BETA, deletes=1) == worst_case(0.9, 0.1, BETA, deletes=1)
    assert is_certified(0.9, [0.1, 0.4, 0.89], BETA, deletes=1).all()
    assert not is_certified(0.2, 0.7, BETA, deletes=1)
    assert exact.decide(0.9, 0.5, BETA, 0, 1)


def test_keeping_and_flipping_with_the_same_probability_are_equivalent():
    rng = np.random.default_rng(2)
    p_top, p_rest = rng.uniform(0.4, 1, 500), rng.uniform(0, 0.4, 500)
    for beta in (0.75, 0.6, 0.9375):
        np.testing.assert_array_equal(
            certified_size(p_top, p_rest, Flip(beta), 300), certified_size(p_top, p_rest, Flip(1 - beta), 300)
        )


def test_large_sizes_are_exact():
    """At β close to ½ thousands of entries are certified; both sides of the step are settled exactly."""
    noise = Flip(0.52)
    k = int(certified_size(0.999, 0.0005, noise, cap=5000))
    assert 1000 < k < 5000
    tops = Fraction(0.999), Fraction(0.0005)
    a, b = exact_worst_case(*tops, noise, deletes=k)
    assert a > b
    a, b = exact_worst_case(*tops, noise, deletes=k + 1)
    assert a <= b


@pytest.mark.parametrize(
    ("p_top", "p_rest"), [(1e-300, 5e-301), (0.5, 1e-300), (1 - 2**-53, 5e-324), (2**-40, 2**-41)]
)
def test_tiny_and_dyadic_probabilities(p_top, p_rest):
    k = int(certified_size(p_top, p_rest, BETA, cap=2000))
    a, b = exact_worst_case(Fraction(p_top), Fraction(p_rest), BETA, deletes=k)
    assert a > b
    a, b = exact_worst_case(Fraction(p_top), Fraction(p_rest), BETA, deletes=k + 1)
    assert a <= b


@pytest.mark.parametrize("p_top", [1e-6, 0.01, 0.2])
@pytest.mark.parametrize("p_rest", [1e-300, 1e-310])
def test_tables_that_lost_terms_to_underflow_are_not_believed(p_top, p_rest):
    """What is all but impossible before the attack may be likely after it; float64 alone would certify this."""
    noise, k = Flip(0.9), 300
    a, b = exact_worst_case(Fraction(p_top), Fraction(p_rest), noise, deletes=k)
    assert a <= b
    assert not is_certified(p_top, p_rest, noise, deletes=k)


def test_floats_are_trusted_only_within_their_error(monkeypatch):
    """Everything near a threshold goes to exact arithmetic, and nothing far from it does."""
    asked = []
    monkeypatch.setattr(entrywise, "decide", lambda *a: asked.append(a[:2]) or True)
    certified_size(np.linspace(0.51, 0.99, 500), 0.005, BETA, cap=20)
    assert not asked
    threshold = 11 / 14  # k = 1 at β = 7/10
    certified_size(threshold, 1 - threshold, Fraction(7, 10), cap=1)
    assert asked == [(threshold, 1 - threshold)]


@pytest.mark.parametrize("company", [[], [0.4]])
def test_every_gap_below_the_stated_error_is_settled_exactly(monkeypatch, company):
    """Beside a label that has less than half, too: then both ways of adding up are in use."""
    noise, k = Flip(0.7), 5
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        kept, lost = worst_case(middle, (1 - middle) / 2, noise, deletes=k)
        low, high = (low, middle) if kept > lost else (middle, high)
    p_top = np.array([low + step * 1e-15 for step in range(-150, 150)])
    asked = set()
    monkeypatch.setattr(entrywise, "decide", lambda top, *rest: asked.add(top) or True)
    entrywise.certify_pairs(np.r_[p_top, company], np.r_[(1 - p_top) / 2, [0.1] * len(company)], noise, 0, k)
    bound = 3 * 8 * Fraction(rounding(k + 1))
    close = 0
    for p in p_top.tolist():
        a, b = exact_worst_case(Fraction(p), Fraction((1 - p) / 2), noise, deletes=k)
        close += abs(a - b) <= bound
        assert abs(a - b) > bound or p in asked
    assert 50 < close < 250


def test_the_search_never_asks_far_beyond_the_answer():
    """Exact arithmetic on k entries costs far more than k."""
    for answer in (0, 1, 5, 37, 1000):
        asked = []
        found = search(
            1, 10**6, lambda index, k, asked=asked, answer=answer: asked.append(k) or np.full(1, k <= answer)
        )
        assert found.tolist() == [answer]
        assert max(asked) <= 2 * answer + 1
        assert len(asked) <= 2 * max(answer, 1).bit_length() + 1


def test_only_what_was_asked_about_is_answered():
    got = is_certified([0.9, 0.6, 1.0, 0.9], [0.05, 0.7, 0.0, 0.05], BETA, deletes=[1, 1, 1, 40])
    assert got.tolist() == [True, False, True, False]
    assert is_certified([0.5, 0.6], [0.5, 0.3], BETA).tolist() == [False, True]


def test_no_attack_leaves_the_bounds_as_they_are():
    for p_top, p_rest in [(0.9, 0.1), (0.3, 0.2)]:
        assert [float(p) for p in worst_case(p_top, p_rest, BETA)] == pytest.approx(
            [p_top, p_rest], rel=1e-15
        )


def test_interior_splits_count():
    """For this noise a mixture of one addition and many deletions is worse than either alone."""
    noise = AddDelete(0.2, 0.45)
    worst = 0
    for p_top in np.linspace(0.6, 0.999, 80):
        k = int(certified_size(p_top, 1 - p_top, noise, cap=40))
        pure = [
            is_certified(p_top, 1 - p_top, noise, adds=k + 1),
            is_certified(p_top, 1 - p_top, noise, deletes=k + 1),
        ]
        worst += all(pure)
        assert k == slow(p_top, 1 - p_top, noise, 40)
    assert worst > 0


def test_only_attacks_that_exist_count():
    noise, cap = AddDelete(0.05, 0.4), 10
    pairs = np.linspace(0.6, 0.9999, 12)
    for ones in (0, 1, 3, 10):
        got = certified_size(pairs, 1 - pairs, noise, cap, ones=ones)
        assert got.tolist() == [slow(p, 1 - p, noise, cap, ones) for p in pairs]
    assert certified_size(0.9, 0.1, BETA, 10, ones=3) == certified_size(0.9, 0.1, BETA, 10)


@pytest.mark.parametrize("noise", [Flip(0.7), AddDelete(0.05, 0.4), AddDelete(0.7, 0.8), AddDelete(0.5, 0.5)])
def test_grid_agrees_with_single_attacks(noise):
    p_top, p_rest = np.array([[0.6, 0.9, 0.99, 0.5]]), np.array([[0.1, 0.1, 0.001, 0.5]])
    cells = grid(p_top, p_rest, noise, adds=3, deletes=5)
    assert cells.shape == (1, 4, 4, 6)
    for a in range(4):
        for d in range(6):
            assert (cells[..., a, d] == is_certified(p_top, p_rest, noise, adds=a, deletes=d)).all()


def test_worst_case_agrees_with_exact_fractions():
    for noise in (Flip(0.7), Flip(0.2), AddDelete(0.1, 0.4), AddDelete(0.9, 0.4)):
        for p_top, p_rest in [(0.3, 0.2), (0.8, 0.1), (0.2, 0.7), (1.0, 0.0), (0.5, 0.5)]:
            a, b = worst_case(p_top, p_rest, noise, adds=2, deletes=3)
            exact_a, exact_b = exact_worst_case(Fraction(p_top), Fraction(p_rest), noise, adds=2, deletes=3)
            assert (float(a), float(b)) == pytest.approx(
                (float(exact_a), float(exact_b)), rel=1e-12, abs=1e-15
            )


def test_arguments_broadcast():
    assert certified_size(np.full((3, 1), 0.9), np.full(4, 0.05), BETA, 50).shape == (3, 4)
    assert certified_size(0.9, 0.05, BETA, 50).shape == ()
    assert certified_size([], [], BETA, 50).shape == (0,)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, "much", [0.5, None]])
def test_what_is_not_a_probability_is_refused(bad):
    for arguments in [(bad, 0.1), (0.1, bad)]:
        with pytest.raises(InputError, match=r"p_top|p_rest"):
            certified_size(*arguments, BETA, 10)


@pytest.mark.parametrize("bad", [-1, 1.5, True, None])
def test_caps_and_attacks_are_counts(bad):
    with pytest.raises(InputError, match="whole number"):
        certified_size(0.9, 0.1, BETA, bad)
    with pytest.raises(InputError, match="whole number"):
        is_certified(0.9, 0.1, BETA, adds=bad)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="shapes"):
        certified_size(np.zeros(3), np.zeros(4), BETA, 10)
    with pytest.raises(InputError, match="shape"):
        certified_size(np.zeros(3), np.zeros(3), BETA, 10, ones=[1, 2])
    for ones in (-1, 11, 0.5):
        with pytest.raises(InputError, match="whole numbers"):
            certified_size(0.9, 0.1, BETA, 10, ones=ones)


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.1, 0.89), (0.89, 0.1)])
def test_no_table_is_made_for_wide_attacks_that_floats_decide(p_add, p_delete, monkeypatch):
    """Whichever kind of change fails first."""
    asked, certify = [], entrywise.certify_pairs

    def noted(top, rest, flips, adds, deletes, times=1):
        asked.append(adds + deletes)
        return certify(top, rest, flips, adds, deletes, times)

    monkeypatch.setattr(entrywise, "certify_pairs", noted)
    assert certified_size(0.99, 0.01, AddDelete(p_add, p_delete), 100_000) == 5011
    assert max(asked, default=0) <= entrywise.WIDE
