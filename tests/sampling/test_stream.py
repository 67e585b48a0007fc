import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unswayed.errors import InputError
from unswayed.sampling import stream
from unswayed.sampling.stream import Stream, philox
from unswayed.theory.noise import AddDelete, Flip

F = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)


def plain_philox(counter, key):
    """Philox 4x32-10 in Python integers, as the paper writes it."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & F, (p >> 32) ^ d ^ m, p & F
        k, m = (k + 0x9E3779B9) & F, (m + 0xBB67AE85) & F
    return a, b, c, d


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((F, F, F, F), (F, F), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (PI, (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers_of_the_random123_authors(counter, key, expected):
    for make in (lambda v: np.array([v], dtype=np.uint64), lambda v: torch.tensor([v])):
        words = philox(tuple(make(v) for v in counter), key)
        assert " ".join(f"{int(word[0]):08x}" for word in words) == expected
    assert " ".join(f"{word:08x}" for word in plain_philox(counter, key)) == expected


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    start=st.integers(0, 2**33),
    number=st.integers(0, 9),
    entries=st.integers(0, 11),
    purpose=st.sampled_from(sorted(stream.PURPOSES)),
    target=st.none() | st.integers(0, 2**31),
)
def test_every_word_is_the_documented_function_of_its_place(seed, start, number, entries, purpose, target):
    words = Stream(seed, purpose).words(start, start + number, entries, target=target)
    code = {"certify": 0, "select": 1, "train": 2}[purpose]
    key, tail = (seed & F, seed >> 32), (0 if target is None else target + 1, code)
    expected = [
        [plain_philox((e, s // 4, *tail), key)[s % 4] for e in range(entries)]
        for s in range(start, start + number)
    ]
    assert words.tolist() == expected


@pytest.mark.parametrize("chunk", [1, 3, 8, 64])
def test_chunks_do_not_change_words(chunk, monkeypatch):
    whole = Stream(3).words(5, 50, 37)
    monkeypatch.setattr(stream, "CPU_CHUNK", chunk)
    assert torch.equal(Stream(3).words(5, 50, 37), whole)


def test_any_part_is_a_part_of_the_whole():
    whole = Stream(7).words(0, 40, 300)
    for start, stop, entries in [(0, 1, 300), (3, 4, 1), (5, 40, 299), (39, 40, 17)]:
        assert torch.equal(Stream(7).words(start, stop, entries), whole[start:stop, :entries])


def test_seeds_purposes_and_targets_have_words_of_their_own():
    asked = [
        Stream(seed, purpose).words(0, 8, 64, target=target)
        for seed in (0, 1, 2**32, 2**63)
        for purpose in stream.PURPOSES
        for target in (None, 0, 1)
    ]
    for i, one in enumerate(asked):
        for other in asked[:i]:
            assert int((one == other).sum()) <= 1


def test_flips_are_words_below_the_thresholds():
    words = Stream(1).words(2, 30, 50)
    for noise in (Flip(0.7), AddDelete(0.01, 0.6)):
        from_zero, from_one = Stream(1).flips(2, 30, 50, noise)
        assert torch.equal(from_zero, words < noise.thresholds[0])
        assert torch.equal(from_one, words < noise.thresholds[1])
    from_zero, from_one = Stream(1).flips(2, 30, 50, Flip(0.7))
    assert from_zero is from_one


def test_equal_probabilities_reproduce_the_flips():
    p = Flip(0.7).p_add
    for one, other in zip(
        Stream(1).flips(0, 9, 50, Flip(0.7)), Stream(1).flips(0, 9, 50, AddDelete(p, p)), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("beta", [0.5, 0.7, 0.9, 0.999])
def test_flips_have_exactly_the_declared_probability(beta):
    noise = Flip(beta)
    flips, _ = Stream(11).flips(0, 2000, 1000, noise)
    result = stats.binomtest(int(flips.sum()), flips.numel(), noise.p_add)
    assert result.pvalue > 1e-4


def test_words_are_uniform():
    words = Stream(5).words(0, 1000, 1000).numpy().ravel()
    for shift in (0, 8, 16, 24):
        counts = np.bincount((words >> shift) & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
    ones = ((words[:, None] >> np.arange(32)) & 1).sum(axis=0)
    assert np.all(np.abs(ones - words.size / 2) < 5 * np.sqrt(words.size) / 2)


@pytest.mark.parametrize("axis", ["samples", "entries"])
@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5, 8, 64, 997])
def test_flips_are_independent_across_samples_and_across_entries(axis, lag):
    """The four joint outcomes of two places a fixed lag apart have the product law."""
    noise = Flip(0.7)
    flips = Stream(23).flips(0, 1200, 1200, noise)[0].numpy().astype(int)
    flips = flips if axis == "samples" else flips.T
    joint = np.bincount((2 * flips[:-lag] + flips[lag:]).ravel(), minlength=4)
    p = noise.p_add
    expected = np.array([(1 - p) ** 2, (1 - p) * p, p * (1 - p), p * p]) * joint.sum()
    assert stats.chisquare(joint, expected).pvalue > 1e-4


def test_flips_of_two_targets_and_of_two_seeds_are_independent():
    noise = Flip(0.7)
    base = Stream(1).flips(0, 800, 800, noise)[0]
    others = [
        Stream(1).flips(0, 800, 800, noise, target=0)[0],
        Stream(2).flips(0, 800, 800, noise)[0],
        Stream(1, "select").flips(0, 800, 800, noise)[0],
    ]
    p = noise.p_add
    for other in others:
        both = int((base & other).sum())
        assert stats.binomtest(both, base.numel(), p * p).pvalue > 1e-4


def test_row_sums_have_the_binomial_law():
    """A test of many entries at once: overlapping words would widen or narrow the spread."""
    noise = Flip(0.7)
    sums = Stream(9).flips(0, 4000, 500, noise)[0].sum(dim=1).numpy()
    edges = stats.binom.ppf(np.linspace(0, 1, 21)[1:-1], 500, noise.p_add)
    bins = np.concatenate([[-1], np.unique(edges), [500]])
    expected = np.diff(stats.binom.cdf(bins, 500, noise.p_add)) * len(sums)
    observed = np.histogram(sums, bins=bins + 0.5)[0]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "0", None])
def test_seeds_outside_64_bits_are_refused(seed):
    with pytest.raises(InputError):
        Stream(seed)


def test_unknown_purposes_and_places_outside_the_stream_are_refused():
    with pytest.raises(InputError, match="purpose"):
        Stream(0, "prove")
    with pytest.raises(InputError, match="outside the stream"):
        Stream(0).words(5, 2, 3)
    with pytest.raises(InputError, match="outside the stream"):
        Stream(0).flips(0, 1, 2**32 + 1, Flip(0.7))
