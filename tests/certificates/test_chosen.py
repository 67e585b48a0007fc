"""Choosing a noise level per target: sound at the sum of the alphas, or on votes of another purpose."""

import numpy as np
import pytest

from unswayed import Flip, Votes, certify
from unswayed.certificates import best_of, chosen_on
from unswayed.errors import InputError
from unswayed.theory import certified_size

LEVELS = [Flip(beta=0.6), Flip(beta=0.7), Flip(beta=0.8)]
ENTRIES = 200


def votes(counts: object, noise: Flip, purpose: str = "certify", **more: object) -> Votes:
    return Votes.from_counts(counts, noise, ENTRIES, provenance={"purpose": purpose, "threat": "t", **more})  # type: ignore[arg-type]


def drawn(rng: np.random.Generator, shares: np.ndarray, samples: int, purpose: str) -> list[Votes]:
    return [
        votes(rng.multinomial(samples, shares[b], size=400), noise, purpose) for b, noise in enumerate(LEVELS)
    ]


def test_the_best_level_is_taken_for_each_target() -> None:
    tables = [[[990, 10], [600, 400]], [[900, 100], [999, 1]], [[510, 490], [510, 490]]]
    certs = [
        certify(votes(table, noise), alpha=0.001 / 3) for table, noise in zip(tables, LEVELS, strict=True)
    ]
    best = best_of(certs)
    sizes = np.stack([c.size for c in certs])
    assert np.array_equal(best.size, sizes.max(axis=0))
    assert np.array_equal(best.label, [certs[b].label[t] for t, b in enumerate(best.choice)])
    assert best.alpha == pytest.approx(0.001)
    assert np.array_equal(best.grid(3, 2)[1], certs[best.choice[1]].grid(3, 2)[1])
    assert best.accuracy([0, 1], at=[0, 1]).tolist() == [0.5, 0.5]
    assert len(best) == 2
    assert not best.abstained.any()


def test_another_score_may_choose() -> None:
    certs = [certify(votes([[990, 10]], noise), alpha=0.0005) for noise in LEVELS[:2]]
    assert best_of(certs, by=lambda c: [c.noise.beta]).choice.tolist() == [1]  # type: ignore[union-attr]


def test_coverage_of_the_best_of_three_levels() -> None:
    """The chosen size exceeds what the true shares allow in at most alpha of all targets; naive choice is worse off."""
    rng = np.random.default_rng(5)
    shares = np.array([[0.77, 0.23], [0.7857, 0.2143], [0.8750, 0.1250]])  # at or below a step of the size
    truth = np.array([certified_size(p, 1 - p, n, ENTRIES) for (p, _), n in zip(shares, LEVELS, strict=True)])
    alpha, failures, naive, rounds = 0.06, 0, 0, 5
    for _ in range(rounds):
        polled = drawn(rng, shares, 300, "certify")
        split = best_of([certify(v, alpha=alpha / 3) for v in polled])
        whole = best_of([certify(v, alpha=alpha) for v in polled])
        assert whole.alpha == pytest.approx(3 * alpha)
        failures += int((split.size > truth[split.choice]).sum())
        naive += int((whole.size > truth[whole.choice]).sum())
    assert failures <= 1.25 * alpha * rounds * 400
    assert naive > failures


def test_choosing_on_other_votes_keeps_alpha() -> None:
    rng = np.random.default_rng(6)
    shares = np.array([[0.9, 0.1], [0.95, 0.05], [0.97, 0.03]])
    pilot = [certify(v, alpha=0.01) for v in drawn(rng, shares, 200, "select")]
    final = [certify(v, alpha=0.001) for v in drawn(rng, shares, 2000, "certify")]
    chosen = chosen_on(pilot, final)
    assert chosen.alpha == 0.001
    assert np.array_equal(chosen.choice, np.stack([c.size for c in pilot]).argmax(axis=0))
    assert np.array_equal(chosen.size, np.stack([c.size for c in final])[chosen.choice, np.arange(400)])


def test_refusals() -> None:
    one, two = (certify(votes([[990, 10]], noise)) for noise in LEVELS[:2])
    with pytest.raises(InputError, match="no certificates"):
        best_of([])
    with pytest.raises(
        InputError, match="call their labels differently"
    ):  # "a" of one would be said to be "b"
        best_of([one.named(classes=["a", "b"]), two.named(classes=["b", "a"])])
    with pytest.raises(InputError, match="rivals"):
        best_of([one, certify(two.votes, rivals="labels")])
    with pytest.raises(InputError, match="same targets"):
        best_of([one, certify(votes([[990, 10], [1, 999]], LEVELS[1]))])
    with pytest.raises(InputError, match="same targets"):
        best_of(
            [one, certify(Votes.from_counts([[990, 10]], LEVELS[1], ENTRIES, provenance={"threat": "other"}))]
        )
    told = one.votes.provenance  # but for the structure vector's length
    with pytest.raises(InputError, match="same targets"):
        best_of([one, certify(Votes.from_counts([[990, 10]], LEVELS[1], ENTRIES + 9, provenance=told))])
    with pytest.raises(InputError, match="purpose"):
        chosen_on([one], [one])
    pilot = certify(votes([[990, 10]], LEVELS[0], "select"))
    with pytest.raises(InputError, match="same levels"):
        chosen_on([pilot], [two])
    with pytest.raises(InputError, match="same levels"):
        chosen_on([pilot], [one, two])
    with pytest.raises(InputError, match="labels have shape"):
        best_of([one]).accuracy([0, 1], at=0)


def test_levels_picked_among_many_leave_as_many_in_doubt_in_any_order() -> None:
    few = certify(votes([[900, 100]] * 3, LEVELS[2]), alpha=0.0005)
    picked = certify(votes([[990, 10]] * 1_000, LEVELS[1]), alpha=0.0005)[:3]
    assert picked.doubtful == 3
    assert best_of([few, picked]).doubtful == best_of([picked, few]).doubtful == 3
