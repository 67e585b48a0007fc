"""One block after another, in this process; on a card as many at once as it takes to keep it busy."""

from collections.abc import Iterator, Sequence

import torch

from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally, tally

# Votes that a card is asked for at a time: a second or two, so that little is lost when it is stopped.
AT_ONCE = 2**24


class SerialRunner:
    """Counts the blocks in the order given, in this process; asked again about the same question, it goes on at once.

    `engine` is one that was chosen and checked before, for the one question that it was moved to.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self._last: tuple[Question, Engine] | None = None if engine is None else (engine.question, engine)

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tally]]:
        """Pairs of a block and what was counted for it, in the order given."""
        if not blocks:
            return
        if self._last is None or self._last[0] is not question:
            self._last = (question, choose(question))
        engine = self._last[1]
        room = AT_ONCE if torch.device(question.device).type == "cuda" else 0
        for group in _adjacent(blocks, room // max(1, len(question.threat))):
            yield from _counted(question, engine, group)


def _counted(question: Question, engine: Engine, group: list[Block]) -> Iterator[tuple[Block, Tally]]:
    """The blocks of a group with what was counted, from a single question for all of them."""
    first, last = group[0], group[-1]
    labels = engine.labels(first.start, last.stop, first.targets)
    for block in group:
        part = labels[block.start - first.start : block.stop - first.start]
        yield block, tally(question, engine, block, part)


def _adjacent(blocks: Sequence[Block], samples: int) -> Iterator[list[Block]]:
    """The blocks in order, those that follow each other for the same targets together, up to so many samples."""
    group: list[Block] = []
    for block in blocks:
        fits = group and (block.start, block.targets) == (group[-1].stop, group[-1].targets)
        if group and not (fits and block.stop - group[0].start <= samples):
            yield group
            group = []
        group.append(block)
    if group:
        yield group
