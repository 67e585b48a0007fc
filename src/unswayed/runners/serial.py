"""One block after another, in this process."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from unswayed.sampling.engines import choose
from unswayed.sampling.question import Block, Question


class SerialRunner:
    """Counts the blocks in the order given, in this process."""

    def run(
        self, question: Question, blocks: Sequence[Block]
    ) -> Iterator[tuple[Block, npt.NDArray[np.int64]]]:
        """Pairs of a block and its counts, in the order given."""
        if not blocks:
            return
        engine = choose(question)
        for block in blocks:
            yield block, engine.count(block.start, block.stop, block.targets)
