from functools import partial

import numpy as np
import pytest

import unswayed as us
from unswayed.errors import DoubtfulSetting, InputError

NOISE = us.Flip(beta=0.7)


def certs_for(counts, **more):
    settings = {"alpha": 0.001} | more
    return us.certify(us.Votes.from_counts(counts, NOISE, entries=2_707), **settings)


def test_a_clear_winner_is_certified_and_a_tie_abstains():
    certs = certs_for([[9_990, 10, 0], [0, 5_000, 5_000], [0, 0, 10_000]])
    assert certs.label.tolist() == [0, -1, 2]
    assert certs.abstained.tolist() == [False, True, False]
    assert certs.size[1] == -1
    assert 0 < certs.size[0] < certs.size[2]


def test_one_sample_never_certifies_at_a_strict_level():
    assert certs_for([[1, 0]]).abstained.all()


def test_no_answers_can_never_be_the_label_but_count_against_it():
    silent = us.Votes.from_counts([[3_000, 0]], NOISE, entries=100, samples=10_000)
    assert us.certify(silent).abstained.all()  # 7,000 samples without an answer outweigh 3,000 votes
    few = us.Votes.from_counts([[9_900, 0]], NOISE, entries=100, samples=10_000)
    none = us.Votes.from_counts([[9_900, 100]], NOISE, entries=100)
    assert us.certify(few).size[0] <= us.certify(none).size[0]
    assert us.certify(few).p_rest[0] >= 0.01 * 0.9


def test_size_never_exceeds_the_number_of_entries():
    votes = us.Votes.from_counts([[10_000, 0]], NOISE, entries=3)
    assert us.certify(votes).size.tolist() == [3]


def test_beta_one_half_certifies_everything_or_nothing():
    votes = us.Votes.from_counts([[600, 400], [500, 500]], us.Flip(beta=0.5), entries=77)
    assert us.certify(votes).size.tolist() == [77, -1]


def test_family_certificates_pay_for_every_target_abstainers_included():
    counts = [[9_990, 10]] + [[5_000, 5_000]] * 99
    alone, together = certs_for(counts), certs_for(counts, family=True)
    assert together.p_top[0] < alone.p_top[0]
    hundredth = certs_for(counts[:1], alpha=0.001 / 100)
    assert together.p_top[0] == pytest.approx(hundredth.p_top[0], rel=1e-12)


@pytest.mark.parametrize("at", [1.5, -1, [0, -2], "two", True, np.nan])
def test_shares_are_of_whole_numbers_of_changes(at):
    certs = certs_for([[99, 1]] * 3)
    asks = [certs.accuracy, partial(certs.recall, positive=0), partial(certs.precision, positive=0)]
    for ask in asks:
        with pytest.raises(InputError, match="at must be whole numbers"):
            ask([0, 0, 0], at=at)
    assert certs.accuracy([0, 0, 1], at=[0.0]).tolist() == certs.accuracy([0, 0, 1], at=[0]).tolist()
    with pytest.raises(InputError, match="3 targets but the mask"):
        certs.share(0, of=[True])


def test_accuracy_counts_right_labels_of_enough_size():
    certs = certs_for([[9_990, 10], [10_000, 0], [5_000, 5_000], [10, 9_990]])
    small, large = int(certs.size[0]), int(certs.size[1])
    right = certs.accuracy([0, 0, 0, 0], at=[0, small, small + 1, large, large + 1])
    assert right.tolist() == [0.5, 0.5, 0.25, 0.25, 0.0]
    # of two the truth is known, and an abstention is never right
    assert certs.accuracy([0, -1, -1, 0], at=[0, small + 1]).tolist() == [0.5, 0.0]
    assert certs.accuracy([-1, -1, 0, -1]).tolist() == 0.0
    with pytest.raises(InputError, match="no target is the true label known"):
        certs.accuracy([-1] * 4)


@pytest.mark.parametrize("truth", [[0, 1, 2], 0, [[0, 1]]])
def test_truth_of_the_wrong_shape_is_refused(truth):
    with pytest.raises(InputError):
        certs_for([[9, 1], [1, 9]]).accuracy(truth, at=[0])


def test_grid_is_monotone_and_agrees_with_size():
    certs = certs_for([[9_990, 10], [5_000, 5_000]])
    grid = certs.grid(12, 12)
    assert grid.shape == (2, 13, 13)
    assert not grid[1].any()
    size = int(certs.size[0])
    total = np.add.outer(np.arange(13), np.arange(13))
    assert np.array_equal(grid[0], total <= size)
    with pytest.raises(InputError):
        certs.grid(-1, 2)


def test_asymmetric_sizes_use_only_feasible_splits():
    noise = us.AddDelete(p_add=0.01, p_delete=0.6)
    counts = [[9_999, 1]]
    free = us.certify(us.Votes.from_counts(counts, noise, entries=50))
    full = us.certify(us.Votes.from_counts(counts, noise, entries=50, ones=50))  # nothing left to add
    empty = us.certify(us.Votes.from_counts(counts, noise, entries=50, ones=0))  # nothing to delete

    def holds(adds, deletes):
        return us.theory.is_certified(free.p_top[0], free.p_rest[0], noise, adds=adds, deletes=deletes)

    def largest(splits):
        return next(k for k in range(50) if not all(holds(*split) for split in splits(k + 1)))

    assert full.size[0] == largest(lambda k: [(0, k)])
    assert empty.size[0] == largest(lambda k: [(k, 0)])
    assert free.size[0] == largest(lambda k: [(adds, k - adds) for adds in range(k + 1)])
    assert full.size[0] != empty.size[0]


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_impossible_levels_are_refused(alpha):
    with pytest.raises(InputError):
        certs_for([[9, 1]], alpha=alpha)


def test_a_confidence_given_as_alpha_is_understood():
    with pytest.raises(InputError, match=r"alpha=0\.05"):
        certs_for([[90, 10]], alpha=0.95)


def test_a_level_above_one_in_ten_is_warned_of():
    with pytest.warns(DoubtfulSetting, match="one certificate in 5"):
        certs_for([[90, 10]], alpha=0.2)


def test_unknown_bounds_are_refused():
    with pytest.raises(InputError, match="strict"):
        certs_for([[9, 1]], bounds="loose")


def test_votes_stopped_by_looking_need_anytime_bounds():
    votes = us.Votes.from_counts([[9_990, 10]], NOISE, 40, provenance={"adaptive": True})
    with pytest.raises(InputError, match="anytime"):
        us.certify(votes)
    assert us.certify(votes, bounds="anytime").size[0] > 0


def test_noise_that_may_have_trained_the_model_certifies_nothing():
    votes = us.Votes.from_counts([[99, 1]], us.Flip(beta=0.7), entries=5, provenance={"purpose": "train"})
    with pytest.raises(InputError, match="train"):
        us.certify(votes)


def test_certificates_are_frozen():
    certs = certs_for([[9_990, 10]])
    with pytest.raises(AttributeError):
        certs.alpha = 0.5
    with pytest.raises(ValueError):
        certs.size[0] = 99


def test_frame_has_a_row_per_target():
    frame = certs_for([[9_990, 10], [5_000, 5_000]]).to_frame()
    assert frame["target"].tolist() == [0, 1]
    assert frame["size"].tolist()[1] == -1
    assert frame["samples"].tolist() == [10_000, 10_000]


def test_statements_name_the_numbers_they_rest_on():
    certs = certs_for([[9_990, 10], [5_000, 5_000]])
    sure, unsure = certs.statement(0), certs.statement(1)
    assert f"at most {certs.size[0]} of its 2,707" in sure
    assert "99.9%" in sure
    assert "9,990" in sure
    assert "this target taken by itself" in sure
    assert "no guarantee" in unsure
    assert "all targets of this run together" in certs_for([[9_990, 10]], family=True).statement(0)
    least = us.certify(us.Votes.from_counts([[5_300, 4_700]], NOISE, entries=7))
    assert least.size.tolist() == [0]
    assert "a single changed entry" in least.statement(0)
    everything = us.certify(us.Votes.from_counts([[600, 400]], us.Flip(beta=0.5), entries=7))
    assert "however large" in everything.statement(0)
    asymmetric = us.certify(us.Votes.from_counts([[99_999, 1]], us.AddDelete(0.01, 0.6), entries=7))
    assert "added with probability 0.01" in asymmetric.statement(0)


def test_statements_never_round_up():
    votes = us.Votes.from_counts([[10**8, 0, 0]], NOISE, entries=2_707)
    words = us.certify(votes, alpha=1e-12).statement(0)
    assert "confidence 1 − 1e-12" in words
    assert "at least 0.99999970" in words
    assert "exceeds 2.9" in words


def test_repr_is_short():
    assert repr(certs_for([[9_990, 10], [5_000, 5_000]])).startswith("Certificates(2 targets, 1 certified")
    assert "median" not in repr(certs_for([[5_000, 5_000]]))


def test_no_answer_may_be_no_rival():
    votes = us.Votes.from_counts([[7_900, 80, 20]], NOISE, entries=100, samples=10_000)
    every, labels = us.certify(votes), us.certify(votes, rivals="labels")
    assert labels.size[0] == 3 > every.size[0]
    assert "and “no answer” too" in every.statement(0)
    assert "“no answer” does not count against it" in labels.statement(0)
    assert labels.to_json()["rivals"] == "labels"
    assert us.certify(votes, rivals="labels", family=True)[0:1].rivals == "labels"
    assert labels.proven(0, -1) == "no rival"
    with pytest.raises(InputError, match="rivals"):
        us.certify(votes, rivals="answers")


def test_a_label_may_be_certified_although_silence_is_more_probable():
    votes = us.Votes.from_counts([[3_000, 0]], NOISE, entries=100, samples=10_000)
    assert us.certify(votes).abstained.all()
    labels = us.certify(votes, rivals="labels")
    assert labels.label.tolist() == [0]
    assert labels.size[0] >= 1
    assert labels.explanation(0).facts["next_size"] == labels.size[0] + 1


def test_rivals_survive_a_file(tmp_path):
    votes = us.Votes.from_counts([[7_900, 80, 20]], NOISE, entries=100, samples=10_000)
    us.certify(votes, rivals="labels").save(tmp_path / "certs")
    assert us.load(tmp_path / "certs").rivals == "labels"
