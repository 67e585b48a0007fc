"""Runners: where blocks of sample numbers are counted. The runner never changes a vote."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unswayed.runners.serial import SerialRunner
from unswayed.sampling.question import Block, Question

IntArray = npt.NDArray[np.int64]

__all__ = ["Block", "Runner", "SerialRunner"]


class Runner(Protocol):
    """Counts each block once, in any order, and yields what it counted as soon as it has it."""

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[tuple[Block, IntArray]]:
        """Pairs of a block and its int64[targets, classes] counts."""
        ...
