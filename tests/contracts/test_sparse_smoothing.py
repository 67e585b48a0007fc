"""Our certificate proves whatever sparse smoothing's proves rightly, and no cell that exact fractions refute."""

import numpy as np

from benchmarks.checks import sparse_smoothing_comparison as comparison
from unswayed.theory import AddDelete, bound_votes

NOISE = AddDelete(p_add=0.2, p_delete=0.4)


def test_same_cells_as_their_certificate_for_several_classes() -> None:
    counts = comparison.synthetic(np.random.default_rng(3), targets=60)
    bounds = bound_votes(counts, 10_000, 0.001)
    found = comparison.compare(bounds.p_top, bounds.p_rest, NOISE, reach=5)
    assert found["ours"] > 100
    assert found["disputed_settled_for_ours"] == found["disputed_with_several_classes"]
    assert found["proved_by_two_classes_only"] == 0
    assert found["ours"] > found["theirs_two_classes"]


def test_at_exact_thresholds_floats_err_and_we_do_not() -> None:
    found = comparison.at_the_edge(NOISE, reach=3)
    assert found["cells"] > 30
    assert found["ours_wrong"] == 0
    assert found["theirs_over_claims"] + found["theirs_misses"] > 0


def test_a_runner_up_from_other_votes_over_claims() -> None:
    counts = np.array([[9000, 100, 900]])
    other = np.array([[90, 9, 1]])
    assert comparison.wrong_runner_up(counts, other, 10_000, 0.001, NOISE)["over_claimed"] == 1
