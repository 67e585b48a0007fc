"""The sizes of a proof as Ray tasks: the caller adds up who says what to whom, once, and each task takes some of the targets.

What all targets share, the roll of ballots, goes once into Ray's object store, and each worker keeps it with the lists that it has
sorted. Targets go by label, because a list belongs to a label and a rival: so the sorting is shared out as well. The rest of a target
goes to the one task that it is part of, in numbers no wider than they are.
"""

import time
import uuid
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed._version import __version__
from unswayed.errors import WorldError
from unswayed.runners.ray_blocks import PULSE, check_version, first_line
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll

IntArray = npt.NDArray[np.int64]

NARROW = (np.int8, np.int16, np.int32)
PARTS = 4  # tasks for each that can run at a time: little is lost with one, and the last ones are short

_rolls: dict[str, Roll] = {}  # in a worker: whom the targets of the proof it is working on hear


def sizes_by_parts(ray: Any, runner: Any, people: Electorate, change: str) -> IntArray:
    """The sizes of all targets; a task whose worker died is asked again, as often as the runner allows."""
    options = {
        "num_cpus": runner.cpus_per_task,
        "num_gpus": runner.gpus_per_task,
        "max_retries": runner.retries,
    }
    task = ray.remote(sizes_of_part).options(**options)
    held, name = ray.put((people.roll.ballots, people.roll.voters)), uuid.uuid4().hex
    parts = _by_label(people, PARTS * _slots(ray, runner))
    asked = [task.remote(__version__, name, [held], _alone(people.take(part)), change) for part in parts]
    sizes = np.zeros(len(people), dtype=np.int64)
    try:
        for part, found in zip(parts, ray.get(asked), strict=True):
            sizes[part] = found
    except ray.exceptions.RayError as error:
        raise WorldError(
            f"A part of the proof could not be made on the cluster ({first_line(error)}); prove without a runner, or on other machines."
        ) from error
    return sizes


def _slots(ray: Any, runner: Any) -> int:
    """How many tasks can run at a time, once there is room for one."""
    since = time.monotonic()
    while not runner.awaited(slots := runner.slots(ray.cluster_resources()), since):
        time.sleep(min(PULSE, runner.patience))
    return int(min(slots, runner.workers or slots))


def _by_label(people: Electorate, parts: int) -> list[IntArray]:
    """The positions of the targets, those of one label together, in so many parts of equal length."""
    order = np.argsort(people.label, kind="stable")
    return [part for part in np.array_split(order, parts) if len(part)]


def _alone(people: Electorate) -> dict[str, npt.NDArray[Any]]:
    """Everything about these targets but the roll."""
    names = ("own", "base", "start", "row", "voter", "itself", "entries")
    return {name: _narrow(getattr(people, name)) for name in names}


def _narrow(values: IntArray) -> npt.NDArray[Any]:
    """The same numbers in as few bits as hold them all."""
    low, high = values.min(initial=0), values.max(initial=0)
    fits = [kind for kind in NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max]
    return values.astype(fits[0]) if fits else values


def sizes_of_part(
    version: str, name: str, held: list[Any], part: dict[str, npt.NDArray[Any]], change: str
) -> IntArray:
    """What a worker does: the sizes of some targets, with a roll that it fetches once for each proof."""
    check_version(version)
    if name not in _rolls:
        import ray

        _rolls.clear()
        _rolls[name] = Roll(*ray.get(held[0]))
    wide: dict[str, Any] = {key: value.astype(np.int64) for key, value in part.items()}
    return Electorate(roll=_rolls[name], **wide).sizes(change)
