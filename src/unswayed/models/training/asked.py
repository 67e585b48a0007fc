"""What training asks of its arguments, before anything is learnt."""

from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from unswayed.datasets import Dataset, Split
from unswayed.datasets.own import check_parts
from unswayed.errors import InputError
from unswayed.models.training.view import PROTOCOLS
from unswayed.sampling.beforehand import check_device

Settings = TypeVar("Settings")


def check_asked(
    dataset: Dataset, split: Split, *, protocol: str, seed: int, device: str, teacher: Tensor | None
) -> None:
    """Refuse what could only end in an error of torch, or would be ignored."""
    check_parts(dataset, split)
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed must be a whole number, not {seed!r}.")
    check_device(device)
    if teacher is not None:
        _check_teacher(dataset, split, protocol, teacher)


def _check_teacher(dataset: Dataset, split: Split, protocol: str, teacher: Any) -> None:
    """Soft labels are a row for each node that training may see."""
    rows = len(dataset.labels) - (len(split.test) if protocol == "inductive" else 0)
    if isinstance(teacher, Tensor) and teacher.shape == (rows, dataset.num_classes):
        if bool(teacher.isfinite().all()):
            return
        raise InputError("The teacher's soft labels hold numbers that are NaN or infinite.")
    told = tuple(teacher.shape) if isinstance(teacher, Tensor) else type(teacher).__name__
    raise InputError(
        f"teacher must be a tensor of soft labels, a row for each of the {rows} nodes that training may see and a column for each of "
        f"the {dataset.num_classes} classes, not {told}."
    )


def settled(settings: Settings | None, kind: type[Settings]) -> Settings:
    """The settings, or the usual ones; refused if they are another recipe's (an empty dictionary would be ignored)."""
    if settings is not None and not isinstance(settings, kind):
        raise InputError(
            f"settings must be {kind.__module__}.{kind.__name__} here, not {type(settings).__name__}."
        )
    return kind() if settings is None else settings
