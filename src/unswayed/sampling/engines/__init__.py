"""Engines: ways of asking the classifier. All give the same votes, but for logits that tie within rounding."""

import warnings
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from torch import Tensor

from unswayed.errors import Unsupported
from unswayed.sampling.engines.cores import full_precision
from unswayed.sampling.question import Question
from unswayed.sampling.soundness import differs
from unswayed.sampling.structures import count_labels
from unswayed.sampling.threat import Threat

if TYPE_CHECKING:
    from unswayed.sampling.engines.generic import GenericEngine

IntArray = npt.NDArray[np.int64]


class Engine(Protocol):
    """Counts votes; equal sample numbers give equal counts, whatever was asked before."""

    name: ClassVar[str]
    classes: int

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of these sample numbers; samples without an answer are counted nowhere."""
        ...

    def answers(self, start: int, stop: int, targets: tuple[int, ...]) -> Tensor:
        """[samples, targets, classes]: the logits that the votes are read from (labels: without the last dimension)."""
        ...


@runtime_checkable
class Labelling(Protocol):
    """An engine that can say which sample voted for what, so that many blocks of samples are asked at once."""

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        ...


class FastEngine(Engine, Protocol):
    """An engine for some questions only."""

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if this engine is exact for the question, otherwise the obstacle in words."""
        ...

    def __init__(self, question: Question) -> None: ...


FAST: list[type[FastEngine]] = []  # tried in this order
PROBE_SAMPLES = 4  # what a fast engine must agree on with the generic one before it is trusted


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
            obstacle = "its answers to a probe batch differ from the generic engine's"
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


def _agrees(engine: Engine, generic: "GenericEngine", question: Question) -> bool:
    """Whether both engines give equal logits, but for rounding, and equal votes on a few samples of unlike targets.

    Votes alone would say little: where nearly all go to one class, a wrong engine has them right.
    """
    targets = _unlike(question.threat)
    with full_precision():
        theirs = generic.answers(0, PROBE_SAMPLES, targets)
    votes = count_labels(generic.classifier.votes(theirs), generic.classes)
    ours = engine.answers(0, PROBE_SAMPLES, targets)
    same = ours.shape == theirs.shape and not differs(theirs, ours)
    return same and bool(np.array_equal(engine.count(0, PROBE_SAMPLES, targets), votes))


def _unlike(threat: Threat) -> tuple[int, ...]:
    """Positions of the first, middle and last target and of those with the fewest and the most ones."""
    last, ones = len(threat) - 1, threat.ones
    return tuple(sorted({0, last // 2, last, int(ones.argmin()), int(ones.argmax())}))
