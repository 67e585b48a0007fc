"""The ledger: the votes counted so far, in memory and on disk, and the audit of what was counted."""

import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unswayed.errors import RefusedVotes, StoreError
from unswayed.notes import PENDING, Audit, joined, wordless
from unswayed.runners import Block, Runner, Tally
from unswayed.sampling.audit import asked_again, complaint
from unswayed.sampling.question import Question
from unswayed.sampling.until import join
from unswayed.store import Store
from unswayed.votes import Votes
from unswayed.watching import Watch

Counted = tuple[Block, Tally]

BLOCK = 1000  # sample numbers that are stored together once all of them are counted
SAVE_EVERY = 1.0  # seconds between writes of the store, at least; ten times as long as a write takes


Watched = Callable[[int], AbstractContextManager[Watch]]  # a watch over so many answers


@dataclass
class Ledger:
    """The votes counted so far, in memory and, where there is a store, on disk."""

    question: Question
    settings: dict[str, Any]
    store: Store | None
    votes: Votes | None
    fresh: list[Counted] = field(default_factory=list)  # counted since the votes were last joined
    redrawn: Votes | None = None  # the first part of a stored block; the store keeps the whole one
    edge: int = 0  # the sample number that this poll ends at: no two pieces become one across it

    def __post_init__(self) -> None:
        if self.votes is None:
            return
        asked, stored = {**self.settings, "classes": self.votes.classes}, dict(self.votes.provenance)
        if (
            wordless(stored) != wordless(json.loads(json.dumps(asked)))
            or self.votes.noise != self.question.noise
        ):
            raise StoreError("The votes in the store are of another run than its settings; use a new folder.")
        classes = self.question.classes
        if classes is not None and self.votes.classes != classes:
            raise StoreError(
                f"The stored votes have {self.votes.classes} classes, but classes={classes} was given."
            )
        self._rename({**stored, **json.loads(json.dumps(asked))})

    def _rename(self, provenance: dict[str, Any]) -> None:
        """Take over what classes and nodes are called now, in the store too where it may be written to."""
        assert self.votes is not None
        if provenance == dict(self.votes.provenance):
            return
        self.votes = replace(self.votes, provenance=provenance)
        if self.store is not None and os.access(self.store.path, os.W_OK):
            self.store.save(self.votes)

    def fill(self, runner: Runner, blocks: list[Block], watch: Watch) -> None:
        """Count these blocks; whatever stops it, what was counted is in the store."""
        due = time.monotonic() + SAVE_EVERY
        tells = hasattr(runner, "watch")  # of answers before their block is whole
        if tells:
            runner.watch, runner.meet = watch, watch.meet  # type: ignore[attr-defined]
        try:
            for block, counted in runner.run(self.question, blocks):
                self.add(block, counted)
                if not tells:
                    watch.hear({**counted.notes, "classes": counted.counts.shape[1]})
                    watch((block.stop - block.start) * len(counted.counts))
                if (now := time.monotonic()) >= due:
                    self.save()
                    due = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - now))
        finally:
            self.save()

    def add(self, block: Block, counted: Tally) -> None:
        """Note one block's counts; the part of a stored block that was drawn again stays out of the store."""
        stored = self.votes
        if stored is not None and np.any((stored.starts < block.stop) & (stored.stops > block.start)):
            again = self.joined([(block, counted)])
            self.redrawn = again if self.redrawn is None else whole(self.redrawn + again)
        else:
            self.fresh.append((block, counted))

    def joined(self, counted: list[Counted]) -> Votes:
        """Votes of these blocks alone, with everything that says what was asked."""
        threat = self.question.threat
        classes = counted[0][1].counts.shape[1]
        blocks = np.zeros((len(counted), len(threat), classes), dtype=np.int64)
        polled = np.zeros(blocks.shape[:2], dtype=bool)
        for i, (block, part) in enumerate(counted):
            which = slice(None) if block.targets is None else list(block.targets)
            blocks[i, which] = part.counts
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
            notes=_notes([part for _, part in counted]),
        )

    def save(self) -> None:
        """Join what was counted to the votes and write them to the store, if there is one."""
        if not self.fresh:
            return
        fresh = self.joined(sorted(self.fresh, key=lambda counted: counted[0].start))
        every = fresh if self.votes is None else self.votes + fresh
        self.votes, self.fresh = whole(every, self.edge), []
        self._keep(self.votes)

    def _keep(self, votes: Votes) -> None:
        """Write to the store, if there is one; refused where another poll's votes were refused meanwhile and these are asked as they were."""
        if self.store is None:
            return
        alone = self.question.engine == "generic" and self.question.batch_size == 1
        if not alone and (why := self.store.refusal) is not None:
            raise RefusedVotes(f"Votes of another poll in {self.store.path} were refused meanwhile: {why}")
        self.store.save(votes)

    def audit(self, watched: Watched) -> None:
        """Ask again what has not been asked again yet; refuse all votes, and mark the store, if an answer differs."""
        assert self.votes is not None
        if not self.question.audit:
            return
        if self.redrawn is not None:
            self.redrawn = self._audited(self.redrawn, watched)
        votes = self._audited(self.votes, watched)
        if votes is not self.votes:
            self._keep(votes)
        self.votes = votes

    def _audited(self, votes: Votes, watched: Watched) -> Votes:
        audit = Audit.from_dict(votes.notes["audit"])
        if audit.uncovered:
            raise StoreError(
                f"{audit.uncovered:,} answers in the store were counted with audit=0 and cannot be asked again now; poll with audit=0 to "
                "take them as they are, or use a new folder."
            )
        if audit.number(PENDING):
            with watched(audit.number(PENDING)) as advance:
                audit = asked_again(self.question, audit, advance)
            votes = replace(votes, notes={**votes.notes, "audit": audit.to_dict()})
        if (why := complaint(audit, str(votes.notes["engine"]))) is not None:
            if self.store is not None:
                self.store.save(replace(votes, notes={**votes.notes, "refused": why}), force=True)
                self.store.refuse(why)
            raise RefusedVotes(why)
        return votes

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

    def add(self, block: Block, counted: Tally) -> None:
        """Note one block's counts."""
        self.fresh.append((block, counted))

    def save(self) -> None:
        """Join what was counted to the votes and write them to the store, if there is one."""
        fresh, self.fresh = self.fresh, []
        for counted in fresh:
            self.votes = join(self.votes, self.joined([counted]))
        if fresh and self.votes is not None:
            self._keep(self.votes)


def whole(votes: Votes, edge: int = 0) -> Votes:
    """The same votes, in which pieces of one block that follow each other are one piece, unless it would reach across the edge."""
    cell = votes.starts // BLOCK
    follows = (votes.starts[1:] == votes.stops[:-1]) & (cell[1:] == cell[:-1])
    follows &= (votes.stops[1:] - 1) // BLOCK == cell[1:]
    follows &= (votes.stops[1:] <= edge) | (votes.starts[:-1] >= edge)
    follows &= np.all(votes.polled[1:] == votes.polled[:-1], axis=1)
    if not follows.any():
        return votes
    first = np.flatnonzero(np.append(True, ~follows))
    return replace(
        votes,
        blocks=np.add.reduceat(votes.blocks, first, axis=0),
        starts=votes.starts[first],
        stops=votes.stops[np.append(first[1:], len(votes.starts)) - 1],
        polled=votes.polled[first],
    )


def _notes(counted: list[Tally]) -> dict[str, Any]:
    """What happened while these blocks were counted."""
    audit: Audit = sum((part.audit for part in counted), start=Audit())
    words: dict[str, Any] = {}
    for part in counted:
        words = joined(words, part.notes)
    return {**words, "audit": audit.to_dict()}
