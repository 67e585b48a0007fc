"""A vote of groups, against every way in which K groups can change their answer."""

from itertools import product

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory.hashed import hashed_grid, hashed_size


def label_of(answers, classes):
    votes = [sum(answer == c for answer in answers) for c in range(classes)]
    return -1 if sum(votes) == 0 else votes.index(max(votes))


def safe_up_to(answers, classes):
    """The largest K such that no K groups, answering anything or nothing, change the label; found by trying all."""
    outcomes = range(-1, classes)
    reach = {
        sum(a != b for a, b in zip(answers, other, strict=True))
        for other in product(outcomes, repeat=len(answers))
        if label_of(other, classes) != label_of(answers, classes)
    }
    return min(reach, default=len(answers) + 1) - 1


@pytest.mark.parametrize(("groups", "classes"), [(1, 2), (4, 3), (5, 2), (6, 2)])
def test_no_size_is_too_large_and_none_too_small_for_groups_that_answer_anything(groups, classes):
    for answers in product(range(-1, classes), repeat=groups):
        counts = [[sum(a == c for a in answers) for c in range(classes)]]
        label, size = hashed_size(counts)
        assert label[0] == label_of(answers, classes)
        if label[0] >= 0:
            truth = safe_up_to(answers, classes)
            assert size[0] <= truth
            if -1 not in answers:  # with silent groups the bound forgets that they have no vote to lose
                assert size[0] == min(truth, groups // 2)


def test_a_silent_group_can_still_be_lost_to_a_rival():
    assert hashed_size([[3, 0]])[1] == [1]  # of any number of groups: two that were silent may come to say 1
    assert hashed_size([[0, 3]])[1] == [1]
    assert hashed_size([[0, 2]])[1] == [0]


def test_ties_go_to_the_lower_class_and_leave_nothing_to_prove():
    label, size = hashed_size([[4, 4, 4], [1, 4, 4]])
    assert label.tolist() == [0, 1]
    assert size.tolist() == [0, 0]


def test_where_nobody_answers_nothing_is_promised():
    label, size = hashed_size([[0, 0, 0]])
    assert (label[0], size[0]) == (-1, -1)


@pytest.mark.parametrize("counts", [[1, 2], [[1], [2]], [[-1, 2]], [[0.5, 2]]])
def test_what_is_no_table_of_counts_is_refused(counts):
    with pytest.raises(InputError):
        hashed_size(counts)


def test_a_cell_counts_only_what_can_be_changed():
    found = hashed_grid([2, -1], zeros=[1, 1], ones=[3, 3], adds=4, deletes=4)
    expected = np.array([[min(a, 1) + min(r, 3) <= 2 for r in range(5)] for a in range(5)])
    assert np.array_equal(found[0], expected)
    assert not found[1].any()
