"""The one loop: threat + noise + classifier + runner + store → Votes."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError, StoreError
from unswayed.runners import Block, Runner, SerialRunner
from unswayed.sampling.classifier import style_of
from unswayed.sampling.digest import describe_model
from unswayed.sampling.question import Question
from unswayed.sampling.threat import Threat
from unswayed.sampling.until import Rule, gaps, join, looks
from unswayed.store import Store
from unswayed.theory.noise import Noise
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
Counted = tuple[Block, IntArray]

MAX_SAMPLES = 10**9  # more would fill the memory with the list of blocks alone
BLOCK = 1000  # sample numbers counted, stored and resumed together
SAVE_EVERY = 1.0  # seconds between writes of the store, at least; ten times as long as a write takes


class Advance(Protocol):
    """Told after each block how many answers it brought."""

    def __call__(self, answers: int) -> None:
        """Move on by this many answers."""


def poll(
    model: Any,
    threat: Threat,
    noise: Noise,
    *,
    samples: int = 10_000,
    seed: int = 0,
    device: str | None = None,
    engine: str = "auto",
    runner: Runner | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    classes: int | None = None,
    batch_size: int | None = None,
    shared: bool = True,
    purpose: str = "certify",
    draws: str = "auto",
    until: Rule | None = None,
) -> Votes:
    """The votes of sample numbers 0 .. samples - 1: the same for every batch size, device, runner and interruption.

    `model` is a torch module `forward(x, edge_index[, batch])`, `forward(data)` or `forward(x, adj)`, a callable, or for
    `Bits` anything with `predict`. `device` defaults to the model's own. `engine` is "auto", "generic" or "fast".
    With `store`, every counted block is kept in that folder and a later call draws only what is missing. `progress` False
    hides the bar, which only a terminal shows. `classes` is needed where the classifier answers labels instead of logits. `shared`
    draws one noise for all targets, which leaves each target's guarantee as it is. `purpose` separates the noise that
    trains or selects a model from the noise that certifies it. `draws` picks between two streams of the same law: "dense"
    draws every entry, "sparse" only what changes (`AllPairs(data, nodes)` with shared noise), "auto" the cheaper one.
    `until` (`Target(size=…)`, `Budget(seconds=…)`, or both joined by `|`) stops before `samples`, each target as soon as the
    rule has settled it; such votes are adaptive, and only `certify(..., bounds="anytime")` takes them.
    """
    samples = _whole(samples, "samples")
    question = Question(
        model=model,
        threat=threat,
        noise=noise,
        seed=seed,
        purpose=purpose,
        shared=bool(shared),
        classes=classes,
        device=device or device_of(model),
        engine=engine,
        batch_size=batch_size,
        draws=draws,
    )
    settings = describe(question) | ({} if until is None else {"adaptive": True})
    kept = Store(store) if store is not None else None
    if kept is not None:
        kept.open({**settings, "noise": noise.to_dict()})
    known = kept.votes() if kept is not None else None
    if until is not None:
        return _poll_until(
            AdaptiveLedger(question, settings, kept, known),
            runner or SerialRunner(),
            until,
            samples,
            progress,
        )
    ledger = Ledger(question, settings, kept, known)
    todo = missing(ledger.votes, samples)
    with bar(progress, sum(block.stop - block.start for block in todo) * len(threat)) as advance:
        ledger.fill(runner or SerialRunner(), todo, advance)
    return ledger.first(samples)


def _poll_until(
    ledger: "AdaptiveLedger", runner: Runner, rule: Rule, samples: int, progress: bool | None
) -> Votes:
    """Look at the votes at fixed sample numbers and go on with the targets that the rule has not settled."""
    if not isinstance(rule, Rule):
        raise InputError(f"until must be Target(size=…) or Budget(seconds=…), not {rule!r}.")
    rule, everyone = rule.begin(), np.arange(len(ledger.question.threat))
    with bar(progress, samples * len(everyone)) as advance:
        for start, stop in looks(samples):
            wanted = everyone
            if ledger.votes is not None:
                wanted = everyone[~rule.settled(ledger.votes, samples)]
                if rule.over() or not len(wanted):
                    break
            ledger.fill(runner, _pieces(gaps(ledger.votes, start, stop, wanted)), advance)
    assert ledger.votes is not None  # the first look is always taken
    return ledger.votes


def _pieces(holes: list[tuple[int, int, IntArray]]) -> list[Block]:
    """Blocks of at most `BLOCK` samples, so that several workers share a look."""
    return [
        Block(at, min(at + BLOCK, stop), tuple(targets.tolist()))
        for start, stop, targets in holes
        for at in range(start, stop, BLOCK)
    ]


def describe(question: Question) -> dict[str, Any]:
    """What was asked, JSON-ready: votes join, and stores resume, only where this is equal."""
    threat = question.threat.describe()
    if style_of(question.model, question.threat) == "data":  # it may read what others never see
        threat["constants"] = question.threat.constants()
    return {
        "model": describe_model(question.model),
        "threat": threat,
        "seed": question.stream.seed,
        "purpose": question.purpose,
        "shared": question.shared,
        "stream": question.stream_name,
    }


def device_of(model: Any) -> str:
    """Where the model's parameters lie; the CPU where it has none."""
    parameters = getattr(model, "parameters", None)
    first = next(iter(parameters()), None) if callable(parameters) else None
    return str(getattr(first, "device", "cpu"))


def missing(votes: Votes | None, samples: int) -> list[Block]:
    """The blocks still to be counted, so that sample numbers 0 .. samples - 1 are all covered and none twice.

    Blocks lie on the grid of `BLOCK`; of a stored block that straddles `samples` the first part is drawn again.
    """
    done = [] if votes is None else sorted(zip(votes.starts.tolist(), votes.stops.tolist(), strict=True))
    blocks, at = [], 0
    for start, stop in [*((a, b) for a, b in done if b <= samples), (samples, samples)]:
        while at < start:
            edge = min(start, (at // BLOCK + 1) * BLOCK)
            blocks.append(Block(at, edge))
            at = edge
        at = max(at, stop)
    return blocks


@dataclass
class Ledger:
    """The votes counted so far, in memory and, where there is a store, on disk."""

    question: Question
    settings: dict[str, Any]
    store: Store | None
    votes: Votes | None
    fresh: list[Counted] = field(default_factory=list)  # counted since the votes were last joined
    redrawn: Votes | None = None  # the first part of a stored block; the store keeps the whole one

    def __post_init__(self) -> None:
        if self.votes is None:
            return
        asked, stored = {**self.settings, "classes": self.votes.classes}, dict(self.votes.provenance)
        if stored != json.loads(json.dumps(asked)) or self.votes.noise != self.question.noise:
            raise StoreError("The votes in the store are of another run than its settings; use a new folder.")
        classes = self.question.classes
        if classes is not None and self.votes.classes != classes:
            raise StoreError(
                f"The stored votes have {self.votes.classes} classes, but classes={classes} was given."
            )

    def fill(self, runner: Runner, blocks: list[Block], advance: Advance) -> None:
        """Count these blocks; whatever stops it, what was counted is in the store."""
        due = time.monotonic() + SAVE_EVERY
        try:
            for block, counts in runner.run(self.question, blocks):
                self.add(block, counts)
                advance((block.stop - block.start) * len(counts))
                if (now := time.monotonic()) >= due:
                    self.save()
                    due = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - now))
        finally:
            self.save()

    def add(self, block: Block, counts: IntArray) -> None:
        """Note one block's counts; the part of a stored block that was drawn again stays out of the store."""
        stored = self.votes
        if stored is not None and np.any((stored.starts < block.stop) & (stored.stops > block.start)):
            self.redrawn = self.joined([(block, counts)])
        else:
            self.fresh.append((block, counts))

    def joined(self, counted: list[Counted]) -> Votes:
        """Votes of these blocks alone, with everything that says what was asked."""
        threat = self.question.threat
        classes = counted[0][1].shape[1]
        blocks = np.zeros((len(counted), len(threat), classes), dtype=np.int64)
        polled = np.zeros(blocks.shape[:2], dtype=bool)
        for i, (block, counts) in enumerate(counted):
            which = slice(None) if block.targets is None else list(block.targets)
            blocks[i, which] = counts
            polled[i, which] = True
        return Votes(
            blocks=blocks,
            starts=np.array([block.start for block, _ in counted]),
            stops=np.array([block.stop for block, _ in counted]),
            noise=self.question.noise,
            entries=threat.entries,
            ones=threat.ones,
            targets=threat.targets,
            polled=polled,
            provenance={**self.settings, "classes": int(classes)},
        )

    def save(self) -> None:
        """Join what was counted to the votes and write them to the store, if there is one."""
        if not self.fresh:
            return
        fresh = self.joined(self.fresh)
        self.votes, self.fresh = (fresh if self.votes is None else self.votes + fresh), []
        if self.store is not None:
            self.store.save(self.votes)

    def first(self, samples: int) -> Votes:
        """The votes of sample numbers 0 .. samples - 1."""
        votes = self.votes
        assert votes is not None
        assert votes.polled is not None
        keep = votes.stops <= samples
        kept = replace(
            votes,
            blocks=votes.blocks[keep],
            starts=votes.starts[keep],
            stops=votes.stops[keep],
            polled=votes.polled[keep],
        )
        return (kept if self.redrawn is None else kept + self.redrawn).first(samples)


class AdaptiveLedger(Ledger):
    """Votes that may have different samples for different targets; a later look can fill in what one left out."""

    def add(self, block: Block, counts: IntArray) -> None:
        """Note one block's counts."""
        self.fresh.append((block, counts))

    def save(self) -> None:
        """Join what was counted to the votes and write them to the store, if there is one."""
        for counted in self.fresh:
            self.votes = join(self.votes, self.joined([counted]))
        if self.fresh and self.store is not None and self.votes is not None:
            self.store.save(self.votes)
        self.fresh = []


@contextmanager
def bar(progress: bool | None, answers: int) -> Iterator[Advance]:
    """A progress bar with rate and time left on standard error; silent off a terminal or where not wanted."""
    if not answers or progress is False or not sys.stderr.isatty():
        yield lambda answers: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[rate]}/s")
    columns = (TextColumn("polling"), BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("polling", total=answers, rate="–")

        def advance(answers: int) -> None:
            shown.advance(task, answers)
            speed = shown.tasks[0].speed
            shown.update(task, rate="–" if speed is None else f"{speed:,.0f}")

        yield advance


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= MAX_SAMPLES:
        raise InputError(f"{name} must be a whole number from 1 up to {MAX_SAMPLES:,}, not {value!r}.")
    return int(value)
