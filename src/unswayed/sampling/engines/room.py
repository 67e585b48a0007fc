"""How many numbers an engine holds at a time: what a CPU's caches like, and on a card a share of the memory that is free.

Where that was too much, half of it is tried: votes do not depend on how the work is cut.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

from unswayed.sampling.engines.batching import give_up, is_out_of_memory

Result = TypeVar("Result")

LARGE = 2**34  # free bytes that the engines' numbers for "cuda" nearly always fit into
LEAST = 2.0**-14  # a share below which a single noisy graph is too large
_shares: dict[tuple[str, int], float] = {}  # by type and index of the device


def room(numbers: Mapping[str, int], device: torch.device) -> int:
    """How many of these numbers, given for each type of device, to hold at a time on this one."""
    return int(numbers[device.type] * _share(device))


def within_memory(device: torch.device, ask: Callable[[], Result], forget: Callable[[], None]) -> Result:
    """What `ask` returns; when memory runs out, `forget` frees what can be made again and it is asked with half the room."""
    while True:
        try:
            return ask()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if _share(device) < LEAST:
                raise give_up() from error
        forget()  # out here, where the error no longer holds on to what was made before it
        _shares[_key(device)] = _share(device) / 2
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _share(device: torch.device) -> float:
    """The part of the usual numbers that fits this device."""
    key = _key(device)
    if key not in _shares:
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else LARGE
        _shares[key] = min(1.0, free / LARGE)
    return _shares[key]


def _key(device: torch.device) -> tuple[str, int]:
    """One name for one device: "cuda" and "cuda:0" are the same."""
    return device.type, device.index or 0
