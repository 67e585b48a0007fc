"""Ballots against brute force: every subset of small rows, in plain Python integers."""

from itertools import combinations

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory.ballots import Linear, injected_sizes, largest_sums, spare_of


def winner(scores):
    """The class with the highest score, the lowest of those that tie."""
    return max(range(len(scores)), key=lambda c: (scores[c], -c))


def answer(base, effects, present):
    classes = range(len(base))
    return winner([base[c] + sum(e[c] for e, s in zip(effects, present, strict=True) if s) for c in classes])


def flips(base, effects, present, change="any"):
    """The (adds, deletes) of every set of entries whose change changes the answer."""
    n, clean = len(present), answer(base, effects, present)
    for k in range(n + 1):
        for chosen in combinations(range(n), k):
            adds = sum(not present[i] for i in chosen)
            if (change == "adds" and adds < k) or (change == "deletes" and adds):
                continue
            attacked = [bool(s) != (i in chosen) for i, s in enumerate(present)]
            if answer(base, effects, attacked) != clean:
                yield adds, k - adds


def true_size(base, effects, present, change):
    return min((a + r for a, r in flips(base, effects, present, change)), default=len(present) + 1) - 1


def random_case(rng):
    classes, n = int(rng.integers(2, 5)), int(rng.integers(0, 8))
    reach = int(rng.choice([1, 2, 5, 40]))  # small values tie often
    base = rng.integers(-3 * reach, 3 * reach + 1, classes)
    effects = rng.integers(-reach, reach + 1, (n, classes))
    present = rng.random(n) < rng.random()
    return base.tolist(), effects.tolist(), present.tolist()


def linear(base, effects, present):
    table = np.array(effects, dtype=np.int64).reshape(len(present), len(base))
    there = np.array(present, dtype=bool)
    return Linear.of_scores([np.array(base) + table[there].sum(axis=0)], table[None], there[None])


CASES = [random_case(np.random.default_rng(seed)) for seed in range(400)]


@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
def test_sizes_are_those_of_brute_force(change):
    for base, effects, present in CASES:
        case = linear(base, effects, present)
        assert case.label[0] == answer(base, effects, present)
        expected = true_size(base, effects, present, change)
        assert case.sizes(change)[0] == min(expected, len(present)), (base, effects, present)


@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
def test_a_witness_flips_the_answer_with_one_change_more_than_the_size(change):
    seen = 0
    for base, effects, present in CASES:
        case = linear(base, effects, present)
        witness = case.witness(0, change)
        if witness is None:
            assert not list(flips(base, effects, present, change))
            assert case.sizes(change)[0] == len(present)
            continue
        seen += 1
        attacked = [bool(s) != (i in witness) for i, s in enumerate(present)]
        assert len(set(witness.tolist())) == len(witness) == case.sizes(change)[0] + 1
        assert answer(base, effects, attacked) != case.label[0]
        allowed = {"any": {True, False}, "adds": {False}, "deletes": {True}}[change]
        assert {bool(present[i]) for i in witness} <= allowed
    assert seen > 50


def test_every_cell_of_the_grid_is_that_of_brute_force():
    for base, effects, present in CASES[:250]:
        cells = linear(base, effects, present).grid(4, 3)[0]
        found = set(flips(base, effects, present))
        for a in range(5):
            for r in range(4):
                assert cells[a, r] == (not any(x <= a and y <= r for x, y in found)), (base, effects, present)


def test_many_targets_at_once_are_each_as_alone(monkeypatch):
    rng = np.random.default_rng(1)
    scores, effects = rng.integers(-9, 9, (40, 3)), rng.integers(-4, 5, (40, 11, 3))
    present = rng.random((40, 11)) < 0.4
    together = Linear.of_scores(scores, effects, present)
    alone = [
        Linear.of_scores(scores[i : i + 1], effects[i : i + 1], present[i : i + 1]).sizes()[0]
        for i in range(40)
    ]
    monkeypatch.setattr("unswayed.theory.ballots.AT_ONCE", 30)
    assert together.sizes().tolist() == alone
    assert len(together) == 40
    shared = Linear.of_scores(scores, effects[:1], present)
    assert shared.sizes()[3] == Linear.of_scores(scores[3:4], effects[:1], present[3:4]).sizes()[0]


def test_ties_go_to_the_lower_class():
    assert spare_of([[2, 2], [1, 2]]).tolist() == [[0, 0], [0, 0]]
    assert Linear.of_scores([[2, 2]], [[[0, 1]]], [[True]]).sizes().tolist() == [1]
    assert Linear.of_scores([[2, 2]], [[[0, 1]]], [[False]]).sizes().tolist() == [0]
    assert Linear.of_scores([[1, 2]], [[[1, 0]]], [[False]]).sizes().tolist() == [0]


def test_a_margin_with_nothing_to_spare_promises_nothing():
    case = Linear([0, 0], [[0, -1], [0, 0]], [[[0, 1]], [[0, 1]]], [[False], [False]])
    assert case.sizes().tolist() == [-1, 1]
    assert case.grid(1, 0).tolist() == [[[False], [False]], [[True], [True]]]
    assert case.witness(0).tolist() == []


def test_entries_that_do_not_exist_are_not_counted():
    case = Linear([0], [[0, 5]], [[[0, 0], [0, 0], [0, 0]]], [[False] * 3], entries=[2])
    assert case.sizes().tolist() == [2]


def test_fakes_are_bounded_by_the_worst_that_one_can_say():
    label, spare = [1, 1, 1, 1], [[7, 0], [6, 0], [-1, 0], [9, 0]]
    harm = [[3, 0], [3, 0], [3, 0], [0, 9]]
    assert injected_sizes(label, spare, harm, most=50).tolist() == [2, 2, -1, 50]
    assert injected_sizes([0], [[0, 900]], [[0, 1]], most=50).tolist() == [50]
    assert injected_sizes([0], [[0, 0]], [[0, 1]], most=50).tolist() == [0]
    assert injected_sizes([0], [[0, 0]], [[0, 0]], most=50).tolist() == [50]


def test_the_sums_of_the_largest_harms():
    assert largest_sums(np.array([[1, 5, 3], [0, 0, 2]]), 2).tolist() == [[0, 5, 8], [0, 2, 2]]
    assert largest_sums(np.array([[0, 0, 2], [1, 5, 3]]), 2).tolist() == [[0, 2, 2], [0, 5, 8]]
    assert largest_sums(np.array([[1, 5]]), 4).tolist() == [[0, 5, 6, 6, 6]]
    assert largest_sums(np.zeros((1, 0), dtype=np.int64), 2).tolist() == [[0, 0, 0]]
    assert largest_sums(np.array([[4]]), 0).tolist() == [[0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Linear.of_scores([[1.0, 2.0]], [[[0, 1]]], [[True]]), "`scores` must be whole numbers"),
        (lambda: Linear.of_scores([1, 2], [[[0, 1]]], [[True]]), "in 2 dimensions"),
        (lambda: Linear.of_scores([[1, 2]], [[[0, 1, 2]]], [[True]]), "does not fit scores"),
        (lambda: Linear.of_scores([[1, 2]], [[[0, 1]]], [[1]]), "`present` must be true or false"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]] * 3], [[True, False]]), "does not fit"),
        (lambda: Linear([0, 0], [[0, 1], [0, 1]], [[[0, 1]]], [[True]]), "`present` must be true or false"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [[True], [True]]), "`present` must be true or false"),
        (
            lambda: Linear([[0]], [[0, 1]], [[[0, 1]]], [[True]]),
            r"`label` must be whole numbers in 1 dimension\.",
        ),
        (lambda: Linear([2], [[0, 1]], [[[0, 1]]], [[True]]), "one of the classes"),
        (lambda: Linear([-1], [[0, 1]], [[[0, 1]]], [[True]]), "one of the classes"),
        (
            lambda: Linear([[0]], [[0, 1]], [[[0, 1]]], [[True]]),
            r"`label` must be whole numbers in 1 dimension\.$",
        ),
        (lambda: Linear([0, 0], [[0, 1]], [[[0, 1]]], [[True]]), "one number a target"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [[True]], entries=[2]), "at most the entries"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [[True]], entries=[-1]), "at most the entries"),
        (lambda: Linear([0], [[0, 1]], [[[0, 2**61]] * 2], [[True] * 2]), "coarser fixed point"),
        (lambda: Linear([0], [[0, -(2**62)]], [[[0, 1]]], [[True]]), "coarser fixed point"),
        (lambda: spare_of(np.array([[2**63, 0]], dtype=np.uint64)), "coarser fixed point"),
        (lambda: linear(*CASES[0]).sizes("all"), "change must be one of any, adds, deletes"),
        (lambda: linear(*CASES[0]).witness(0, "all"), "change must be one of"),
        (lambda: linear(*CASES[0]).grid(-1, 0), "adds must be a whole number"),
        (lambda: injected_sizes([0], [[0, 1]], [[0, 1, 2]], most=1), "do not fit together"),
        (lambda: injected_sizes([0, 0], [[0, 1]], [[0, 1]], most=1), "do not fit together"),
        (lambda: injected_sizes([0], [[0, 1]], [[0, 1]], most=-1), "most must be a whole number"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [True]), "`present` must be true or false"),
        (lambda: Linear([0, 0], [[0, 1]] * 2, [[[0, 1]]], [[True]]), "`present` must be true or false"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [[True]] * 2), "`present` must be true or false"),
        (lambda: Linear([0, 0], [[0, 1]], [[[0, 1]]], [[True]], entries=[1, 1]), "one number a target"),
        (lambda: Linear([0], [[0, 1]], [[[0, 1]]], [[True]], entries=[1, 1]), "one number a target"),
        (lambda: Linear.of_scores([[1, 2]] * 3, [[[0, 1]]] * 2, [[True]] * 3), "does not fit scores"),
        (lambda: Linear([0], [[0, 2**61]], [[[0, 2**61]]], [[True]]), "coarser fixed point"),
        (lambda: Linear([0], [[0, 2**61]], [[[0, -(2**61)]]], [[True]]), "coarser fixed point"),
        (
            lambda: Linear([0], [[0, 2**62]], np.zeros((1, 0, 2), int), np.zeros((1, 0), bool)),
            "coarser fixed point",
        ),
        (lambda: spare_of(np.array([[2**62, 0]], dtype=np.uint64)), "coarser fixed point"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_unsigned_numbers_are_numbers():
    assert spare_of(np.array([[3, 1]], dtype=np.uint64)).tolist() == [[0, 2]]


def test_sums_near_the_limit_are_still_exact():
    big = 2**59
    case = Linear([0], [[0, 2 * big]], [[[0, big], [0, big]]], [[True, True]])
    assert case.sizes().tolist() == [2]


def test_gains_that_all_targets_share_stay_written_once():
    rng = np.random.default_rng(5)
    spare, present = rng.integers(0, 9, (4, 3)), rng.random((4, 6)) < 0.5
    shared = Linear(np.zeros(4, int), spare, rng.integers(-3, 4, (1, 6, 3)), present)
    some = shared.take([2, 0])
    assert some.gains.strides[0] == 0
    assert np.array_equal(some.sizes(), shared.sizes()[[2, 0]])
    apart = Linear(np.zeros(4, int), spare, shared.gains.copy(), present)
    assert np.array_equal(apart.take([2, 0]).sizes(), some.sizes())
    assert len(shared.take([])) == 0


def test_what_just_fits_is_taken():
    largest = Linear([0], [[0, 2**61 - 1]], [[[0, 2**61]]], [[True]])
    assert largest.sizes().tolist() == [0]
    assert Linear([0], [[0, 1]], [[[0, 1]]], [[True]], entries=[0]).entries.tolist() == [0]
    nothing = Linear([0], [[0, 2**62 - 1]], np.zeros((1, 0, 2), int), np.zeros((1, 0), bool))
    assert nothing.sizes().tolist() == [0]
    assert nothing.witness(0) is None
    assert spare_of(np.array([[3, 1]], dtype=np.uint64)).tolist() == [[0, 2]]
    assert spare_of(np.array([[2**62 - 1, 0]], dtype=np.uint64)).tolist() == [[0, 2**62 - 1]]
    assert spare_of(np.array([[100, -100]], dtype=np.int8)).tolist() == [[0, 200]]
    assert spare_of([[1, 5]], [0]).tolist() == [[0, -4]]
    assert spare_of([[5, 1]], [1]).tolist() == [[-5, 0]]


def test_fakes_that_may_or_may_not_hurt():
    assert injected_sizes([0] * 4, [[0, 0], [0, 2], [0, 3], [0, 4]], [[0, 3]] * 4, most=9).tolist() == [
        0,
        0,
        1,
        1,
    ]
    assert injected_sizes([0, 0], [[0, 8], [0, 8]], [[0, 1], [0, -1]], most=9).tolist() == [8, 9]
    assert injected_sizes([0, 1], [[0, 5, 2], [3, 0, 9]], [[0, 1, 1], [1, 0, 1]], most=9).tolist() == [2, 3]
    assert injected_sizes([0], [[0, 5]], [[0, 0]], most=0).tolist() == [0]


def test_the_cheapest_attack_of_all_rivals_is_shown():
    case = Linear([0], [[0, 3, 1]], [[[0, 1, 1], [0, 1, 1], [0, 2, 1], [0, 3, 0]]], [[True] * 4])
    assert case.sizes().tolist() == [1]
    assert len(case.witness(0)) == 2
    other = Linear([1], [[1, 0, 3]], [[[1, 0, 1], [1, 0, 1], [1, 0, 2], [0, 0, 3]]], [[True] * 4])
    assert len(other.witness(0)) == other.sizes()[0] + 1 == 2
    assert other.witness(0, "adds") is None
    assert len(other.witness(0, "deletes")) == 2


def test_targets_are_taken_by_any_index():
    case = Linear(
        [0, 1, 0], [[0, 3], [2, 0], [0, 9]], [[[0, 2]], [[2, 0]], [[0, 2]]], [[True]] * 3, entries=[1, 1, 0]
    )
    assert case.take(1).label.tolist() == [1]
    assert case.take(slice(1, 3)).entries.tolist() == [1, 0]
    assert case.take(np.array([True, False, True])).spare.tolist() == [[0, 3], [0, 9]]
    assert case.take([1, 0]).gains.tolist() == [[[2, 0]], [[0, 2]]]
    assert case.take([]).present.shape == (0, 1)
