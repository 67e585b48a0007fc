"""Bounds for many attacks at once: never on the wrong side of exact arithmetic, and mostly good enough to decide."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import flint
import numpy as np
import pytest
from scipy import stats

from unswayed.theory import AddDelete, certified_size, tails
from unswayed.theory.entrywise import certify_pairs
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.regions import exact_masses, probabilities
from unswayed.theory.tails import FEW, UNIT, Judge, Weighed, _cosine, _half_width, _waves

NOISES = [
    AddDelete(0.4, 0.5),
    AddDelete(0.45, 0.5),
    AddDelete(0.2, 0.7),
    AddDelete(0.6, 0.55),
    AddDelete(0.05, 0.9),
]


def judge(top, rest, noise):
    return Judge.of(top, rest, *probabilities(noise))


def pmf(first, second, p, q):
    """Of the sum of two binomials, by scipy."""
    return np.convolve(*(stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((first, p), (second, q))))


def many(first, second, p, q, t):
    """Tails at several thresholds of each pair of counts."""
    t = np.asarray(t)
    each = np.repeat(first, t.shape[1]), np.repeat(second, t.shape[1])
    found, error = tails.tails(*each, p, q, t.ravel())
    return found.reshape(t.shape), error


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.45), (0.1, 0.7), (0.9, 0.95)])
def test_tails_stay_within_their_stated_error(p, q):
    first, second = np.array([300, 100, 0, 499]), np.array([200, 400, 500, 1])
    mean = np.rint(first * p + second * q).astype(int)
    t = mean[:, None] + np.array([-40, -5, 0, 1, 9, 30])
    found, error = many(first, second, p, q, t)
    assert error < 1e-11
    for i, j in product(range(4), range(6)):
        true = pmf(first[i], second[i], p, q)[max(t[i, j], 0) :].sum()
        assert abs(found[i, j] - true) < error / 4


@pytest.mark.parametrize("trials", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("p", "q"), [(0.35, 0.15), (0.02, 0.9), (0.001, 0.4)])
def test_tails_of_few_entries_stay_within_their_stated_error(trials, p, q):
    first = np.arange(trials + 1)
    t = np.tile(np.arange(-1, min(trials, 5) + 2), (trials + 1, 1))
    found, error = many(first, trials - first, p, q, t)
    for i in first:
        for j in np.flatnonzero(np.isfinite(found[i])):
            assert abs(found[i, j] - pmf(i, trials - i, p, q)[max(t[i, j], 0) :].sum()) < error


@pytest.mark.parametrize(("p", "q"), [(0.01, 0.98), (0.003, 0.0005), (0.99, 0.999)])
def test_tails_of_many_entries_that_hardly_vary_stay_within_their_stated_error(p, q):
    first = np.array([0, 7, 900, 2000])
    mean = np.rint(first * p + (2000 - first) * q).astype(int)
    t = mean[:, None] + np.array([-12, -3, 0, 1, 4, 15])
    found, error = many(first, 2000 - first, p, q, t)
    assert error < 1e-11
    for i, j in product(range(4), range(6)):
        assert abs(found[i, j] - pmf(first[i], 2000 - first[i], p, q)[max(t[i, j], 0) :].sum()) < error / 4


@pytest.mark.parametrize("p", [0.9, 0.5, 0.099, 0.001])
@pytest.mark.parametrize("trials", [50_000, 3_000_000])
def test_tails_of_very_many_entries_stay_within_their_stated_error(trials, p):
    """All of one kind, named as one group or as two: balls know the binomial's tail."""
    spread = (trials * p * (1 - p)) ** 0.5
    t = np.array([int(trials * p + z * spread) for z in (-6, -3, -1, 0, 1, 3, 6)])
    for first in (trials, trials // 3, 0):
        found, error = tails.tails(np.full(7, first), np.full(7, trials - first), p, p, t)
        assert error < 1e-10
        with flint.ctx.workprec(200):
            for place, tail in zip(t.tolist(), found.tolist(), strict=True):
                true = flint.arb(p).beta_lower(place, trials - place + 1, 1)
                assert abs(flint.arb(tail) - true) < error / 8


def test_tails_are_the_same_in_small_parts(monkeypatch):
    first, t = np.arange(40), 20 + np.arange(40) // 4
    whole, error = tails.tails(first, 60 - first, 0.3, 0.4, t)
    monkeypatch.setattr(tails, "ROWS", 7)
    parts, same = tails.tails(first, 60 - first, 0.3, 0.4, t)
    assert np.abs(whole - parts).max() < 1e-14
    assert error == same


def test_places_far_from_the_mean_are_not_guessed():
    found, _ = tails.tails(np.full(3, 300), np.full(3, 200), 0.5, 0.5, np.array([-5, 250, 700]))
    assert np.isnan(found[[0, 2]]).all()
    assert 0.5 < found[1] < 0.53


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.25), (0.02, 0.05), (0.9, 0.03)])
def test_tails_are_granted_what_is_stated(p, q):
    """What is cut off, within the smaller of two bounds on the width, and the rounding of the waves that stand."""
    first, second, t = np.array([300, 10]), np.array([200, 7]), np.array([200, 5])
    _, error = tails.tails(first, second, p, q, t)
    variance = first * p * (1 - p) + second * q * (1 - q)
    half = min(np.sqrt(500 * 19), 38 / 3 + np.sqrt((38 / 3) ** 2 + 76 * variance[0]))
    assert _half_width(500, float(variance[0])) == pytest.approx(half)
    off = np.abs(t - first * p - second * q)
    period = 2 * int(half + 4 + off[off <= half + 4].max(initial=0)) + 3
    theta, less = _waves(period, float(variance[1]))
    assert less == pytest.approx(1 - np.cos(theta))
    standing = np.exp(-variance[1] * (1 - np.cos(theta))).sum()
    rounding = 64 * (500 * standing / period + 64) * 2.0**-53
    assert error == pytest.approx(4 * np.exp(-38.0) * period + rounding)
    # all stand
    assert _waves(period, 3)[0] == pytest.approx(2 * np.pi * np.arange(1, period // 2 + 1) / period)
    assert len(_waves(period, 300)[0]) == int(np.arccos(1 - 38 / 300) / (2 * np.pi) * period)


def test_the_cosine_is_one():
    turns = np.concatenate([np.linspace(-3, 3, 4001), np.arange(-8, 9) / 8])
    assert np.abs(_cosine(turns) - np.cos(2 * np.pi * turns)).max() < 3e-15
    assert _cosine(np.array([0.0, 0.25, 0.5, -7.0])) == pytest.approx([1, 0, -1, 1], abs=5e-16)


@pytest.mark.parametrize(
    ("p_add", "p_delete"), [(0.02, 0.3), (0.3, 0.02), (0.1, 0.1), (0.45, 0.5), (0.05, 0.9)]
)
def test_tails_begin_where_they_are_looked_for(p_add, p_delete):
    """Within a fiftieth of a region of where they do, as near as their neighbours say."""
    adds = np.array([400, 250, 30, 0])
    for mass in (1e-3, 0.01, 0.1, 0.5, 0.9):
        found = Judge(0.9, 0.1, p_add, p_delete).places(mass, adds, 400 - adds)
        for a, place in zip(adds.tolist(), found.tolist(), strict=True):
            tail = pmf(400 - a, a, p_delete, p_add)[::-1].cumsum()[::-1]
            t = int(np.argmax(tail <= mass))
            assert t - 1 - 0.1 <= place <= t + 0.1
            z = stats.norm.isf(tail[t - 2 : t + 2])
            true = t - 2 + np.interp(stats.norm.isf(mass), z, np.arange(4))
            assert abs(place - true) < 0.1


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.02, 0.3), (0.3, 0.02), (0.05, 0.9)])
def test_places_are_those_of_a_normal_law_set_right(p_add, p_delete):
    """Cornish and Fisher's corrections for skew and flatness, from moments that scipy knows, half a region on."""
    adds = np.array([41, 10, 4, 1])
    for mass in (1e-5, 0.02, 0.4):
        sums = np.zeros((4, 4))
        for n, p in ((43 - adds, p_delete), (adds, p_add)):
            mean, variance, skew, flat = stats.binom(n, p).stats(moments="mvsk")
            sums += [mean, variance, variance**1.5 * skew, variance**2 * flat]
        mean, variance, third, fourth = sums
        z = stats.norm.isf(mass)
        skew, flat = third / variance**1.5, fourth / variance**2
        bent = (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * flat / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
        expected = mean + 0.5 + np.sqrt(variance) * (z + bent)
        assert Judge(0.9, 0.1, p_add, p_delete).places(mass, adds, 43 - adds) == pytest.approx(expected)


def exactly(noise, k, deletes, t, p):
    """λ(p − Pr(X ≥ t)) + Pr(Y ≥ t) in fractions, λ the ratio of region t − 1: counted by entries that differ."""
    x, y = exact_masses(noise, k - deletes, deletes)
    return y[t - 1] / x[t - 1] * (p - sum(x[t:])) + sum(y[t:])


@pytest.mark.parametrize(
    "pair", [("1/5", "1/2"), ("1/2", "1/5"), ("1/10", "3/10"), ("2/5", "1/10"), ("3/10", "3/10")]
)
def test_between_two_splits_no_bound_is_above_both(pair):
    """In fractions, for every region and every p: it falls and then rises."""
    noise, risen, fallen = tuple(map(Fraction, pair)), 0, 0
    for k in (2, 3, 5, 8):
        for t, p in product(range(1, k + 1), (Fraction(1, 50), Fraction(1, 3), Fraction(9, 10))):
            bound = [exactly(noise, k, r, t, p) for r in range(k + 1)]
            steps = [(after > before) - (after < before) for before, after in pairwise(bound)]
            steps = [step for step in steps if step]
            assert steps == sorted(steps)
            risen, fallen = risen + (1 in steps), fallen + (-1 in steps)
    assert (risen and fallen) or pair[0] == pair[1]


@pytest.mark.parametrize("noise", [AddDelete(0.2, 0.5), AddDelete(0.55, 0.3), AddDelete(0.7, 0.6)])
def test_any_region_bounds_what_a_set_weighs(noise):
    """At most, whichever it is, and at least where the set ends there."""
    ends = 0
    for k, p in product((1, 4, 9), (0.01, 0.2, 0.45)):
        for deletes in range(k + 1):
            most = exact_worst_case(Fraction(1, 2), Fraction(p), noise, k - deletes, deletes)[1]
            t = np.arange(-1, k + 3)
            asked = judge(0.5, p, noise)
            found = asked.weighed(np.full(len(t), k - deletes), np.full(len(t), deletes), t)
            assert (found.most(p) >= float(most)).all()
            assert found.most(p).min() < float(most) + 1e-8
            left = p - found.before
            here = np.flatnonzero((left[1:] >= found.error) & (left[:-1] <= -found.error)) + 1
            ends += len(here)
            assert (found.least(p)[here] <= float(most)).all()
            assert (found.least(p)[here] > float(most) - 1e-8).all()
    assert ends > 20


def worst_margin(top, rest, noise, k, splits):
    """The least Pr(Y∈A) − Pr(Y∈B) over splits, in fractions."""
    pairs = (exact_worst_case(Fraction(top), Fraction(rest), noise, k - r, r) for r in map(int, splits))
    return float(min(a - b for a, b in pairs))


@pytest.mark.parametrize("noise", [*NOISES, AddDelete(0.02, 0.9), AddDelete(0.3, 0.31)])
@pytest.mark.parametrize(("top", "rest"), [(0.95, 0.05), (0.9, 0.02), (0.55, 0.4)])
def test_margins_are_never_above_the_exact_ones(noise, top, rest):
    asked, near, blocks = judge(top, rest, noise), 0, 0
    for k in (1, 3, 12, 40):
        deletes = np.unique(np.linspace(0, k, 6).astype(int))
        true = np.array([worst_margin(top, rest, noise, k, [r]) for r in deletes])
        found = asked.margin(k - deletes, deletes)
        assert (found <= true).all()
        near += int((found > true - 1e-7).sum())
        for low, high in ((0, k), (k // 3, k // 2), (k // 2, min(k // 2 + 2, k)), (k, k)):
            at = np.array([low]), np.array([high])
            least = worst_margin(top, rest, noise, k, range(low, high + 1))
            for block in (asked.block(k, *at), asked.between(k, *at)):
                assert block[0] <= least
                blocks += block[0] > least - 0.02
    assert near >= 16
    assert blocks >= 10


def test_a_block_is_proved_by_its_ends_where_they_share_a_region(monkeypatch):
    asked = Judge(0.95, 0.05, 0.4, 0.42)
    assert asked.span == pytest.approx(50)
    calls = []
    monkeypatch.setattr(Judge, "between", lambda self, k, low, high: calls.append("ends"))
    monkeypatch.setattr(Judge, "margin", lambda self, adds, deletes: calls.append((adds[0], deletes[0])))
    for width in (1, 2, 51, 52):
        asked.block(100, np.array([10]), np.array([9 + width]))
    assert calls == [(90, 10), "ends", "ends", (90, 61)]
    assert Judge(0.9, 0.1, 0.3, 0.3).span == 1 / UNIT


def test_several_regions_are_tried_where_little_varies(monkeypatch):
    asked, seen = Judge(0.95, 0.02, 0.2, 0.6), []
    weighed = Judge.weighed

    def counted(self, adds, deletes, t):
        seen.append(t.shape)
        return weighed(self, adds, deletes, t)

    monkeypatch.setattr(Judge, "weighed", counted)
    enough = int(np.ceil(FEW / 0.16))
    for adds in (enough - 1, enough):
        asked.margin(np.array([adds, 900]), np.array([0, 3]))
    enough = int(np.ceil(FEW / 0.24))
    for deletes in (enough - 1, enough):
        asked.margin(np.array([0, 3]), np.array([deletes, 900]))
    assert seen == [(2, 3, 2), (2, 1, 2)] * 2


def test_sides_that_hardly_differ_are_one_and_no_smaller():
    def sides(rest):
        return np.concatenate(Judge(0.75, rest, 0.2, 0.3).sides, axis=1)[..., 0].tolist()

    assert sides(0.25) == [[0.25, 0.25, 2]]
    rest = 0.25 * (1 - 1e-10)
    assert sides(rest) == [[0.25, rest, 2]]
    assert sides(0.2) == [[0.25, 0.25, 1], [0.2, 0.2, 1]]


@pytest.mark.parametrize("noise", NOISES)
def test_what_is_judged_is_so(noise):
    rng, verdicts = np.random.default_rng(3), Counter()
    for _ in range(14):
        top = float(rng.uniform(0.4, 0.999))
        rest = float(min(top, 1 - top) * rng.choice([1, 0.9, 0.3]))
        k = max(int(certified_size(top, rest, noise, 400)) + int(rng.integers(-1, 4)), 1)
        for d in range(k + 1):
            verdict = judge(top, rest, noise).judged(k - d, d)
            right = certify_pairs(np.array([top]), np.array([rest]), noise, k - d, d)[0]
            assert verdict == 0 or (verdict > 0) == right
            verdicts[verdict] += 1
    assert verdicts[1] > 15
    assert verdicts[-1] > 5
    assert verdicts[0] < 0.02 * verdicts.total()


@pytest.mark.parametrize("pair", [(0.98, 0.02), (0.9, 0.004), (0.45, 0.4), (0.6, 0.3999)])
def test_few_entries_are_judged_by_the_definition(pair):
    """Fractions over every region; with few entries thresholds fall beside all that there is, too."""
    noises, verdicts = [AddDelete(0.1, 0.3), AddDelete(0.4, 0.2), AddDelete(0.7, 0.6)], Counter()
    for noise, k in product(noises, range(1, 9)):
        for d in range(k + 1):
            verdict = judge(*pair, noise).judged(k - d, d)
            a, b = exact_worst_case(Fraction(pair[0]), Fraction(pair[1]), noise, k - d, d)
            assert verdict == 0 or (verdict > 0) == (a > b)
            verdicts[verdict] += 1
    assert verdicts[-1] > 0
    assert verdicts[0] < 0.2 * verdicts.total()


@pytest.mark.parametrize("slack", [0.25, 0.01])
def test_what_is_too_close_is_left_open(slack, monkeypatch):
    """A verdict needs a margin above what is granted to rounding, whichever it is."""
    noise = AddDelete(0.3, 0.4)
    asked = judge(0.9, 0.05, noise)
    attacks = [(k - d, d) for k in (1, 3, 6, 7, 40) for d in range(k + 1)]
    clear = [asked.judged(*attack) for attack in attacks]
    monkeypatch.setattr(tails, "SLACK", slack)
    some = [asked.judged(*attack) for attack in attacks]
    assert set(clear) == {-1, 1}
    for attack, before, verdict in zip(attacks, clear, some, strict=True):
        assert verdict in (0, before)
        gap = np.subtract(*exact_worst_case(Fraction(0.9), Fraction(0.05), noise, *attack))
        assert verdict == 0 or abs(gap) > slack / 2
    assert {-1, 0} <= set(some) or slack < 0.1


def test_nothing_is_known_where_regions_cannot_be_told_apart():
    asked = Judge(0.9, 0.1, 0.5, 0.5 - 1e-8)
    assert asked.judged(3, 4) == 0
    assert (asked.margin(np.array([3]), np.array([4])) <= 0).all()
    assert (asked.between(7, np.array([3]), np.array([4])) <= 0).all()


def test_a_search_begins_near_the_size():
    for noise in NOISES:
        size = int(certified_size(0.999, 0.0005, noise, 10_000))
        assert 0.4 * size <= judge(0.999, 0.0005, noise).expected <= 2 * size + 4
    assert Judge(0.9, 0.1, 0.5, 0.5).expected == 10**9
    assert Judge(0.51, 0.49, 0.1, 0.1).expected == 1
    for p_add, p_delete in ((0.9, 0.05), (0.05, 0.9), (0.3, 0.6)):
        variance = min(stats.binom.var(1, p_add), stats.binom.var(1, p_delete))
        gap = (stats.norm.ppf(0.999) - stats.norm.ppf(0.002)) / 2
        near = variance * (gap / (1 - p_add - p_delete)) ** 2
        assert Judge(0.999, 0.002, p_add, p_delete).expected == int(near) > 10


def test_entries_that_agree_are_counted_where_most_differ():
    asked = Judge.of(0.9, 0.1, Fraction(7, 10), Fraction(6, 10))
    assert (asked.p_add, asked.p_delete) == (0.3, 0.4)


@pytest.mark.parametrize("noise", [AddDelete(0.5, 0.25), AddDelete(0.001, 0.99), AddDelete(0.9, 0.9)])
@pytest.mark.parametrize("top", [5e-324, 1e-190, 0.5, 1 - UNIT])
def test_the_smallest_and_the_largest_probabilities_are_no_trouble(noise, top):
    """Warnings are errors; whatever floats cannot say is asked exactly."""
    for rest in (5e-324, 1e-207, top / 2, min(top, 1 - top)):
        if 0 < rest < top:
            asked = judge(top, rest, noise)
            for k, deletes in ((1, 0), (9, 4), (300, 300)):
                right = certify_pairs(np.array([top]), np.array([rest]), noise, k - deletes, deletes)[0]
                assert asked.judged(k - deletes, deletes) in (0, 1 if right else -1)
                found = asked.margin(np.array([k - deletes]), np.array([deletes]))[0]
                assert right or not found > 0


def test_a_price_is_rounded_against_the_certificate_on_either_side():
    """Below p more is bought at the price, above p some is given back: each at the end of what the price may be."""
    found = Weighed(np.array([0.5]), np.array([0.6]), 0.0, np.array([1.0]), np.array([0.1]))
    assert found.most(0.4) == pytest.approx(0.6 - 0.1 * 0.9)
    assert found.most(0.7) == pytest.approx(0.6 + 0.2 * 1.1)


@pytest.mark.parametrize("entries", [10**3, 10**6, 10**9, 10**11])
@pytest.mark.parametrize(("p_add", "p_delete"), [(0.001, 0.99895), (0.3, 0.6999), (2**-20, 0.9), (0.49, 0.5)])
def test_prices_stray_no_further_than_is_stated(p_add, p_delete, entries):
    """Their exponents are sums of as many logarithms as there are entries; here with 256 bits."""
    asked = Judge(0.99, 0.01, p_add, p_delete)
    for deletes in (0, entries // 3, entries):
        adds = entries - deletes
        with flint.ctx.workprec(256):
            a, d = flint.arb(p_add), flint.arb(p_delete)
            none = deletes * (a / (1 - d)).log() + adds * (d / (1 - a)).log()
            step = ((1 - a) * (1 - d) / (a * d)).log()
            t = int(float(-none / step)) + 1  # where prices are near 1
            true = none + (t - 1) * step
            found = asked.weighed(np.array([adds]), np.array([deletes]), np.array([t]))
            apart = abs(float(flint.arb(float(found.price[0])) / true.exp() - 1))
        assert apart <= found.stray[0] / 4
