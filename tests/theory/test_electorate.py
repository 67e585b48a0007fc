"""Electorates against the dense core, which brute force has checked, and against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.errors import InputError
from unswayed.theory import electorate as module
from unswayed.theory.ballots import Linear
from unswayed.theory.duels import NUMPY, _among
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll


def random_case(seed, targets=None, most_voters=14):
    """An electorate and, for each target, the base, effects and presence of all its entries."""
    rng = np.random.default_rng(seed)
    classes, n = int(rng.integers(2, 5)), int(rng.integers(1, most_voters))
    t = int(rng.integers(1, 20)) if targets is None else targets
    reach = int(rng.choice([1, 3, 50]))
    extra = int(rng.integers(0, 10))
    ballots = rng.integers(-reach, reach + 1, (n + extra, classes))
    ballots = ballots.astype(rng.choice([np.int32, np.int64]))
    own, base = (
        rng.integers(-reach, reach + 1, (t, classes)),
        rng.integers(-3 * reach, 3 * reach + 1, (t, classes)),
    )
    own = own * rng.integers(0, 2)
    itself = np.where(rng.random(t) < 0.7, rng.integers(0, n, t), -1)
    start, row, voter, scores = [0], [], [], []
    for i in range(t):
        linked = [v for v in range(n) if v != itself[i] and rng.random() < 0.4]
        rows = [int(rng.integers(n, n + extra)) if extra and rng.random() < 0.5 else v for v in linked]
        voter += linked
        row += rows
        start.append(len(row))
        scores.append(
            base[i] + sum((ballots[r].astype(np.int64) + own[i] for r in rows), np.zeros(classes, np.int64))
        )
    entries = n - (itself >= 0)
    parts = np.array(start), np.array(row, dtype=np.int64), np.array(voter, dtype=np.int64)
    people = Electorate(Roll(ballots, n), own, base, *parts, itself, entries)
    assert people.scores.tolist() == np.array(scores).tolist()
    return people


def dense(people, i):
    """The same target with every entry written out, and which voter each entry is."""
    here = slice(people.start[i], people.start[i + 1])
    rows = dict(zip(people.voter[here].tolist(), people.row[here].tolist(), strict=True))
    voters = [v for v in range(people.roll.voters) if v != people.itself[i]]
    effects = np.array([people.roll.ballots[rows.get(v, v)] for v in voters], dtype=np.int64)
    effects = effects.reshape(len(voters), people.classes) + people.own[i]
    present = np.array([v in rows for v in voters], dtype=bool)
    return Linear.of_scores(people.scores[i : i + 1], effects[None], present[None]), voters


@pytest.fixture(params=["usual", "short lists", "one at a time", "small steps"])
def ways(request, monkeypatch):
    """Lists that end early, targets looked at alone, and little memory must not change anything."""
    settings = {"usual": {"FEW": 0}, "short lists": {"FEW": 0, "KEPT": 2}, "one at a time": {"FEW": 10**9, "DEEP": 1, "KEPT": 1},
                "small steps": {"FEW": 0, "AT_ONCE": 3}}[request.param]  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
def test_sizes_are_those_of_every_entry_written_out(change):
    for seed in range(60):
        people = random_case(seed)
        expected = [int(dense(people, i)[0].sizes(change)[0]) for i in range(len(people))]
        assert people.sizes(change).tolist() == expected, seed


@pytest.mark.usefixtures("ways")
def test_grids_are_those_of_every_entry_written_out():
    for seed in range(25):
        people = random_case(seed)
        cells = people.grid(4, 3)
        for i in range(len(people)):
            assert np.array_equal(cells[i], dense(people, i)[0].grid(4, 3)[0]), (seed, i)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
def test_a_witness_flips_with_one_change_more_than_the_size(change):
    for seed in range(25):
        people = random_case(seed)
        sizes = people.sizes(change)
        for i in range(len(people)):
            found, (full, voters) = people.witness(i, change), dense(people, i)
            if found is None:
                assert full.witness(0, change) is None
                assert sizes[i] == people.entries[i]
                continue
            assert len(set(found.tolist())) == len(found) == sizes[i] + 1
            place = [voters.index(v) for v in found]
            turned = np.where(full.present[0, place], -1, 1)[:, None]
            effects = -full.gains[0][place]  # over the label: what each class gains on it
            moved = -full.spare[0] + (turned * effects).sum(axis=0)
            assert max(moved[c] for c in range(people.classes) if c != full.label[0]) > 0


def test_larger_electorates_agree_too(monkeypatch):
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(module, "KEPT", 20)
    for seed in range(12):
        people = random_case(seed, targets=25, most_voters=300)
        for change in ("any", "adds", "deletes"):
            expected = [int(dense(people, i)[0].sizes(change)[0]) for i in range(len(people))]
            assert people.sizes(change).tolist() == expected, (seed, change)


def test_some_targets_are_as_among_all():
    people = random_case(5, targets=12)
    mask = np.arange(12) % 3 == 0
    assert people.take(mask).sizes().tolist() == people.sizes()[mask].tolist()
    assert people.take(7).sizes("adds").tolist() == [people.sizes("adds")[7]]
    assert len(people.take(slice(0, 0))) == 0
    assert people.take(slice(0, 0)).sizes().tolist() == []


def test_lists_are_sorted_once():
    people = random_case(6, targets=12)
    people.sizes()
    kept = dict(people.roll.lists)
    people.take(slice(0, 12)).sizes()
    assert kept
    assert dict(people.roll.lists) == kept


def broken(**parts):
    people = random_case(1, targets=3)
    whole = {
        name: getattr(people, name)
        for name in ("roll", "own", "base", "start", "row", "voter", "itself", "entries")
    }
    return lambda: Electorate(**{**whole, **parts})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (broken(own=np.zeros((2, 2), dtype=np.int64)), "do not fit together"),
        (broken(start=np.zeros(3, dtype=np.int64)), "do not fit together"),
        (broken(voter=np.zeros(1000, dtype=np.int64)), "do not fit together"),
        (broken(entries=np.zeros(1, dtype=np.int64)), "do not fit together"),
        (broken(base=np.full((3, random_case(1, targets=3).classes), 2**61)), "coarser fixed point"),
        (lambda: Roll(np.zeros(3, dtype=np.int64), 3), "one row for every voter"),
        (lambda: Roll(np.zeros((3, 2), dtype=np.int64), 4), "one row for every voter"),
        (lambda: Roll(np.full((3, 2), 2**30, dtype=np.int32), 3), "32 bits"),
        (lambda: random_case(1).sizes("all"), "change must be one of"),
        (lambda: random_case(1).witness(0, "all"), "change must be one of"),
        (lambda: random_case(1).grid(0, -1), "deletes must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_voices_are_what_each_link_adds_to_the_margin():
    for seed in range(6):
        people = random_case(seed, targets=7)
        for i in range(7):
            links = range(people.start[i], people.start[i + 1])
            label = int(people.scores[i].argmax())
            for rival in range(people.classes):
                entries, says = people.voices(i, rival)
                assert entries.tolist() == [int(people.voter[j]) for j in links]
                effects = [people.roll.ballots[people.row[j]].astype(int) + people.own[i] for j in links]
                assert says.tolist() == [int(effect[label] - effect[rival]) for effect in effects]


def test_entries_of_pairs_are_numbered_by_their_ends():
    ballots, none = np.array([[1, 0]] * 5), np.zeros((1, 2), dtype=np.int64)
    voter = np.array([0, 1, 4])
    parts = np.array([[1, 1]]), np.array([0, 3]), voter, voter, np.array([3]), np.array([10])
    people = Electorate(Roll(ballots, 5), none, *parts, paired=True)
    pairs = [(i, j) for j in range(5) for i in range(j)]
    assert people.voices(0, 1)[0].tolist() == [pairs.index((0, 3)), pairs.index((1, 3)), pairs.index((3, 4))]


@pytest.mark.parametrize("seed", range(5))
def test_taken_targets_keep_their_links(seed):
    people = random_case(seed, targets=9)
    for index in ([4, 1, 7], slice(2, 8, 3), np.arange(9) % 2 == 1, 5):
        chosen = np.atleast_1d(np.arange(9)[index])
        some = people.take(index)
        assert len(some) == len(chosen)
        for place, i in enumerate(chosen.tolist()):
            mine, theirs = slice(*some.start[place : place + 2]), slice(*people.start[i : i + 2])
            for name in ("voter", "row"):
                assert getattr(some, name)[mine].tolist() == getattr(people, name)[theirs].tolist()
            for name in ("own", "base", "scores", "itself", "entries"):
                assert np.array_equal(getattr(some, name)[place], getattr(people, name)[i])


def test_lists_reach_beyond_the_target_itself_and_its_neighbours(monkeypatch):
    """The loudest two are the target and a neighbour, who cannot be added: the third one flips the answer."""
    monkeypatch.setattr(module, "KEPT", 1)
    ballots = np.array([[0, 9], [0, 7], [0, 5], [0, 0], [3, 0]])
    none, voter = np.zeros((1, 2), dtype=np.int64), np.array([1])
    parts = np.array([[10, 0]]), np.array([0, 1]), voter, voter, np.array([0]), np.array([4])
    people = Electorate(Roll(ballots, 5), none, *parts)
    assert people.grid(1, 0).tolist() == [[[True], [False]]]
    assert people.grid(2, 1).tolist() == [[[True, True], [False, False], [False, False]]]


def test_sums_stay_within_64_bits():
    """Twice what all ballots and the scores can come to stays below 2⁶²."""

    def people(loud, score):
        parts = np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        roll = Roll(np.array([[loud, 0]] * 3, dtype=np.int64), 3)
        return Electorate(
            roll, np.array([[5, 0]]), np.array([[score, 0]]), *parts, np.array([-1]), np.array([3])
        )

    reach = 4 * (5 + 7)
    assert people(7, 2**61 - reach - 1).sizes().tolist() == [3]
    with pytest.raises(InputError, match="64 bits"):
        people(7, 2**61 - reach)
    with pytest.raises(InputError, match="64 bits"):
        people(2**60, 0)


def test_targets_are_looked_at_as_many_together_as_there_is_room_for(monkeypatch):
    people = random_case(0, targets=40)
    everyone = np.arange(40)
    assert [part.tolist() for part in people._parts(everyone)] == [everyone.tolist()]
    loud = 4 * (np.abs(people.own).max() + people.roll.loudest) + 4
    monkeypatch.setattr(module, "WIDEST", int(7 * loud))
    assert [len(part) for part in people._parts(everyone)] == [7, 7, 7, 7, 7, 5]
    monkeypatch.setattr(module, "WIDEST", 2**60)
    monkeypatch.setattr(module, "AT_ONCE", 30)
    links = np.diff(people.start) + 1
    parts = people._parts(everyone)
    assert np.concatenate(parts).tolist() == everyone.tolist()
    assert len(parts) > 3
    assert all(links[part].sum() <= 30 + links.max() for part in parts)


@given(
    st.lists(st.integers(-3, 3) | st.integers(-(2**30), 2**30), max_size=400),
    st.integers(0, 400),
    st.sampled_from([np.int32, np.int64]),
)
def test_the_largest_values_are_those_of_a_full_sort(values, most, kind):
    """Also among many equal ones, of which the first are taken."""
    given_ = np.array(values, dtype=kind)
    found, order = NUMPY.largest(given_, min(most, len(given_)))
    expected = sorted(range(len(values)), key=lambda i: -values[i])[:most]
    assert found.tolist() == [values[i] for i in expected]
    assert len(set(order.tolist())) == len(order)
    assert given_[order].tolist() == found.tolist()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 1.0])
def test_the_largest_of_many_values_most_of_which_are_equal(share):
    generator = np.random.default_rng(0)
    values = np.where(generator.random(20_000) < share, generator.integers(-99, 99, 20_000), 0)
    for most in (1, 100, 1_000, 19_999):
        found, order = NUMPY.largest(values, most)
        assert np.array_equal(found, -np.sort(-values)[:most])
        assert len(np.unique(order)) == most


@pytest.mark.parametrize(("most", "more"), [(40, 543), (333, 1_119), (1_000, 2_463)])
def test_the_loudest_are_among_somewhat_more_than_are_wanted(most, more):
    """Every 64th shows above which value twice as many are left, and 8 times 64; among equals, all that is wanted and no more."""
    found = _among(np.arange(20_000), most)
    assert found.tolist() == list(range(20_000 - more, 20_000))
    equal = _among(np.zeros(20_000, np.int64), most)
    assert len(np.unique(equal)) == most
