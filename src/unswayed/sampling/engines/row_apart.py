"""Rows of graphs that differ: each target has a row engine of its own."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from unswayed.sampling.engines.counting import Counting
from unswayed.sampling.engines.row_engine import RowEngine
from unswayed.sampling.question import Question
from unswayed.theory.noise import Noise


class RowsApartEngine(Counting):
    """Gives the generic engine's votes, but for logits that tie within rounding, for nodes that each arrive alone."""

    name: ClassVar[str] = "row"

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if the row engine is exact for each target, otherwise the obstacle in words."""
        alone = question.threat.rows_apart()
        return (
            "no target arrives alone"
            if alone is None
            else RowEngine.supports(replace(question, threat=alone[0]))
        )

    def __init__(self, question: Question) -> None:
        self.question = question
        self.engine = RowEngine(self._alone(0))
        self.classes = self.engine.classes
        self._settle()

    def _settle(self) -> None:
        self.last: int | None = None  # the target whose graph the engine holds

    def labels(self, start: int, stop: int, targets: tuple[int, ...] | None = None) -> Tensor:
        """int64[samples, targets]: the votes themselves; -1 is no answer."""
        asked = range(len(self.question.threat)) if targets is None else targets
        return torch.cat([self._of(target).labels(start, stop) for target in asked], dim=1)

    def answers(self, start: int, stop: int, targets: tuple[int, ...], noise: Noise | None = None) -> Tensor:
        """[samples, targets, classes]: the logits that votes are read from."""
        parts = [self._of(target).answers(start, stop, (0,), noise) for target in targets]
        return torch.cat(parts, dim=1)

    def _of(self, target: int) -> RowEngine:
        if self.last != target:
            self.engine, self.last = self.engine.moved(self._alone(target)), target
        return self.engine

    def _alone(self, target: int) -> Question:
        alone = self.question.threat.rows_apart()
        assert alone is not None
        return replace(self.question, threat=alone[target])
