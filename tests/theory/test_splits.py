"""Splits proved in bulk: whatever is called sure is certified, and sizes are those of asking about every split."""

import time
from collections import Counter
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from scipy import stats

from unswayed.theory import AddDelete, ceiling, certified_size, entrywise, regions, splits
from unswayed.theory.entrywise import certify_pairs
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.splits import Splits, _quantiles, _waves, expected_size, judged, last, tails

NOISES = [
    AddDelete(0.4, 0.5),
    AddDelete(0.45, 0.5),
    AddDelete(0.2, 0.7),
    AddDelete(0.6, 0.55),
    AddDelete(0.05, 0.9),
]


@pytest.mark.parametrize("start", [0, 3, 40, 69, 70, 71, 100, 10**9])
@pytest.mark.parametrize("most", [2, 3, 40, 70, 71, 99, 100])
def test_the_last_that_holds_is_found_from_anywhere(start, most):
    asked = []
    assert last(lambda k: asked.append(k) or k <= most, 2, 100, start) == most
    assert all(2 < k <= 100 for k in asked)
    assert last(lambda k: asked.append(k) or False, 5, 5, start) == 5


def test_the_size_over_splits_is_that_of_asking_about_every_one():
    """Certified attacks are any set that holds whatever is smaller; what is proved in bulk is any part of it."""
    rng = np.random.default_rng(0)
    sizes = set()
    for case in range(400):
        cap = int(rng.integers(4, 60))
        ones = None if case % 3 == 0 else int(rng.integers(0, cap + 1))
        most = np.sort(rng.integers(2, int(rng.integers(4, 80)), cap + 1))[
            ::-1
        ]  # additions withstood after r deletions
        for r in range(3):
            most[r] = max(most[r], 2 - r, 0)
        calls = []

        def test(adds, deletes, most=most, calls=calls):
            calls.append((adds, deletes))
            return bool(adds <= most[deletes])

        def sure(adds, deletes, most=most):
            return (adds <= most[deletes]) & (rng.random(len(adds)) < 0.7)

        splits = Splits(test, sure, ones, cap)

        def all_hold(k, splits=splits, most=most):
            low, high = splits.ends(k)
            return all(k - r <= most[r] for r in range(low, high + 1))

        right = max(k for k in range(cap + 1) if all(all_hold(j) for j in range(k + 1)))
        if right < 2:
            continue
        low = int(rng.integers(0, right + 1))
        found = splits.largest(low, int(rng.integers(0, 70)))
        assert found == right
        assert all(a + d > low for a, d in calls)
        assert all(a >= 0 and 0 <= d <= (cap if ones is None else ones) for a, d in calls)
        sizes.add(found)
    assert len(sizes) > 10


def test_a_search_begins_near_the_size():
    for noise in NOISES:
        size = int(certified_size(0.999, 0.0005, noise, 10_000))
        assert 0.4 * size <= expected_size(0.999, 0.0005, noise.p_add, noise.p_delete) <= 2 * size + 4
    assert expected_size(0.9, 0.1, 0.5, 0.5) == 10**9
    for p_add, p_delete in ((0.9, 0.05), (0.05, 0.9), (0.3, 0.6)):
        variance = min(stats.binom.var(1, p_add), stats.binom.var(1, p_delete))
        gap = (stats.norm.ppf(0.999) - stats.norm.ppf(0.002)) / 2
        near = variance * (gap / (1 - p_add - p_delete)) ** 2
        assert expected_size(0.999, 0.002, p_add, p_delete) == int(near) > 10


@pytest.mark.parametrize(
    ("low", "high", "start", "most", "asked"),
    [
        (2, 1000, 690, 700, [690, 711, 700, 705, 702, 701]),  # a 32nd up, then halves
        (
            2,
            1000,
            690,
            1000,
            [690, 711, 774, 963, 1000],
        ),  # ever three times as far, to the end and not beyond
        (2, 1000, 690, 300, [690, 669, 606, 417, 209, 313, 261, 287, 300, 306, 303, 301]),  # and down
        (2, 1000, 690, 2, [690, 669, 606, 417, 209, 105, 53, 27, 14, 8, 5, 3]),
        (0, 100, 64, 80, [64, 66, 72, 90, 81, 76, 78, 79, 80]),
        (2, 10, 0, 2, [3]),
    ],
)
def test_a_search_asks_few(low, high, start, most, asked):
    called = []
    assert last(lambda k: called.append(k) or k <= most, low, high, start) == most
    assert called == asked


def test_a_first_step_may_be_given():
    called = []
    assert last(lambda k: called.append(k) or k <= 690, 2, 1000, 700, 1) == 690
    assert called == [700, 699, 696, 687, 691, 689, 690]


def test_what_fails_early_is_found_without_asking_about_everything():
    """One weak split among thousands, near an end or in the middle: few exact questions lead to it."""
    cap = 4000
    for weak, limit, questions in ((1, 3000, 15), (17, 3000, 15), (1500, 3600, 31), (2000, 3990, 17)):
        asked = []

        def test(adds, deletes, weak=weak, limit=limit, asked=asked):
            asked.append((adds, deletes))
            share = abs(deletes * cap - weak * (adds + deletes)) <= 40 * (adds + deletes)
            return adds + deletes <= (limit if share else 3995)

        def sure(adds, deletes, test=test, asked=asked):
            before = len(asked)
            found = np.array([test(int(a), int(d)) for a, d in zip(adds, deletes, strict=True)])
            del asked[before:]
            return found & (adds + deletes <= 3995)

        assert Splits(test, sure, None, cap).largest(2, 3500) == limit
        assert len(asked) == questions


def tail_begins(first, second, p, q, mass):
    """The least t with Pr(Bin(first, p) + Bin(second, q) ≥ t) ≤ mass."""
    pmf = np.convolve(*(stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((first, p), (second, q))))
    return int(np.argmax(np.append(pmf[::-1].cumsum()[::-1], 0.0) <= mass))


@pytest.mark.parametrize(
    ("p_add", "p_delete"), [(0.02, 0.3), (0.3, 0.02), (0.1, 0.1), (0.45, 0.5), (0.05, 0.9)]
)
def test_thresholds_are_looked_for_where_tails_begin(p_add, p_delete):
    """Beside the one of a normal law its neighbours are tried: the true one must be among them, wherever it is."""
    adds = np.array([400, 250, 30, 0])
    for mass in (1e-4, 0.003, 0.1, 0.5, 0.9):
        found = _quantiles(np.array([mass, 0.25]), p_add, p_delete, adds, 400 - adds)
        true = [tail_begins(400 - a, a, p_delete, p_add, mass) for a in adds.tolist()]
        assert np.abs(found[0] - true).max() <= 1
    assert found.shape == (2, 4)


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.02, 0.3), (0.3, 0.02), (0.05, 0.9)])
def test_thresholds_are_those_of_a_normal_law_set_right_for_its_skew(p_add, p_delete):
    """Cornish and Fisher's first correction, from moments that scipy knows."""
    adds, mass = np.array([40, 9, 3, 0]), np.array([1e-5, 0.02, 0.4])
    parts = [
        stats.binom(n, p).stats(moments="mvs") for n, p in ((40 - adds + 1, p_delete), (adds + 1, p_add))
    ]
    mean, variance = (sum(part[i] for part in parts) for i in (0, 1))
    third = sum(v**1.5 * skew for _, v, skew in parts)
    z = stats.norm.isf(mass)[:, None]
    expected = np.ceil(mean + z * np.sqrt(variance) + (z**2 - 1) * third / variance / 6)
    assert np.array_equal(_quantiles(mass, p_add, p_delete, adds + 1, 40 - adds + 1), expected)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.25), (0.02, 0.05), (0.9, 0.03)])
def test_tails_are_granted_what_is_stated(p, q):
    """What is cut off, within the smaller of two bounds on the width, and the rounding of as many terms as there are entries."""
    first, second = np.array([300, 10]), np.array([200, 7])
    _, error = tails(first, second, p, q, np.array([[200], [5]]))
    variance = 300 * p * (1 - p) + 200 * q * (1 - q)
    wide = min(np.sqrt(500 * 22.5), 15 + np.sqrt(225 + 90 * variance))
    period = 2 * int(wide + 4) + 1
    few = 10 * p * (1 - p) + 7 * q * (1 - q)
    rounding = 64 * (500 * len(_waves(period, few)) / period + 64) * 2.0**-53
    assert error == 4 * np.exp(-45.0) * period + rounding
    theta = _waves(period, 3)
    assert theta == pytest.approx(2 * np.pi * np.arange(1, period // 2 + 1) / period)  # every wave stands
    assert len(_waves(period, 300)) == int(np.arccos(1 - 45 / 300) / (2 * np.pi) * period)


@pytest.mark.parametrize(
    ("weak", "ones", "questions"),
    [
        (1200, None, (99, 118)),
        (900, None, (101, 118)),
        (2800, None, (120, 118)),
        (3100, None, (121, 123)),
        (2800, 2500, (93, 122)),
        (1200, 3100, (11, 64)),
    ],
)
def test_the_weakest_share_is_approached_from_either_side(weak, ones, questions):
    """By few questions, and few splits looked at in bulk."""
    cap, asked, looked = 4000, [], []

    def most(total, deletes):
        """What a share withstands: the less, the nearer it is to the weak one."""
        return np.minimum(3000 + np.abs(deletes * cap / np.maximum(total, 1) - weak) / 2, 3995)

    def test(adds, deletes):
        asked.append((adds, deletes))
        return bool(adds + deletes <= most(adds + deletes, deletes))

    def sure(adds, deletes):
        looked.append(len(adds))
        return (adds + deletes) <= most(adds + deletes, deletes)

    splits = Splits(test, sure, ones, cap)

    def holds(k):
        low, high = splits.ends(k)
        return np.all(k <= most(k, np.arange(low, high + 1)))

    right = max(k for k in range(2990, 3996) if holds(k))
    assert splits.largest(2, 3500) == right
    assert (len(asked), sum(looked)) == questions


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.45), (0.1, 0.7), (0.9, 0.95)])
def test_tails_stay_within_their_stated_error(p, q):
    first, second = np.array([300, 100, 0, 499]), np.array([200, 400, 500, 1])
    mean = np.rint(first * p + second * q).astype(int)
    t = mean[:, None] + np.array([-40, -5, 0, 1, 9, 30])
    found, error = tails(first, second, p, q, t)
    assert error < 1e-10
    for i in range(4):
        parts = [stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((first[i], p), (second[i], q))]
        pmf = np.convolve(*parts)
        for j in range(t.shape[1]):
            assert abs(found[i, j] - pmf[max(t[i, j], 0) :].sum()) < error / 4


@pytest.mark.parametrize("trials", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("p", "q"), [(0.35, 0.15), (0.02, 0.9), (0.001, 0.4)])
def test_tails_of_few_entries_stay_within_their_stated_error(trials, p, q):
    first = np.arange(trials + 1)
    t = np.tile(np.arange(-1, min(trials, 5) + 2), (trials + 1, 1))
    found, error = tails(first, trials - first, p, q, t)
    for i in first:
        parts = [stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((i, p), (trials - i, q))]
        pmf = np.convolve(*parts)
        for j in np.flatnonzero(np.isfinite(found[i])):
            assert abs(found[i, j] - pmf[max(t[i, j], 0) :].sum()) < error


def test_one_target_has_the_size_it_has_among_many():
    rng, noise = np.random.default_rng(0), AddDelete(0.15, 0.35)
    top = rng.uniform(0.5, 1, 300) ** rng.choice([1, 0.05], 300)
    rest = rng.uniform(0, 1 - top)
    together = certified_size(top, rest, noise, 12)
    alone = [int(certified_size(a, b, noise, 12)) for a, b in zip(top, rest, strict=True)]
    assert alone == together.tolist()
    assert max(alone) > 3


def test_places_outside_of_a_period_are_not_guessed():
    found, _ = tails(np.array([300]), np.array([200]), 0.5, 0.5, np.array([[-5, 250, 700]]))
    assert np.isnan(found[0, [0, 2]]).all()
    assert 0.5 < found[0, 1] < 0.53


@pytest.mark.parametrize("noise", NOISES)
def test_what_is_judged_in_bulk_is_so(noise):
    rng, verdicts = np.random.default_rng(3), Counter()
    for _ in range(8):
        top = float(rng.uniform(0.4, 0.999))
        rest = float(min(top, 1 - top) * rng.choice([0.9, 0.3]))
        k = max(int(certified_size(top, rest, noise, 400)) + int(rng.integers(-1, 4)), 1)
        deletes = np.arange(k + 1)
        found = judged(top, rest, noise.p_add, noise.p_delete, k - deletes, deletes)
        for d, verdict in zip(deletes.tolist(), found.tolist(), strict=True):
            right = certify_pairs(np.array([top]), np.array([rest]), noise, k - d, d)[0]
            assert verdict == 0 or (verdict > 0) == right
            verdicts[verdict] += 1
    assert verdicts[1] > 15
    assert verdicts[-1] > 5
    assert verdicts[0] < 0.1 * verdicts.total()


@pytest.mark.parametrize("pair", [(0.98, 0.02), (0.9, 0.004), (0.45, 0.4), (0.6, 0.3999)])
def test_few_entries_are_judged_by_the_definition(pair):
    """Fractions over every region; with few entries thresholds fall beside all that there is, too."""
    noises, verdicts = [AddDelete(0.1, 0.3), AddDelete(0.4, 0.2), AddDelete(0.7, 0.6)], Counter()
    for noise, k in product(noises, range(1, 9)):
        deletes = np.arange(k + 1)
        found = judged(*pair, noise.p_add, noise.p_delete, k - deletes, deletes)
        for d, verdict in zip(deletes.tolist(), found.tolist(), strict=True):
            a, b = exact_worst_case(Fraction(pair[0]), Fraction(pair[1]), noise, k - d, d)
            assert verdict == 0 or (verdict > 0) == (a > b)
            verdicts[verdict] += 1
    assert verdicts[-1] > 0
    assert verdicts[0] < 0.7 * verdicts.total()


@pytest.mark.parametrize("slack", [0.25, 0.01])
def test_what_is_too_close_is_left_open(slack, monkeypatch):
    """A verdict needs a margin above what is granted to rounding, whichever it is."""
    noise, deletes = AddDelete(0.3, 0.4), np.arange(41)
    clear = judged(0.9, 0.05, noise.p_add, noise.p_delete, 40 - deletes, deletes)
    monkeypatch.setattr(splits, "SLACK", slack)
    some = judged(0.9, 0.05, noise.p_add, noise.p_delete, 40 - deletes, deletes)
    assert set(clear.tolist()) <= {-1, 1}
    assert ((some == 0) | (some == clear)).all()
    for d, verdict in enumerate(some.tolist()):
        gap = np.subtract(*exact_worst_case(Fraction(0.9), Fraction(0.05), noise, 40 - d, d))
        assert verdict == 0 or abs(gap) > slack / 2


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ones", [None, 12, 300])
def test_sizes_are_those_of_every_split(noise, ones, monkeypatch):
    pairs = np.array([0.9, 0.99, 0.999, 0.7]), np.array([0.1, 0.001, 0.001, 0.05])
    quick = certified_size(*pairs, noise, 320, ones=ones)
    monkeypatch.setattr(entrywise, "LONE", 0)  # every split, one by one
    assert quick.tolist() == certified_size(*pairs, noise, 320, ones=ones).tolist()
    assert quick.max() > 30


def test_an_interior_split_that_fails_first_is_found():
    """Among 967 changed entries the split with 20 deletions fails like the one with none, those between do not."""
    found = ceiling(AddDelete(0.45, 0.5), 10_000, 0.001, 7)
    assert found == 966


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.9, 0.09), (0.3, 0.68)])
def test_sizes_of_thousands_are_those_of_the_tables(p_add, p_delete):
    """A split of one more entry fails, and none of so many does, wherever one looks."""
    noise, pair = AddDelete(p_add, p_delete), (np.array([0.99]), np.array([0.01]))
    size = int(certified_size(0.99, 0.01, noise, 100_000))
    assert 2_000 < size < 6_000
    deletes, ends = np.arange(size + 2), [0, 1, 2, 4, 8, 16, 32, 64]
    weak = np.flatnonzero(judged(0.99, 0.01, noise.p_add, noise.p_delete, size + 1 - deletes, deletes) < 0)
    assert not any(certify_pairs(*pair, noise, size + 1 - d, d)[0] for d in weak[[0, -1]].tolist())
    for d in [*ends, *(size - d for d in ends), *range(0, size + 1, size // 20)]:
        assert certify_pairs(*pair, noise, size - d, d)[0]


def test_sizes_near_a_million_take_neither_minutes_nor_memory():
    begin = time.process_time()
    size = ceiling(AddDelete(0.9, 0.099), 10_000, 0.001, 7)
    assert time.process_time() - begin < 2
    assert 8e5 < size < 1e6
    assert regions.table(AddDelete(0.9, 0.099), 0, 9_000) is not regions.table(
        AddDelete(0.9, 0.099), 0, 9_000
    )
    assert regions.table(AddDelete(0.9, 0.099), 0, 90) is regions.table(AddDelete(0.9, 0.099), 0, 90)


def test_many_targets_of_large_sizes_have_the_sizes_they_have_alone():
    noise, top = AddDelete(0.5, 0.46), np.linspace(0.8, 0.9999, 12)
    together = certified_size(top, 1 - top, noise, 900)
    assert together.tolist() == [int(certified_size(p, 1 - p, noise, 900)) for p in top]
    assert together[0] < 256 < 300 < together[-3] < 900 == together[-1]


def test_noise_that_hides_nearly_everything_certifies_far_and_fast():
    assert ceiling(AddDelete(0.499, 0.5), 10_000, 0.001, 7, cap=50_000) == 50_000
    far = int(certified_size(0.999, 0.001, AddDelete(0.47, 0.5), 100_000))
    assert far > 1_000
    for adds in (0, far):
        a, b = exact_worst_case(Fraction(0.999), Fraction(0.001), AddDelete(0.47, 0.5), adds, far - adds)
        assert a > b


def test_nothing_is_sure_where_regions_cannot_be_told_apart():
    assert not judged(0.9, 0.1, 0.5, 0.5 - 1e-8, np.array([3]), np.array([4])).any()


@pytest.mark.parametrize("seed", range(4))
def test_small_sizes_are_exact_too(seed):
    """Alone each target is looked at in bulk; the definition, in fractions, is asked about every split."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        noise = AddDelete(float(rng.uniform(0.02, 0.9)), float(rng.uniform(0.02, 0.9)))
        top = float(rng.uniform(0.4, 1)) ** float(rng.choice([1, 0.1]))
        rest, cap = float(min(top, 1 - top) * rng.uniform(0, 1)), 10
        exact = [
            all(
                np.greater(*exact_worst_case(Fraction(top), Fraction(rest), noise, a, k - a))
                for a in range(k + 1)
            )
            for k in range(1, cap + 1)
        ]
        assert certified_size(top, rest, noise, cap) == (exact.index(False) if False in exact else cap)


@pytest.mark.parametrize(("p", "q"), [(0.01, 0.98), (0.003, 0.0005), (0.99, 0.999)])
def test_tails_of_many_entries_that_hardly_vary_stay_within_their_stated_error(p, q):
    first = np.array([0, 7, 900, 2000])
    mean = np.rint(first * p + (2000 - first) * q).astype(int)
    t = mean[:, None] + np.array([-12, -3, 0, 1, 4, 15])
    found, error = tails(first, 2000 - first, p, q, t)
    assert error < 1e-10
    for i in range(4):
        parts = [stats.binom.pmf(np.arange(n + 1), n, r) for n, r in ((first[i], p), (2000 - first[i], q))]
        pmf = np.convolve(*parts)
        for j in range(t.shape[1]):
            assert abs(found[i, j] - pmf[max(t[i, j], 0) :].sum()) < error / 4


@pytest.mark.parametrize("p", [0.9, 0.5, 0.099, 0.001])
@pytest.mark.parametrize("trials", [50_000, 3_000_000])
def test_tails_of_very_many_entries_stay_within_their_stated_error(trials, p):
    """All of one kind, named as one group or as two: balls know the binomial's tail."""
    spread = (trials * p * (1 - p)) ** 0.5
    t = np.array([[int(trials * p + z * spread) for z in (-6, -3, -1, 0, 1, 3, 6)]])
    for first in (trials, trials // 3, 0):
        found, error = tails(np.array([first]), np.array([trials - first]), p, p, t)
        assert error < 1e-9
        with flint.ctx.workprec(200):
            for place, tail in zip(t[0].tolist(), found[0].tolist(), strict=True):
                true = flint.arb(p).beta_lower(place, trials - place + 1, 1)
                assert abs(flint.arb(tail) - true) < error / 50


def test_the_middle_is_among_the_first_shares_tried():
    """1,500 entries of which a middling share is the weakest: what is tried first reaches as far as the middle."""
    asked, looked = [], []

    def most(total, deletes):
        return np.minimum(1125 + np.abs(deletes * 1500 / np.maximum(total, 1) - 825) / 2, 1495)

    def test(adds, deletes):
        asked.append(1)
        return bool(adds + deletes <= most(adds + deletes, deletes))

    def sure(adds, deletes):
        looked.append(len(adds))
        return (adds + deletes) <= most(adds + deletes, deletes)

    assert Splits(test, sure, None, 1500).largest(2, 1400) == 1125
    assert (len(asked), sum(looked)) == (82, 108)


def test_of_splits_that_are_unsure_those_in_the_middle_are_asked_first():
    asked = []

    def test(adds, deletes):
        asked.append(deletes)
        return deletes != 108

    def sure(adds, deletes):
        return ~np.array(
            [any(100 <= r <= 108 for r in range(200 - a, d + 1)) for a, d in zip(adds, deletes, strict=True)]
        )

    assert Splits(test, sure, None, 400)._unsure(200, 0, 200) == 108
    assert asked == [104, 103, 105, 102, 106, 101, 107, 100, 108]
