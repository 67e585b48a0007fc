"""All cores of the machine without OpenMP's barriers: chunks go to threads of ours, and each operation runs on one core.

The chunks are sized to a core's cache, where splitting every operation over cores costs more than it gains; and where
other processes keep the cores busy, threads that wait for each other at every operation lose more than tenfold.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Cores:
    """Maps a function over chunks on as many threads as torch would have used, in order, without gradients."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self.pool = pool

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """[function(item) for item in items]."""
        if self.pool is None:
            return [function(item) for item in items]

        def run(item: Item) -> Result:
            with torch.no_grad():  # the mode belongs to a thread
                return function(item)

        return list(self.pool.map(run, items))


@contextmanager
def cores(device: torch.device) -> Iterator[Cores]:
    """While it lasts, operations on the CPU run on one core each; a card gets one caller."""
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        yield Cores(None)
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield Cores(pool)
    finally:
        torch.set_num_threads(threads)


class _Precision:
    """How precise torch was before the first of those who need all of it, until the last of them has gone."""

    def __init__(self) -> None:
        self.lock, self.users, self.before = Lock(), 0, ""

    def enter(self) -> None:
        with self.lock:
            if not self.users:
                self.before = torch.get_float32_matmul_precision()
                torch.set_float32_matmul_precision("highest")
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                torch.set_float32_matmul_precision(self.before)


_precision = _Precision()


@contextmanager
def full_precision() -> Iterator[None]:
    """While it lasts, in any thread, products of float32 matrices are in float32: a card's TF32 would round to ten bits."""
    _precision.enter()
    try:
        yield
    finally:
        _precision.leave()
