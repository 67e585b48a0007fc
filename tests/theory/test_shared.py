"""How many targets one attacker can flip: against every attack on small cases."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse

from unswayed.errors import InputError
from unswayed.theory import shared
from unswayed.theory.shared import flipped_anywhere, flipped_apart, flipped_rows, flipped_within


def most(sizes, counts_for, changes, budget: int) -> int:
    """The most targets that any set of at most `budget` changes takes beyond their size."""
    best = 0
    for k in range(budget + 1):
        for chosen in combinations(changes, min(k, len(changes))):
            hit = sum(sum(counts_for(change, i) for change in chosen) > size for i, size in enumerate(sizes))
            best = max(best, hit)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_attack_on_rows_flips_more(seed):
    rng = np.random.default_rng(seed)
    nodes, targets = 6, 4
    sizes = rng.integers(0, 4, targets)
    pairs = list(combinations(range(nodes), 2))
    for budget in range(6):
        found = most(sizes, lambda pair, i: i in pair, pairs, budget)
        assert found <= flipped_rows(sizes, budget) <= flipped_anywhere(sizes, budget)


def test_the_bound_on_rows_is_reached():
    """Three targets, all links between them: three changes flip all three of size 1."""
    pairs = list(combinations(range(5), 2))
    assert most([1, 1, 1], lambda pair, i: i in pair, pairs, 3) == 3 == flipped_rows([1, 1, 1], 3)
    assert flipped_rows([1, 1, 1], 2) == 1


@pytest.mark.parametrize("seed", range(8))
def test_separate_targets_share_no_change(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 3)
    changes = [(i, j) for i in range(3) for j in range(5)]
    for budget in range(6):
        assert flipped_apart(sizes, budget) == most(sizes, lambda change, i: change[0] == i, changes, budget)


def test_everywhere_counts_those_within_reach():
    assert [flipped_anywhere([0, 1, 1, 7], b) for b in range(4)] == [0, 1, 3, 3]


@pytest.mark.parametrize("seed", range(20))
def test_the_programme_is_never_below_the_best_attack_nor_above_counting(seed):
    rng = np.random.default_rng(seed)
    edges, targets = 8, 6
    fields = [np.flatnonzero(rng.random(edges) < 0.5) for _ in range(targets)]
    sizes = rng.integers(0, 3, targets)
    for budget in range(1, 5):
        found = most(sizes, lambda edge, i: edge in fields[i], range(edges), budget)
        bound = flipped_within(sizes, fields, edges, budget)
        assert found <= bound <= flipped_anywhere(sizes, budget)


def test_the_programme_sees_what_counting_cannot():
    fields = [[i] for i in range(50)]
    assert flipped_within([0] * 50, fields, 50, budget=7) == 7 < flipped_anywhere([0] * 50, 7) == 50


@pytest.mark.parametrize("seed", range(10))
def test_any_prices_at_all_prove_a_bound(seed, monkeypatch):
    """Whatever the solver says, even nonsense, the number reported is one that weak duality proves."""
    rng = np.random.default_rng(seed)
    fields = [np.flatnonzero(rng.random(7) < 0.6) for _ in range(5)]
    sizes = rng.integers(0, 3, 5)
    original = shared._dual
    monkeypatch.setattr(
        shared,
        "_dual",
        lambda needs, member, prices, budget: original(needs, member, rng.normal(size=len(prices)), budget),
    )
    for budget in (1, 2, 3):
        found = most(sizes, lambda edge, i: edge in fields[i], range(7), budget)
        assert flipped_within(sizes, fields, 7, budget) >= found


def test_the_dual_is_exact():
    """Two targets that share one edge: u = 1/2 each and λ = 1 prove one flip for a budget of one."""
    member = sparse.csr_matrix(np.array([[1.0, 1.0]]))
    assert shared._dual(np.array([1, 1]), member, np.array([0.5, 0.5, 0.0]), 1) == 2
    assert shared._dual(np.array([1, 1]), member, np.array([0.5, 0.5, 1.0]), 1) == 2
    assert shared._dual(np.array([1, 1]), member, np.array([1.0, 0.0, 0.5]), 1) == 2
    assert shared._dual(np.array([2, 2]), member, np.array([0.0, 0.0, 0.0]), 5) == 2
    assert shared._dual(np.array([2]), sparse.csr_matrix(np.ones((4, 1))), np.array([0.5, 0.5]), 3) == 1


def test_targets_out_of_reach_and_empty_fields():
    assert flipped_within([5, 0], [[0, 1], []], 2, budget=3) == 0
    assert flipped_within([], [], 0, budget=3) == 0
    assert flipped_rows([], 3) == flipped_apart([], 3) == flipped_anywhere([], 3) == 0
    assert flipped_rows([0], 0) == 0


def test_more_budget_never_flips_fewer():
    rng = np.random.default_rng(3)
    sizes, fields = rng.integers(0, 6, 40), [rng.integers(0, 60, 9) for _ in range(40)]
    for bound in (
        lambda b: flipped_rows(sizes, b),
        lambda b: flipped_apart(sizes, b),
        lambda b: flipped_within(sizes, fields, 60, b),
    ):
        found = [bound(b) for b in range(0, 40, 3)]
        assert found == sorted(found)
        assert found[-1] > found[1] > 0


@pytest.mark.parametrize("bad", [-1, 1.5, True, "five"])
def test_budgets_are_counts(bad):
    for bound, args in product((flipped_rows, flipped_apart, flipped_anywhere), [([1, 2],)]):
        with pytest.raises(InputError, match="budget"):
            bound(*args, bad)


def test_fields_must_fit():
    with pytest.raises(InputError, match="fields"):
        flipped_within([1, 2], [[0]], 3, 1)
    with pytest.raises(InputError, match="beyond"):
        flipped_within([1], [[3]], 3, 1)
    with pytest.raises(InputError, match="whole numbers"):
        flipped_rows([-1], 3)
