"""Keywords that a function does not have: refused in one sentence, with the one that was probably meant."""

import functools
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

from unswayed.errors import UnknownKeyword

P = ParamSpec("P")
R = TypeVar("R")


def spelled(*more: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same function, whose unknown keywords are refused with a suggestion; `more` are keywords that it hands on."""

    def around(function: Callable[P, R]) -> Callable[P, R]:
        known = [*inspect.signature(function).parameters, *more]
        name = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> R:
            check_keywords(name, named, [word for word in known if word != "self"])
            return function(*given, **named)

        return call

    return around


def check_keywords(name: str, given: Iterable[str], known: list[str]) -> None:
    """Refuse the first keyword that is not known."""
    wrong = next((keyword for keyword in given if keyword not in known), None)
    if wrong is None:
        return
    meant = get_close_matches(wrong, known, 1)
    hint = f"did you mean {meant[0]}=?" if meant else f"it takes {', '.join(known)}."
    raise UnknownKeyword(f"{name} has no keyword {wrong!r}; {hint}")
