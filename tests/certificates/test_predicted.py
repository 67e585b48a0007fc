"""A label from votes: wrong no more often than stated, and given wherever a certificate is."""

import numpy as np
import pytest

import unswayed as us
from unswayed.certificates.predicted import predicted
from unswayed.errors import InputError
from unswayed.votes import Votes

RNG = np.random.default_rng(17)
FLIP = us.Flip(beta=0.7)
PREDICTIONS = 100_000


def votes_of(counts, samples):
    return Votes.from_counts(counts, FLIP, entries=50, samples=samples)


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("samples", [25, 400])
@pytest.mark.parametrize(
    "shares",  # the first is the truth; the last is "no answer"
    [
        (0.5, 0.5, 0.0),
        (0.502, 0.498, 0.0),
        (0.34, 0.33, 0.33, 0.0),
        (0.26, 0.25, 0.25, 0.24),
        (0.2, 0.2, 0.2, 0.2, 0.2, 0.0),
        (0.05, 0.04, 0.91),
        (0.4, 0.2, 0.4),
        (0.9, 0.05, 0.05),
    ],
)
def test_a_label_is_wrong_no_more_often_than_alpha(shares, samples, alpha):
    """Near a tie, where mistakes are most likely. Where "no answer" is truly first, every label is wrong."""
    drawn = RNG.multinomial(samples, shares, PREDICTIONS)
    label = predicted(votes_of(drawn[:, :-1], samples), alpha=alpha)
    truth = -2 if shares[-1] > max(shares[:-1]) else 0
    wrong = int(np.sum((label != truth) & (label >= 0)))
    assert wrong <= alpha * PREDICTIONS + 4 * np.sqrt(alpha * PREDICTIONS)


def test_the_simulation_has_power():
    """Twice the level would be noticed at a tie of two: the test spends nearly all of its alpha."""
    drawn = RNG.multinomial(401, (0.5, 0.5), PREDICTIONS)
    wrong = np.sum(predicted(votes_of(drawn, 401), alpha=0.05) == 1)
    assert 0.4 * 0.05 * PREDICTIONS < wrong < 0.05 * PREDICTIONS


@pytest.mark.parametrize("rivals", ["all", "labels"])
def test_whoever_is_certified_gets_the_same_label(rivals):
    counts = RNG.multinomial(300, (0.5, 0.3, 0.15, 0.05), 2_000)[:, :-1]
    votes = votes_of(counts, 300)
    certs, label = us.certify(votes, alpha=0.01, rivals=rivals), predicted(votes, alpha=0.01, rivals=rivals)
    sure = ~certs.abstained
    assert 0 < sure.sum() < (label >= 0).sum()
    assert (label[sure] == certs.label[sure]).all()


def test_what_voids_the_test_is_refused():
    counted = votes_of([[90, 10]], 100)
    with pytest.raises(InputError, match="stopped by looking"):
        predicted(Votes.from_counts([[90, 10]], FLIP, 5, provenance={"adaptive": True}))
    with pytest.raises(InputError):
        predicted(counted, alpha=0.7)
