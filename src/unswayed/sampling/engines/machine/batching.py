"""How many noisy graphs to ask about at once: found by a short timing, halved when memory runs out."""

import time
from collections.abc import Callable
from math import inf

import torch

from unswayed.errors import WorldError
from unswayed.sampling.memory import is_out_of_memory

LARGEST = 1024
PATIENCE = 3  # sizes in a row that bring nothing before the search stops
LONGEST = 0.5  # seconds: no larger batch is tried after one that took this long
AGAIN = 3  # more timings of the best sizes, taken in turns so that a busy moment cannot decide


def fastest(ask: Callable[[int], None], device: torch.device, largest: int = LARGEST) -> int:
    """The batch size with the most graphs a second among powers of two; a CPU wants what fits its cache."""
    cost: dict[int, float] = {}  # seconds a graph
    size, wait = 1, 0
    while size <= max(1, min(largest, LARGEST)) and wait < PATIENCE:
        seconds = min(_timed(ask, size, device) for _ in range(2))
        if seconds == inf:
            break
        wait = wait + 1 if cost and seconds / size > 0.95 * min(cost.values()) else 0
        cost[size] = seconds / size
        if seconds > LONGEST:
            break
        size *= 2
    finalists = sorted(cost, key=lambda size: cost[size])[:3]
    for _ in range(AGAIN if len(finalists) > 1 else 0):
        for size in finalists:
            seconds = _timed(ask, size, device)  # others may have filled the memory by now
            cost[size] = inf if seconds == inf else min(cost[size], seconds / size)
    return min(finalists, key=lambda size: (cost[size], size), default=1)


def _timed(ask: Callable[[int], None], size: int, device: torch.device) -> float:
    """Seconds one call takes, infinitely many where memory runs out; on a CPU of its processors, since a busy machine's wall clock says little."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    begin = clock()
    try:
        ask(size)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return inf
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return max(clock() - begin, 1e-9)


def give_up() -> WorldError:
    """The error for one noisy graph that does not fit."""
    return WorldError(
        "Memory ran out on a single noisy graph; use a machine with more memory or a smaller graph."
    )
