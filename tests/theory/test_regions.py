"""The masses of the regions: float against exact, and against the published form with 2n + 1 regions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory import AddDelete, Flip
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.regions import compose, exact_masses, masses, rounding, table, weights

LAWS = [
    Flip(0.7),
    Flip(0.3),
    AddDelete(0.01, 0.4),
    AddDelete(0.3, 0.9),
    AddDelete(0.25, 0.5),
    Fraction(7, 10),
]


def published_masses(n: int, k: int, beta: Fraction) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Pr(X∈R(m)) and Pr(Y∈R(m)), m = −n..n, summed over all vectors at distance w from the clean one and v = w + m
    from the attacked one: t(m, w) of them, i = (k − m)/2 of the k attacked and w − i of the other entries differing."""
    x, y = {}, {}
    for m in range(-n, n + 1):
        x[m] = y[m] = Fraction(0)
        i, odd = divmod(k - m, 2)
        for w in range(max(0, -m), min(n, n - m) + 1):
            if odd or not 0 <= i <= k or not 0 <= w - i <= n - k:
                continue
            t = comb(k, i) * comb(n - k, w - i)
            x[m] += t * beta ** (n - w) * (1 - beta) ** w
            y[m] += t * beta ** (n - w - m) * (1 - beta) ** (w + m)
    return x, y


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 3), (12, 12), (30, 7), (60, 1), (60, 17), (60, 60)])
@pytest.mark.parametrize("beta", [Fraction(7, 10), Fraction(3, 5), Fraction(2, 5)])
def test_the_published_form_has_the_same_masses(n, k, beta):
    x, y = published_masses(n, k, beta)
    ratio = sorted((m for m in x if x[m]), reverse=beta > Fraction(1, 2))
    assert ([x[m] for m in ratio], [y[m] for m in ratio]) == exact_masses(beta, deletes=k)
    assert sum(x.values()) == sum(y.values()) == 1


def test_the_published_form_gives_the_same_size():
    """Fill the 2n + 1 regions as the paper does, for n = 20, and compare K."""
    from unswayed.theory import certified_size

    n, noise, rng = 20, Flip(0.7), np.random.default_rng(0)
    tables = [published_masses(n, k, Fraction(noise.beta)) for k in range(1, n + 1)]

    def fill(regions, p):
        total = Fraction(0)
        for x, y in regions:
            if x and p <= x:
                return total + y * p / x
            p, total = p - x, total + y
        return total

    for _ in range(60):
        p_top = rng.uniform(0.5, 1) ** rng.choice([1, 0.1, 0.01])
        p_rest = rng.uniform(0, 1) * (1 - p_top)
        expected = 0
        for x, y in tables:
            down = [(x[m], y[m]) for m in range(n, -n - 1, -1)]
            if fill(down, Fraction(p_top)) <= fill(down[::-1], Fraction(p_rest)):
                break
            expected += 1
        assert certified_size(p_top, p_rest, noise, n) == expected


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("adds", "deletes"), [(0, 0), (1, 0), (0, 1), (3, 5), (40, 2), (17, 30)])
def test_floats_stay_within_their_stated_error_of_the_exact_masses(law, adds, deletes):
    for got, exact in zip(masses(law, adds, deletes), exact_masses(law, adds, deletes), strict=True):
        error = [abs(Fraction(float(g)) / e - 1) for g, e in zip(got, exact, strict=True)]
        assert max(error) <= rounding(len(exact))


def test_sums_of_a_long_table_stay_within_their_stated_error():
    noise, k = Flip(0.6), 600
    x, y, total = weights(noise, 0, k)
    side = table(noise, 0, k).bottom
    exact_x = exact_y = 0
    for i in range(1, k // 2):
        exact_x, exact_y = exact_x + int(x[-i]), exact_y + int(y[-i])
        if side.x[i] > 1e-280:
            assert abs(Fraction(side.x[i]) * total / exact_x - 1) <= rounding(k)
        if side.y[i] > 1e-280:
            assert abs(Fraction(side.y[i]) * total / exact_y - 1) <= rounding(k)


@pytest.mark.parametrize("law", LAWS)
def test_regions_are_ordered_by_ratio_and_sum_to_one(law):
    x, y = exact_masses(law, adds=4, deletes=6)
    ratios = [a / b for a, b in zip(x, y, strict=True)]
    assert len(x) == 11
    assert sum(x) == sum(y) == 1
    assert ratios == sorted(set(ratios), reverse=True)


def test_noise_that_hides_everything_has_one_region():
    for law in (Flip(0.5), AddDelete(0.25, 0.75)):
        assert exact_masses(law, adds=3, deletes=2) == ([1], [1])
        assert [m.tolist() for m in masses(law, 3, 2)] == [[1.0], [1.0]]


def test_regions_of_additions_and_deletions_compose():
    law = AddDelete(0.1, 0.3)
    for joint, adds, deletes in zip(masses(law, 3, 2), masses(law, 3, 0), masses(law, 0, 2), strict=True):
        np.testing.assert_allclose(joint, compose(adds, deletes), rtol=1e-14)


@pytest.mark.parametrize(
    ("p_add", "p_delete"), [("1/5", "3/10"), ("3/10", "1/5"), ("9/10", "4/5"), ("2/5", "2/5")]
)
def test_merged_regions_are_the_sums_of_the_atoms_with_that_ratio(p_add, p_delete):
    p_add, p_delete, adds, deletes = Fraction(p_add), Fraction(p_delete), 2, 3
    by_ratio: dict[Fraction, list[Fraction]] = {}
    for i in range(deletes + 1):
        for j in range(adds + 1):
            ways = comb(deletes, i) * comb(adds, j)
            x = ways * p_delete**i * (1 - p_delete) ** (deletes - i) * p_add**j * (1 - p_add) ** (adds - j)
            y = (
                ways
                * (1 - p_add) ** i
                * p_add ** (deletes - i)
                * (1 - p_delete) ** j
                * p_delete ** (adds - j)
            )
            entry = by_ratio.setdefault(x / y, [Fraction(0), Fraction(0)])
            entry[0], entry[1] = entry[0] + x, entry[1] + y
    expected = [by_ratio[ratio] for ratio in sorted(by_ratio, reverse=True)]
    assert [
        list(pair) for pair in zip(*exact_masses((p_add, p_delete), adds, deletes), strict=True)
    ] == expected


def test_exact_worst_case_for_rational_probabilities():
    a, b = exact_worst_case(Fraction(9, 10), Fraction(1, 10), Fraction(3, 4), deletes=1)
    assert (a, b) == (Fraction(7, 10), Fraction(3, 10))


@pytest.mark.parametrize("law", [Fraction(0), Fraction(1), (Fraction(1, 2), Fraction(3, 2))])
def test_certainties_are_refused(law):
    add, delete = law if isinstance(law, tuple) else (1 - law, 1 - law)
    with pytest.raises(InputError, match=f"strictly between 0 and 1, not {add} and {delete}"):
        masses(law, deletes=1)


@pytest.mark.parametrize("law", LAWS)
def test_the_scale_of_the_error_is_never_below_what_it_scales(law):
    for side in (table(law, 3, 9).top, table(law, 3, 9).bottom):
        p = np.linspace(0.001, 0.999, 400)
        place = np.minimum(side.x.searchsorted(p, side="right") - 1, side.slope.size - 1)
        terms = side.y[place], p * side.slope[place], side.x[place] * side.slope[place]
        assert np.all(side.scale(p) >= sum(terms))
        assert np.all(side.scale(p) >= side.y[place + 1])
