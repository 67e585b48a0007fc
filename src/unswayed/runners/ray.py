"""RayRunner: where the cluster is, how much of it is used, and what is sent there.

The votes are the serial runner's, on however many machines. `ray_blocks` hands out blocks of sample numbers, `ray_sizes` the targets of
a proof; what all tasks need goes once into Ray's object store, and each worker process fetches it once.
"""

import hashlib
import os
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError, WorldError
from unswayed.runners.ray_blocks import KEPT, Run, first_line
from unswayed.runners.ray_sizes import sizes_by_parts
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally
from unswayed.theory.electorate import Electorate

LOCAL = "local"
TRIES = 3  # at a client server that answers and then gives up


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
        yield from Run(ray, self, *_put(ray, question)).results(blocks)

    def sizes(self, people: Electorate, change: str = "any") -> npt.NDArray[np.int64]:
        """The sizes of an electorate, some of its targets in each task: equal to its own."""
        return sizes_by_parts(self._connect(), self, people, change)

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

    def room(self, slots: int) -> int:
        """How many tasks may be handed out: twice those that can run, so that no worker idles, unless fewer are allowed to run."""
        bound = self.workers if not (self._mine and self.address == LOCAL) else None
        return max(1, bound if bound is not None and bound < slots else 2 * slots)

    def awaited(self, slots: int, since: float) -> bool:
        """Whether the cluster has room for a task; an error once it has had none since long ago."""
        if not slots and time.monotonic() - since > self.patience:
            raise WorldError(
                f"For {self.patience:.0f} seconds the Ray cluster has had no room for a task of "
                f"{self.cpus_per_task:g} CPU and {self.gpus_per_task:g} GPU. {KEPT}"
            )
        return slots > 0

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
                f"No Ray cluster could be reached at {self.address!r} ({first_line(error)}); "
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


def _put(ray: Any, question: Question) -> tuple[str, Any]:
    """The question in the object store, and a name that it shares with equal ones alone.

    Classes from the caller's own files travel by value, not by import.
    """
    modules = [sys.modules[name] for name in _home_made()]
    for module in modules:
        ray.cloudpickle.register_pickle_by_value(module)
    try:
        written = ray.cloudpickle.dumps(question)
    except (TypeError, AttributeError, ValueError, ImportError) as error:  # what pickling raises
        raise InputError(
            f"The classifier cannot be sent to workers ({first_line(error)}); what it imports must be installed there."
        ) from error
    finally:
        for module in modules:
            ray.cloudpickle.unregister_pickle_by_value(module)
    return hashlib.sha256(written).hexdigest(), ray.put(np.frombuffer(written, np.uint8))


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
