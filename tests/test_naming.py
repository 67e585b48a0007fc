import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.naming import places, plain


@pytest.mark.parametrize(
    ("labels", "names", "found"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        (np.array(["b", "a"], dtype=object), ("a", "b"), [1, 0]),
        (["b", None, "", float("nan")], ("a", "b"), [1, -1, -1, -1]),
        ([1, 2], (1, 2), [0, 1]),
        ([-1, 1], (-1, 1), [0, 1]),
        (["2", "1"], (1, 2), [1, 0]),
        ([1.0, np.nan], (1, 2), [0, -1]),
        ([True, False], (False, True), [1, 0]),
        ([1, 0, -1], (), [1, 0, -1]),
        ([1, 0], ("a", "b"), [1, 0]),  # class numbers, since names are text
        ([1.0, 0.0], (), [1, 0]),
        ([True, False], (), [1, 0]),
        ("b", ("a", "b"), 1),
        ([], (), []),
    ],
)
def test_labels_are_found_by_name_or_by_number(labels, names, found):
    assert places(labels, 2, names).tolist() == found


@pytest.mark.parametrize(
    ("labels", "names", "word"),
    [
        (["a", "c"], ("a", "b"), "'c'"),
        (["a"], (), "named\\(classes"),
        ([0], (1, 2), "label 0 is none of the classes 1, 2"),
        ([-1], (0, 1), "-1"),
        ([2], (), "0 to 1"),
        ([0.5], (), "0.5"),
        (np.array([{}]), (), "numbers"),
    ],
)
def test_what_is_no_class_is_refused(labels, names, word):
    with pytest.raises(InputError, match=word):
        places(labels, 2, names)


def test_names_are_json_values():
    assert plain(np.array([1, 2])) == (1, 2)
    assert all(type(name) is int for name in plain(np.array([1, 2])))
    assert plain([True, "a", 1.5, np.str_("b")]) == (True, "a", 1.5, "b")
