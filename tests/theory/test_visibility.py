"""Laws of noise that only hides, against the definition over everything that may be seen."""

from fractions import Fraction
from itertools import product
from math import comb

import flint
import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory import Keep, certified_size, hiding
from unswayed.theory.visibility import Seats, Unseen

from .neyman_pearson import entry_law, holds, keep_law, worst

PAIRS = [(1.0, 0.0), (0.999, 0.001), (0.9, 0.05), (0.75, 0.25), (0.6, 0.1), (0.4, 0.2), (0.875, 0.0)]
PAIRS += [(0.5, 0.375), (0.3, 0.0), (0.96875, 0.015625), (0.7, 0.0625)]


def ask(law, top, rest, adds, deletes, ones=None, times=1) -> bool:
    held = None if ones is None else np.array([ones])
    cell = np.array([top]), np.array([rest]), np.array([adds]), np.array([deletes])
    return bool(law.certified(*cell, held, times)[0])


def size(law, top, rest, cap, ones=None, change="any") -> int:
    held = None if ones is None else np.array([ones])
    return int(law.size(np.array([top]), np.array([rest]), np.array([cap]), held, change)[0])


def attacked(ones: int, adds: int, deletes: int) -> range:
    """A row of `ones` ones, the first `deletes` of them gone and `adds` others there."""
    return range(deletes, ones + adds)


KEEPS = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 3), (2, 5), (3, 3), (3, 6), (4, 5)]


@pytest.mark.parametrize(("kept", "seats"), KEEPS)
@pytest.mark.parametrize("times", [1, 2])
def test_keep_is_the_definition_for_every_attack_on_small_rows(kept, seats, times):
    law, verdicts = Seats(kept, seats), set()
    for ones, adds in product(range(6), range(5)):
        before = keep_law(range(ones), kept, seats)
        for deletes in range(ones + 1):
            after = keep_law(attacked(ones, adds, deletes), kept, seats)
            for top, rest in PAIRS:
                expected = holds(before, after, top, rest, times)
                assert ask(law, top, rest, adds, deletes, ones, times) == expected
                verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(9, 10), Fraction(7, 8)])
@pytest.mark.parametrize("adding", [False, True])
def test_unseen_entries_are_the_definition(p, adding):
    law, entries, verdicts = Unseen(p, adding), 6, set()
    noise = (p, Fraction(0)) if adding else (Fraction(0), p)
    before = entry_law(range(3), entries, *noise)
    for adds, deletes in product(range(4), range(4)):
        after = entry_law(attacked(3, adds, deletes), entries, *noise)
        for top, rest in PAIRS:
            expected = holds(before, after, top, rest)
            assert ask(law, top, rest, adds, deletes) == expected
            verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    "law", [Seats(2, 4), Seats(3, 3), Unseen(Fraction(3, 4)), Unseen(Fraction(3, 4), True)]
)
def test_worst_case_is_the_definition_in_floats(law):
    ones, entries = 3, 6
    for adds, deletes, (top, rest) in product(range(4), range(4), PAIRS):
        if isinstance(law, Seats):
            worlds = [
                keep_law(attacked(ones, a, d), law.kept, law.seats) for a, d in ((0, 0), (adds, deletes))
            ]
        else:
            noise = (law.p, Fraction(0)) if law.adding else (Fraction(0), law.p)
            worlds = [entry_law(attacked(ones, a, d), entries, *noise) for a, d in ((0, 0), (adds, deletes))]
        arrays = np.array([top]), np.array([rest]), np.array([adds]), np.array([deletes]), np.array([ones])
        got = [float(part[0]) for part in law.worst_case(*arrays)]
        assert got == pytest.approx([float(part) for part in worst(*worlds, top, rest)], abs=1e-14)


def slow_size(fails, cap: int, ones: int, change: str) -> int:
    """The largest K for which no feasible attack of at most K entries fails."""
    for k in range(1, cap + 1):
        for deletes in range(min(k, ones) + 1):
            adds = k - deletes
            if adds > cap - ones or (change == "adds" and deletes) or (change == "deletes" and adds):
                continue
            if fails(adds, deletes):
                return k - 1
    most = {"any": cap, "adds": cap - ones, "deletes": ones}
    return most[change]


@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
@pytest.mark.parametrize(("kept", "seats"), [(1, 3), (2, 4), (3, 5), (2, 2)])
def test_the_size_of_keep_is_the_one_of_the_definition(kept, seats, change):
    law, cap, found = Seats(kept, seats), 8, set()
    for ones, (top, rest) in product(range(cap + 1), PAIRS):

        def fails(adds, deletes, ones=ones, top=top, rest=rest):
            before = keep_law(range(ones), kept, seats)
            return not holds(before, keep_law(attacked(ones, adds, deletes), kept, seats), top, rest)

        expected = slow_size(fails, cap, ones, change)
        assert size(law, top, rest, cap, ones, change) == expected
        found.add(expected)
    assert len(found) > 1


@pytest.mark.parametrize(
    ("kept", "seats", "ones", "cap", "top", "rest"),
    [(1, 10, 2, 5, 0.7763, 0.2206), (2, 11, 2, 5, 0.9809, 0.0019)],
)
def test_under_keep_the_extreme_splits_need_not_be_the_worst(kept, seats, ones, cap, top, rest):
    """All entries changed, no attack is left but one, and it holds; a smaller one does not."""
    before = keep_law(range(ones), kept, seats)

    def fails(adds, deletes):
        return not holds(before, keep_law(attacked(ones, adds, deletes), kept, seats), top, rest)

    right = slow_size(fails, cap, ones, "any")
    assert not fails(cap - ones, ones)
    assert size(Seats(kept, seats), top, rest, cap, ones) == right == 2


@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
@pytest.mark.parametrize("adding", [False, True])
@pytest.mark.parametrize("p", [Fraction(3, 4), Fraction(15, 16)])
def test_the_extreme_splits_are_the_worst_ones(p, adding, change):
    law, cap = Unseen(p, adding), 14
    for ones, (top, rest) in product((0, 1, 5, 14), PAIRS):

        def fails(adds, deletes, top=top, rest=rest):
            return not law.decide(top, rest, adds, deletes)

        assert size(law, top, rest, cap, ones, change) == slow_size(fails, cap, ones, change)


def test_published_sizes_of_keep():
    degrees, found = (3, 90, 500), []
    assert [size(Seats(5, 50), 0.999, 0.001, 5_000, d, "adds") for d in degrees] == [6, 13, 73]
    assert certified_size(0.999, 0.001, Keep(5, 50), 5_000, ones=degrees, change="adds").tolist() == [
        6,
        13,
        73,
    ]
    for d in degrees:  # nothing new is seen with b; additions need b(1 + p_top − p_rest) > 1
        unseen = (
            Fraction(comb(max(d, 50), 5), comb(max(d + k, 50), 5)) if d >= 50 else None for k in range(99)
        )
        blanks = (Fraction(comb(50 - k, 5), comb(50, 5)) for k in range(46))
        gain = 1 + Fraction(0.999) - Fraction(0.001)
        found.append(max(k for k, b in enumerate(unseen if d >= 50 else blanks) if b * gain > 1))
    assert found == [6, 13, 73]


def test_additions_alone_and_deletions_alone_have_closed_forms():
    """Nothing seen with b: additions need b(1 + p_top − p_rest) > 1, deletions p_top − p_rest > 1 − a."""
    p, top, rest = Fraction(9, 10), Fraction(0.95), Fraction(0.02)
    adds = max(k for k in range(99) if p**k * (1 + top - rest) > 1)
    deletes = max(k for k in range(99) if top - rest > 1 - p**k)
    assert size(Unseen(p), 0.95, 0.02, 200, change="adds") == adds == 6
    assert size(Unseen(p), 0.95, 0.02, 200, change="deletes") == deletes == 25


def test_a_certainty_certifies_only_what_stays_hidden_half_of_the_time():
    """p_rest = 0 certifies everything under noise that may show anything, but not here."""
    assert size(Unseen(Fraction(9, 10)), 1.0, 0.0, 1_000) == 6  # 0.9^6 > 1/2 > 0.9^7
    assert size(Seats(1, 2), 1.0, 0.0, 50, ones=2, change="adds") == 1  # two of four seats: a tie


def test_deletions_are_not_monotone_under_keep():
    """An attack fails while one that deletes more would pass: a cell counts only if all smaller ones hold."""
    law, ones, adds, top, rest = Seats(1, 14), 3, 6, 0.824, 0.0176
    assert [ask(law, top, rest, adds, r, ones) for r in range(4)] == [False, False, False, True]
    deletes = np.arange(5)
    cells = np.full(5, top), np.full(5, rest), np.full(5, adds), deletes, np.full(5, ones)
    assert not law.covered(*cells).any()
    assert size(law, top, rest, 20, ones) < adds + 3


def test_what_cannot_be_deleted_is_not_asked_about():
    for law in (Seats(2, 4), Unseen(Fraction(3, 4))):
        cells = np.full(4, 0.95), np.full(4, 0.01), np.zeros(4, int), np.array([2, 3, 4, 99]), np.full(4, 3)
        verdicts = law.covered(*cells).tolist()
        assert verdicts[1] == verdicts[2] == verdicts[3]
        assert verdicts == [
            all(ask(law, 0.95, 0.01, 0, r, 3) for r in range(min(d, 3) + 1)) for d in (2, 3, 4, 99)
        ]


@pytest.mark.parametrize(("kept", "seats"), KEEPS)
def test_additions_are_monotone_under_keep(kept, seats):
    adds, law = np.arange(9), Seats(kept, seats)
    for ones, deletes, (top, rest) in product(range(6), range(3), PAIRS):
        if deletes <= ones:
            cells = np.full(9, top), np.full(9, rest), adds, np.full(9, deletes), np.full(9, ones)
            verdicts = law.certified(*cells).tolist()
            assert verdicts == sorted(verdicts, reverse=True)


def test_keep_needs_the_degree():
    with pytest.raises(InputError, match="ones="):
        ask(Seats(2, 4), 0.9, 0.1, 1, 0)
    with pytest.raises(InputError, match="ones="):
        size(Seats(2, 4), 0.9, 0.1, 10)


def test_an_unknown_change_is_refused():
    with pytest.raises(InputError, match="any, adds, deletes"):
        size(Unseen(Fraction(1, 2)), 0.9, 0.1, 10, change="both")


def test_equal_probabilities_abstain_and_nothing_asked_is_nothing_answered():
    law = Seats(2, 4)
    assert size(law, 0.5, 0.5, 10, 3) == -1
    assert size(law, 0.51, 0.49, 0, 0) == 0
    empty, none = np.zeros(0), np.zeros(0, dtype=np.int64)
    assert law.size(empty, empty, none, none).shape == (0,)
    assert law.certified(empty, empty, none, none, none).shape == (0,)


LAWS = [Seats(5, 50), Seats(40, 300), Seats(3, 3), Unseen(Fraction(9, 10)), Unseen(Fraction(96, 100), True)]


@pytest.mark.parametrize("law", LAWS)
def test_masses_stay_within_their_stated_error(law):
    rng = np.random.default_rng(5)
    ones = rng.integers(0, 400, 40)
    adds, deletes = rng.integers(0, 60, 40), rng.integers(0, ones + 1)
    common, error = law.common(adds, deletes, ones), law.error(adds, deletes)
    with flint.ctx.workprec(400):
        for i in range(40):
            exact = law.balls(int(adds[i]), int(deletes[i]), int(ones[i]))
            assert len(exact) == common[0].shape[1]
            for j, masses in enumerate(exact):
                for got, true in zip((common[0][i, j], common[1][i, j]), masses, strict=True):
                    assert abs(flint.arb(float(got)) - true) <= true * float(error[i]) + 1e-300


@pytest.mark.parametrize("law", LAWS)
def test_floats_decide_only_what_they_can(law, monkeypatch):
    """Beside the step of every attack both sides agree with balls, and there balls were asked."""
    asked = []
    original = hiding.Regions.decide
    monkeypatch.setattr(
        hiding.Regions, "decide", lambda self, *a, **k: asked.append(a) or original(self, *a, **k)
    )
    rng, steps = np.random.default_rng(6), 0
    for _ in range(12):
        ones = int(rng.integers(1, 200))
        adds, deletes = int(rng.integers(0, 3)), int(rng.integers(0, min(3, ones) + 1))
        low, high = 0.5, 1.0
        for _ in range(70):
            middle = (low + high) / 2
            sure = original(law, middle, 1 - middle, adds, deletes, ones)
            low, high = (low, middle) if sure else (middle, high)
        if high == 1.0 or high < 0.51:
            continue
        steps += 1
        for top in (np.nextafter(low, 0), low, high, np.nextafter(high, 1)):
            assert ask(law, top, 1 - top, adds, deletes, ones) == original(
                law, top, 1 - top, adds, deletes, ones
            )
        asked.clear()
        assert not ask(law, low - 1e-6, 1 - low + 1e-6, adds, deletes, ones)
        assert ask(law, min(high + 1e-6, 1.0), 1e-9, adds, deletes, ones)
        assert not asked
    assert steps > 3


def test_regions_that_underflow_are_left_to_balls():
    """A row so long that what is kept of it can hardly be blank: float64 has no word for its mass."""
    law, ones = Seats(120, 5_000), 4_999
    x, y = law.common(np.array([0]), np.array([4_999]), np.array([ones]))
    assert x.shape == (1, 121)
    for top, rest in [(1.0, 0.0), (0.9, 0.0), (0.9, 1e-300)]:
        assert ask(law, top, rest, 0, 4_999, ones) == law.decide(top, rest, 0, 4_999, ones)
        assert ask(law, top, rest, 1, 1, ones) == law.decide(top, rest, 1, 1, ones)
    assert y.sum() > 0.99


def test_a_region_that_float64_calls_impossible_is_left_to_balls():
    """Half to the power of 1,100 is no float, but it is not 0: a certainty has no mass there."""
    law = Unseen(Fraction(1, 2))
    assert law.common(np.array([0]), np.array([1100]), np.array([0]))[0].tolist() == [[0.0]]
    assert ask(law, 1.0, 0.0, 0, 1100)
    assert not ask(law, 1.0, 0.0, 1, 1100)
    assert not ask(law, 0.999, 0.0, 0, 1100)


def test_rest_is_clipped_to_what_the_top_leaves():
    for law, ones in ((Seats(5, 50), 90), (Unseen(Fraction(9, 10)), None)):
        assert size(law, 0.9, 0.5, 200, ones) == size(law, 0.9, 1 - 0.9, 200, ones) > 0
        assert size(law, 0.9, 0.95, 200, ones) == -1


def test_more_cells_than_are_weighed_at_a_time():
    """Each part of a long list is weighed, in its place."""
    cells, law = 3 * 2**16 + 5, Unseen(Fraction(9, 10))
    adds = np.arange(cells) % 9
    top = np.full(cells, 0.95)
    found = law.certified(top, 1 - top, adds, np.zeros_like(adds))
    few = law.certified(top[:9], 1 - top[:9], adds[:9], np.zeros(9, dtype=np.int64))
    assert np.array_equal(found, few[adds])
    assert 0 < few.sum() < 9


def test_rounding_is_granted_what_is_stated():
    two, five = np.array([2, 0]), np.array([5, 1])
    assert (Unseen(Fraction(1, 2)).error(two, five) == [16 * 11 * 2.0**-53, 16 * 5 * 2.0**-53]).all()
    assert (Seats(3, 9).error(two, five) == [16 * 7 * 2.0**-53] * 2).all()
    assert hiding.PRECISIONS == (128, 512, 2048, 8192)
    assert np.finfo(float).eps / 2 == hiding.UNIT
