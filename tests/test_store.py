import json
import shutil

import numpy as np
import pytest

from unswayed.errors import InputError, StoreError
from unswayed.store import Store, load
from unswayed.theory.noise import Flip
from unswayed.votes import Votes

SETTINGS = {
    "model": {"name": "m", "sha256": "a" * 64, "covers": "everything"},
    "noise": {"kind": "flip", "beta": 0.7},
    "threat": {"kind": "row", "number": 2, "targets": "t" * 64, "graph": "g" * 64},
    "seed": 0,
    "purpose": "certify",
    "shared": True,
    "stream": "s",
}
VOTES = Votes.from_counts(np.array([[3, 7], [9, 1]]), Flip(0.7), entries=5)


def changed(**parts):
    return {**SETTINGS, **parts}


def test_opening_twice_with_the_same_settings_is_fine(tmp_path):
    store = Store(tmp_path / "deep" / "run")
    store.open(SETTINGS)
    assert store.votes() is None
    store.save(VOTES)
    store.open(json.loads(json.dumps(SETTINGS)))
    assert store.votes() == VOTES
    assert sorted(path.name for path in store.path.iterdir()) == ["settings.json", "votes.npz"]
    assert load(store.path) == VOTES
    assert load(store.path / "votes.npz") == VOTES


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (changed(model={**SETTINGS["model"], "sha256": "b" * 64}), "model"),
        (changed(noise={"kind": "flip", "beta": 0.8}), "noise"),
        (changed(threat={**SETTINGS["threat"], "kind": "all-pairs"}), r"threat \(row, now all-pairs\)"),
        (changed(threat={**SETTINGS["threat"], "graph": "h" * 64}), "graph"),
        (changed(threat={**SETTINGS["threat"], "targets": "u" * 64}), "list of targets"),
        (changed(seed=1), r"seed \(0, now 1\)"),
        (changed(shared=False), "shared"),
        (changed(purpose="select"), "purpose"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, other, words):
    store = Store(tmp_path)
    store.open(SETTINGS)
    with pytest.raises(StoreError, match=words):
        store.open(other)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 99}', b"\xff\xfe"])
def test_damaged_settings_are_refused(tmp_path, content):
    (tmp_path / "settings.json").write_bytes(content)
    with pytest.raises(StoreError):
        Store(tmp_path).open(SETTINGS)
    with pytest.raises(StoreError):
        load(tmp_path)


def test_folders_that_are_no_store_are_refused(tmp_path):
    with pytest.raises(StoreError, match="no store"):
        load(tmp_path)
    (tmp_path / "votes.npz").write_bytes(b"x")
    with pytest.raises(StoreError, match="without settings"):
        Store(tmp_path).open(SETTINGS)
    empty = Store(tmp_path / "new")
    empty.open(SETTINGS)
    with pytest.raises(StoreError, match="no votes yet"):
        load(empty.path)


def test_the_folder_above_stores_names_them(tmp_path):
    for name in ("one", "two"):
        Store(tmp_path / name).open(dict(SETTINGS))
    with pytest.raises(StoreError, match="there are stores in it: one, two"):
        load(tmp_path)


def test_truncated_votes_are_refused(tmp_path):
    store = Store(tmp_path)
    store.open(SETTINGS)
    store.save(VOTES)
    content = (tmp_path / "votes.npz").read_bytes()
    (tmp_path / "votes.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError):
        store.votes()


def test_a_file_in_the_way_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder"):
        Store(tmp_path / "file" / "run").open(SETTINGS)


def test_a_copy_of_a_store_is_a_store(tmp_path):
    store = Store(tmp_path / "one")
    store.open(SETTINGS)
    store.save(VOTES)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert load(tmp_path / "two") == VOTES


def test_a_store_of_an_earlier_version_is_refused_with_a_sentence(tmp_path):
    store = Store(tmp_path / "run")
    store.open({"seed": 1})
    path = tmp_path / "run" / "settings.json"
    path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(StoreError, match=r"another version of unswayed.*new folder and poll again"):
        store.open({"seed": 1})


def test_a_run_still_going_gives_a_prefix_of_its_samples(tmp_path):
    """Which blocks happen to be done may depend on what they say (slow ones come last): only a prefix is no choice."""
    blocks = [[[60, 40]], [[10, 90]], [[70, 30]]]
    some = Votes(blocks, [0, 300, 100], [100, 400, 200], Flip(0.7), [9])
    store = Store(tmp_path / "run")
    store.open({"seed": 1})
    store.save(some)
    assert load(tmp_path / "run").counts.tolist() == [[130, 70]]
    store.save(Votes(blocks[:1], [100], [200], Flip(0.7), [9]))
    with pytest.raises(StoreError, match="no votes of its first samples"):
        load(tmp_path / "run")


def test_a_damaged_mark_is_named(tmp_path):
    store = Store(tmp_path / "run")
    store.open({"seed": 1})
    store.refuse("they were wrong")
    assert Store(tmp_path / "run").refusal == "they were wrong"
    (tmp_path / "run" / "refused.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        load(tmp_path / "run")
