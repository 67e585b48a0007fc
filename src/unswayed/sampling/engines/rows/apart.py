"""Rows of graphs that differ: each target has a row engine of its own."""

from dataclasses import replace
from math import inf

import torch
from torch import Tensor

from unswayed.sampling.engines.engine import Elsewhere, Engine, FastEngine
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.engines.rows.few import FewEngine
from unswayed.sampling.engines.rows.kept import KeptEngine
from unswayed.sampling.question import Question
from unswayed.theory.noise import Noise

# the fastest that knows a row
KINDS: tuple[type[FastEngine], ...] = (FewEngine, KeptEngine, RowEngine, PlanEngine)


class RowsApartEngine(Engine):
    """For nodes that each arrive alone."""

    name = "row"

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if the row engine is exact for each target, otherwise the obstacle in words."""
        if question.threat.rows_apart() is None:
            return Elsewhere("no target arrives alone")
        loudest = _alone(question, int(_loudness(question).argmax()))
        obstacles = [kind.supports(loudest) for kind in KINDS]
        return None if None in obstacles else obstacles[-1]

    def __init__(self, question: Question) -> None:
        self.question, loud = question, _loudness(question)
        loudest, self.loud = _alone(question, int(loud.argmax())), float(loud.max())
        self.engine = next(kind(loudest) for kind in KINDS if kind.supports(loudest) is None)
        self.classes, self.name = self.engine.classes, self.engine.name
        self._settle()

    def fits(self, question: Question) -> bool:
        """Whether nobody who arrives has larger features than were found to keep this engine exact, or such as keep it so."""
        loud = _loudness(question)
        most, place = float(loud.max()), int(loud.argmax())
        if self.loud < most < inf and type(self.engine).unsuited(_alone(question, place)) is None:
            self.loud = most
        return most <= self.loud  # not where it is no number

    def _settle(self) -> None:
        self.last: int | None = None  # the target whose graph the engine holds

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        said = [self._of(target).labels(start, stop) for target in self._asked(targets)]
        return torch.cat(said, dim=1)

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        parts = [self._of(target).answers(start, stop, (0,), noise) for target in targets]
        return torch.cat(parts, dim=1)

    def _of(self, target: int) -> FastEngine:
        if self.last != target:
            self.engine, self.last = self.engine.moved(_alone(self.question, target)), target
        return self.engine


def _loudness(question: Question) -> Tensor:
    """float[targets]: the largest feature of each. An engine that those of the loudest do not keep away is exact for all."""
    x = getattr(question.threat, "x", None)
    return (
        torch.zeros(len(question.threat))
        if x is None or not x.numel()
        else x.abs().flatten(1).amax(1).float()
    )


def _alone(question: Question, target: int) -> Question:
    alone = question.threat.rows_apart()
    assert alone is not None
    return replace(question, threat=alone[target])
