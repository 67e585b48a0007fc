import dataclasses
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.errors import InputError, StoreError, UnswayedError
from unswayed.theory.noise import AddDelete, Flip
from unswayed.votes import Votes

NOISE = Flip(beta=0.7)


def make(start=0, stop=10, *, value=3, noise=NOISE, entries=40, **more):
    blocks = np.full((1, 2, 3), value)
    return Votes(blocks, np.array([start]), np.array([stop]), noise, np.array([entries] * 2), **more)


def test_counts_samples_and_no_answer_add_up():
    votes = make() + make(10, 30, value=5)
    assert votes.counts.tolist() == [[8, 8, 8], [8, 8, 8]]
    assert votes.samples.tolist() == [30, 30]
    assert votes.no_answer.tolist() == [6, 6]
    assert (len(votes), votes.classes, votes.adaptive) == (2, 3, False)


def test_adding_keeps_the_blocks_in_the_order_of_their_sample_numbers():
    votes = make(10, 30, value=5) + make()
    assert votes.starts.tolist() == [0, 10]
    assert votes.blocks[:, 0, 0].tolist() == [3, 5]
    assert votes == make() + make(10, 30, value=5)


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (9, 20), (5, 6 + 10)])
def test_overlapping_sample_numbers_are_refused(start, stop):
    with pytest.raises(InputError, match="overlap"):
        make(0, 10) + make(start, stop)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (make(10, 20, noise=Flip(beta=0.8)), "noise"),
        (make(10, 20, entries=41), "entries"),
        (make(10, 20, ones=[1, 2]), "ones"),
        (make(10, 20, targets=[4, 5]), "targets"),
        (make(10, 20, provenance={"seed": 1}), "seed"),
        (Votes(np.zeros((1, 2, 4)), [10], [20], NOISE, [40, 40]), "classes"),
        (Votes(np.zeros((1, 1, 3)), [10], [20], NOISE, [40]), "targets"),
    ],
)
def test_different_questions_are_refused_by_name(other, named):
    with pytest.raises(InputError, match=named):
        make() + other
    assert make() != other


def test_equality_looks_through_the_cut_into_blocks_but_not_through_the_counts():
    whole = Votes(np.full((1, 2, 3), 8), [0], [30], NOISE, [40, 40])
    assert make() + make(10, 30, value=5) == whole
    assert make() != make(value=2)
    assert make() != make(stop=11)
    assert make() != "votes"


def test_adding_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        make() + 1


def test_first_takes_whole_blocks_and_names_the_edges_otherwise():
    votes = make() + make(10, 30, value=5)
    assert votes.first(10) == make()
    assert votes.first(30) == votes
    with pytest.raises(InputError, match=r"\[10, 30\]"):
        votes.first(15)
    with pytest.raises(InputError):
        make(10, 20).first(20)  # samples 0 to 9 are missing


def test_unpolled_targets_do_not_count_as_samples():
    votes = Votes([[[3, 4], [0, 0]]], [0], [10], NOISE, [5, 5], polled=[[True, False]])
    assert votes.samples.tolist() == [10, 0]
    assert votes.no_answer.tolist() == [3, 0]
    with pytest.raises(InputError, match="more votes than samples"):
        Votes([[[3, 4], [1, 0]]], [0], [10], NOISE, [5, 5], polled=[[True, False]])


def test_from_counts_needs_samples_when_the_rows_differ():
    with pytest.raises(InputError, match="samples="):
        Votes.from_counts([[5, 5], [5, 4]], NOISE, 10)
    for wrong in (12.9, True, "12", -1):
        with pytest.raises(InputError, match="samples must be a whole number"):
            Votes.from_counts([[5, 5], [5, 4]], NOISE, 10, samples=wrong)
    votes = Votes.from_counts([[5, 5], [5, 4]], NOISE, 10, samples=12, ones=3, targets=[7, 9])
    assert votes.no_answer.tolist() == [2, 3]
    assert votes.ones.tolist() == [3, 3]
    assert votes.targets.tolist() == [7, 9]
    assert votes.provenance["collected"] == "elsewhere"


@pytest.mark.parametrize(
    ("counts", "more"),
    [
        ([[-1, 5]], {}),
        ([[1.5, 5]], {}),
        ([[float("nan"), 5]], {}),
        ([[float("inf"), 5]], {}),
        ([["a", "b"]], {}),
        ([1, 2], {}),
        ([[1]], {}),
        ([[0, 0]], {}),
        ([[2**62, 1]], {}),
        ([[5, 5]], {"samples": 9}),
        ([[5, 5]], {"samples": 0}),
        ([[5, 5]], {"ones": 41}),
        ([[5, 5]], {"ones": -1}),
        ([[5, 5]], {"targets": [1, 2]}),
        ([[5, 5]], {"entries": -1}),
        ([[5, 5]], {"noise": 0.7}),
    ],
)
def test_bad_counts_are_refused(counts, more):
    arguments = {"noise": NOISE, "entries": 40} | more
    with pytest.raises(InputError) as caught:
        Votes.from_counts(counts, **arguments)
    assert str(caught.value).endswith(".")


def test_whole_floats_are_counts():
    assert Votes.from_counts([[5.0, 3.0]], NOISE, 4).counts.tolist() == [[5, 3]]


@pytest.mark.parametrize(
    "change",
    [
        {"starts": [0, 1]},
        {"stops": [0]},
        {"stops": [10, 20]},
        {"polled": [[True]]},
        {"entries": [1, 2, 3]},
    ],
)
def test_shapes_that_do_not_fit_are_refused(change):
    with pytest.raises(InputError):
        dataclasses.replace(make(), **change)


def test_whole_floats_are_counts_as_long_as_they_can_be_told_apart():
    assert Votes.from_counts([[2.0**52, 1]], NOISE, 4, samples=2**60).counts[0, 0] == 2**52
    with pytest.raises(InputError, match="whole"):
        Votes.from_counts([[2.0**53, 1]], NOISE, 4, samples=2**60)


def test_one_number_stands_for_all_targets():
    votes = Votes(np.zeros((1, 3, 2)), [0], [10], NOISE, [7], ones=2)
    assert votes.entries.tolist() == [7, 7, 7]
    assert votes.ones.tolist() == [2, 2, 2]


@pytest.mark.parametrize("change", [{"starts": [0]}, {"stops": [10]}, {"targets": [0]}])
def test_too_few_numbers_are_refused_as_too_many_are(change):
    with pytest.raises(InputError):
        dataclasses.replace(make() + make(10, 30), **change)


def test_a_block_has_room_for_its_samples_and_no_more():
    assert make(10, 19, value=3).no_answer.tolist() == [0, 0]
    with pytest.raises(InputError, match="more votes than samples"):
        make(10, 21, value=4)


def test_a_block_without_samples_is_refused():
    with pytest.raises(InputError, match="at least one sample"):
        make(5, 5, value=0)
    assert make(5, 6, value=0).samples.tolist() == [1, 1]


def test_arrays_are_copies_and_cannot_be_written_to():
    given_blocks = np.full((1, 2, 3), 3)
    votes = Votes(given_blocks, [0], [10], NOISE, [40, 40])
    given_blocks[:] = 0
    assert votes.counts.sum() == 18
    with pytest.raises(ValueError):
        votes.blocks[0, 0, 0] = 9
    with pytest.raises(TypeError):
        votes.provenance["seed"] = 3


@given(
    counts=st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=5),
    noise=st.one_of(
        st.floats(0.01, 0.99).map(lambda beta: Flip(beta=beta)),
        st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)).map(lambda pair: AddDelete(*pair)),
    ),
    ones=st.none() | st.integers(0, 9),
)
def test_files_come_back_as_they_went(tmp_path_factory, counts, noise, ones):
    path = tmp_path_factory.mktemp("votes") / "votes.npz"
    votes = Votes.from_counts(
        counts, noise, 9, samples=200, ones=ones, provenance={"seed": 3, "model": "a" * 64}
    )
    votes.save(path)
    again = Votes.load(path)
    assert again == votes
    assert np.array_equal(again.blocks, votes.blocks)
    assert dict(again.provenance) == dict(votes.provenance)
    # nothing half-written is left behind
    assert [file.name for file in path.parent.iterdir()] == ["votes.npz"]


def test_a_cut_or_altered_file_is_refused_and_never_unpickled(tmp_path):
    path = tmp_path / "votes.npz"
    make().save(path)
    whole = path.read_bytes()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            Votes.load(path)
    path.write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(StoreError):
        Votes.load(path)
    np.savez(path, about=np.array({"format": 2}, dtype=object))
    with pytest.raises(StoreError):
        Votes.load(path)


def test_a_file_of_another_format_or_with_impossible_counts_is_refused(tmp_path):
    path = tmp_path / "votes.npz"
    about = {"format": 99, "noise": NOISE.to_dict(), "provenance": {}}
    arrays = {
        name: getattr(make(), name) for name in ("blocks", "starts", "stops", "entries", "targets", "polled")
    }
    np.savez(path, about=np.array(json.dumps(about)), **arrays)
    with pytest.raises(StoreError, match="format 99"):
        Votes.load(path)
    np.savez(path, about=np.array(json.dumps(about | {"format": 2})), **(arrays | {"stops": np.array([5])}))
    with pytest.raises(StoreError):
        Votes.load(path)


def test_files_of_this_format_stay_readable(tmp_path):
    path = tmp_path / "votes.npz"
    about = {"format": 2, "noise": {"kind": "flip", "beta": 0.75}, "provenance": {"seed": 3}, "notes": {}}
    arrays = {
        "blocks": [[[7, 2]]],
        "starts": [0],
        "stops": [10],
        "entries": [5],
        "targets": [4],
        "polled": [[True]],
    }
    np.savez(path, about=np.array(json.dumps(about)), **arrays)
    votes = Votes.load(path)
    assert votes == Votes([[[7, 2]]], [0], [10], Flip(0.75), [5], targets=[4], provenance={"seed": 3})


def test_notes_are_never_compared_and_join_and_are_kept(tmp_path):
    row = dataclasses.replace(make(), notes={"engine": "row", "versions": {"torch": "2"}})
    other = dataclasses.replace(make(), notes={"engine": "generic", "versions": {"torch": "2"}})
    assert row == other
    assert row.difference(other) is None
    later = dataclasses.replace(other, starts=other.starts + 10**6, stops=other.stops + 10**6)
    both = row + later
    assert dict(both.notes) == {"engine": "row, generic", "versions": {"torch": "2"}}
    both.save(tmp_path / "votes.npz")
    assert Votes.load(tmp_path / "votes.npz").notes == both.notes


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "votes.npz"
    make().save(path)
    with zipfile.ZipFile(path) as archive:
        size = sum(item.file_size for item in archive.infolist())
    monkeypatch.setattr("unswayed.files.MAX_BYTES", size - 1)
    with pytest.raises(StoreError, match="unpacks"):
        Votes.load(path)
    monkeypatch.setattr("unswayed.files.MAX_BYTES", size)
    assert Votes.load(path) == make()


@pytest.mark.parametrize(("extra", "refused"), [(0, False), (1, True)])
def test_eight_gigabytes_are_the_most_a_file_may_unpack_to(tmp_path, monkeypatch, extra, refused):
    path = tmp_path / "votes.npz"
    make().save(path)
    claimed = [zipfile.ZipInfo("counts"), zipfile.ZipInfo("rest")]
    claimed[0].file_size, claimed[1].file_size = 8 * 2**30 - 5, 5 + extra
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _: claimed)
    if refused:
        with pytest.raises(StoreError, match="more than 8 GB"):
            Votes.load(path)
    else:
        assert Votes.load(path) == make()


def test_missing_files_and_failing_disks_are_told_apart(tmp_path):
    with pytest.raises(StoreError, match="no vote file"):
        Votes.load(tmp_path / "absent.npz")
    with pytest.raises(InputError, match=r"There is no folder .*absent to write votes\.npz into"):
        make().save(tmp_path / "absent" / "votes.npz")
    with pytest.raises(UnswayedError, match=r"could not be read: Is a directory\.$"):
        Votes.load(tmp_path)


def test_repr_says_what_is_inside():
    assert repr(make()) == f"Votes(2 targets, 3 classes, 10 samples, {NOISE})"
    uneven = Votes([[[3, 4], [0, 0]]], [0], [10], NOISE, [5, 5], polled=[[True, False]])
    assert "0 to 10 samples" in repr(uneven)
    assert "0 targets, 2 classes, 0 samples" in repr(Votes(np.zeros((1, 0, 2)), [0], [5], NOISE, []))
