"""Where nothing can be written: said before anything slow runs, where that can be known, and as the world's fault where not."""

import errno
import tempfile
from pathlib import Path

import pytest

from unswayed import files, votes
from unswayed.errors import WorldError

from .words import CERTIFY, one_sentence


@pytest.mark.parametrize("option", ["--store run/a", "--report page.html"])
def test_a_folder_for_reading_only_is_said_before_anything_runs(call, here, monkeypatch, option):
    """Whoever runs the tests may write anywhere, so the system is asked through a stand-in."""
    make = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda dir: read_only() if here.samefile(dir) else make(dir=dir)
    )
    code, out, err = call(*CERTIFY.split(), *option.split())
    assert (code, out) == (2, "")
    assert "cannot be written to; choose another place" in one_sentence(err)
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such folder, which nobody can write to")
@pytest.mark.parametrize("option", ["--store /proc/foo/run", "--csv /proc/t.csv"])
def test_where_nothing_can_be_made_is_found_by_trying(call, option):
    """Whoever may do anything is told by no permission that nothing can be made here."""
    code, out, err = call(*CERTIFY.split(), *option.split())
    assert (code, out) == (2, "")
    assert "The folder /proc cannot be written to" in one_sentence(err)


def read_only(*_, **__):
    raise OSError(errno.EROFS, "Read-only file system", ".page.html.17.part")


def test_a_disk_for_reading_only_is_named_by_the_file_that_was_asked_for(call, own, monkeypatch):
    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr(files.Path, "unlink", read_only)
    with pytest.raises(WorldError, match=r"^page.html could not be written: Read-only file system\.$"):
        files.write_atomically(files.Path("page.html"), b"")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device", "run/votes.npz")


def test_a_full_disk_is_the_worlds_fault(call, own, monkeypatch):
    monkeypatch.setattr(votes.os, "fsync", full)
    code, out, err = call("certify", *own, "--store", "run")
    assert (code, out) == (1, "")
    assert "No space left" in one_sentence(err)


def test_a_full_disk_for_the_report_too(call, own, monkeypatch):
    call("certify", *own, "--store", "run")
    monkeypatch.setattr(votes.os, "fsync", full)
    code, _, err = call("report", "run")
    assert code == 1
    assert "No space left" in one_sentence(err)
