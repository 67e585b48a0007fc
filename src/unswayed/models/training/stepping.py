"""Steps down a loss, each with as many threads as were fastest so far, and all with the bits that one thread brings."""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from unswayed.models.training.same_bits import SameBits, equal_bits
from unswayed.sampling.threads import Threads, threads

TRIALS = 3  # steps at least whose gradients are worked out in both ways before many threads are trusted
OTHER_BITS = "as more change its bits"
COMPILED = "as it is compiled"
_asked: ContextVar[int | None] = ContextVar("asked", default=None)
_pace: ContextVar["Pace | None"] = ContextVar("pace", default=None)
_diary: ContextVar["Diary | None"] = ContextVar("diary", default=None)


class Pace:
    """Who picks the threads of one training, and makes sure that more than one change nothing."""

    def __init__(self, device: str) -> None:
        self.pick = Threads(device, _asked.get())
        self.number, self.since, self.proved = 1, time.perf_counter(), 0
        self.fair = False  # whether the present step may be timed: the first holds what happens only once
        self.listening: SameBits | None = None
        self.known: set[Any] = set()

    def begin(self) -> None:
        """Set up for the next step."""
        if self.pick.now > 1 and _compiled():
            self.pick.stay(COMPILED)
        number = self.pick.now
        if number != self.number:
            self.end()
            self.number = number
            if number > 1:
                self.listening = SameBits(number)
                self.listening.__enter__()  # type: ignore[no-untyped-call]
        self.fair, self.since = True, time.perf_counter()

    def end(self) -> None:
        """One thread, and nobody listens."""
        if self.listening is not None:
            self.listening.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self.listening, self.number = None, 1

    def backward(self, loss: Tensor, weights: list[Tensor]) -> None:
        """Gradients of these weights; where many threads have not shown yet that they bring the bits of one, in both ways."""
        mode = self.listening
        if mode is None or (self.proved >= TRIALS and mode.seen <= self.known):
            loss.backward()  # type: ignore[no-untyped-call]
            return
        self.fair, number = False, self.number
        many = _gradients(loss, weights)
        spent = time.perf_counter() - self.since
        self.known |= mode.seen
        self.end()
        loss.backward()  # type: ignore[no-untyped-call]
        self.proved += 1
        if many is None or not all(_same(*pair) for pair in zip(many, weights, strict=True)):
            self.pick.stay(OTHER_BITS)
        elif self.pick.hopeless(spent):
            self.pick.heard(number, spent, 1.0)

    def stepped(self) -> None:
        """A step is over."""
        if (diary := _diary.get()) is not None:
            diary.note(self)
        if self.fair:
            self.pick.heard(self.number, time.perf_counter() - self.since, 1.0)
        self.begin()


def _gradients(loss: Tensor, weights: list[Tensor]) -> tuple[Tensor | None, ...] | None:
    """Gradients that leave everything else as it was; None where they cannot be had apart."""
    try:
        with torch.random.fork_rng(devices=[]):
            return torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return None


def _same(gradient: Tensor | None, weight: Tensor) -> bool:
    if gradient is None or weight.grad is None:
        return gradient is None and weight.grad is None
    return equal_bits(gradient, weight.grad)


def _compiled() -> bool:
    """Whether anything was compiled: what is, runs otherwise while somebody listens, and in parts that were fixed before."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and dynamo.counters["stats"]["unique_graphs"] > 0


def descend(optimiser: Optimizer, loss: Tensor) -> None:
    """One step down this loss; while `paced`, with as many threads as were fastest so far."""
    optimiser.zero_grad()
    pace = _pace.get()
    if pace is None:
        loss.backward()  # type: ignore[no-untyped-call]
    else:
        weights = [weight for group in optimiser.param_groups for weight in group["params"]]
        pace.backward(loss, [weight for weight in weights if weight.requires_grad])
    optimiser.step()
    if pace is not None:
        pace.stepped()


@contextlib.contextmanager
def paced(device: str) -> Iterator[None]:
    """One thread while it lasts, but for steps that `descend` finds faster with more."""
    pace = Pace(device)
    before = _pace.set(pace)
    try:
        with threads(1):
            yield
    finally:
        pace.end()
        _pace.reset(before)


@contextlib.contextmanager
def asking(number: int | None) -> Iterator[None]:
    """While it lasts, whatever is trained takes so many threads; with None, as many as are fastest."""
    before = _asked.set(number)
    try:
        yield
    finally:
        _asked.reset(before)


def at_work() -> str:
    """With how many threads the present training works, in words; empty where nothing is being trained."""
    pace = _pace.get()
    return "" if pace is None else pace.pick.words


class Diary:
    """How many threads the steps of everything that was trained took, and why."""

    def __init__(self) -> None:
        self.steps: Counter[int] = Counter()
        self.most, self.reasons = 1, dict[str, None]()

    def note(self, pace: Pace) -> None:
        """Remember one more step."""
        self.steps[pace.number] += 1
        self.most = max(self.most, pace.pick.most)
        if pace.pick.reason:
            self.reasons[pace.pick.reason] = None

    @property
    def words(self) -> str:
        """What was chosen, for people; empty where nothing was trained on a CPU."""
        if not self.steps:
            return ""
        if self.most == 1:
            return "1 thread"
        (usual, often), total = self.steps.most_common(1)[0], self.steps.total()
        rest = f" in {often:,} of {total:,} steps" if often < total else ""
        why = ", ".join(self.reasons) or "by timing"
        return f"{usual} of {self.most} threads{rest}, {why}"


@contextlib.contextmanager
def diary() -> Iterator[Diary]:
    """Notes how many threads are taken by whatever is trained while it lasts."""
    kept = Diary()
    before = _diary.set(kept)
    try:
        yield kept
    finally:
        _diary.reset(before)
