"""Recall and precision of what is flagged, against every attack there is on small graphs."""

from functools import cache
from itertools import product

import numpy as np
import pytest

import unswayed as us
from unswayed.errors import InputError, Unsupported
from unswayed.report.summary import summarise


@cache
def votes_for(entries):
    """How many of 2,000 votes prove each size."""
    counts = [[0, votes] for votes in range(2_001)]
    sizes = us.certify(us.Votes.from_counts(counts, us.Flip(0.7), entries, samples=2_000)).size
    return {size: votes for votes, size in enumerate(sizes.tolist())}


def certificates(label, size, entries=9):
    """Certificates with these labels and sizes, from counts that prove them."""
    noise, table = us.Flip(0.7), votes_for(entries)
    counts = np.zeros((len(label), 2), int)
    for row, (own, reach) in enumerate(zip(label, size, strict=True)):
        if own >= 0:
            counts[row, own] = table[reach]
    certs = us.certify(us.Votes.from_counts(counts, noise, entries, samples=2_000))
    assert certs.label.tolist() == list(label)
    assert certs.size.tolist() == list(size)
    return certs


LABEL, SIZE, TRUTH = [1, 1, 1, 0, 0, -1, 1, -1], [3, 1, 0, 2, 0, -1, 2, -1], [1, 1, 1, 0, 0, 0, 0, 1]


def worst(k):
    """The least recall and precision over all labels that an attacker of k changes a target may cause."""
    free = [(0, 1) if size < k or label < 0 else (label,) for label, size in zip(LABEL, SIZE, strict=True)]
    truth = np.array(TRUTH)
    found = [np.array(labels) for labels in product(*free)]
    recall = min(float((labels[truth == 1] == 1).mean()) for labels in found)
    precision = min(float((truth[labels == 1] == 1).mean()) for labels in found if (labels == 1).any())
    return recall, precision


@pytest.mark.parametrize("k", [1, 2, 3])
def test_they_are_the_worst_of_all_outcomes(k):
    certs = certificates(LABEL, SIZE)
    recall, precision = worst(k)
    assert certs.recall(TRUTH, at=k) == pytest.approx(recall)
    assert certs.precision(TRUTH, at=k) == pytest.approx(precision)


def test_without_false_alarms_precision_is_one():
    certs = certificates([1, 0], [2, 2])
    assert certs.precision([1, 0], at=[0, 2, 3]).tolist() == [1.0, 1.0, 0.0]


def test_classes_are_named_by_name():
    certs = certificates(LABEL, SIZE).named(classes=["honest", "fraud"])
    named = [("honest", "fraud")[y] for y in TRUTH]
    assert (
        certs.recall(named, positive="fraud", at=[0, 2]).tolist() == certs.recall(TRUTH, at=[0, 2]).tolist()
    )
    assert certs.precision(named, "fraud", at=[1]).tolist() == certs.precision(TRUTH, at=[1]).tolist()
    with pytest.raises(InputError, match="none of the classes"):
        certs.recall(named, positive="froud")
    with pytest.raises(InputError, match="No target"):
        certs.recall(["honest"] * 8, positive="fraud")


def test_who_withstands_all_changes_there_are_is_no_false_alarm_beyond_them():
    votes = us.Votes.from_counts([[0, 9000], [9000, 0]], us.Flip(beta=0.7), [40, 2])
    certs = us.certify(votes)
    assert certs.size[0] > certs.size[1] == 2
    assert certs.precision([1, 0], at=[3]).tolist() == [1.0]


def test_precision_needs_all_truths():
    with pytest.raises(InputError, match="every target"):
        certificates([1, 0], [2, 2]).precision([1, -1])


def test_a_label_among_the_most_probable_says_nothing_of_the_flag():
    """Another label stays among the first two, and one change makes the flag the answer: of a classifier with these probabilities."""
    counts = [[5_500, 4_400, 100], [4_400, 5_500, 100]]  # class 1 is the flag
    votes = us.Votes.from_counts(counts, us.Flip(0.7), entries=9)
    among, first = us.certify_top(votes, 2), us.certify(votes)
    assert among.label.tolist() == first.label.tolist() == [0, 1]
    assert among.size[0] >= 1 > first.size[0]
    with pytest.raises(Unsupported, match="2 most probable"):
        among.precision([0, 1], at=1)
    alone = us.certify_top(votes, 1)
    assert alone.precision([0, 1], at=[0, 1]).tolist() == [1.0, 0.0]
    for told in ({"positive": 1}, {"floor": 0.5}, {"base": 0.5}):
        with pytest.raises(InputError, match="2 most probable"):
            summarise(among, truth=[0, 1], **told)
        summarise(alone, truth=[0, 1], **told)
