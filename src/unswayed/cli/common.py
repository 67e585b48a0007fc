"""What every command shares: where words go, where JSON goes, and how a command line is written down."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text


def console(machine: bool = False) -> Console:
    """The place for words: stdout, or stderr where stdout belongs to a JSON document."""
    return Console(stderr=machine, highlight=False)


def note(words: str) -> None:
    """Tell what is going on, on stderr, so that pipes stay clean."""
    Console(stderr=True, highlight=False).print(Text(words, style="dim"))


def warn(words: str) -> None:
    """Tell what the user may want to stop for, on stderr."""
    Console(stderr=True, highlight=False).print(Text.assemble(("Warning: ", "bold yellow"), words))


@contextmanager
def working(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A line on stderr that moves while something slow runs; silent unless stderr is a terminal."""
    place = Console(stderr=True, highlight=False)
    if not place.is_terminal:
        yield lambda step, steps, message: None
        return
    with place.status(Text(what)) as line:
        yield lambda step, steps, message: line.update(Text(f"{what}: {step} of {steps} {message}"))


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
