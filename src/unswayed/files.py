"""Files that are whole at every moment, and are read without trust: arrays and one JSON header, never a pickle."""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError, StoreError, WorldError

MAX_BYTES = 2**33  # a file larger than this when unpacked is refused before it is read
HEADER = "about"  # the name under which the JSON header lies among the arrays
OURS = (b"<!doctype html", b"target,label,")  # how reports and tables begin
HOLDS = "holds"  # in the header: which arrays there are, since a damaged list of contents may hide some


def beside(path: Path) -> Path:
    """A name next to `path` that no other writer has: threads share a process number, and so do programs in containers."""
    return path.with_name(f".{path.name}.{uuid4().hex}.part")


def write_atomically(path: Path, content: bytes) -> None:
    """Write, fsync, rename: after a crash at any moment the path holds its old content or all of the new.

    A link stays a link to the file that is written; a device or a pipe, such as /dev/null, is written to and never replaced.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; name a file to write.") from error
    except FileNotFoundError as error:
        raise InputError(
            f"There is no folder {path.parent} to write {path.name} into; make it first."
        ) from error
    except OSError as error:
        raise WorldError(f"{path} could not be written: {error.strerror or error}.") from error


def check_ours(path: Path) -> None:
    """Refuse to write over what is neither a report nor a table of ours: somebody's data, most likely."""
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            start = file.read(20)
    except OSError as error:
        raise WorldError(f"{path} could not be read: {error.strerror or error}.") from error
    if start and not start.startswith(OURS):
        raise InputError(
            f"{path} is there already and is no report or table of unswayed; choose another name."
        )


def _replace(path: Path, content: bytes) -> None:
    new = beside(path)
    try:
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        with suppress(OSError):  # it is there only if something stopped the writing
            new.unlink()


def write_arrays(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """One npz file with a JSON header, atomically: a reader sees the old file or the new one, never a part."""
    buffer = io.BytesIO()
    told = json.dumps({**header, HOLDS: sorted(arrays)})
    named: dict[str, Any] = {HEADER: np.array(told), **arrays}
    np.savez_compressed(buffer, allow_pickle=False, **named)
    write_atomically(Path(path), buffer.getvalue())


def read_arrays(
    path: str | os.PathLike[str], what: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(header, arrays) of a file that `write_arrays` wrote; a damaged, truncated or foreign file is refused."""
    try:
        content = io.BytesIO(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"There is no {what} {path}.") from error
    except OSError as error:
        raise WorldError(f"{path} could not be read: {error.strerror or error}.") from error
    try:
        with zipfile.ZipFile(content) as archive:
            if sum(item.file_size for item in archive.infolist()) > MAX_BYTES:
                raise StoreError(
                    f"{path} unpacks to more than {MAX_BYTES // 2**30} GB: not a {what} of ours."
                )
        with np.load(content, allow_pickle=False) as archive:
            header = json.loads(str(archive[HEADER]))
            arrays = {name: archive[name] for name in archive.files if name != HEADER}
        if not isinstance(header, dict):
            raise StoreError(f"{path} has no header of ours.")
        if header.pop(HOLDS, sorted(arrays)) != sorted(arrays):  # files of earlier versions do not say
            raise damaged(path, what)
        return header, arrays
    except StoreError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in zip, npy or JSON reading
        raise damaged(path, what) from error


def damaged(path: str | os.PathLike[str], what: str) -> StoreError:
    """The one sentence for a file that cannot be read."""
    return StoreError(f"{path} is not a readable {what} (damaged, truncated, or of another program).")
