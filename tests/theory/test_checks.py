"""What every function of the theory refuses, told in one sentence."""

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory.checks import check_count, check_counts, check_probability


@pytest.mark.parametrize("value", [-1, np.int64(-1), True, 1.0, "2", None])
def test_one_whole_number(value):
    with pytest.raises(InputError, match="whole number"):
        check_count(value, "cap")


def test_zero_and_more_are_counts():
    assert check_count(0, "cap") == 0
    assert check_count(np.int64(3), "cap") == 3
    assert check_counts([0, 2], "adds").tolist() == [0, 2]
    with pytest.raises(InputError):
        check_counts([0, -1], "adds")


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, np.nan, "x"])
def test_probabilities(value):
    with pytest.raises(InputError, match="p_top"):
        check_probability(value, "p_top")
