"""How many threads torch works with: as many as were fastest in a short timing, timed again when work gets slow.

Threads of one operation wait for each other. Where other processes keep the cores busy, or a container has fewer cores than it seems, that
can take thirty times as long as one thread alone.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

Result = TypeVar("Result")

TRIES = 2  # timings of each number, in turns, so that a busy moment does not decide
GAIN = 0.9  # of one thread's time: more threads that bring less are not worth their waiting
HOPELESS = 3.0  # times one thread's time: no second timing
SLOW, PATIENCE = 2.0, 3  # so many pieces in a row that take so many times as long as usual are timed again
WORK = 0.03  # seconds at most for each timing before training


@contextmanager
def threads(number: int) -> Iterator[None]:
    """While it lasts, torch works with so many threads."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Threads:
    """Runs pieces of work with the number of threads that was fastest on the first of them."""

    def __init__(self, device: str | torch.device = "cpu") -> None:
        self.most = torch.get_num_threads() if torch.device(device).type == "cpu" else 1
        self.number: int | None = 1 if self.most == 1 else None  # None: being timed
        self.seen: dict[int, list[float]] = {}
        self.late = 0

    @property
    def words(self) -> str:
        """What was chosen, for people."""
        chosen = self.number or self._next()
        return f"{chosen} of {self.most}" if self.most > 1 else str(chosen)

    def run(self, size: float, work: Callable[[], Result]) -> Result:
        """What the work returns; `size` says how much of it there is, so that pieces of different size compare."""
        if self.most == 1:
            return work()
        number = self.number or self._next()
        begin = time.perf_counter()
        with threads(number):
            result = work()
        self._heard(number, (time.perf_counter() - begin) / size)
        return result

    def _next(self) -> int:
        """The number that was timed least, one thread first."""
        return min((1, self.most), key=lambda number: len(self.seen.get(number, ())))

    def _heard(self, number: int, cost: float) -> None:
        if self.number is None:
            self.seen.setdefault(number, []).append(cost)
            if number > 1 and cost > HOPELESS * min(self.seen[1]):
                self.number = 1
            elif all(len(self.seen.get(n, ())) >= TRIES for n in (1, self.most)):
                best = {n: min(costs) for n, costs in self.seen.items()}
                self.number = self.most if best[self.most] < GAIN * best[1] else 1
            return
        usual = min(self.seen[number])
        self.late = self.late + 1 if cost > SLOW * usual else 0
        if self.late >= PATIENCE:
            self.number, self.seen, self.late = None, {}, 0


def _trial(number: int) -> float:
    """Seconds that a piece of work like a training step takes with so many threads, the best of some."""
    x, weight = torch.ones(3_000, 128), torch.ones(128, 128)
    where, best, end = torch.arange(20_000) % 3_000, float("inf"), time.perf_counter() + WORK
    with threads(number), torch.no_grad():
        while best == float("inf") or time.perf_counter() < end:
            begin = time.perf_counter()
            (x @ weight).relu_().index_add_(0, where, x[where])
            best = min(best, time.perf_counter() - begin)
    return best


class _Training:
    """The number of threads that this process trains with: one choice for all, so that equal seeds give equal weights."""

    number: int | None = None

    def choose(self) -> int:
        most = torch.get_num_threads()
        if most == 1:
            return 1
        if self.number is None:
            self.number = most if _trial(most) < GAIN * _trial(1) else 1
        return self.number


_training = _Training()


def steps(numbers: Iterable[int]) -> Iterator[int]:
    """The numbers of a training loop, during which torch works with the threads that a short timing chose.

    Where three steps in a row take more than twice as long as the quickest, it is timed again.
    """
    before, best, late = torch.get_num_threads(), float("inf"), 0
    try:
        for number in numbers:
            torch.set_num_threads(before)
            torch.set_num_threads(_training.choose())
            begin = time.perf_counter()
            yield number
            took = time.perf_counter() - begin
            late = late + 1 if took > SLOW * best else 0
            best = min(best, took)
            if late >= PATIENCE:
                _training.number, best, late = None, float("inf"), 0
    finally:
        torch.set_num_threads(before)
