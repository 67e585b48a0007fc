"""The smoothed classifier on an attacked structure: does it still give the certified label?

Attacking entry v of a structure s and then drawing noise is the same as drawing noise on s with the roles of "flips from 0"
and "flips from 1" exchanged and negated at v. So one engine answers for all attacked structures without knowing of attacks.
But that engine was made for the clean graph, and could carry something of it into its answers: a share of all attacks is
judged by an engine of their own, made from the attacked graph alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question
from unswayed.sampling.stream import Stream
from unswayed.theory.binomial import lower_limit, upper_limit

LEVEL = 1e-6  # a verdict is wrong with at most this probability
REBUILT = 4  # of so many attacks one is judged by an engine made for the attacked graph
STAGES = (1, 10, 100)  # parts of the samples after which a clear case is decided

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AttackedStream(Stream):
    """The noise of a stream, seen from the clean structure of each target while its listed entries are attacked."""

    changes: Mapping[int, Tensor] = field(default_factory=dict, compare=False)

    def flips(self, *arguments: Any, target: int | None = None, **settings: Any) -> tuple[Tensor, Tensor]:
        """Whether an entry of the clean structure ends up flipped if it is 0, and if it is 1."""
        from_zero, from_one = super().flips(*arguments, target=target, **settings)
        entries = self.changes.get(-1 if target is None else target)
        if entries is None or not entries.numel():
            return from_zero, from_one
        entries = entries.to(from_zero.device)
        added, deleted = from_zero.clone(), from_one.clone()
        added[:, entries], deleted[:, entries] = ~from_one[:, entries], ~from_zero[:, entries]
        return added, deleted


@dataclass(frozen=True, eq=False)
class AttackedQuestion(Question):
    """A question about structures attacked at the entries in `changes`, listed for each target's number."""

    changes: dict[int, Tensor] = field(default_factory=dict)

    @property
    def stream(self) -> Stream:
        """The noise as the attacked structure sees it."""
        return AttackedStream(self.seed, self.purpose, self.changes)


class Judge:
    """Decides whether attacks succeed, by fresh votes on the attacked structures; each verdict holds at LEVEL.

    `rivals` says, as in `certify`, whether "no answer" can take a label's place. `asked` and `rebuilt` count the attacks judged, and those of them for which the question was built anew.
    """

    def __init__(self, question: Question, samples: int, rivals: str = "all") -> None:
        given = {item.name: getattr(question, item.name) for item in fields(Question)}
        self.settings = {**given, "purpose": "select", "shared": False, "draws": "dense"}
        self.question = AttackedQuestion(**self.settings)
        self.engine = choose(self.question)
        self.stages = sorted({max(1, samples // part) for part in STAGES})
        self.asked = self.rebuilt = 0
        self.rivals = rivals

    def counts(self, target: int, entries: Sequence[int] | Tensor, start: int, stop: int) -> IntArray:
        """int64[classes + 1]: votes of these samples with the entries attacked; the last column is "no answer"."""
        key = self.question.key_of(target)
        assert key is not None
        self.question.changes[key] = torch.as_tensor(entries, dtype=torch.int64)
        try:
            votes = self.engine.count(start, stop, (target,))[0]
        finally:
            del self.question.changes[key]
        return np.append(votes, stop - start - votes.sum())

    def afresh(self, target: int, entries: Sequence[int] | Tensor) -> Callable[[int, int], IntArray]:
        """`counts` of one attack by an engine that has never seen the clean graph; the same noise."""
        threat = self.question.threat.attacked(target, torch.as_tensor(entries, dtype=torch.int64))
        engine = choose(Question(**{**self.settings, "threat": threat, "classes": self.engine.classes}))

        def counts(start: int, stop: int) -> IntArray:
            votes = engine.count(start, stop, (0,))[0]
            return np.append(votes, stop - start - votes.sum())

        return counts

    def changed(self, target: int, label: int, entries: Sequence[int] | Tensor) -> bool:
        """Whether the attack provably moves the smoothed label away from `label`.

        True only if another outcome's lower bound lies above the label's upper bound; False also where votes leave it open.
        """
        counts = self._counts_of(target, entries)
        total, drawn = np.zeros(self.engine.classes + 1, np.int64), 0
        for stage in self.stages:
            total, drawn = total + counts(drawn, stage), stage
            verdict = self.verdict(total, label)
            if verdict is not None:
                return verdict
        return False

    def _counts_of(self, target: int, entries: Sequence[int] | Tensor) -> Callable[[int, int], IntArray]:
        self.asked += 1
        if self.asked % REBUILT != 1:
            return partial(self.counts, target, entries)
        self.rebuilt += 1
        return self.afresh(target, entries)

    def verdict(self, counts: IntArray, label: int) -> bool | None:
        """True: another outcome is more probable than `label`; False: the label is the most probable; None: open."""
        d = np.full(len(counts), counts.sum())
        share = len(self.stages) * (len(counts) + 1)
        low, high = lower_limit(counts, d, LEVEL, share), upper_limit(counts, d, LEVEL, share)
        others = np.arange(len(counts)) != label
        others[-1] &= self.rivals == "all"  # "no answer", which may be no rival
        if low[others].max() > high[label]:
            return True
        return False if low[label] > high[others].max() else None
