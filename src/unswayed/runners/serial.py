"""One block after another, in this process: in pieces of about a second, on a card as many at once as keep it busy."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import Tally, tally

# Votes that a card is asked for at a time: a second or two, so that little is lost when it is stopped.
AT_ONCE = 2**24
WANTED = 1.0  # seconds that a piece of a block should take
UNKNOWN = 32.0  # samples a second that an engine is reckoned to make before it was asked: few, since this many are asked at first
GROWTH = 32  # times as many samples, at most, from one piece to the next
PAYS, MORE = 1.5, 8  # times less for a sample: a piece of so many times as many is worth its wait
LONG = 1.0  # seconds: no larger piece is tried after a first one that took this long


class SerialRunner:
    """Counts the blocks in the order given, in this process; asked again about the same question, it goes on at once.

    `engine` is one that was chosen and checked before, for the one question that it was moved to. `watch` is told of answers as
    they come, `meet` of the engine before it is asked.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self._last: tuple[Question, Engine] | None = None if engine is None else (engine.question, engine)
        self.watch: Callable[[int], None] = lambda answers: None
        self.meet: Callable[[Engine], None] = lambda engine: None

    def run(self, question: Question, blocks: Sequence[Block]) -> Iterator[tuple[Block, Tally]]:
        """Pairs of a block and what was counted for it, in the order given; a block may come in pieces."""
        if not blocks:
            return
        if self._last is None or self._last[0] is not question:
            self._last = (question, choose(question))
        engine = self._last[1]
        self.meet(engine)
        room = AT_ONCE if torch.device(question.device).type == "cuda" else 0
        pace = Pace.of(engine)
        for group in adjacent(blocks, room // max(1, len(question.threat))):
            if pace.cuts(group):
                for block in group:
                    yield from in_pieces(engine, block, pace, self._asked)
            else:
                yield from self._counted(question, engine, group)

    def rest(self) -> None:
        """Let the engine go, with all the memory it holds."""
        self._last = None

    def _counted(
        self, question: Question, engine: Engine, group: list[Block]
    ) -> Iterator[tuple[Block, Tally]]:
        """The blocks of a group with what was counted, from a single question for all of them."""
        first, begin = group[0], time.perf_counter()
        labels = self._asked(engine, Block(first.start, group[-1].stop, first.targets))
        took = time.perf_counter() - begin
        for block in group:
            part = labels[block.start - first.start : block.stop - first.start]
            yield block, timed(tally(question, engine, block, part), part.numel(), took / len(group))

    def _asked(self, engine: Engine, block: Block) -> Tensor:
        """The labels of a block; whoever watches is told of them as they come."""
        told = 0

        def tick(answers: int) -> None:
            nonlocal told
            told += answers
            self.watch(answers)

        engine.tick = tick
        try:
            labels = engine.ask(block.start, block.stop, block.targets)
        finally:
            # an engine that knew its runner would be freed, with all it holds, only some time later
            engine.tick = Engine.tick
        if told < labels.numel():  # not every engine tells of its answers as they come
            self.watch(labels.numel() - told)
        return labels


def in_pieces(
    engine: Engine, block: Block, pace: "Pace", ask: Callable[[Engine, Block], Tensor]
) -> Iterator[tuple[Block, Tally]]:
    """What was counted of a block about once a second; what takes less is whole, and then the same in every run."""
    held: list[Tensor] = []
    at, since = block.start, time.perf_counter()
    for piece in pace.pieces(block):
        begin = time.perf_counter()
        held.append(ask(engine, piece))
        now = time.perf_counter()
        pace.took(piece.stop - piece.start, now - begin)
        if piece.stop == block.stop or now - since >= WANTED:
            done, labels = replace(block, start=at, stop=piece.stop), torch.cat(held)
            yield done, timed(tally(engine.question, engine, done, labels), labels.numel(), now - since)
            held, at, since = [], piece.stop, time.perf_counter()


def timed(counted: Tally, answers: int, seconds: float) -> Tally:
    """What was counted, with a note of how long it took."""
    return replace(counted, notes={**counted.notes, "spent": {"answers": answers, "seconds": seconds}})


class Pace:
    """How many samples to ask for at a time: as many as take about a second; without a rate, whole blocks."""

    def __init__(self, rate: float | None, guessed: bool = False) -> None:
        self.guessed = guessed  # so that a first piece which took little says little
        self.samples = None if rate is None else max(1, int(WANTED * rate))
        self.least: tuple[float, int] | None = None  # seconds a sample, in a piece of so many samples
        self.fewest = 1  # samples in a piece: with fewer, one costs much more

    @classmethod
    def of(cls, engine: Engine) -> "Pace":
        """For this engine; a card is never asked for less than a block."""
        card = torch.device(engine.question.device).type == "cuda"
        return cls(None if card else engine.rate or UNKNOWN, guessed=engine.rate is None)

    def took(self, samples: int, seconds: float) -> None:
        """Learn from a piece; where a call costs much whatever is asked in it, pieces grow for as long as that pays."""
        if self.samples is None:
            return
        cost = max(seconds, 1e-9) / samples
        pays = cost < self.least[0] / PAYS if self.least else self.guessed and seconds < LONG
        if self.least and samples < self.least[1] and cost > PAYS * self.least[0]:
            self.fewest = 2 * self.least[1]
        self.least = min(self.least or (cost, samples), (cost, samples))
        wanted = max(WANTED / cost, MORE * samples if pays else 1, self.fewest)
        self.samples = max(1, int(min(wanted, GROWTH * max(samples, self.fewest))))

    def cuts(self, group: Sequence[Block]) -> bool:
        """Whether these blocks may be asked in pieces; those for some targets only may not."""
        return self.samples is not None and all(block.targets is None for block in group)

    def pieces(self, block: Block) -> Iterator[Block]:
        """The block in pieces of as many samples as seem right when each is asked; or as it is."""
        at = block.start
        while at < block.stop:
            left = block.stop - at
            most = self.samples if self.samples is not None and self.cuts([block]) else left
            end = at + (left if 2 * left <= 3 * most else most)  # no small rest
            yield replace(block, start=at, stop=end)
            at = end


def adjacent(blocks: Sequence[Block], samples: int) -> Iterator[list[Block]]:
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
