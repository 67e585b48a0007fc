"""Runners: where blocks of sample numbers are counted. The runner never changes a vote."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from unswayed.runners.serial import SerialRunner
from unswayed.runners.several import SeveralRunner
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally

__all__ = ["Block", "Runner", "SerialRunner", "SeveralRunner", "Tally"]


class Runner(Protocol):
    """Counts each block once, whole or in pieces, in any order, and yields what it counted as soon as it has it."""

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tally]]:
        """Pairs of a block, or a piece of one, and what was counted for it."""
        ...
