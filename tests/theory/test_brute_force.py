"""Every attack on every input of few bits: no certificate is false, and none could be larger."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from unswayed.theory import AddDelete, Flip, certified_size, is_certified

NOISES = [Flip(0.7), Flip(0.25), Flip(0.9), AddDelete(0.1, 0.4), AddDelete(0.6, 0.7), AddDelete(0.02, 0.5)]
NOISES += [AddDelete(0.4, 0.1), AddDelete(0.8, 0.6)]  # noise that adds more than it deletes, too


def law_of(noise, s: np.ndarray) -> np.ndarray:
    """Pr(noisy input = z) for all 2ⁿ inputs z, from the definition of the noise alone."""
    law = np.ones(1)
    for bit in s:
        flip = noise.p_delete if bit else noise.p_add
        law = np.concatenate([law * (flip if bit else 1 - flip), law * (1 - flip if bit else flip)])
    return law


def index_of(s: np.ndarray) -> int:
    return int(sum(int(bit) << i for i, bit in enumerate(s)))


def all_laws(noise, n: int) -> np.ndarray:
    """Row s: the law of the noisy version of input s."""
    inputs = [np.array([(code >> i) & 1 for i in range(n)]) for code in range(2**n)]
    return np.stack([law_of(noise, s) for s in inputs])


def base_classifiers(rng, n: int, classes: int):
    """Probabilities of labels for every input: arbitrary, threshold-like, parity-like, randomised."""
    codes = np.arange(2**n)
    weight = np.array([bin(code).count("1") for code in codes])
    hard = [
        rng.integers(classes, size=2**n),
        (weight > n * 0.6).astype(int),
        weight % classes,
        np.where(rng.random(2**n) < 0.93, 0, rng.integers(classes, size=2**n)),
        np.where((codes & 1) == 1, 1, 0),
        np.where((codes & 3) == 3, 1, np.where(rng.random(2**n) < 0.02, 2, 0)),
    ]
    soft = rng.dirichlet(np.r_[6.0, np.full(classes - 1, 0.4)], size=2**n)
    return [np.eye(classes)[labels] for labels in hard] + [soft]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [4, 8, 10])
def test_no_covered_attack_changes_the_label(noise, n):
    rng, laws = np.random.default_rng(n), all_laws(noise, n)
    distance = np.array([bin(code).count("1") for code in range(2**n)])
    certified = 0
    for base in base_classifiers(rng, n, classes=3):
        smoothed = laws @ base
        for s in rng.integers(2**n, size=6):
            label = int(smoothed[s].argmax())
            others = np.delete(smoothed, label, axis=1).max(axis=1)
            p_top, p_rest = smoothed[s, label] * (1 - 1e-12), min(others[s] * (1 + 1e-12), 1.0)
            if p_top <= p_rest:
                continue
            size = int(certified_size(p_top, p_rest, noise, cap=n, ones=int(distance[s])))
            covered = distance[np.arange(2**n) ^ s] <= size
            assert (smoothed[covered, label] > others[covered]).all()
            certified += size > 0
    assert certified > 0


@pytest.mark.parametrize("noise", NOISES)
def test_a_size_that_covers_all_ones_fixes_the_label_of_the_empty_input(noise):
    """The degree wall: where K reaches the number of ones, erasing them all is a covered attack."""
    n, rng = 8, np.random.default_rng(4)
    laws, ones = all_laws(noise, n), np.array([bin(code).count("1") for code in range(2**n)])
    reached = 0
    for base in base_classifiers(rng, n, classes=3):
        smoothed = laws @ base
        label, ranked = smoothed.argmax(axis=1), np.sort(smoothed, axis=1)
        top, rest = ranked[:, -1] * (1 - 1e-12), np.minimum(ranked[:, -2] * (1 + 1e-12), 1)
        size = certified_size(top, rest, noise, cap=n, ones=ones)
        walled = size >= ones
        assert (label[walled] == label[0]).all()
        reached += (walled & (ones > 0)).sum()
    assert reached > 0


def exact_law(noise, s) -> list[Fraction]:
    p_add, p_delete = Fraction(noise.p_add), Fraction(noise.p_delete)
    law = []
    for z in product([0, 1], repeat=len(s)):
        p = Fraction(1)
        for clean, noisy in zip(s, z, strict=True):
            flip = p_delete if clean else p_add
            p *= flip if clean != noisy else 1 - flip
        law.append(p)
    return law


def worst_classifier(x: list[Fraction], y: list[Fraction], p_top: Fraction, p_rest: Fraction, classes: int):
    """Label probabilities for every input: label 0 from the highest ratio down, label 1 from the lowest up, the rest of
    the mass spread over the other labels. Inputs of one ratio are treated alike, so the border regions are randomised."""
    ratio = [a / b for a, b in zip(x, y, strict=True)]
    first, second = share(x, ratio, p_top, reverse=True), share(x, ratio, p_rest, reverse=False)
    table = []
    for a, b in zip(first, second, strict=True):
        left = 1 - a - b
        assert left >= 0
        others = [left / (classes - 2)] * (classes - 2) if classes > 2 else []
        assert classes > 2 or left == 0
        table.append([a, b, *others])
    return table


def share(x, ratio, p, reverse) -> list[Fraction]:
    """How much of every input a set of X-mass p holds that fills whole ratio levels, the last one evenly in part."""
    held = [Fraction(0)] * len(x)
    for level in sorted(set(ratio), reverse=reverse):
        members = [i for i, r in enumerate(ratio) if r == level]
        mass = sum(x[i] for i in members)
        part = min(Fraction(1), p / mass)
        for i in members:
            held[i] = part
        p -= part * mass
    return held


CLAIMS = [(0.9, 0.1, 2), (0.93, 0.07, 2), (0.8, 0.125, 3), (0.6, 0.2, 4), (0.45, 0.3, 4), (0.9, 0.0625, 5)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("p_top", "p_rest", "classes"), CLAIMS)
def test_a_classifier_exists_that_fails_one_entry_further(noise, p_top, p_rest, classes):
    """The bounds are met with equality, and an attack on K + 1 entries makes label 1 at least as probable as label 0."""
    p_rest = 1 - p_top if classes == 2 else p_rest
    top, rest, n = Fraction(p_top), Fraction(p_rest), 6
    assert top + rest <= 1 <= top + (classes - 1) * rest
    size = int(certified_size(p_top, p_rest, noise, cap=n))
    assert size < n
    adds = next(
        a for a in range(size + 2) if not is_certified(p_top, p_rest, noise, adds=a, deletes=size + 1 - a)
    )
    s = [0] * adds + [1] * (n - adds)
    attacked = [1] * adds + [0] * (size + 1 - adds) + s[size + 1 :]
    x, y = exact_law(noise, s), exact_law(noise, attacked)
    base = worst_classifier(x, y, top, rest, classes)
    before = [sum(p * row[c] for p, row in zip(x, base, strict=True)) for c in range(classes)]
    after = [sum(p * row[c] for p, row in zip(y, base, strict=True)) for c in range(classes)]
    assert (before[0], before[1]) == (top, rest)
    assert max(before[1:]) == rest
    assert after[1] >= after[0]


def test_bit_order_of_the_laws():
    noise, s = AddDelete(0.1, 0.4), np.array([1, 0, 0])
    law = law_of(noise, s)
    assert law[index_of(s)] == pytest.approx(0.6 * 0.9 * 0.9)
    assert law[index_of(np.array([0, 1, 0]))] == pytest.approx(0.4 * 0.1 * 0.9)


@pytest.mark.parametrize("noise", NOISES)
def test_no_covered_attack_changes_the_label_where_no_answer_is_no_rival(noise):
    """The last outcome is silence: the label is the more probable one of the others, before and after."""
    n, rng, gained = 8, np.random.default_rng(21), 0
    laws, weight = all_laws(noise, n), np.array([bin(code).count("1") for code in range(2**n)])
    for _ in range(12):
        base = rng.dirichlet([2.0, 0.2, 1.5], size=2**n)
        smoothed = laws @ base
        for s in rng.integers(2**n, size=4):
            label = int(smoothed[s, :2].argmax())
            p_top, rival = smoothed[s, label] * (1 - 1e-12), smoothed[s, 1 - label] * (1 + 1e-12)
            size = int(certified_size(p_top, rival, noise, cap=n, ones=int(weight[s])))
            silent = max(rival, smoothed[s, 2] * (1 + 1e-12))
            gained += size - int(certified_size(p_top, silent, noise, cap=n, ones=int(weight[s]))) > 0
            covered = weight[np.arange(2**n) ^ s] <= size
            assert (smoothed[covered, label] > smoothed[covered, 1 - label]).all()
    assert gained > 0
