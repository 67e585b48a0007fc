"""How many numbers an engine holds at a time: what a CPU's caches like, and on a card a share of the memory that is free.

Where that was too much, half of it is tried, and after a while the whole again: others may have filled the memory for a moment. Votes do
not depend on how the work is cut.
"""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch

from unswayed.sampling.engines.machine.batching import give_up
from unswayed.sampling.memory import is_out_of_memory

Result = TypeVar("Result")

LARGE = 2**34  # free bytes that the engines' numbers for "cuda" nearly always fit into
LEAST = 2.0**-14  # a share below which a single noisy graph is too large
PATIENCE = 8  # times that a part must fit before twice as much is tried again …
LONGEST = 2**10  # … and twice as many each time that was too much, up to so many
# seconds to wait for others who fill a card, before one noisy graph is called too large
WAITS = (1.0, 2.0, 4.0, 8.0)


@dataclass
class Share:
    """The part of what was meant that is done at a time: half of it when memory ran out, more again when that went well."""

    part: float = 1.0
    most: float = 1.0
    patience: int = PATIENCE
    calm: int = 0  # times that it went well since it last changed
    grown: bool = False

    def fell_short(self) -> None:
        """Memory ran out: half of it from now on."""
        if self.grown:
            self.patience = min(2 * self.patience, LONGEST)
        self.part, self.calm, self.grown = self.part / 2, 0, False

    def went_well(self) -> None:
        """It fitted; having fitted often enough, twice as much is tried."""
        if self.part < self.most:
            self.calm += 1
        if self.calm >= self.patience:
            self.part, self.calm, self.grown = min(2 * self.part, self.most), 0, True


_shares: dict[tuple[str, int], Share] = {}  # by type and index of the device


def room(numbers: Mapping[str, int], device: torch.device) -> int:
    """How many of these numbers, given for each type of device, to hold at a time on this one."""
    return int(numbers[device.type] * _share(device).part)


def within_memory(device: torch.device, ask: Callable[[], Result], forget: Callable[[], None]) -> Result:
    """What `ask` returns; when memory runs out, `forget` frees what can be made again and it is asked with half the room."""
    share, waits = _share(device), iter(WAITS if device.type == "cuda" else ())
    while True:
        try:
            result = ask()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            pause = 0.0 if share.part >= LEAST else next(waits, None)
            if pause is None:
                raise give_up() from error
        else:
            share.went_well()
            return result
        forget()  # out here, where the error no longer holds on to what was made before it
        if device.type == "cuda":
            torch.cuda.empty_cache()
        if pause:
            time.sleep(pause)
        else:
            share.fell_short()


def with_patience(device: torch.device, ask: Callable[[], Result]) -> Result:
    """What `ask` returns, which cannot be cut; when a card's memory runs out, what nobody needs is freed and others are waited for."""
    waits = iter(WAITS if device.type == "cuda" else ())
    while True:
        try:
            return ask()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if (pause := next(waits, None)) is None:
                raise give_up() from error
        gc.collect()
        torch.cuda.empty_cache()
        time.sleep(pause)


def hand_back() -> None:
    """Give memory of cards that torch only keeps for later back to other programs, where it keeps more than half of one."""
    begun = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    cards = range(torch.cuda.device_count()) if begun else ()
    if any(2 * torch.cuda.memory_reserved(i) > torch.cuda.mem_get_info(i)[1] for i in cards):
        torch.cuda.empty_cache()


def _share(device: torch.device) -> Share:
    """The part of the usual numbers that fits this device."""
    key = device.type, device.index or 0  # "cuda" and "cuda:0" are the same
    if key not in _shares:
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else LARGE
        fits = min(1.0, free / LARGE)
        _shares[key] = Share(fits, fits)
    return _shares[key]
