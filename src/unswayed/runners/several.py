"""Several devices of this process at once: a thread each, which takes the next blocks as soon as it has counted the last."""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread

import torch

from unswayed.errors import InputError
from unswayed.runners.serial import AT_ONCE, SerialRunner, adjacent
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally

Counted = tuple[Block, Tally]
Said = Counted | BaseException | None  # None: a device has nothing left to do


class SeveralRunner:
    """Counts blocks on these devices, as they finish; the votes are those of one device, but for logits that tie within rounding.

    A device that is named twice is asked by two threads.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        if isinstance(devices, str) or not devices:
            raise InputError(f"devices must be a list, such as ['cuda:0', 'cuda:1'], not {devices!r}.")
        self._devices = tuple(devices)
        self._runners = [SerialRunner() for _ in devices]
        self._last: tuple[Question, list[Question]] | None = None

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[Counted]:
        """Pairs of a block and what was counted for it; if one device fails, what the others were counting still comes."""
        if not blocks:
            return
        waiting, stop, said = deque(self._shares(question, blocks)), Event(), SimpleQueue[Said]()
        threads = [
            Thread(target=_work, args=(runner, asked, waiting, stop, said), daemon=True)
            for runner, asked in zip(self._runners, self._questions(question), strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from _heard(said, len(threads), stop)
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def rest(self) -> None:
        """Let all engines go, with the memory they hold."""
        self._last = None
        for runner in self._runners:
            runner.rest()

    def _questions(self, question: Question) -> list[Question]:
        """The question for each device; the same ones when asked again. No two devices ask the same module."""
        if self._last is None or self._last[0] is not question:
            modules = [question.model, *(copy.deepcopy(question.model) for _ in self._devices[1:])]
            asked = zip(self._devices, modules, strict=True)
            self._last = (question, [replace(question, device=d, model=m) for d, m in asked])
        return self._last[1]

    def _shares(self, question: Question, blocks: Sequence[Block]) -> Iterator[list[Block]]:
        """What a device takes at a time: on cards as many samples as keep one busy, as long as there are some for all."""
        cards = all(torch.device(device).type == "cuda" for device in self._devices)
        every = sum(block.stop - block.start for block in blocks)
        most = min(AT_ONCE // max(1, len(question.threat)), -(-every // len(self._runners)))
        return adjacent(blocks, most if cards else 0)


def _work(
    runner: SerialRunner,
    question: Question,
    waiting: deque[list[Block]],
    stop: Event,
    said: SimpleQueue[Said],
) -> None:
    """What a device does, in a thread of its own: counts what is waiting, and says what it counted."""
    try:
        if torch.device(question.device).type == "cuda":
            torch.cuda.set_device(question.device)  # of this thread
        while not stop.is_set() and (blocks := _next(waiting)):
            for counted in runner.run(question, blocks):
                said.put(counted)
    except BaseException as error:
        said.put(error)
    finally:
        said.put(None)


def _next(waiting: deque[list[Block]]) -> list[Block]:
    try:
        return waiting.popleft()
    except IndexError:  # others took the last ones
        return []


def _heard(said: SimpleQueue[Said], devices: int, stop: Event) -> Iterator[Counted]:
    """What was counted, until all devices have said that they are done; then the first error, if there was one."""
    failure: BaseException | None = None
    while devices:
        word = said.get()
        if word is None:
            devices -= 1
        elif isinstance(word, BaseException):
            failure = failure or word
            stop.set()
        else:
            yield word
    if failure is not None:
        raise failure
