"""What every command shares: where words go, where JSON goes, and how a command line is written down."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from unswayed.errors import DoubtfulSetting, InputError

PACKAGE = Path(__file__).parents[1]


def console(machine: bool = False) -> Console:
    """The place for words: stdout, or stderr where stdout belongs to a JSON document."""
    return Console(stderr=machine, highlight=False)


def note(words: str) -> None:
    """Tell what is going on, on stderr, so that pipes stay clean."""
    Console(stderr=True, highlight=False).print(Text(words, style="dim"))


def warn(words: str) -> None:
    """Tell what the user may want to stop for, on stderr."""
    Console(stderr=True, highlight=False).print(Text.assemble(("Warning: ", "bold yellow"), words))


def as_words(usual: Callable[..., None]) -> Callable[..., None]:
    """What shows a warning: ours in words and once, others the usual way."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any, **more: Any) -> None:
        ours = category is UserWarning and Path(filename).is_relative_to(PACKAGE)
        if not ours and not issubclass(category, DoubtfulSetting):
            usual(message, category, filename, *rest, **more)
        elif str(message) not in said:
            said.add(str(message))
            warn(str(message))

    return show


def present(path: Path | None) -> Path | None:
    """The path of a file that will be read, if there is one: said before anything slow is loaded."""
    if path is not None and not path.exists():
        raise InputError(f"There is no file {path}.")
    return path


def starting() -> None:
    """Say, in a terminal, what takes the first seconds."""
    if sys.stderr.isatty() and "torch" not in sys.modules:
        note("Loading torch and torch_geometric …")


def beside(path: Path | None) -> Path | None:
    """The path of a file to be written later, if its folder is there already: nothing slow runs for a page that cannot be kept."""
    if path is not None and not path.absolute().parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} into; make it first.")
    if path is not None and path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, such as {path / 'report.html'}.")
    if path is not None:
        from unswayed.files import check_ours  # which imports numpy

        check_writable(path.absolute().parent, path.name)
        check_ours(path)
    return path


def check_apart(read: Iterable[Path | str | None], *written: Path | None) -> None:
    """Refuse to write over a file that is read (`mine.py:build` is mine.py), or two results into one file."""
    files = (re.sub(r"(\.py):\w+$", r"\1", str(path)) for path in read if path is not None)
    taken = {Path(file).resolve() for file in files}
    for path in written:
        if path is not None and path.resolve() in taken:
            raise InputError(
                f"{path} is read or written for something else here; choose another name for it."
            )
        taken |= set() if path is None else {path.resolve()}


def check_store(store: Path | None) -> None:
    """Refuse a place for a store that is none, before anything slow runs for it; one that exists may be for reading only."""
    if store is None or store.is_dir():
        return
    if store.exists():
        raise InputError(f"--store must be a folder, and {store} is a file.")
    above = next(folder for folder in store.absolute().parents if folder.exists())
    if not above.is_dir():
        raise InputError(f"--store must be a folder, and {above} is a file.")
    check_writable(above, "the store")


def check_writable(folder: Path, what: str) -> None:
    """Refuse a folder in which nothing can be made, by making something there: permissions alone do not tell."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be written to; choose another place for {what}."
        ) from error


@contextmanager
def working(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A line on stderr that moves while something slow runs; silent unless stderr is a terminal."""
    DOING.append(what)  # stays there if it is interrupted
    place = Console(stderr=True, highlight=False)
    if not place.is_terminal:
        yield lambda step, steps, message: None
    else:
        with place.status(Text(what)) as line:
            yield lambda step, steps, message: line.update(Text(f"{what}: {step} of {steps} {message}"))
    DOING.pop()


DOING: list[str] = []  # what is under way and leaves nothing behind when it is interrupted


def interrupted() -> str:
    """What is kept of a run that was interrupted, and what is not."""
    kept = "Whatever was stored with --store is kept (by reproduce, in --runs): the same command goes on from there."
    if DOING:
        return (
            f"Stopped during {DOING[-1]}, of which nothing is kept: the same command begins it anew. {kept}"
        )
    return f"Stopped. {kept}"


def emit(document: Mapping[str, Any]) -> None:
    """Write one JSON document to stdout: strict JSON, so NaN is refused instead of written."""
    json.dump(document, sys.stdout, allow_nan=False, indent=2)
    sys.stdout.write("\n")


def command_line(command: str, options: Iterable[tuple[str, Any]]) -> str:
    """The command that does the same again; options that are None or False are left out.

    >>> command_line("certify", [("dataset", "cora"), ("beta", 0.7), ("family", True), ("store", None)])
    'unswayed certify --dataset cora --beta 0.7 --family'
    """
    words = ["unswayed", command]
    for name, value in options:
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)
