"""Sizes over splits into additions and deletions are those of asking about every one, and take few questions."""

import time
from fractions import Fraction

import numpy as np
import pytest

from unswayed.theory import AddDelete, ceiling, certified_size, entrywise, regions
from unswayed.theory.entrywise import certify_pairs
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.regions import probabilities
from unswayed.theory.splits import Splits, _cut, about, last
from unswayed.theory.tails import Judge

NOISES = [
    AddDelete(0.4, 0.5),
    AddDelete(0.45, 0.5),
    AddDelete(0.2, 0.7),
    AddDelete(0.6, 0.55),
    AddDelete(0.05, 0.9),
]


class Known:
    """Attacks on whole numbers of entries that hold up to `most(total, deletes)`; what floats say of them, and who was asked."""

    def __init__(self, most, rng=None, span=1.0):
        self.most, self.rng, self.span, self.asked, self.looked = most, rng, span, [], 0

    def test(self, adds, deletes):
        self.asked.append((adds, deletes))
        return bool(adds + deletes <= self.most(np.array(adds + deletes), np.array(deletes)))

    def exact(self, adds, deletes):
        return self.most(adds + deletes, deletes) - (adds + deletes) + 0.5

    def margin(self, adds, deletes):
        """Exactly, or (with `rng`) what may be anything."""
        self.looked += len(adds)
        found = self.exact(adds, deletes)
        return found if self.rng is None else found + self.rng.normal(size=len(adds)) * 20

    def block(self, k, low, high):
        """The least margin of a block, and sometimes (with `rng`) nothing; wide blocks are proved by what dominates them."""
        self.looked += len(low)
        ends = zip(low.tolist(), high.tolist(), strict=True)
        wide = self.exact(k - low, high)
        found = np.array([self.exact(k - np.arange(a, b + 1), np.arange(a, b + 1)).min() for a, b in ends])
        found = np.where(high - low < self.span, found, np.minimum(wide, found))
        return found if self.rng is None else np.where(self.rng.random(len(low)) < 0.3, -1.0, found)


@pytest.mark.parametrize("start", [0, 3, 40, 69, 70, 71, 100, 10**9])
@pytest.mark.parametrize("most", [2, 3, 40, 70, 71, 99, 100])
def test_the_last_that_holds_is_found_from_anywhere(start, most):
    asked = []
    assert last(lambda k: asked.append(k) or k <= most, 2, 100, start) == most
    assert all(2 < k <= 100 for k in asked)
    assert last(lambda k: asked.append(k) or False, 5, 5, start) == 5


@pytest.mark.parametrize(
    ("low", "high", "start", "most", "asked"),
    [
        (2, 1000, 690, 690, [690, 691]),
        (2, 1000, 690, 700, [690, 691, 694, 703, 698, 700, 701]),
        (2, 1000, 990, 1000, [990, 991, 994, 1000]),  # to the end and not beyond
        (2, 1000, 690, 680, [690, 689, 686, 677, 681, 679, 680]),  # and down
        (2, 10, 0, 2, [3]),
    ],
)
def test_a_search_asks_few(low, high, start, most, asked):
    called = []
    assert last(lambda k: called.append(k) or k <= most, low, high, start) == most
    assert called == asked


@pytest.mark.parametrize("start", [1, 50, 5_000, 24_000, 10**6])
@pytest.mark.parametrize("most", [3, 60, 24_794, 999_999])
def test_floats_lead_to_the_last_in_few_looks(start, most):
    """With a margin that bends, as those of sets do."""
    looks = []

    def margin(k):
        looks.append(len(k))
        assert ((k > 2) & (k < 10**6)).all()
        return np.sqrt(most + 0.5) - np.sqrt(k)

    found = about(margin, 2, 10**6, start)
    assert abs(found - most) <= 1 + most // 10_000
    assert len(looks) <= 12
    assert max(looks) <= 32
    if start // 2 < most < 2 * start // 1.5:
        assert len(looks) <= 3


def test_looks_go_on_beside_the_first_and_stop_at_the_ends():
    assert about(lambda k: k * 0 + 1.0, 2, 500, 30) == 499
    assert about(lambda k: k * 0 - 1.0, 2, 500, 400) == 2
    assert about(lambda k: 1 / 0, 7, 8, 3) == 7
    assert about(lambda k: np.where(k < 300, np.nan, -1), 2, 500, 400) == 2  # what is not known does not hold


def test_blocks_are_cut_into_pieces_that_cover_them():
    rng = np.random.default_rng(0)
    for _ in range(50):
        low = np.sort(rng.choice(10_000, 12, replace=False))[::2]
        high = low + rng.integers(1, 400, len(low))
        widest = rng.uniform(-3, 300, len(low))
        begin, end = _cut(low, high, widest)
        assert (begin <= end).all()
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            mine = np.flatnonzero((begin >= a) & (end <= b))
            pieces = sorted(zip(begin[mine].tolist(), end[mine].tolist(), strict=True))
            covered = [r for x, y in pieces for r in range(x, y + 1)]
            assert set(range(a, b + 1)) <= set(covered)
    wide = _cut(np.array([0]), np.array([99]), np.array([30.0]))
    assert [x.tolist() for x in wide] == [[0, 25, 50, 75], [24, 49, 74, 99]]
    assert len(_cut(np.array([0]), np.array([9]), np.array([500.0]))[0]) == 2  # at least
    assert len(_cut(np.array([0]), np.array([9_999]), np.array([1.0]))[0]) == 64  # at most
    assert _cut(np.array([5]), np.array([7]), np.array([-9.0]))[0].tolist() == [5, 6, 7]
    assert _cut(np.array([5]), np.array([5]), np.array([9.0]))[0].tolist() == [5]


def steps(rng, cap):
    """Additions withstood after so many deletions, ever fewer: any set of attacks that holds whatever is smaller."""
    most = np.sort(rng.integers(2, int(rng.integers(4, 80)), cap + 1))[::-1]
    for r in range(3):
        most[r] = max(most[r], 2 - r, 0)
    return most


def test_the_size_over_splits_is_that_of_asking_about_every_one():
    """Whatever floats say, as long as what they prove is so."""
    rng, sizes = np.random.default_rng(0), set()
    for case in range(400):
        cap = int(rng.integers(4, 60))
        ones = None if case % 3 == 0 else int(rng.integers(0, cap + 1))
        adds = steps(rng, cap)
        known = Known(
            lambda total, deletes, adds=adds: adds[np.minimum(deletes, len(adds) - 1)] + deletes,
            rng if case % 2 else None,
            float(rng.choice([1, 5])),
        )
        splits = Splits(known.test, known, ones, cap)

        def all_hold(k, splits=splits, adds=adds):
            low, high = splits.ends(k)
            return all(k - r <= adds[r] for r in range(low, high + 1))

        right = max(k for k in range(cap + 1) if all(all_hold(j) for j in range(k + 1)))
        low = int(rng.integers(0, right + 1))
        found = splits.largest(low, int(rng.integers(1, 70)))
        assert found == right
        assert all(a + d > low for a, d in known.asked)
        room = cap if ones is None else ones, cap if ones is None else cap - ones
        assert all(0 <= a <= room[1] and 0 <= d <= room[0] for a, d in known.asked)
        sizes.add(found)
    assert len(sizes) > 10


def searched(weak, ones, cap=4000, span=8.0):
    """A search among attacks of which one share of deletions withstands least."""

    def most(total, deletes):
        return np.minimum(3000 + np.abs(deletes * cap / np.maximum(total, 1) - weak) / 2, 3995.0)

    known = Known(most, span=span)
    splits = Splits(known.test, known, ones, cap)

    def holds(k):
        low, high = splits.ends(k)
        return np.all(k <= most(k, np.arange(low, high + 1)))

    assert splits.largest(2, 3500) == max(k for k in range(2990, 3996) if holds(k))
    return known


@pytest.mark.parametrize(
    ("ones", "span", "effort"),
    [(None, 8.0, (24, 2512)), (2500, 8.0, (24, 1633)), (3100, 40.0, (24, 1308))],
)
def test_the_weakest_share_is_found_by_few_questions(ones, span, effort):
    """Near an end or in the middle; then all are proved in few blocks. So many questions, splits and blocks, and no more."""
    found = [searched(weak, ones, span=span) for weak in (1, 17, 900, 1500, 2000, 2800, 3100, 3990)]
    assert max(len(known.asked) for known in found) <= 3
    assert max(known.looked for known in found) <= 2000
    assert (sum(len(known.asked) for known in found), sum(known.looked for known in found)) == effort


def test_the_cost_of_an_entry_is_told_from_a_block_more():
    known, seen = Known(lambda total, deletes: total + 5.0), []
    known.margin = lambda adds, deletes: (
        seen.append((adds.tolist(), deletes.tolist())) or np.array([5.0, 4.0])
    )
    assert Splits(known.test, known, 300, 1000)._failing(900) is None
    assert seen == [([700, 715], [200, 200])]  # 1 + 900 // 64 entries more


def test_looks_at_numbers_of_entries_narrow_down():
    looks = []

    def margin(k):
        looks.append((int(k[0]), int(k[-1]), len(k)))
        return 24_794.5 - k

    assert about(margin, 2, 10**6, 24_000) == 24_794
    assert looks == [(11_999, 36_001, 29), (24_751, 25_499, 32)]
    looks.clear()
    assert about(margin, 2, 10**6, 1_000) == 24_794
    assert [look[:2] for look in looks[:3]] == [(499, 1501), (1502, 3505), (3506, 11521)]
    looks.clear()
    assert about(margin, 2, 100_000, 90_000) == 24_794
    assert looks[0] == (44_999, 99_999, 31)


def test_splits_have_the_share_that_is_wanted_or_the_nearest_there_is():
    some = Splits(lambda a, d: True, None, 6, 10)
    assert some.split(np.array([1, 4, 8, 10]), 1, 4).tolist() == [0, 1, 4, 6]
    assert some.split(np.array([5, 10]), 1, 1).tolist() == [5, 6]
    assert some.split(np.array([3, 7]), 0, 1).tolist() == [0, 3]
    assert [some.ends(k) for k in (3, 5, 9)] == [(0, 3), (1, 5), (5, 6)]
    free = Splits(lambda a, d: True, None, None, 10)
    assert free.split(np.array([4, 9]), 1, 3).tolist() == [1, 3]
    assert free.ends(7) == (0, 7)


def test_looks_are_taken_near_a_split_that_was_weak():
    known = Known(lambda total, deletes: 50 + np.abs(deletes - 300))
    splits = Splits(known.test, known, None, 1000)
    assert splits._weakest(1000, None) == (300, 50 - 1000 + 0.5)
    before = known.looked
    assert splits._weakest(1000, 310)[0] == 300
    assert known.looked - before == 43
    assert splits._weakest(1000, 400)[0] == 272  # the best of what is near, and of a few further on
    assert splits._weakest(1000, 2)[0] == 258
    assert known.asked == []


def test_one_target_has_the_size_it_has_among_many():
    rng, noise = np.random.default_rng(0), AddDelete(0.15, 0.35)
    top = rng.uniform(0.5, 1, 300) ** rng.choice([1, 0.05], 300)
    rest = rng.uniform(0, 1 - top)
    together = certified_size(top, rest, noise, 12)
    alone = [int(certified_size(a, b, noise, 12)) for a, b in zip(top, rest, strict=True)]
    assert alone == together.tolist()
    assert max(alone) > 3


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ones", [None, 12, 300])
def test_sizes_are_those_of_every_split(noise, ones, monkeypatch):
    pairs = np.array([0.9, 0.99, 0.999, 0.7]), np.array([0.1, 0.001, 0.001, 0.05])
    quick = certified_size(*pairs, noise, 320, ones=ones)
    monkeypatch.setattr(entrywise, "LONE", 0)  # every split, one by one
    assert quick.tolist() == certified_size(*pairs, noise, 320, ones=ones).tolist()
    assert quick.max() > 30


def test_margins_far_below_nothing_overflow_without_a_word():
    """Where p_add is nearly 1 a set that is too heavy is bounded by a number beyond all floats; the size is exact all the same."""
    noise, top, rest = AddDelete(p_add=0.99999, p_delete=0.01), 0.999, 1e-8
    size = int(certified_size(top, rest, noise, 300))
    pairs = [(k - r, r) for k in (size, size + 1) for r in range(k + 1)]
    held = [certify_pairs(np.array([top]), np.array([rest]), noise, *pair)[0] for pair in pairs]
    assert all(held[: size + 1])
    assert not all(held[size + 1 :])


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
    judge = Judge.of(0.99, 0.01, *probabilities(noise))
    weak = np.flatnonzero(judge.margin(size + 1 - deletes, deletes) < 0)
    assert not any(certify_pairs(*pair, noise, size + 1 - d, d)[0] for d in weak[[0, -1]].tolist())
    for d in [*ends, *(size - d for d in ends), *range(0, size + 1, size // 20)]:
        assert certify_pairs(*pair, noise, size - d, d)[0]


def test_sizes_near_a_million_take_neither_minutes_nor_memory():
    begin = time.process_time()
    size = ceiling(AddDelete(0.9, 0.099), 10_000, 0.001, 7)
    assert time.process_time() - begin < 0.3
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
