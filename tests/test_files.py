"""Files are whole at every moment, whoever writes them."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import unswayed as us
from unswayed.errors import InputError, StoreError
from unswayed.files import write_atomically

LENGTH = 200_000


def test_writers_that_share_a_process_number_never_show_half_a_file(tmp_path: Path) -> None:
    """Threads of one process, or containers in which every program has the same number, may write into one folder."""
    path, failures, shown, done = tmp_path / "votes.npz", [], set(), threading.Event()

    def write(byte: int) -> None:
        try:
            for _ in range(50):
                write_atomically(path, bytes([byte]) * LENGTH)
        except InputError as error:
            failures.append(error)

    def read() -> None:
        while not done.is_set():
            if path.exists():
                content = path.read_bytes()
                shown.add((len(content), *set(content)))

    writers = [threading.Thread(target=write, args=(byte,)) for byte in (1, 2)]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert not failures
    assert shown <= {(LENGTH, 1), (LENGTH, 2)}
    assert os.listdir(tmp_path) == ["votes.npz"]


def test_what_stops_a_writer_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "votes.npz"
    write_atomically(path, b"old")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["votes.npz"]


def test_no_byte_of_a_list_of_contents_can_hide_an_array(tmp_path: Path) -> None:
    """Checksums cover what is in a file, but not the list of it: without the numbers of its targets, votes would be those of nodes 0, 1, …"""
    path = tmp_path / "votes.npz"
    votes = us.Votes.from_counts(np.array([[90, 10], [99, 1]]), us.Flip(0.7), 50, ones=5, targets=[7, 9])
    votes.save(path)
    content = path.read_bytes()
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        for change in (0x01, 0x80, 0xFF):
            path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
            try:
                found = us.load(path)
            except StoreError:
                continue
            assert found == votes, place


def test_what_is_no_file_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    """Somebody who may write into /dev, as in a container, would lose /dev/null to a report."""
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"new")
    reader.join(10)
    assert heard == [b"new"]
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, real = tmp_path / "link", tmp_path / "real" / "votes.npz"
    link.symlink_to(real)
    for content in (b"first", b"second"):  # to a file that is not there yet, and to one that is
        write_atomically(link, content)
        assert link.is_symlink()
        assert real.read_bytes() == content
