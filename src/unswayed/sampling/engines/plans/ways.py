"""Which way a call takes through a module's own code, decision by decision.

What stands for a tensor in a trace cannot hide that it is none: `type(x) is Tensor`, `callable(x)`, `repr(x)` or the question whether
anything is being traced may send it another way than a tensor. So a trace says what a module does only where a real call takes the same
way.
"""

import gc
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from torch import nn

from unswayed.sampling.engines.plans.altered import LIBRARIES

Way = frozenset[tuple[CodeType, int, int]]
OTHERS = LIBRARIES | sys.stdlib_module_names | {"unswayed", ""}  # whose code decides nothing of its own here
MADE = "namedtuple_"  # by Python, for whoever has such tuples
_one_at_a_time = threading.Lock()


def way(model: nn.Module, call: Callable[[], Any]) -> Way:
    """Every step, of code that is neither Python's nor a library's, that a call takes inside a forward of the model's modules.

    The second of two calls is looked at, since a first one may take other steps: layers make code when they are first used.
    Nothing is collected meanwhile, since whoever is told of that, or dies of it, would run in the midst of a forward.
    """
    with _one_at_a_time:  # of several threads; what Python is asked to tell, it tells of all of them
        walk, collects = _Walk(model), gc.isenabled()
        gc.disable()
        try:
            call()
            _told(walk, call)
        finally:
            if collects:
                gc.enable()
    return frozenset(walk.seen)


class _Walk:
    """Notes steps of one thread as they come."""

    def __init__(self, model: nn.Module) -> None:
        forwards = (getattr(type(module).forward, "__code__", None) for module in model.modules())
        self.forwards = {code for code in forwards if code is not None}
        self.seen: set[tuple[CodeType, int, int]] = set()
        self.thread = threading.get_ident()
        self.others: dict[int, Any] = {}  # whose globals these are; held, so that no id comes twice

    def looks_into(self, frame: FrameType) -> bool:
        """Whether the code of this frame is the model's own, in a forward, and not because something is imported for the first time."""
        if id(frame.f_globals) in self.others:
            return False
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name in OTHERS or name.startswith(MADE):
            self.others[id(frame.f_globals)] = frame.f_globals
            return False
        found, at = False, frame
        while at is not None and at.f_code is not _told.__code__:
            if at.f_code.co_name == "<module>":
                return False
            found = found or at.f_code in self.forwards
            at = at.f_back  # type: ignore[assignment]
        return found


if sys.version_info >= (3, 12):
    # To trace instructions in one thread can crash these releases while another runs the same code; to monitor branches cannot.
    _EVENTS = sys.monitoring.events

    def _told(walk: _Walk, call: Callable[[], Any]) -> None:
        """Let the walk see which functions the call enters and which branches it takes."""

        def note(code: CodeType, at: int, to: int = -1) -> None:
            if threading.get_ident() == walk.thread and walk.looks_into(sys._getframe(1)):
                walk.seen.add((code, at, to))

        tool = next((tool for tool in (4, 3, 5, 2) if sys.monitoring.get_tool(tool) is None), None)
        if tool is None:  # others look on in every way there is: nothing is known, so no trace is trusted
            walk.seen.add((note.__code__, id(walk), -1))
            return
        sys.monitoring.use_tool_id(tool, "unswayed")
        try:
            for event in (_EVENTS.PY_START, _EVENTS.BRANCH):
                sys.monitoring.register_callback(tool, event, note)
            sys.monitoring.set_events(tool, _EVENTS.PY_START | _EVENTS.BRANCH)
            call()
        finally:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)

else:

    def _told(walk: _Walk, call: Callable[[], Any]) -> None:
        """Let the walk see every instruction of the call."""

        def enter(frame: FrameType, event: str, about: Any) -> Any:
            if not walk.looks_into(frame):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return step

        def step(frame: FrameType, event: str, about: Any) -> Any:
            if event == "opcode":
                walk.seen.add((frame.f_code, frame.f_lasti, -1))
            return step

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            call()
        finally:
            sys.settrace(before)
