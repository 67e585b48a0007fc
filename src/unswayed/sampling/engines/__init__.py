"""Engines: ways of asking the classifier. All give the same votes, but for logits that tie within rounding."""

import warnings
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from unswayed.errors import Unsupported
from unswayed.sampling.question import Question

IntArray = npt.NDArray[np.int64]


class Engine(Protocol):
    """Counts votes; equal sample numbers give equal counts, whatever was asked before."""

    name: ClassVar[str]
    classes: int

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of these sample numbers; samples without an answer are counted nowhere."""
        ...


class FastEngine(Engine, Protocol):
    """An engine for some questions only."""

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if this engine is exact for the question, otherwise the obstacle in words."""
        ...

    def __init__(self, question: Question) -> None: ...


FAST: list[type[FastEngine]] = []  # tried in this order
PROBE_SAMPLES = 8  # what a fast engine must agree on with the generic one before it is trusted
PROBE_TARGETS = 4


def choose(question: Question) -> Engine:
    """The fastest engine that is exact for the question and agreed with the generic one on a small batch."""
    from unswayed.sampling.engines.generic import GenericEngine

    generic = GenericEngine(question)  # also refuses unsound classifiers, whichever engine runs in the end
    if question.engine == "generic":
        return generic
    obstacles = []
    for candidate in _fast_engines():
        if (obstacle := candidate.supports(question)) is None:
            engine = candidate(question)
            if _agrees(engine, generic, question):
                return engine
            obstacle = "its votes on a probe batch differ from the generic engine's"
            if question.engine == "auto":
                warnings.warn(f"The {candidate.name} engine is not used: {obstacle}.", stacklevel=3)
        obstacles.append(f"{candidate.name}: {obstacle}")
    if question.engine == "fast":
        reasons = "; ".join(obstacles) or "there is no fast engine for this threat"
        raise Unsupported(f"No fast engine is exact for this classifier ({reasons}); use engine='generic'.")
    return generic


def _fast_engines() -> list[type[FastEngine]]:
    """The registered fast engines; imported here, because each of them imports this module."""
    from unswayed.sampling.engines.dense import DenseEngine
    from unswayed.sampling.engines.row_engine import RowEngine
    from unswayed.sampling.engines.whole import WholeGraphEngine

    return [*FAST, RowEngine, DenseEngine, WholeGraphEngine]


def _agrees(engine: Engine, generic: Engine, question: Question) -> bool:
    """Whether both engines give equal votes on a few samples of a few targets."""
    targets = tuple(range(min(PROBE_TARGETS, len(question.threat))))
    theirs = generic.count(0, PROBE_SAMPLES, targets)
    return bool(np.array_equal(engine.count(0, PROBE_SAMPLES, targets), theirs))
