"""The sparse stream has exactly the law of drawing every entry, and is pure in (seed, purpose, sample number)."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from unswayed.errors import InputError
from unswayed.sampling import sparse
from unswayed.sampling.sparse import Gaps, SparseStream, gaps_of, pair_of
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import WORD, AddDelete

NOISE = AddDelete(p_add=0.01, p_delete=0.4)


class Undecided(Exception):
    """Further bits were asked for beyond what a test enumerates."""


def enumerated(gaps: Gaps, depth: int) -> tuple[list[Fraction], Fraction]:
    """(Pr(gap = j) for j = 0 .. longest, mass left undecided) over all words and `depth` further ones."""
    mass, left = [Fraction(0)] * (gaps.longest + 1), Fraction(0)
    values = range(2**gaps.bits)
    unit = Fraction(1, 2 ** (gaps.bits * (1 + depth)))
    for word, *rest in product(values, repeat=1 + depth):

        def further(k: int, rest: list[int] = rest) -> int:
            if k > depth:
                raise Undecided
            return rest[k - 1]

        try:
            mass[gaps.decide(word, further)] += unit
        except Undecided:
            left += unit
    return mass, left


@pytest.mark.parametrize("threshold", [WORD // 3, 123_456_789, WORD // 2])
def test_gap_law_is_geometric_over_all_words(threshold: int) -> None:
    gaps = Gaps(threshold, longest=5, bits=4)
    mass, left = enumerated(gaps, depth=2)
    q = gaps.q
    assert left <= Fraction(gaps.longest, 2**12)
    for j in range(gaps.longest + 1):
        at_least = sum(mass[j:], Fraction(0))
        assert at_least <= q**j <= at_least + left


@pytest.mark.parametrize("p_add", [0.5, 0.3, 0.001, 2e-5])
def test_floors_are_the_exact_powers(p_add: float) -> None:
    gaps = gaps_of(AddDelete(p_add, 0.5).thresholds[0])
    for j in {1, 2, 3, gaps.longest // 2, gaps.longest}:
        assert gaps.floors[j - 1] == int(gaps.q**j * 2**64) == gaps.exact_floor(j)
    assert gaps.floors == sorted(gaps.floors, reverse=True)


def test_open_floors_are_computed_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Gaps(123_456_789, 300).floors
    monkeypatch.setattr(sparse, "GUARD", 2)  # too few guard bits to decide anything
    assert Gaps(123_456_789, 300).floors == expected


def test_lookup_agrees_with_exact_decisions_next_to_every_floor() -> None:
    gaps = Gaps(WORD // 7, longest=40)
    words = sorted({floor + off for floor in gaps.floors for off in (-1, 0, 1)} | {0, 2**64 - 1})
    found, tied = gaps(torch.tensor([word - 2**63 for word in words]))
    for word, gap, open_ in zip(words, found.tolist(), tied.tolist(), strict=True):
        # the largest U with this first word has the smallest gap
        lowest = gaps.decide(word, lambda _: 2**64 - 1)
        highest = gaps.decide(word, lambda _: 0)
        assert open_ or lowest == highest == gap
        assert gap <= lowest
    assert sum(tied.tolist()) == gaps.longest


def test_ties_are_settled_by_further_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """With words of 6 bits nearly every draw ties; the law must not show it."""
    monkeypatch.setattr(sparse, "gaps_of", lambda threshold: Gaps(threshold, longest=30, bits=6))
    noise = AddDelete(p_add=0.1, p_delete=0.5)
    sample, _ = SparseStream(Stream(1)).additions(0, 3000, 60, noise)
    counts = np.bincount(np.bincount(sample, minlength=3000), minlength=61)[:13]
    expected = 3000 * stats.binom.pmf(np.arange(13), 60, noise.p_add)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def test_gaps_longer_than_the_table_are_drawn_in_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "gaps_of", lambda threshold: Gaps(threshold, longest=3))
    sample, entry = SparseStream(Stream(2)).additions(0, 4000, 100, AddDelete(0.05, 0.5))
    per_entry = np.bincount(entry, minlength=100)
    assert stats.chisquare(per_entry).pvalue > 1e-4
    assert stats.binomtest(len(sample), 400_000, AddDelete(0.05, 0.5).p_add).pvalue > 1e-4


def test_additions_are_independent_bernoulli_entries() -> None:
    samples, entries = 4000, 50
    sample, entry = SparseStream(Stream(3)).additions(0, samples, entries, NOISE)
    flips = np.zeros((samples, entries), int)
    np.add.at(flips, (sample.numpy(), entry.numpy()), 1)
    assert flips.max() == 1
    assert stats.binomtest(int(flips.sum()), flips.size, NOISE.p_add).pvalue > 1e-4
    assert stats.chisquare(flips.sum(axis=0)).pvalue > 1e-4
    neighbours = int((flips[:, :-1] * flips[:, 1:]).sum())
    assert stats.binomtest(neighbours, samples * (entries - 1), NOISE.p_add**2).pvalue > 1e-4


def test_ones_have_the_law_of_the_noise_and_drop_what_falls_on_a_one() -> None:
    clean = torch.arange(0, 200, 2)
    sample, entry = SparseStream(Stream(4)).ones(0, 2000, 200, clean, AddDelete(0.2, 0.4))
    present = np.zeros((2000, 200), int)
    np.add.at(present, (sample.numpy(), entry.numpy()), 1)
    assert present.max() == 1
    assert stats.binomtest(int(present[:, ::2].sum()), 200_000, 0.6).pvalue > 1e-4
    assert stats.binomtest(int(present[:, 1::2].sum()), 200_000, AddDelete(0.2, 0.4).p_add).pvalue > 1e-4


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 11), (5, 6), (4, 4)])
def test_any_range_of_samples_gives_the_same_vectors(start: int, stop: int) -> None:
    clean = torch.tensor([1, 7, 900])
    sample, entry = SparseStream(Stream(5)).ones(0, 12, 1000, clean, NOISE)
    some, thing = SparseStream(Stream(5)).ones(start, stop, 1000, clean, NOISE)
    for s in range(start, stop):
        assert sorted(thing[some == s - start].tolist()) == sorted(entry[sample == s].tolist())


def test_seed_purpose_target_and_kind_of_draw_matter() -> None:
    def drawn(seed: int = 0, purpose: str = "certify", target: int | None = None) -> list[int]:
        return SparseStream(Stream(seed, purpose)).additions(0, 4, 1000, NOISE, target=target)[1].tolist()

    streams = [drawn(), drawn(seed=1), drawn(purpose="select"), drawn(target=0), drawn(target=1)]
    assert all(streams.count(stream) == 1 for stream in streams)


def test_torch_words_are_the_numpy_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of every device but the CPU, run on the CPU."""

    def drawn() -> list[list[int]]:
        stream, high = SparseStream(Stream(2**63 + 9)), torch.tensor([5, 2**33 + 1])
        lost = stream.deletions(3, 40, high, NOISE)  # one entry needs the upper half of its number
        return [
            *lost.tolist(),
            *(part.tolist() for part in stream.ones(3, 9, 5000, torch.tensor([7]), NOISE)),
        ]

    expected = drawn()
    monkeypatch.setattr(sparse, "_in_numpy", lambda device: False)
    assert drawn() == expected


def test_no_ones_and_no_entries() -> None:
    none = torch.empty(0, dtype=torch.int64)
    assert len(SparseStream(Stream(0)).ones(0, 3, 0, none, NOISE)[0]) == 0
    assert SparseStream(Stream(0)).deletions(0, 3, none, NOISE).shape == (3, 0)


def test_refuses_what_the_counter_cannot_hold() -> None:
    with pytest.raises(InputError, match="outside the sparse stream"):
        SparseStream(Stream(0)).ones(0, 1, 2**49, torch.tensor([0]), NOISE)


def test_pairs_of_entries_are_exact() -> None:
    around = [k * (k - 1) // 2 + off for k in (2, 3, 1000, 2**20, 2**25 + 1) for off in (-1, 0, 1)]
    entry = torch.tensor(around[1:])
    i, j = pair_of(entry)
    assert torch.equal(j * (j - 1) // 2 + i, entry)
    assert bool(((i >= 0) & (i < j)).all())


def test_noise_that_only_deletes_adds_nothing():
    noise, clean = AddDelete(p_add=0, p_delete=0.5), torch.tensor([2, 7, 31])
    sample, entry = SparseStream(Stream(3)).ones(0, 400, 50, clean, noise)
    assert set(entry.tolist()) == {2, 7, 31}
    assert 500 < len(sample) < 700
    from_zero, from_one = Stream(3).flips(0, 400, 50, noise)
    assert not from_zero.any()
    assert 9_000 < int(from_one.sum()) < 11_000
