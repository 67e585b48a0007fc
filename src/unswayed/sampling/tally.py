"""Tally: what a worker hands back for a block: the counts, some of the answers that were counted, and notes."""

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed._version import __version__
from unswayed.notes import Audit, Heard
from unswayed.sampling.question import Block, Question
from unswayed.sampling.structures import count_labels

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts int64[targets, classes] of one block, answers drawn at random from those counted, and what counted them."""

    counts: IntArray
    audit: Audit = field(default_factory=Audit)
    notes: Mapping[str, Any] = field(default_factory=dict)


def tally(question: Question, engine: Any, block: Block, labels: Tensor) -> Tally:
    """Count the labels int64[samples, targets] of this block and keep the answers that may be asked again."""
    counts = count_labels(labels, engine.classes)
    return Tally(counts, heard(question, block, labels), about(question, engine))


def heard(question: Question, block: Block, labels: Tensor) -> Audit:
    """The block's answers with the lowest of as many random priorities as it has answers; pure in seed and block.

    The lowest of n exponential variables, one after another, lie as far apart as exponentials divided by n, n - 1, …
    """
    answers = labels.numel()
    if not question.audit:
        return Audit(uncovered=answers)
    rng = np.random.default_rng([question.stream.seed, block.start, block.stop])
    number = min(question.audit, answers)
    priority = np.cumsum(rng.exponential(size=number) / (answers - np.arange(number)))
    row, column = np.divmod(rng.choice(answers, number, replace=False), labels.shape[1])
    said = labels[torch.from_numpy(row).to(labels.device), torch.from_numpy(column).to(labels.device)]
    targets = column if block.targets is None else np.asarray(block.targets)[column]
    rows = zip(priority.tolist(), (row + block.start).tolist(), targets.tolist(), said.tolist(), strict=True)
    return Audit(question.audit, covered=answers, heard=tuple(Heard(*each) for each in rows))


def about(question: Question, engine: Any) -> dict[str, Any]:
    """What counted: engine, what keeps a faster one away, device, number type and versions of libraries."""
    why = {"why": engine.why} if engine.why else {}
    return {
        "engine": engine.name,
        **why,
        "device": question.device,
        "threads": engine.threads,
        "dtype": str(question.dtype or _dtype(question.model)).removeprefix("torch."),
        "versions": dict(_versions()),
    }


def _dtype(model: Any) -> str:
    parameters = getattr(model, "parameters", None)
    floats = (p.dtype for p in parameters() if p.is_floating_point()) if callable(parameters) else iter(())
    return str(next(floats, "unknown"))


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    names = ("torch", "torch_geometric", "numpy")
    found = [(name, importlib.metadata.version(name)) for name in names]
    return (("unswayed", __version__), *found)
