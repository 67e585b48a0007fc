"""The entry point: every failure ends in one sentence on stderr and an exit code that says whose fault it was.

0: done. 2: the input is wrong. 1: the world failed (disk, network, a crash). 130: interrupted. The sub-commands live in
modules of their own, each with a typer app called `app`, imported only when called, so that help answers at once.
"""

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from unswayed._version import __version__
from unswayed.cli.common import DOING, as_words, interrupted, starting
from unswayed.errors import DoubtfulSetting, InputError, WorldError

# command → what it does; the module is unswayed.cli.<command>
COMMANDS = {
    "demo": "The place to start: contacts in a high school, proofs and noise side by side.",
    "certify": "Prove how many changed edges each prediction withstands.",
    "prove": "Prove it exactly, without noise, for a model made of ballots.",
    "frontier": "Sweep the noise and recommend a setting for a wanted size.",
    "explain": "Say in words what one target's certificate means.",
    "report": "Write the HTML report of a stored run.",
    "reproduce": "Rerun the published figures and the tables that go beyond them.",
    "data": "List, fetch and check the benchmark datasets.",
    "attack": "Search for attacks: an upper bound next to each certificate.",
    "bench": "Time the engines on this machine.",
}

SLOW = ("demo", "certify", "prove", "frontier", "reproduce", "attack", "bench")  # those that load torch

EPILOG = "Each command explains itself, with examples: [bold]unswayed certify --help[/bold]"


class LazyGroup(TyperGroup):
    """Lists every command without importing one; imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order in which a new user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A stand-in that knows its one-line help; `resolve_command` swaps in the real one."""
        return TyperCommand(name=cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, its module imported now."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        if name in SLOW and not {"-h", "--help"} & set(rest):
            starting()
        return (
            (name, _import(name), rest)
            if stand_in is not None and name is not None
            else (name, stand_in, rest)
        )


def _import(name: str) -> Any:
    home = f"unswayed.cli.{name}"
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name == home:
            raise InputError(f"The command '{name}' is not part of this installation.") from error
        raise InputError(
            f"The command '{name}' needs the package '{error.name}', which is not installed; "
            f"install it, or everything optional with: pip install 'unswayed[report,ray]'."
        ) from error
    command = typer.main.get_command(module.app)
    command.name = name
    return command


app = typer.Typer(
    name="unswayed",
    cls=LazyGroup,
    epilog=EPILOG,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"unswayed {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def unswayed(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Prove that no attacker who adds or deletes up to K edges can change what a graph neural network says."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; nothing escapes but `SystemExit` from shell completion."""
    DOING.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DoubtfulSetting)
            warnings.showwarning = as_words(warnings.showwarning)
            code = app(None if argv is None else list(argv), prog_name="unswayed", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("UNSWAYED_TRACEBACK"):
            raise
        code, sentence = _verdict(error)
        _say(sentence)
        return code
    if code == 130:  # newer typer turns an interrupt into this code
        _say(interrupted())
    return code if isinstance(code, int) else 0


def _verdict(error: BaseException) -> tuple[int, str]:
    """The exit code of a failure and the sentence that explains it."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return 130, interrupted()
    if isinstance(error, InputError):
        return 2, str(error)
    if hasattr(error, "format_message"):  # the option parser's errors, wherever typer keeps their classes
        return 2, _usage(error)
    if isinstance(error, WorldError):
        return 1, str(error)
    if isinstance(error, MemoryError):
        return 1, "This machine ran out of memory; a smaller --batch-size or fewer targets may fit."
    if isinstance(error, OSError):
        return 1, _disk(error)
    return 1, (
        f"Something broke inside unswayed ({type(error).__name__}: {error}); "
        "set UNSWAYED_TRACEBACK=1 to see where, and please report it."
    )


def _usage(error: Any) -> str:
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "unswayed"
    said = error.format_message().rstrip(".").replace("Value error, ", "") or "Name a sub-command"
    return f"{said}; see '{path} --help'."


def _disk(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"The disk is full{where}; nothing that was stored is lost, so make room and run the same command again."
    return f"The system refused: {error.strerror or error}{where}."


def _say(sentence: str) -> None:
    print("unswayed: " + " ".join(sentence.split()), file=sys.stderr)


def run() -> None:
    """The console script."""
    sys.exit(main())
