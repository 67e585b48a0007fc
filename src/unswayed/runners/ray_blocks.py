"""Blocks of sample numbers as Ray tasks: which are waiting, which are being counted, and what a worker does with them.

A worker builds its engine once for each question, and then answers with nothing but counts, of as many blocks as it counted in about a
second. A block is a pure function of its sample numbers, so one whose worker died is simply asked again, and none can be counted twice:
what a task has counted is yielded when its one answer arrives, and only the rest is asked for. Tasks get smaller towards the end.
"""

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from unswayed._version import __version__
from unswayed.errors import UnswayedError, WorldError
from unswayed.runners.serial import WANTED, SerialRunner
from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally

PULSE = 5.0  # seconds between looks at the cluster while nothing finishes
KEPT = "Every finished block is kept: with a store, the same call goes on from there."

_engines: dict[tuple[str, int], Engine] = {}  # in a worker: who answers the question it is working on

Counted = tuple[Block, Tally]


class Run:
    """One pass over some blocks: which are waiting, which are being counted."""

    def __init__(self, ray: Any, runner: Any, name: str, held: Any) -> None:
        self.ray, self.runner = ray, runner
        options = {"num_cpus": runner.cpus_per_task, "num_gpus": runner.gpus_per_task, "max_retries": 0}
        self.task = ray.remote(count_blocks).options(**options)
        self.about = (__version__, name, [held], max(1, int(runner.cpus_per_task)))
        self.waiting: deque[Block] = deque()
        self.asked: dict[Any, tuple[Block, ...]] = {}
        # workers that died over a block; one that is named here is asked alone
        self.deaths: dict[Block, int] = {}
        self.slots, self.last_room = 0, time.monotonic()

    def results(self, blocks: Sequence[Block]) -> Iterator[Counted]:
        """Every block once; before an error is raised, the blocks that are being counted are waited for and kept."""
        self.waiting.extend(blocks)
        failure: UnswayedError | None = None
        try:
            while self.asked or (self.waiting and failure is None):
                if failure is None:
                    self._ask()
                failure = (yield from self._take()) or failure
            if failure is not None:
                raise failure
        finally:
            for reference in self.asked:
                self.ray.cancel(reference)

    def _ask(self) -> None:
        """Hand out what there is room for; the room follows the cluster as machines come and go."""
        self.slots = self.runner.slots(self.ray.cluster_resources())
        if self.runner.awaited(self.slots, self.last_room):
            self.last_room = time.monotonic()
        room = self.runner.room(self.slots)
        while self.waiting and len(self.asked) < room:
            share = self._share(room)
            self.asked[self.task.remote(*self.about, share)] = share

    def _share(self, room: int) -> tuple[Block, ...]:
        """The blocks of the next task: the fewer, the fewer are left, so that all workers are done at about the same time."""
        share = [self.waiting.popleft()]
        for _ in range(len(self.waiting) // (2 * room)):
            if share[0] in self.deaths or self.waiting[0] in self.deaths:
                break
            share.append(self.waiting.popleft())
        return tuple(share)

    def _take(self) -> Generator[Counted, None, UnswayedError | None]:
        """Yields what the next task has counted, if one finishes soon; returns a failure that asking again cannot mend."""
        done, _ = self.ray.wait(list(self.asked), num_returns=1, timeout=PULSE)
        failure: UnswayedError | None = None
        for reference in done:
            share = self.asked.pop(reference)
            try:
                counted = self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as error:
                failure = failure or _explain(error, share[0])
            except self.ray.exceptions.RayError as error:
                # the worker or its machine died, or ran out of memory
                failure = self._again(share, error) or failure
            else:
                self.waiting.extendleft(reversed(self._rest(share, counted)))
                yield from counted
        return failure

    def _again(self, share: tuple[Block, ...], error: Exception) -> UnswayedError | None:
        """Ask again for blocks whose worker died: each alone, so that the next time says over which; or give up."""
        for block in share:
            self.deaths[block] = self.deaths.get(block, 0) + (len(share) == 1)
        if self.deaths[share[0]] > self.runner.retries:
            return _died(error, share[0], self.deaths[share[0]])
        self.waiting.extendleft(reversed(share))
        return None

    def _rest(self, share: tuple[Block, ...], counted: list[Counted]) -> list[Block]:
        """What a task was asked for and did not come to; the last block that is left goes to all workers that idle."""
        rest = list(share)
        for piece, _ in counted:
            if piece.stop == rest[0].stop:
                rest.pop(0)
            else:
                rest[0] = replace(rest[0], start=piece.stop)
        idle = self.slots - len(self.asked)
        if self.waiting or len(rest) != 1 or rest[0] in share:
            return rest
        return _split(rest[0], max(1, idle))


def _split(block: Block, parts: int) -> list[Block]:
    """The block in so many parts of about the same length."""
    length = -(-(block.stop - block.start) // parts)
    starts = range(block.start, block.stop, length)
    return [replace(block, start=at, stop=min(at + length, block.stop)) for at in starts]


def count_blocks(
    version: str, name: str, held: list[Any], threads: int, share: Sequence[Block]
) -> list[Counted]:
    """What a worker does: counts of these blocks what takes about a second, with an engine that it builds once for each question.

    `held` wraps the reference to the question in a list, because Ray would unpack a bare one again for every task. What a
    classifier raises is heard when the block that it failed on comes first.
    """
    engine = _engine(version, name, held, threads)
    begin, found = time.perf_counter(), list[Counted]()
    try:
        for counted in SerialRunner(engine).run(engine.question, share):
            found.append(counted)
            if time.perf_counter() - begin >= WANTED:
                break
    except Exception:
        if not found:
            raise
    return found


def check_version(version: str) -> None:
    """Refuse to work for a caller with another version."""
    if version != __version__:
        raise WorldError(
            f"The worker has unswayed {__version__} and the caller {version}; install the same version everywhere."
        )


def _engine(version: str, name: str, held: list[Any], threads: int) -> Engine:
    check_version(version)
    if (name, threads) not in _engines:
        import ray
        import torch

        torch.set_num_threads(threads)
        _engines.clear()
        question: Question = ray.cloudpickle.loads(memoryview(ray.get(held[0])))
        _engines[name, threads] = choose(question)
    return _engines[name, threads]


def _explain(error: Any, block: Block) -> UnswayedError:
    """The error of a task that raised: ours as it is, anything else in one sentence."""
    cause = error.cause if isinstance(error.cause, Exception) else error
    if isinstance(cause, UnswayedError):
        return cause
    where = f"Samples {block.start} to {block.stop - 1} could not be counted"
    said = f"{type(cause).__name__}: {first_line(cause)}"
    if isinstance(cause, MemoryError) or "memory" in str(cause).lower():
        text = f"{where}: a worker ran out of memory ({said}); a smaller batch_size or fewer workers may fit. {KEPT}"
    else:
        text = f"{where}: the classifier failed on a worker ({said}). {KEPT}"
    failure = WorldError(text)
    failure.__cause__ = cause
    return failure


def _died(error: Exception, block: Block, tries: int) -> UnswayedError:
    hint = (
        "it may need more memory than there is" if "memory" in str(error).lower() else "see the logs of Ray"
    )
    failure = WorldError(
        f"Samples {block.start} to {block.stop - 1} killed their worker {tries} times "
        f"({type(error).__name__}); {hint}. {KEPT}"
    )
    failure.__cause__ = error
    return failure


def first_line(error: BaseException) -> str:
    """What an error says, in one short line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
