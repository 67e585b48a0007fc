"""What engines have in common: they say which label each sample gave each target, and votes are counts of those."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.cards import philox
from unswayed.sampling.engines.machine.cores import full_precision
from unswayed.sampling.engines.machine.room import within_memory
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.question import Question
from unswayed.sampling.structures import count_labels
from unswayed.sampling.threads import Threads
from unswayed.theory.noise import Noise

IntArray = npt.NDArray[np.int64]
# samples, places of targets among those asked about, and what was read of their logits
Said = tuple[range, slice | list[int], Tensor]
Read = Callable[[Tensor], Tensor]  # of logits [samples, targets, classes]: labels, or the logits themselves


class Elsewhere(str):
    """An obstacle that says only that the engine is for other threats or noises: nothing that another model would change."""


class Engine:
    """Labels samples; equal sample numbers get equal labels, whatever was asked before.

    It counts exactly the labels that it hands out, so that what is audited is what was counted.
    """

    name: str
    question: Question
    device: torch.device
    classifier: Classifier
    classes: int
    why: str = ""  # what keeps a faster engine from this question, in words
    tick: Callable[[int], None] = staticmethod(lambda answers: None)  # told of answers as they come

    def __init__(self, question: Question) -> None:
        self.question, self.device = question, torch.device(question.device)
        self.classifier = classifier_of(question)

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if this engine is exact for the question, otherwise the obstacle in words."""
        return None

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
        """About how many samples of all targets a second, where that is known: by what it, or one it was moved from, took last."""
        cost = self.pick.cost
        return None if cost is None else 1 / (max(cost, 1e-12) * len(self.question.threat))

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the label of each sample for the targets at these positions; -1 is no answer."""
        raise NotImplementedError

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that the votes are read from (labels: without the last dimension).

        `noise` is drawn instead of the question's own, to try the engine on other structures.
        """
        raise NotImplementedError

    def count(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> IntArray:
        """int64[targets, classes]: how often each label was given; samples without an answer are counted nowhere."""
        if targets is not None and not targets:
            return np.zeros((0, self.classes), np.int64)
        counts: Any = count_labels(self.labels(start, stop, targets), self.classes)
        return counts  # type: ignore[no-any-return]

    def fits(self, question: Question) -> bool:
        """Whether it may be moved to this question, whose targets may bring features of their own that nobody has looked at."""
        return True

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

    def _asked(self, targets: tuple[int, ...] | None) -> tuple[int, ...]:
        """The positions of these targets: all of them if none are named."""
        return tuple(range(len(self.question.threat))) if targets is None else tuple(targets)


class FastEngine(Engine):
    """An engine for some questions only: it knows the module's plan, and never runs the module itself.

    Its votes are the generic engine's, but for logits that tie within rounding.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        if self.device.type == "cuda":
            philox.register()
        self.kind = precision(question)
        with self.asking():
            self._settle()
            self.classes = self._count_classes()

    def _count_classes(self) -> int:
        return self.answers(0, 1, (0,)).shape[-1]

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = self._asked(targets)

        def ask() -> Tensor:
            # what nobody answers is no answer
            said = torch.full((stop - start, len(asked)), -1, device=self.device)
            with self.asking():
                for span, places, labels in self._said(start, stop, asked, self.classifier.votes):
                    said[span.start - start : span.stop - start, places] = labels
                    self.tick(labels.numel())
            return said

        return within_memory(self.device, ask, self._forget)

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        said = torch.empty(0)
        with self.asking():
            for span, places, logits in self._said(start, stop, targets, lambda logits: logits, noise):
                if not said.numel():
                    said = logits.new_empty((stop - start, len(targets), logits.shape[-1]))
                said[span.start - start : span.stop - start, places] = logits
        return said

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        """What is read of the logits of these samples and targets, part by part, as much at a time as there is room for."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Free what can be made again."""

    @staticmethod
    def plan_of(model: nn.Module) -> Steps:
        """The module's plan as this engine needs it; otherwise Unsupported."""
        raise NotImplementedError

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """What but the module keeps the engine from the question, in words."""
        raise NotImplementedError

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if this engine is exact for the question, otherwise the obstacle in words."""
        if not isinstance(question.model, nn.Module):
            return cls.unsuited(question) or "the classifier is not a torch module"
        try:
            if (obstacle := cls.unsuited(question)) is None:
                cls.plan_of(question.model)
        except Unsupported as unknown:
            return str(unknown)
        return obstacle

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While it lasts, the module is in evaluation mode, and products are exact to their precision, without gradients."""
        with self.classifier.evaluation(), torch.no_grad(), full_precision():
            yield


def classifier_of(question: Question) -> Classifier:
    """The question's classifier on its device."""
    return Classifier(question.model, question.threat, question.classes, question.device, question.dtype)


def precision(question: Question) -> torch.dtype:
    """What the module reckons in."""
    parameters = question.model.parameters() if isinstance(question.model, nn.Module) else ()
    return question.dtype or next((p.dtype for p in parameters), torch.float32)


def spans(start: int, stop: int, most: float) -> Iterator[range]:
    """The samples in runs of at most so many that begin at multiples of four: a stream draws four at a time."""
    step = max(4, int(most) // 4 * 4)
    edges = [start, *range(start // 4 * 4 + step, stop, step), stop]
    return (range(low, high) for low, high in pairwise(edges) if low < high)
