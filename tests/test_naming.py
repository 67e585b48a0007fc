import numpy as np
import pytest

import unswayed as us
from unswayed.errors import InputError
from unswayed.naming import check_places, places, plain


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
        ([1, 0, -1, np.nan], ("0", "1"), [1, 0, -1, -1]),
        ([0], ("1", "2"), [0]),
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
        (
            [0, 1],
            ("1", "2"),
            "The label 1 may be .* the class that is called '1' and has the number 0; give names, as text",
        ),
        ([1.0], ("01", "02"), "called '01'"),
        ([True], ("1", "0"), "called '1'"),
        ([-1], ("-1", "1"), "called '-1'"),
        ([1], (1, "2"), "called '1'"),
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


@pytest.mark.parametrize("names", [{"ham", "spam"}, {"spam": 1, "ham": 0}, "hs", frozenset("hs"), 2])
def test_names_without_an_order_of_their_own_are_refused(names):
    """A set of texts has another order in every process, so that a label would come under another's name."""
    counts, noise = [[5, 95]], us.Flip(beta=0.9)
    certs = us.certify(us.Votes.from_counts(counts, noise, 9), alpha=0.05)
    for ask in (
        lambda: certs.named(classes=names),
        lambda: us.Votes.from_counts(counts, noise, 9, classes=names),
    ):
        with pytest.raises(InputError, match="Names must be a list, in the order"):
            ask()
    for listed in (["ham", "spam"], np.array(["ham", "spam"]), {"ham": 0, "spam": 1}.keys()):
        assert certs.named(classes=listed).answer.tolist() == ["spam"]


@pytest.mark.parametrize(
    ("names", "known", "fine"),
    [
        (["ham", "spam"], ["ham", "spam"], True),
        (["good", "bad"], ["ham", "spam"], True),
        (["spam", "ham"], ["ham", "spam"], False),
        (["spam", "other"], ["ham", "spam"], False),
        ([1, 2], [0, 1], True),  # a LabelEncoder's own
        ([1, 0], [0, 1], False),
        (["1", "0"], [0, 1], False),
        ([2, 1], [1, 2], False),
        (["a", "b"], [], True),
        ([1, 0], [0.0, 1.0], False),  # labels that were read as floats
        ([0, 1], [0.0, 1.0], True),
        ([2, 1], [1.0, 2.0], False),
        (["1.0", "0.0"], [0, 1], False),
        ([1, 0], [False, True], False),
        (["True", "False"], [False, True], False),
        ([0, 1], [False, True], True),
        ([2.0, 3.0], [0, 1], True),
    ],
)
def test_a_name_stays_with_the_class_that_has_it(names, known, fine):
    if fine:
        check_places(names, known)
    else:
        with pytest.raises(InputError, match="names come in its order"):
            check_places(names, known)


def test_certificates_keep_their_classifiers_names_in_its_order():
    votes = us.Votes.from_counts([[5, 95]], us.Flip(beta=0.9), 9, classes=["ham", "spam"])
    certs = us.certify(votes, alpha=0.05)
    assert certs.named(classes=["fine", "junk"]).answer.tolist() == ["junk"]
    with pytest.raises(InputError, match="names come in its order"):
        certs.named(classes=["spam", "ham"])
