"""How many noisy graphs to ask about at once: found by a short timing, halved when memory runs out."""

import time
from collections.abc import Callable

import torch

from unswayed.errors import WorldError

LARGEST = 1024
PATIENCE = 2  # sizes in a row that bring nothing before the search stops
LONGEST = 0.5  # seconds: no larger batch is tried after one that took this long


def fastest(ask: Callable[[int], None], device: torch.device, largest: int = LARGEST) -> int:
    """The batch size with the most graphs a second among powers of two; a CPU wants what fits its cache."""
    best, rate, wait, size = 1, 0.0, 0, 1
    while size <= largest and wait < PATIENCE:
        try:
            seconds = min(_timed(ask, size, device) for _ in range(2))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            break
        wait = wait + 1 if size / seconds < 1.05 * rate else 0
        if size / seconds > rate:
            best, rate = size, size / seconds
        if seconds > LONGEST:
            break
        size *= 2
    return best


def _timed(ask: Callable[[int], None], size: int, device: torch.device) -> float:
    begin = time.perf_counter()
    ask(size)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    words = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "out of memory" in words or "can't allocate memory" in words or "not enough memory" in words
    )


def give_up() -> WorldError:
    """The error for one noisy graph that does not fit."""
    return WorldError(
        "Memory ran out on a single noisy graph; use a machine with more memory or a smaller graph."
    )
