"""Top-k certificates from votes: the levels, the labels, and that they fail no more often than they may."""

import numpy as np
import pytest
from scipy import stats

import unswayed as us
from unswayed.errors import InputError

NOISE = us.Flip(beta=0.7)
COUNTS = [[600, 350, 30, 20], [250, 250, 250, 250], [10, 20, 30, 900]]


def votes_of(counts=COUNTS, samples=1_000, **options):
    return us.Votes.from_counts(counts, NOISE, 50, samples=samples, **options)


def test_a_larger_k_is_easier():
    votes = votes_of([[700, 200, 80, 20], *COUNTS])
    sizes = np.stack([us.certify_top(votes, k).size for k in (1, 2, 3)])
    assert (np.diff(sizes, axis=0) >= 0).all()
    assert sizes[:, 0].tolist() == [0, 1, 2]
    assert (sizes[:2, 2] == -1).all()


def test_limits_are_those_of_clopper_and_pearson_at_the_stated_level():
    """Four labels and no answer: a fixed label takes 5 limits, a chosen one 9."""
    fixed = us.certify_top(votes_of(), 2, label=0, alpha=0.01)
    chosen = us.certify_top(votes_of(), 2, alpha=0.01)
    assert fixed.p_label[0] == pytest.approx(stats.beta.ppf(0.01 / 5, 600, 401), rel=1e-9)
    assert chosen.p_label[0] == pytest.approx(stats.beta.ppf(0.01 / 9, 600, 401), rel=1e-9)
    uppers = stats.beta.ppf(1 - 0.01 / 5, [351, 31, 21, 1], [650, 970, 980, 1_000])
    expected = us.theory.certified_topk_size(fixed.p_label[0], uppers, 2, NOISE, 50)
    assert fixed.size[0] == expected
    assert chosen.asked.tolist() == [0, 0, 3]


def test_a_family_spends_alpha_on_all_targets():
    whole = us.certify_top(votes_of(), 2, alpha=0.03, family=True)
    assert whole.p_label.tolist() == us.certify_top(votes_of(), 2, alpha=0.01).p_label.tolist()


def test_no_answer_may_take_a_place():
    silent = us.certify_top(votes_of([[300, 200, 0, 0]]), 1, label=0)  # 500 of 1,000 gave no answer
    assert silent.size.tolist() == [-1]
    assert us.certify_top(votes_of([[300, 200, 0, 0]]), 3, label=0).size[0] >= 0


def test_for_one_place_it_is_never_above_the_usual_certificate():
    many = np.random.default_rng(0).multinomial(1_000, [0.9, 0.06, 0.03, 0.01], size=50)
    top, usual = us.certify_top(votes_of(many), 1), us.certify(votes_of(many))
    assert (top.size <= usual.size).all()
    assert top.size.max() > 0


@pytest.mark.filterwarnings(
    "ignore::unswayed.errors.DoubtfulSetting"
)  # a level at which failures are frequent enough to count
@pytest.mark.parametrize("fixed", [True, False])
def test_the_bounds_fail_no_more_often_than_alpha(fixed):
    """Close probabilities, the hardest case for a label chosen from the votes."""
    truth, alpha, trials = np.array([0.26, 0.25, 0.25, 0.24]), 0.2, 2_000
    counts = np.random.default_rng(1).multinomial(300, truth, size=trials)
    found = us.certify_top(votes_of(counts, samples=300), 2, label=0 if fixed else None, alpha=alpha)
    among_two = truth[found.asked] > np.sort(truth)[::-1][2] - 1e-12  # at most two outcomes are above it
    wrong = (found.p_label > truth[found.asked]) | ((found.size >= 0) & ~among_two)
    assert wrong.sum() <= stats.binom.ppf(0.9999, trials, alpha)


def test_adaptive_votes_need_anytime_bounds():
    votes = votes_of(provenance={"adaptive": True})
    with pytest.raises(InputError, match="anytime"):
        us.certify_top(votes, 2)
    found = us.certify_top(votes, 2, bounds="anytime")
    assert 0 <= found.size[0] <= us.certify_top(votes_of(), 2, label=0).size[0]


def test_the_share_that_stays():
    found = us.certify_top(votes_of(), 2, label=[0, 0, 3])
    assert found.share([0, 1]).tolist() == [2 / 3, (found.size >= 1).mean()]
    assert found.abstained.tolist() == [False, True, False]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("k", "options", "words"),
    [
        (0, {}, "k must be"),
        (4, {}, "from 1 to 3"),
        (True, {}, "k must be"),
        (2, {"label": 4}, "between 0 and 3"),
        (2, {"label": -1}, "between 0 and 3"),
        (2, {"label": [0, 1]}, "each of the 3"),
        (2, {"label": 0.5}, "whole number"),
        (2, {"alpha": 0}, "alpha"),
        (2, {"bounds": "paper"}, "strict"),
    ],
)
def test_bad_input_is_refused(k, options, words):
    with pytest.raises(InputError, match=words):
        us.certify_top(votes_of(), k, **options)


def test_no_targets_have_no_share():
    nobody = us.certify_top(votes_of(np.zeros((0, 4), int)), 2)
    with pytest.raises(InputError, match="no targets"):
        nobody.share(0)


def test_grids_go_beyond_what_can_be_deleted():
    votes = us.Votes.from_counts([[900, 60, 40]], us.Hide(nodes=0.9, edges=0.5), entries=10, ones=[0])
    assert us.certify_top(votes, k=2).grid(1, 2).shape == (1, 2, 3)
