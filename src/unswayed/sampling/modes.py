"""Evaluation mode for as long as anybody asks: a module that is polled in two threads at once stays one function."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass
class Held:
    """A module that is being asked: the mode that it came in, and how many are asking."""

    module: nn.Module
    mode: bool
    asking: int = 0


HELD: dict[int, Held] = {}
ENTERING = threading.Lock()


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode while this lasts; when the last of those who ask has gone, every module is in the mode it came in."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    with ENTERING:
        for module in modules:
            HELD.setdefault(id(module), Held(module, module.training)).asking += 1
    try:
        if isinstance(model, nn.Module):
            model.eval()
        yield
    finally:
        with ENTERING:
            for module in modules:
                _let_go(HELD[id(module)])


def _let_go(held: Held) -> None:
    held.asking -= 1
    if not held.asking:
        held.module.training = held.mode
        del HELD[id(held.module)]
