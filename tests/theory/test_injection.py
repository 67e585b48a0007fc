"""Fake nodes, against every coin of every attack on a tiny graph."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory.injection import Shielded

from .neyman_pearson import holds, worst

HONEST = (0, 1, 2)
EDGES = ((0, 1), (1, 2))


def ask(law, top, rest, adds, times=1) -> bool:
    none = np.zeros(1, dtype=np.int64)
    return bool(law.certified(np.array([top]), np.array([rest]), np.array([adds]), none, None, times)[0])


def seen_law(nodes, links, hide: Fraction, lose: Fraction, spared=()) -> dict:
    """Pr(visible links) over every coin: each node hides, each link is lost, by itself."""
    law: Counter = Counter()
    may_hide = [v for v in nodes if v not in spared]
    for hidden in product([0, 1], repeat=len(may_hide)):
        gone = {v for v, coin in zip(may_hide, hidden, strict=True) if coin}
        p = hide ** len(gone) * (1 - hide) ** (len(may_hide) - len(gone))
        open_links = [link for link in links if not gone & set(link)]
        for lost in product([0, 1], repeat=len(open_links)):
            shown = frozenset(link for link, coin in zip(open_links, lost, strict=True) if not coin)
            law[shown] += p * lose ** sum(lost) * (1 - lose) ** (len(lost) - sum(lost))
    return {what: Fraction(p) for what, p in law.items() if p}


def attacks(fakes: int, links: int):
    """Every way to join so many fake nodes to others, each by at most `links` links."""
    names = tuple(range(3, 3 + fakes))
    possible = [*product(HONEST, names), *combinations(names, 2)]
    for count in range(fakes * links + 1):
        for chosen in combinations(possible, count):
            if all(sum(name in link for link in chosen) <= links for name in names):
                yield (*HONEST, *names), (*EDGES, *chosen)


NOISES = [(Fraction(1, 2), Fraction(1, 2)), (Fraction(7, 8), Fraction(0)), (Fraction(3, 4), Fraction(1, 4))]
NOISES += [(Fraction(0), Fraction(7, 8)), (Fraction(15, 16), Fraction(1, 2))]


@pytest.mark.parametrize("target_hidden", [True, False])
@pytest.mark.parametrize(("hide", "lose"), NOISES)
@pytest.mark.parametrize(("fakes", "links"), [(1, 1), (1, 2), (2, 1)])
def test_no_attack_by_fake_nodes_changes_what_is_certified(hide, lose, fakes, links, target_hidden):
    spared = () if target_hidden else (0,)
    law = Shielded(hide, lose, links, target_hidden)
    before = seen_law(HONEST, EDGES, hide, lose, spared)
    worlds = [seen_law(*attack, hide, lose, spared) for attack in attacks(fakes, links)]
    for top, share in product(np.linspace(0.5, 1, 17), (1, 0.5, 0)):
        rest = float((1 - top) * share)
        if ask(law, top, rest, fakes):
            assert all(holds(before, after, top, rest) for after in worlds)


def test_certificates_against_fake_nodes_exist_and_end():
    law = Shielded(Fraction(3, 4), Fraction(1, 2), 2)
    verdicts = [ask(law, 0.9, 0.1, k) for k in range(60)]
    assert verdicts == sorted(verdicts, reverse=True)
    ends = int(law.size(np.array([0.9]), np.array([0.1]), np.array([100]), np.array([0]))[0])
    assert ends == verdicts.index(False) - 1 > 1


def test_a_bound_that_averages_over_hidden_partners_would_be_unsound():
    """A link to a node that hides itself is mostly unseen, but not where that node is seen: an answer may look there."""
    hide, lose = Fraction(7, 8), Fraction(0)
    before = seen_law(HONEST, EDGES, hide, lose)
    after = seen_law((*HONEST, 3), (*EDGES, (1, 3)), hide, lose)
    unseen = hide + (1 - hide) * hide
    false = [
        top
        for top in np.linspace(0.5, 0.52, 200)
        if unseen * 2 * Fraction(top) > 1 and not holds(before, after, top, 1 - top)
    ]
    assert false
    assert not any(ask(Shielded(hide, lose, 1), top, 1 - top, 1) for top in false)


@pytest.mark.parametrize("links", [1, 2, 3])
def test_the_average_is_attained_by_links_to_different_nodes(links):
    hide, lose = Fraction(1, 2), Fraction(1, 4)
    added = tuple((v, 9) for v in range(links))
    law = seen_law((*range(links), 9), added, hide, lose)
    assert Shielded(hide, lose, links).chances(1, Fraction)[1] == law[frozenset()]
    kept = seen_law((*range(links), 9), added, hide, lose, spared=(0,))
    assert Shielded(hide, lose, links, target_hidden=False).chances(1, Fraction)[1] == kept[frozenset()]
    bare = seen_law((*range(links), 9), added, hide, lose, spared=range(links))
    assert Shielded(hide, lose, links).chances(1, Fraction)[0] == bare[frozenset()]


def test_any_number_of_links_leaves_only_what_hides_the_node():
    law = Shielded(Fraction(3, 4), Fraction(1, 2))
    assert law.chances(2, Fraction) == (Fraction(9, 16), Fraction(9, 16))
    edge = Fraction(16, 9)  # b(1 + p_top − p_rest) > 1
    assert ask(law, 0.85, float(Fraction(0.85) + 1 - edge) - 1e-9, 2)
    assert not ask(law, 0.85, float(Fraction(0.85) + 1 - edge) + 1e-9, 2)
    many = Shielded(Fraction(3, 4), Fraction(1, 2), 10_000)
    assert float(many.chances(2, float)[0]) == float(many.chances(2, float)[1]) == 9 / 16


def test_ties_and_certainties():
    law = Shielded(Fraction(0), Fraction(1, 2), 1)  # unseen exactly half of the time
    assert not ask(law, 1.0, 0.0, 1)
    assert ask(law, 1.0, 0.0, 1, times=2)
    assert ask(law, 1.0, 0.0, 0)
    assert not ask(law, 0.5, 0.5, 0)
    with pytest.raises(InputError, match="deletes"):
        law.certified(np.ones(1), np.zeros(1), np.zeros(1, int), np.ones(1, int))


def test_worst_case_is_never_better_than_the_truth():
    hide, lose = Fraction(3, 4), Fraction(1, 2)
    law, before = Shielded(hide, lose, 2), seen_law(HONEST, EDGES, hide, lose)
    for (top, rest), attack in product([(0.9, 0.1), (0.6, 0.2), (0.5, 0.5)], attacks(1, 2)):
        arrays = np.array([top]), np.array([rest]), np.array([1]), np.array([0])
        kept, lost = (Fraction(float(part[0])) for part in law.worst_case(*arrays))
        true = worst(before, seen_law(*attack, hide, lose), top, rest)
        assert kept <= true[0] + Fraction(1, 10**12)
        assert lost >= true[1] - Fraction(1, 10**12)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("rest", [None, 0.9])
def test_the_last_bit_decides(times, rest):
    """Unseen with 3/4, one fake node is withstood iff times · (p_top − (1 − s)p_top) exceeds its counterpart: exactly so."""
    law = Shielded(Fraction(3, 4), Fraction(1, 2))
    edge = 2 / 3 if times == 1 else 4 / 9
    verdicts = set()
    for step in range(-6, 7):
        top = edge + step * 2.0**-54
        given = float(1 - Fraction(top)) if rest is None else rest
        p, q = Fraction(top), min(Fraction(given), 1 - Fraction(top))
        right = times * (p - p / 4) > q + (1 - q) / 4
        assert ask(law, top, given, 1, times) == right
        verdicts.add(right)
    assert verdicts == {True, False}


def test_rounding_is_granted_what_is_stated():
    adds = np.array([0, 3])
    assert Shielded(Fraction(3, 4), Fraction(1, 2), 2).error(adds, 1).tolist() == [
        768 * 2.0**-53,
        1344 * 2.0**-53,
    ]
    assert Shielded(Fraction(3, 4), Fraction(1, 2)).error(adds, 3).tolist() == [
        1024 * 2.0**-53,
        1792 * 2.0**-53,
    ]
