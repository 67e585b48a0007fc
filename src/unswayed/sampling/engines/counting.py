"""What every engine has in common: it says which label each sample gave each target, and votes are counts of those."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from torch import Tensor

from unswayed.sampling.question import Question
from unswayed.sampling.structures import count_labels
from unswayed.sampling.threads import Threads

IntArray = npt.NDArray[np.int64]


class Counting:
    """Counts exactly the labels that the engine hands out, so that what is audited is what was counted."""

    name: ClassVar[str]
    question: Question
    classes: int
    why: str = ""  # what keeps a faster engine from this question, in words
    tick: Callable[[int], None] = staticmethod(lambda answers: None)  # told of answers as they come

    @property
    def threads(self) -> str:
        """How many threads it works with, and of how many, in words."""
        return self.pick.words

    @cached_property
    def pick(self) -> Threads:
        """Chooses the number of threads, for this engine and all that it is moved to."""
        return Threads(self.question.device)

    def ask(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """The labels, by as many threads as were fastest so far."""
        many = len(self.question.threat) if targets is None else len(targets)
        return self.pick.run(max(1, (stop - start) * many), lambda: self.labels(start, stop, targets))

    @property
    def rate(self) -> float | None:
        """About how many samples of all targets a second, where that is known before it is asked."""
        return None

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the label of each sample for the targets at these positions; -1 is no answer."""
        raise NotImplementedError

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: votes of samples start .. stop - 1 for the targets at these positions."""
        if targets is not None and not targets:
            return np.zeros((0, self.classes), np.int64)
        counts: Any = count_labels(self.labels(start, stop, targets), self.classes)
        return counts  # type: ignore[no-any-return]

    def moved(self, question: Question) -> Self:
        """The same engine for other targets, samples or seeds of the same model, graph and noise; nothing is checked again."""
        _ = self.pick  # made here at the latest, so that both have the same one
        other = copy.copy(self)
        other.question = replace(question, model=self.question.model)
        other._settle()
        return other

    def _settle(self) -> None:
        """Compute anew what depends on the targets."""
        raise NotImplementedError
