"""Which way a call takes through a module's own code, instruction by instruction.

What stands for a tensor in a trace cannot hide that it is none: `type(x) is Tensor`, `callable(x)`, `repr(x)` or the question whether
anything is being traced may send it another way than a tensor. So a trace says what a module does only where a real call takes the same
way.
"""

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from torch import nn

from unswayed.sampling.engines.plans.altered import LIBRARIES

Way = frozenset[tuple[CodeType, int]]
OTHERS = LIBRARIES | sys.stdlib_module_names | {"unswayed", ""}  # whose code decides nothing of its own here
MADE = "namedtuple_"  # by Python, for whoever has such tuples


def way(model: nn.Module, call: Callable[[], Any]) -> Way:
    """Every instruction, of code that is neither Python's nor a library's, that a call runs inside a forward of the model's modules.

    It is called twice: some releases of Python tell of the instructions of a function only from its second call on. Nothing is
    collected meanwhile, since whoever is told of that, or dies of it, would run in the midst of a forward.
    """
    walk = _Walk(model)
    before, collects = sys.gettrace(), gc.isenabled()
    walk.entry.f_trace_opcodes = True  # at least one frame must have asked before tracing begins
    gc.disable()
    try:
        sys.settrace(walk.enter)
        call()
        walk.seen.clear()
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return frozenset(walk.seen)


class _Walk:
    """Notes instructions as they come."""

    def __init__(self, model: nn.Module) -> None:
        self.entry = sys._getframe(1)
        forwards = (getattr(type(module).forward, "__code__", None) for module in model.modules())
        self.forwards = {code for code in forwards if code is not None}
        self.seen: set[tuple[CodeType, int]] = set()

    def enter(self, frame: FrameType, event: str, about: Any) -> Any:
        """Whether a function that is called is looked into."""
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name in OTHERS or name.startswith(MADE) or not self._inside(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: FrameType, event: str, about: Any) -> Any:
        """One more instruction."""
        if event == "opcode":
            self.seen.add((frame.f_code, frame.f_lasti))
        return self.step

    def _inside(self, frame: FrameType | None) -> bool:
        """Whether this is, or was called by, a forward, and not because something is imported for the first time."""
        found = False
        while frame is not None and frame is not self.entry:
            if frame.f_code.co_name == "<module>":
                return False
            found = found or frame.f_code in self.forwards
            frame = frame.f_back
        return found
