"""Records against every attack on every target, written out; packed and taken apart they say the same."""

from itertools import combinations

import numpy as np
import pytest

from unswayed.errors import InputError
from unswayed.theory.ballots import Linear
from unswayed.theory.electorate import Electorate
from unswayed.theory.records import Injected, Several, pack, unpack
from unswayed.theory.roll import Roll

CHANGES = ("any", "adds", "deletes")
SHAPES = ((2, 5), (1, 3), (3, 4))  # targets and entries of each part
POSITIONS = [np.array([4, 0]), np.array([2]), np.array([5, 1, 3])]


def made(shared=False):
    """The record, and (scores, effects, present) of every target in its order."""
    rng = np.random.default_rng(1)
    parts, targets = [], {}
    for (t, n), positions in zip(SHAPES, POSITIONS, strict=True):
        scores = rng.integers(-12, 13, (t, 3))
        effects = rng.integers(-3, 4, (1 if shared else t, n, 3))
        present = rng.random((t, n)) < 0.5
        parts.append(Linear.of_scores(scores, effects, present))
        for i, position in enumerate(positions.tolist()):
            targets[position] = scores[i], effects[0 if shared else i], present[i]
    return Several.of(parts, POSITIONS), [targets[i] for i in range(6)]


def answer(scores, effects, present, changed):
    """The label after these entries have changed."""
    signs = np.where(present[list(changed)], -1, 1)
    return int((scores + (signs[:, None] * effects[list(changed)]).sum(axis=0)).argmax())


def allowed(present, changed, change):
    return change == "any" or all(present[i] == (change == "deletes") for i in changed)


def smallest_attack(scores, effects, present, change):
    """How many entries a cheapest attack changes; None if there is none."""
    label, n = int(scores.argmax()), len(present)
    for k in range(1, n + 1):
        for changed in combinations(range(n), k):
            if allowed(present, changed, change) and answer(scores, effects, present, changed) != label:
                return k
    return None


@pytest.mark.parametrize("shared", [False, True])
def test_sizes_and_witnesses_are_those_of_every_attack(shared):
    record, targets = made(shared)
    assert len(record) == 6
    assert record.label.tolist() == [int(scores.argmax()) for scores, _, _ in targets]
    found = set()
    for change in CHANGES:
        sizes = record.sizes(change)
        for i, (scores, effects, present) in enumerate(targets):
            cheapest = smallest_attack(scores, effects, present, change)
            witness = record.witness(i, change)
            if cheapest is None:
                assert sizes[i] == len(present)
                assert witness is None
            else:
                assert sizes[i] == cheapest - 1 == len(witness) - 1
                assert answer(scores, effects, present, witness.tolist()) != record.label[i]
            found.add(cheapest)
    assert len(found) > 2


@pytest.mark.parametrize(("adds", "deletes"), [(2, 1), (1, 3), (0, 0)])
def test_grids_are_those_of_every_attack(adds, deletes):
    record, targets = made()
    cells = record.grid(adds, deletes)
    assert cells.shape == (6, adds + 1, deletes + 1)
    for i, (scores, effects, present) in enumerate(targets):
        for a in range(adds + 1):
            for r in range(deletes + 1):
                broken = any(
                    answer(scores, effects, present, changed) != record.label[i]
                    for k in range(1, a + r + 1)
                    for changed in combinations(range(len(present)), k)
                    if present[list(changed)].sum() <= r and (~present[list(changed)]).sum() <= a
                )
                assert cells[i, a, r] == (not broken)


def test_voices_are_what_each_entry_adds_to_the_margin():
    record, targets = made()
    for i, (scores, effects, present) in enumerate(targets):
        label = int(scores.argmax())
        for rival in range(3):
            there, says = record.voices(i, rival)
            assert there.tolist() == np.flatnonzero(present).tolist()
            assert says.tolist() == (effects[present, label] - effects[present, rival]).tolist()
            margin = scores[label] - scores[rival] - (rival < label)
            assert record.spare[i, rival] == margin


def same(one, other):
    assert type(one) is type(other)
    assert one.label.tolist() == other.label.tolist()
    assert one.spare.tolist() == other.spare.tolist()
    assert one.grid(2, 2).tolist() == other.grid(2, 2).tolist()
    for change in CHANGES:
        assert one.sizes(change).tolist() == other.sizes(change).tolist()
    for i in range(len(one)):
        for mine, theirs in zip(one.voices(i, 1), other.voices(i, 1), strict=True):
            assert mine.tolist() == theirs.tolist()


def people():
    ballots, own = np.array([[1, 0], [0, 2], [3, 1], [0, 1]]), np.array([[1, 0], [0, 1]])
    start, voter, row = np.array([0, 2, 3]), np.array([1, 2, 0]), np.array([3, 2, 0])
    base = np.array([[4, 3], [1, 3]])
    places = np.array([0, 1]), np.array([2, 2])
    return Electorate(Roll(ballots, 3), own, base, start, row, voter, *places)


def fakes():
    return Injected(np.array([0, 1]), np.array([[0, 5], [4, 0]]), np.array([2, 1]), np.array([50, 40]))


@pytest.mark.parametrize("make", [lambda: made()[0], lambda: made(True)[0], people, fakes])
def test_a_packed_record_says_the_same(make):
    record = make()
    packed = pack(record)
    assert all(isinstance(value, np.ndarray) for value in packed.values())
    same(unpack(type(record).__name__, packed), record)


def test_what_is_repeated_is_written_once():
    packed = pack(made(True)[0])
    assert [packed[f"{i}.gains"].shape for i in range(3)] == [(2, 5, 3), (1, 3, 3), (3, 4, 3)]
    alike = Linear([0, 0, 0], np.ones((3, 2), int), np.zeros((4, 2), int), np.ones((3, 4), bool))
    assert pack(Several.of([alike]))["0.gains"].shape == (1, 4, 2)
    assert pack(Several.of([alike]))["0.present"].shape == (3, 4)
    same(unpack("Several", pack(Several.of([alike]))), Several.of([alike]))


@pytest.mark.parametrize("index", [2, [5, 0], slice(1, 4), np.array([True, False] * 3)])
def test_some_targets_are_what_they_were_among_all(index):
    record, _ = made()
    chosen = np.atleast_1d(np.arange(6)[index])
    some = record.take(index)
    assert len(some) == len(chosen)
    assert some.label.tolist() == record.label[chosen].tolist()
    assert some.sizes("adds").tolist() == record.sizes("adds")[chosen].tolist()
    assert some.grid(1, 1).tolist() == record.grid(1, 1)[chosen].tolist()


def test_parts_one_after_the_other():
    parts = made()[0].parts
    plain = Several.of(parts)
    assert plain.part.tolist() == [0, 0, 1, 2, 2, 2]
    assert plain.place.tolist() == [0, 1, 0, 0, 1, 2]
    assert len(Several.of([])) == 0


def test_fakes_are_within_a_size_or_not():
    record = fakes()
    assert record.sizes().tolist() == record.sizes("adds").tolist() == [2, 1]
    assert record.sizes("deletes").tolist() == [50, 40]
    assert record.grid(3, 1)[:, :, 0].tolist() == [[True, True, True, False], [True, True, False, False]]
    assert record.grid(3, 1)[:, :, 1].tolist() == record.grid(3, 1)[:, :, 0].tolist()
    assert record.grid(0, 2).shape == (2, 1, 3)
    assert [part.tolist() for part in record.voices(0, 1)] == [[], []]
    one = record.take(1)
    assert (one.label.tolist(), one.size.tolist(), one.most.tolist()) == ([1], [1], [40])
    assert one.spare.tolist() == [[4, 0]]
    with pytest.raises(InputError, match="no witness"):
        record.witness(0)


@pytest.mark.parametrize("make", [lambda: made()[0], fakes])
def test_what_cannot_be_asked_is_refused(make):
    with pytest.raises(InputError, match="change"):
        make().sizes("both")
    for cells in ((-1, 2), (2, -1)):
        with pytest.raises(InputError):
            make().grid(*cells)
