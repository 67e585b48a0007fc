"""How many threads torch works with: as many as were fastest in a short timing, timed again when work gets slow.

Threads of one operation wait for each other. Where other processes keep the cores busy, or a container has fewer cores than it seems, that
can take thirty times as long as one thread alone.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

Result = TypeVar("Result")

TRIES = 2  # timings of each number, in turns, so that a busy moment does not decide
GAIN = 0.9  # of one thread's time: more threads that bring less are not worth their waiting
HOPELESS = 3.0  # times one thread's time: no second timing
SLOW, PATIENCE = 2.0, 3  # so many pieces in a row that take so many times as long as usual are timed again
PROBE = 4  # pieces that many threads do before one thread is tried again; then twice as many, and so on
WORK = 0.03  # seconds at most for each trial
_given: ContextVar[int | None] = ContextVar("given", default=None)  # while fewer are at work than there were


def given() -> int:
    """How many threads there are to choose from: torch's own number, whatever is being worked with just now."""
    return _given.get() or torch.get_num_threads()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """While it lasts, torch works with so many threads."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    outer = _given.set(given())
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _given.reset(outer)


def few(device: str | torch.device = "cpu") -> int:
    """All threads where a short trial says that they help just now, otherwise one: for work that is not timed itself."""
    most = given() if str(device).startswith("cpu") else 1
    return most if most > 1 and trial(most) < GAIN * trial(1) else 1


class Threads:
    """Runs pieces of work with the number of threads that was fastest on the first of them."""

    def __init__(self, device: str | torch.device = "cpu", fixed: int | None = None) -> None:
        self.most = (fixed or given()) if torch.device(device).type == "cpu" else 1
        self.number: int | None = 1 if self.most == 1 else fixed  # None: being timed
        self.settled = self.number is not None  # nothing is to be timed
        self.reason = ""  # why one thread is enough, where timing has no say
        self.seen: dict[int, list[float]] = {}
        self.late, self.done = 0, 0  # pieces in a row that were slow, and all since the choice
        self.recent: deque[float] = deque(maxlen=TRIES)  # what many threads took lately
        self.cost: float | None = None  # seconds that the latest work took for its size

    @property
    def words(self) -> str:
        """What was chosen, for people."""
        chosen = self.number or self.now
        why = f", {self.reason}" if self.reason else ""
        return f"{chosen} of {self.most}{why}" if self.most > 1 else str(chosen)

    def stay(self, reason: str) -> None:
        """One thread from now on."""
        self.number, self.settled, self.reason = 1, True, reason

    def run(self, size: float, work: Callable[[], Result]) -> Result:
        """What the work returns; `size` says how much of it there is, so that pieces of different size compare."""
        number = self.now
        begin = time.perf_counter()
        with threads(number):
            result = work()
        took = time.perf_counter() - begin
        self.cost = took / size
        self.heard(number, took, size)
        return result

    @property
    def now(self) -> int:
        """The number to work with: the one that was chosen, or while that is open the one timed least, one thread first.

        Many threads that were chosen in a busy moment may be slow in all others, so now and then one does a piece again.
        """
        if self.number is None:
            return min((1, self.most), key=lambda number: len(self.seen.get(number, ())))
        return 1 if not self.settled and self._probing else self.number

    @property
    def _probing(self) -> bool:
        """Whether so many pieces are done as 4, 8, 16 and so on."""
        return self.done >= PROBE and self.done & (self.done - 1) == 0

    def heard(self, number: int, took: float, size: float) -> None:
        """Learn from a piece of work of this size, done with so many threads in so many seconds."""
        if self.settled:
            return
        cost = took / size
        if self.number is None:
            self.seen.setdefault(number, []).append(cost)
            if number > 1 and self.hopeless(cost):
                self.number = 1
            elif took > WORK and self.most not in self.seen and trial(self.most) > HOPELESS * trial(1):
                self.number = 1  # long work is not even tried where a short trial is hopeless
            elif all(len(self.seen.get(n, ())) >= TRIES for n in (1, self.most)):
                best = {n: min(costs) for n, costs in self.seen.items()}
                self.number = self.most if best[self.most] < GAIN * best[1] else 1
            return
        self.done += 1
        if number != self.number:
            if number == 1 and self.recent and min(self.recent) > GAIN * cost:
                self._look_again()
            return
        self.recent.append(cost)
        self.late = self.late + 1 if cost > SLOW * min(self.seen[number]) else 0
        if self.late >= PATIENCE:
            self._look_again()

    def _look_again(self) -> None:
        self.number, self.seen, self.late, self.done = None, {}, 0, 0
        self.recent.clear()

    def hopeless(self, cost: float) -> bool:
        """Whether a piece that many threads did at this cost is enough to know that they do not help."""
        return not self.settled and 1 in self.seen and cost > HOPELESS * min(self.seen[1])


def trial(number: int) -> float:
    """Seconds that a small piece of work like a network's layer takes with so many threads, the best of some."""
    x, weight = torch.ones(3_000, 128), torch.ones(128, 128)
    where, best, end = torch.arange(20_000) % 3_000, float("inf"), time.perf_counter() + WORK
    with threads(number), torch.no_grad():
        while best == float("inf") or time.perf_counter() < end:
            begin = time.perf_counter()
            (x @ weight).relu_().index_add_(0, where, x[where])
            best = min(best, time.perf_counter() - begin)
    return best
