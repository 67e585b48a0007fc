"""Blocks of sample numbers as Ray tasks: the votes are the serial runner's, on however many machines.

The question (model, graph, settings) goes once into Ray's object store; each worker process fetches it once, builds its
engine once, and then answers with nothing but counts, of as much of a block as it counted in about a second. A block is a
pure function of its sample numbers, so a block whose worker died is simply asked again, and none can be counted twice: what
a task has counted is yielded when its one answer arrives, and only the rest of its block is asked for.
"""

import os
import socket
import sys
import sysconfig
import time
import uuid
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unswayed._version import __version__
from unswayed.errors import InputError, UnswayedError, WorldError
from unswayed.runners.serial import Pace, in_pieces
from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally

LOCAL = "local"
TRIES = 3  # at a client server that answers and then gives up
PULSE = 5.0  # seconds between looks at the cluster while nothing finishes
KEPT = "Every finished block is kept: with a store, the same call goes on from there."

_engines: dict[str, tuple[Engine, Pace]] = {}  # in a worker: who answers the question it is working on


@dataclass(eq=False)
class RayRunner:
    """Counts blocks on a Ray cluster; the votes are those of `SerialRunner`, bit for bit on like hardware.

    `address` is "local" (start Ray on this machine for as long as the process lives), "auto" or "host:port" (a running
    cluster that this machine belongs to), or "ray://host:port" (Ray's client). Where Ray is already initialised in this
    process, that cluster is used and never shut down. `workers` bounds how many blocks are counted at a time, by default
    as many as the cluster has room for. A block whose worker or machine dies is asked again up to `retries` times; a
    cluster without room for one task is waited for, up to `patience` seconds. `runtime_env` is handed to Ray.
    """

    address: str = LOCAL
    workers: int | None = None
    cpus_per_task: float = 1
    gpus_per_task: float = 0
    retries: int = 5
    patience: float = 600.0
    runtime_env: Mapping[str, Any] | None = None
    _mine: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"workers must be a whole number from 1 up, not {self.workers!r}.")
        if self.cpus_per_task < 0 or self.gpus_per_task < 0 or self.retries < 0:
            raise InputError("cpus_per_task, gpus_per_task and retries must not be negative.")

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tally]]:
        """Pairs of a block, or a piece of one, and what was counted for it, as they finish; one clear error if one cannot be counted."""
        if not blocks:
            return
        if question.device.startswith("cuda") and not self.gpus_per_task:
            raise InputError("On a GPU, RayRunner needs gpus_per_task (1, or a fraction to share one).")
        ray = self._connect()
        yield from _Run(ray, self, _put(ray, question)).results(blocks)

    def close(self) -> None:
        """Leave the cluster; stops it if this runner started it. Happens by itself when the process ends."""
        if self._mine:
            _import_ray().shutdown()
            self._mine = False

    def __enter__(self) -> "RayRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def slots(self, resources: Mapping[str, float]) -> int:
        """How many tasks these cluster resources can hold at a time."""
        wanted = {"CPU": self.cpus_per_task, "GPU": self.gpus_per_task}
        rooms = [int(resources.get(name, 0) // each) for name, each in wanted.items() if each > 0]
        return min(rooms, default=self.workers or 1)

    def _connect(self) -> Any:
        ray = _import_ray()
        if ray.is_initialized():
            return ray
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported home unless asked for
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address == LOCAL:
            options["include_dashboard"] = False
            if self.workers is not None:
                options["num_cpus"] = max(1, round(self.workers * self.cpus_per_task))
        if self.runtime_env is not None:
            options["runtime_env"] = dict(self.runtime_env)
        try:
            _knock(self.address)
            _init(ray, self.address, options)
        except Exception as error:  # Ray has no one class for "nobody answers"
            raise WorldError(
                f"No Ray cluster could be reached at {self.address!r} ({_first_line(error)}); "
                "check the address and that both sides run the same versions of Ray and Python."
            ) from error
        self._mine = True
        return ray


def _init(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect; Ray's client server starts a process for each caller and now and then loses it, so try more than once."""
    for left in reversed(range(TRIES)):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError:
            if not left:
                raise
            ray.shutdown()
            time.sleep(1)


class _Run:
    """One pass over some blocks: which are waiting, which are being counted."""

    def __init__(self, ray: Any, runner: RayRunner, held: Any) -> None:
        self.ray, self.runner = ray, runner
        options = {"num_cpus": runner.cpus_per_task, "num_gpus": runner.gpus_per_task, "max_retries": 0}
        self.task = ray.remote(count_block).options(**options)
        self.about = (__version__, uuid.uuid4().hex, [held], max(1, int(runner.cpus_per_task)))
        self.waiting: deque[tuple[Block, int]] = deque()
        self.asked: dict[Any, tuple[Block, int]] = {}
        self.last_room = time.monotonic()

    def results(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tally]]:
        """Every block once; before an error is raised, the blocks that are being counted are waited for and kept."""
        self.waiting.extend((block, 0) for block in blocks)
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
        room = self._room()
        while self.waiting and len(self.asked) < room:
            block, tries = self.waiting.popleft()
            self.asked[self.task.remote(*self.about, block)] = (block, tries)

    def _room(self) -> int:
        """Twice the tasks that can run, so that no worker idles; follows the cluster as machines come and go."""
        slots, now = self.runner.slots(self.ray.cluster_resources()), time.monotonic()
        if slots:
            self.last_room = now
        elif now - self.last_room > self.runner.patience:
            raise WorldError(
                f"For {self.runner.patience:.0f} seconds the Ray cluster has had no room for a task of "
                f"{self.runner.cpus_per_task:g} CPU and {self.runner.gpus_per_task:g} GPU. {KEPT}"
            )
        started_here = self.runner._mine and self.runner.address == LOCAL
        limit = self.runner.workers if self.runner.workers is not None and not started_here else 2 * slots
        return max(limit, 1)

    def _take(self) -> Generator[tuple[Block, Tally], None, UnswayedError | None]:
        """Yields the next finished block, if one finishes soon; returns a failure that asking again cannot mend."""
        done, _ = self.ray.wait(list(self.asked), num_returns=1, timeout=PULSE)
        failure: UnswayedError | None = None
        for reference in done:
            block, tries = self.asked.pop(reference)
            try:
                stop, counted = self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as error:
                failure = failure or _explain(error, block)
            except (
                self.ray.exceptions.RayError
            ) as error:  # the worker or its machine died, or ran out of memory
                if tries >= self.runner.retries:
                    failure = failure or _died(error, block, tries + 1)
                else:
                    self.waiting.appendleft((block, tries + 1))
            else:
                if stop < block.stop:
                    self.waiting.appendleft((replace(block, start=stop), 0))
                yield replace(block, stop=stop), counted
        return failure


def count_block(version: str, name: str, held: list[Any], threads: int, block: Block) -> tuple[int, Tally]:
    """What a worker does: counts of a block what takes about a second, with an engine that it builds once for each question.

    Returns the sample number that it came to, and what it counted up to there. `held` wraps the reference to the question in a list, because Ray would unpack a bare one again for every block.
    """
    if version != __version__:
        raise WorldError(
            f"The worker has unswayed {__version__} and the caller {version}; install the same version everywhere."
        )
    if name not in _engines:
        import ray
        import torch

        torch.set_num_threads(threads)
        _engines.clear()
        engine = choose(ray.get(held[0]))
        _engines[name] = (engine, Pace.of(engine))
    engine, pace = _engines[name]
    done, counted = next(in_pieces(engine, block, pace, _asked))
    return done.stop, counted


def _asked(engine: Engine, block: Block) -> Any:
    return engine.ask(block.start, block.stop, block.targets)


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise InputError(
            "RayRunner needs Ray, which is not installed: pip install 'unswayed[ray]'."
        ) from error
    return ray


def _knock(address: str) -> None:
    """Fail at once where nobody listens; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _put(ray: Any, question: Question) -> Any:
    """The question in the object store; classes from the caller's own files travel by value, not by import."""
    modules = [sys.modules[name] for name in _home_made()]
    for module in modules:
        ray.cloudpickle.register_pickle_by_value(module)
    try:
        return ray.put(question)
    except (TypeError, AttributeError, ValueError, ImportError) as error:  # what pickling raises
        raise InputError(
            f"The classifier cannot be sent to workers ({_first_line(error)}); what it imports must be installed there."
        ) from error
    finally:
        for module in modules:
            ray.cloudpickle.unregister_pickle_by_value(module)


def _home_made() -> list[str]:
    """Top-level modules loaded from neither the standard library nor an installed package: workers may lack them."""
    library = sysconfig.get_path("stdlib")
    names = {name.partition(".")[0] for name in sys.modules} - {"__main__", "unswayed"}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    return [
        name
        for name, file in files.items()
        if file is not None
        and not file.startswith(library)
        and not {"site-packages", "dist-packages"} & set(Path(file).parts)
    ]


def _explain(error: Any, block: Block) -> UnswayedError:
    """The error of a task that raised: ours as it is, anything else in one sentence."""
    cause = error.cause if isinstance(error.cause, Exception) else error
    if isinstance(cause, UnswayedError):
        return cause
    where = f"Samples {block.start} to {block.stop - 1} could not be counted"
    said = f"{type(cause).__name__}: {_first_line(cause)}"
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


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
