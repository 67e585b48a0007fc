"""Top-k certificates, against every attack on few bits and against the definition."""

from fractions import Fraction

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory import AddDelete, Flip, Keep, certified_size, certified_topk_size
from unswayed.theory.exact import exact_worst_case
from unswayed.theory.topk import _rival_sums, is_certified_topk

NOISES = [Flip(0.7), Flip(0.2), AddDelete(0.1, 0.4), AddDelete(0.7, 0.6)]


def all_laws(noise, n: int) -> np.ndarray:
    """Row s, column z: Pr(z | s), from the definition of the noise."""
    one = np.array([[1 - noise.p_add, noise.p_add], [noise.p_delete, 1 - noise.p_delete]])
    laws = np.ones((1, 1))
    for _ in range(n):
        laws = np.kron(one, laws)
    return laws


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_covered_attack_moves_the_label_out(noise, k):
    n, classes, rng = 8, 5, np.random.default_rng(k)
    laws = all_laws(noise, n)
    ones = np.array([bin(code).count("1") for code in range(2**n)])
    certified = 0
    for concentration in (0.3, 1.0):
        mean = np.array([50.0, 3.0, 1.0, 0.5, 0.1]) * concentration
        hard = np.eye(classes)[rng.choice(classes, p=mean / mean.sum(), size=2**n)]
        structured = np.eye(classes)[(ones * 2 // 3) % classes]
        for base in (hard, structured, 0.85 * hard + 0.15 * structured, rng.dirichlet(mean, size=2**n)):
            smoothed = laws @ base
            for s in rng.integers(2**n, size=3):
                for label in range(3):
                    others = np.delete(smoothed, label, axis=1)
                    bounds = np.minimum(others[s] * (1 + 1e-12), 1)
                    size = certified_topk_size(
                        smoothed[s, label] * (1 - 1e-12), bounds, k, noise, n, ones=int(ones[s])
                    )
                    covered = ones[np.arange(2**n) ^ s] <= size
                    rivals = (others[covered] >= smoothed[covered, label, None]).sum(axis=1)
                    assert (rivals < k).all()
                    certified += size > 0
    assert certified > 0


@pytest.mark.parametrize("noise", NOISES)
def test_k_of_one_is_the_usual_certificate(noise):
    rng = np.random.default_rng(1)
    p_top = rng.uniform(0.3, 1, 40)
    others = rng.dirichlet([1, 1, 1], 40) * (1 - p_top)[:, None]
    usual = certified_size(p_top, others.max(axis=1), noise, 9)
    assert (certified_topk_size(p_top, others, 1, noise, 9) == usual).all()


@pytest.mark.parametrize("noise", NOISES)
def test_size_is_the_one_of_the_definition(noise):
    """For every k′ ≤ K and every split some t has t·Pr(Y∈A) > Pr(Y∈B_t); at K + 1 some split has none."""
    p_label, others, k, cap = 0.55, [0.25, 0.125, 0.0625], 2, 8

    def holds(adds, deletes):
        sums = (Fraction(0.125), Fraction(0.375))
        pairs = [exact_worst_case(Fraction(p_label), s, noise, adds, deletes) for s in sums]
        return any(t * a > b for t, (a, b) in enumerate(pairs, start=1))

    size = int(certified_topk_size(p_label, others, k, noise, cap))
    assert 0 <= size < cap
    assert all(holds(a, j - a) for j in range(size + 1) for a in range(j + 1))
    assert not all(holds(a, size + 1 - a) for a in range(size + 2))


def test_size_grows_with_k_and_few_rivals_can_never_push_it_out():
    sizes = [int(certified_topk_size(0.7, [0.15, 0.1, 0.05], k, Flip(0.7), 50)) for k in (1, 2, 3, 4, 9)]
    assert sizes == sorted(sizes)
    assert sizes[-2:] == [50, 50]


def test_a_label_that_is_not_there_abstains():
    assert certified_topk_size(0.2, [0.5, 0.25], 1, Flip(0.7), 9) == -1
    assert certified_topk_size(0.2, [0.5, 0.25], 2, Flip(0.7), 9) == -1
    assert certified_topk_size(0.3, [0.5, 0.2], 2, Flip(0.7), 9) >= 0
    assert certified_topk_size(0.0, [0.0, 0.0], 2, Flip(0.7), 9) == -1


def test_certainties():
    assert certified_topk_size(1.0, [0.0, 0.0], 1, Flip(0.7), 77) == 77
    assert certified_topk_size(0.1, [0.9, 0.0], 2, Flip(0.7), 77) == 77


def test_certainties_need_no_arithmetic(monkeypatch):
    monkeypatch.setattr("unswayed.theory.entrywise.decide", None)
    assert certified_topk_size(0.25, [0.5, 0.0], 2, Flip(0.7), 1000) == 1000


def test_arguments_broadcast():
    got = certified_topk_size(np.full((4, 3), 0.6), [0.2, 0.1], 2, Flip(0.7), [9, 0, 5])
    assert got.shape == (4, 3)
    assert (got[:, 1] == 0).all()
    assert certified_topk_size(np.zeros(0), np.zeros((0, 3)), 2, Flip(0.7), 9).shape == (0,)


@pytest.mark.parametrize(
    ("k", "others"), [(0, [0.1]), (1.5, [0.1]), (True, [0.1]), (1, 0.1), (1, [1.5]), (1, [np.nan])]
)
def test_bad_input_is_refused(k, others):
    with pytest.raises(InputError):
        certified_topk_size(0.5, others, k, Flip(0.7), 9)


def test_rivals_share_what_the_label_leaves():
    for label in (0.3, 0.7):
        sums = _rival_sums(np.array([label]), np.array([[0.6, 0.6]]), 2)
        assert 1 - Fraction(label) <= Fraction(sums[0, 1]) <= np.nextafter(1 - label, 1)


def test_the_last_axis_counts_the_rivals():
    one = certified_topk_size(0.5, [0.3, 0.125, 0.0625], 2, Flip(0.7), 9)
    assert certified_topk_size([0.5], [[0.3, 0.125, 0.0625]], 2, Flip(0.7), 9) == [one]
    assert 0 <= one < 9


def test_sums_of_rivals_are_rounded_up():
    draw = np.random.default_rng(0)
    others = draw.random((500, 5)) ** 3 / 8
    sums = _rival_sums(np.full(500, 0.01), others, 4)
    for row, found in zip(others, sums, strict=True):
        smallest = sorted(row)[1:]  # of the four largest, from the smallest up
        for count in range(4):
            assert Fraction(found[count]) >= sum(Fraction(value) for value in smallest[: count + 1])


@pytest.mark.parametrize(
    ("noise", "need", "places"),
    [
        (AddDelete(0, 0.5), 2, (57, 58)),
        (Keep(kept=1, seats=2), 2, (57, 58)),
        (Flip(0.75), 3, (130, 169, 179)),
    ],
)
def test_a_minority_leaves_its_rivals_no_less_than_there_is(noise, need, places):
    """After one addition k rivals with bounds of 1 need (k + 1)·p ≤ `need`, however 1 − p is rounded."""
    for k in places:
        for p in (need / (k + 1), np.nextafter(need / (k + 1), 0), np.nextafter(need / (k + 1), 1)):
            found = is_certified_topk(p, [1.0] * k, k, noise, adds=1, ones=0)
            assert found == ((k + 1) * Fraction(p) > need), (k, p)
