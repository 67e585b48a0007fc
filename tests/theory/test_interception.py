"""Nodes that lie, against every coin on a small graph: what is certified, and what is claimed to be seen at most."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from unswayed.theory.interception import intercepted_size, lies, noticed, reach, survives

from .neyman_pearson import holds


def simple_paths(links, start, end, most: int) -> list[list]:
    """All simple paths of at most `most` links, as lists of links."""
    found, work = [], [(start, [], {start})]
    while work:
        at, used, been = work.pop()
        if at == end:
            found.append(used)
        elif len(used) < most:
            for link in links:
                if at in link and (beyond := next(v for v in link if v != at)) not in been:
                    work.append((beyond, [*used, link], been | {beyond}))
    return found


GRAPH = ((0, 1), (0, 2), (1, 2), (2, 3), (1, 3), (3, 4))


def counted(node: int, hops: int) -> list[int]:
    lengths = Counter(len(path) for path in simple_paths(GRAPH, node, 0, hops))
    return [lengths[n] for n in range(1, hops + 1)]


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize(
    ("mask", "lose"), [(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4))]
)
def test_reach_is_never_below_the_true_probability(mask, lose, hops):
    """Over every coin: is some path from the node to the target open, and are its features shown?"""
    for node in range(1, 5):
        paths, true = simple_paths(GRAPH, node, 0, hops), Fraction(0)
        for lost in product([0, 1], repeat=len(GRAPH)):
            p = lose ** sum(lost) * (1 - lose) ** (len(GRAPH) - sum(lost))
            gone = {link for link, coin in zip(GRAPH, lost, strict=True) if coin}
            true += p if any(not gone & set(path) for path in paths) else 0
        bound = Fraction(float(reach(np.array([counted(node, hops)]), mask, lose)[0]))
        assert (1 - mask) * true <= bound
        assert len(paths) > 1 or bound <= (1 - mask) * true + Fraction(1, 10**12)


def test_a_node_that_no_path_reaches_is_never_seen():
    assert reach(np.zeros((2, 3), dtype=np.int64), Fraction(1, 2), Fraction(1, 2)).tolist() == [0, 0]
    assert reach(np.array([[40, 0]]), Fraction(1, 2), Fraction(1, 100)) <= 1


def test_the_size_counts_the_loudest_nodes_first():
    seen = np.array([[0.01, 0.2, 0.05, 0.1]])
    for k in range(5):
        met = 1 - np.prod(1 - np.sort(seen[0])[::-1][:k])
        top = 0.5 + met + 1e-9  # p_top − p_rest = 2 met and a little
        assert intercepted_size(np.array([top]), np.array([1 - top]), seen)[0] >= k
        tie = np.array([0.5 + met - 1e-9])
        assert intercepted_size(tie, 1 - tie, seen)[0] == k - 1
    assert intercepted_size(np.array([0.5]), np.array([0.5]), seen).tolist() == [-1]


def loudest(mask: Fraction, lose: Fraction, hops: int) -> np.ndarray:
    """float[nodes]: the claimed bounds, the target's own first."""
    others = reach(np.array([counted(v, hops) for v in range(1, 5)]), mask, lose)
    return np.array([float(1 - mask), *others])


def what_is_seen(mask: Fraction, lose: Fraction, hops: int, liars) -> dict:
    """Pr(open links, and whose features are seen, true or false): no classifier can tell more of them apart."""
    law: Counter = Counter()
    for lost in product([0, 1], repeat=len(GRAPH)):
        open_links = [link for link, coin in zip(GRAPH, lost, strict=True) if not coin]
        p = lose ** sum(lost) * (1 - lose) ** (len(GRAPH) - sum(lost))
        near = [v for v in range(5) if v == 0 or simple_paths(open_links, v, 0, hops)]
        for masked in product([0, 1], repeat=len(near)):
            shown = tuple((v, v in liars) for v, coin in zip(near, masked, strict=True) if not coin)
            law[tuple(open_links), shown] += p * mask ** sum(masked) * (1 - mask) ** (len(near) - sum(masked))
    return {what: Fraction(p) for what, p in law.items() if p}


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize(
    ("mask", "lose", "first"),  # the first node that may lie: 0 is the target
    [
        (Fraction(3, 4), Fraction(1, 2), 0),
        (Fraction(1, 2), Fraction(7, 8), 1),
        (Fraction(7, 8), Fraction(0), 0),
    ],
)
def test_no_lies_of_a_covered_number_of_nodes_change_the_label(mask, lose, first, hops):
    """Every set of liars against the best of all classifiers."""
    before, seen = what_is_seen(mask, lose, hops, ()), loudest(mask, lose, hops)[None, first:]
    tops, least = np.linspace(0.5, 1, 201), []
    for count, share in product((1, 2), (1, 0)):
        sizes = intercepted_size(tops, (1 - tops) * share, np.repeat(seen, len(tops), axis=0))
        least += [(count, top, (1 - top) * share) for top in tops[sizes >= count][:1]]  # the hardest to hold
    assert least
    for count, top, rest in least:
        for liars in combinations(range(first, 5), count):
            assert holds(before, what_is_seen(mask, lose, hops, liars), top, rest)


def test_where_paths_share_no_link_the_bound_is_the_truth():
    """One liar next to the target: at 2Δ a classifier is misled, a hair above it none is."""
    mask, lose = Fraction(1, 2), Fraction(1, 2)
    exact = float(sum(p for what, p in what_is_seen(mask, lose, 1, (1,)).items() if (1, True) in what[1]))
    direct = float(reach(np.array([counted(1, 1)]), mask, lose)[0])
    assert direct == pytest.approx(exact, abs=1e-13)
    near = what_is_seen(mask, lose, 1, (1,)), what_is_seen(mask, lose, 1, ())
    top = 0.5 + exact
    assert not holds(near[1], near[0], top, 1 - top)
    assert intercepted_size(np.array([top]), np.array([1 - top]), np.array([[direct]])).tolist() == [0]
    assert intercepted_size(
        np.array([top + 1e-9]), np.array([1 - top - 1e-9]), np.array([[direct]])
    ).tolist() == [1]


def test_liars_are_noticed_no_more_often_than_claimed():
    mask, lose, hops = Fraction(1, 2), Fraction(1, 4), 2
    met = noticed(loudest(mask, lose, hops)[None])[0]
    assert met[0] == 0
    for count in range(1, 6):
        for liars in combinations(range(5), count):
            law = what_is_seen(mask, lose, hops, liars)
            true = sum(p for what, p in law.items() if any(false for _, false in what[1]))
            assert true <= Fraction(float(met[count]))


def test_who_cannot_be_seen_adds_nothing():
    met = noticed(np.array([[0.0, 0.25, 0.0, 0.5]]))
    assert met.round(12).tolist() == [[0, 0.5, 0.625, 0.625, 0.625]]
    assert np.all(np.diff(met) >= 0)
    assert noticed(np.zeros((2, 3))).tolist() == [[0, 0, 0, 0]] * 2
    assert noticed(np.ones((1, 2))).tolist() == [[0, 1, 1]]


def test_a_tie_is_not_certified():
    met = np.array([[0.0, 0.25]])
    one = np.array([1])
    assert lies(np.array([0.75]), np.array([0.25]), met, one).tolist() == [0]
    assert lies(np.array([0.7500001]), np.array([0.2499999]), met, one).tolist() == [1]
    assert lies(np.array([0.5]), np.array([0.0]), met, one).tolist() == [0]
    assert lies(np.array([0.5, 0.4]), np.array([0.5, 0.6]), np.zeros((2, 2)), np.ones(2, int)).tolist() == [
        -1,
        -1,
    ]


def test_where_all_may_lie_all_are_counted():
    met = np.array([[0.0, 0.1, 0.2], [0.0, 0.1, 0.5]])
    top = np.array([0.9, 0.9])
    assert lies(top, 1 - top, met, np.array([70, 70])).tolist() == [70, 1]


def test_rivals_share_only_what_the_label_leaves():
    assert survives(np.array([0.9]), np.array([0.5]), np.array([0.35])).tolist() == [True]
    assert survives(np.array([0.9]), np.array([0.1]), np.array([0.4])).tolist() == [False]


def test_one_path_is_open_where_all_its_edges_are():
    """Several lengths apart: each power is the path's own."""
    mask, lose = Fraction(1, 4), Fraction(3, 4)
    for hops in range(1, 5):
        paths = np.zeros((1, 4), dtype=np.int64)
        paths[0, hops - 1] = 1
        assert reach(paths, mask, lose)[0] == pytest.approx(
            float(Fraction(3, 4) * Fraction(1, 4) ** hops), rel=1e-9
        )
    both = reach(np.array([[2, 0], [0, 3]]), mask, lose)
    assert both == pytest.approx([0.75 * (1 - 0.75**2), 0.75 * (1 - (15 / 16) ** 3)], rel=1e-9)


def test_bounds_are_a_little_above_what_they_bound():
    mask, lose = Fraction(1, 3), Fraction(1, 7)
    for count in (1, 5, 400):
        exact = (1 - mask) * (1 - (1 - (1 - lose) ** 2) ** count)
        bound = Fraction(float(reach(np.array([[0, count]]), mask, lose)[0]))
        assert exact < bound < exact + Fraction(1, 10**11)
    seen = np.full((1, 50), 0.01)
    exact = 1 - (1 - Fraction(0.01)) ** 50
    assert exact < Fraction(float(noticed(seen)[0, -1])) < exact + Fraction(1, 10**12)


def test_rounding_is_granted_what_is_stated():
    """Halves are exact in float64, so that whatever is above them was granted."""
    unit = 2.0**-53
    met = noticed(np.full((1, 3), 0.5))[0]
    assert met.tolist() == [0, 0.5 + 8 * unit, 0.75 + 12 * unit, 0.875 + 16 * unit]
    half = Fraction(1, 2)
    assert reach(np.array([[1, 0], [0, 1], [2, 1]]), half, half).tolist() == [
        0.25 + 72 * unit,
        0.125 + 72 * unit,
        0.5 * (1 - 0.1875) + 88 * unit,
    ]


def test_a_lead_by_less_than_the_rounding_is_a_tie():
    met = np.array([0.25])
    for steps, certified in ((0, False), (1, False), (2, True)):
        top = np.array([0.75 + steps * 2.0**-53])
        assert survives(top, 1 - top, met).tolist() == [certified]
