"""One block after another, in this process."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question


class SerialRunner:
    """Counts the blocks in the order given, in this process; asked again about the same question, it goes on at once."""

    def __init__(self) -> None:
        self._last: tuple[Question, Engine] | None = None

    def run(
        self, question: Question, blocks: Sequence[Block]
    ) -> Iterator[tuple[Block, npt.NDArray[np.int64]]]:
        """Pairs of a block and its counts, in the order given."""
        if not blocks:
            return
        if self._last is None or self._last[0] is not question:
            self._last = (question, choose(question))
        engine = self._last[1]
        for block in blocks:
            yield block, engine.count(block.start, block.stop, block.targets)
