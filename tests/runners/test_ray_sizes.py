"""Parts of an electorate, as a task gets them, are the whole."""

import numpy as np
import pytest

from unswayed.runners.ray_sizes import _alone, _by_label, _narrow
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll


def people(seed, targets=40, voters=30, classes=4, loud=1000):
    rng = np.random.default_rng(seed)
    linked = rng.random((targets, voters)) < rng.random((targets, 1)) * 0.6
    itself = np.where(rng.random(targets) < 0.5, rng.integers(0, voters, targets), -1)
    linked[np.arange(targets)[itself >= 0], itself[itself >= 0]] = False
    target, voter = np.nonzero(linked)
    ballots = rng.integers(-loud, loud + 1, (voters + 5, classes)).astype(np.int32)
    row = np.where(rng.random(len(voter)) < 0.3, voters + rng.integers(0, 5, len(voter)), voter)
    own = rng.integers(-loud, loud + 1, (targets, classes))
    start = np.searchsorted(target, np.arange(targets + 1))
    return Electorate(Roll(ballots, voters), own, own * 2**33, start, row, voter, itself, voters - (itself >= 0))  # fmt: skip


@pytest.mark.parametrize("parts", [1, 3, 8, 100])
def test_parts_are_the_whole(parts):
    for seed in range(5):
        whole = people(seed)
        found = np.full(len(whole), -1)
        for part in _by_label(whole, parts):
            wide = {name: value.astype(np.int64) for name, value in _alone(whole.take(part)).items()}
            some = Electorate(roll=whole.roll, **wide)
            assert np.array_equal(some.scores, whole.scores[part])
            found[part] = some.sizes()
        assert found.tolist() == whole.sizes().tolist()


def test_targets_of_a_label_go_together():
    whole = people(1, targets=400)
    labels = np.concatenate([whole.label[part] for part in _by_label(whole, 8)])
    assert labels.tolist() == sorted(whole.label.tolist())


def test_nobody_is_no_part():
    assert _by_label(people(0, targets=0), 8) == []


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([], 8), ([0, 0], 8), ([-128, 127], 8), ([-129, 0], 16), ([0, 128], 16), ([2**15], 32),
        ([-(2**31), 2**31 - 1], 32), ([2**31], 64), ([-(2**61)], 64),
    ],
)  # fmt: skip
def test_numbers_travel_in_as_few_bits_as_hold_them(values, bits):
    sent = _narrow(np.array(values, dtype=np.int64))
    assert sent.dtype.itemsize * 8 == bits
    assert sent.tolist() == values
