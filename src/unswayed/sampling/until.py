"""When to stop asking about a target: as soon as its certified size is settled, or when the time is up.

Whatever rule stops the sampling, bounds that hold at every sample size at once ("anytime") stay valid; bounds for a sample
size fixed beforehand do not. So votes drawn under a rule are marked as adaptive, and `certify` takes only anytime bounds
for them. The looks are fixed: a run that is stopped and resumed looks at the same sample numbers.
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from unswayed.certificates import certify
from unswayed.errors import InputError
from unswayed.notes import joined
from unswayed.theory.binomial import lower_limit, upper_limit
from unswayed.theory.bounds import check_level
from unswayed.theory.size import certified_size
from unswayed.votes import Votes

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

FIRST = 100  # samples before the first look
GROWTH = 4  # each look waits for a quarter of the samples drawn so far …
LARGEST = 2_500  # … but for no more than this many


def looks(samples: int) -> list[tuple[int, int]]:
    """The blocks of sample numbers between one look at the votes and the next, the same in every run.

    >>> looks(460)
    [(0, 100), (100, 200), (200, 300), (300, 400), (400, 460)]
    """
    blocks, at = [], 0
    while at < samples:
        step = min(max(FIRST, at // GROWTH // FIRST * FIRST), LARGEST)
        blocks.append((at, min(at + step, samples)))
        at += step
    return blocks


class Rule:
    """What every stopping rule has; `rule | other` stops as soon as either does."""

    def settled(self, votes: Votes, samples: int) -> BoolArray:
        """For each target: is there no need to ask about it again, with at most `samples` samples in all?"""
        return np.zeros(len(votes), bool)

    def begin(self) -> "Rule":
        """The rule with its clock started."""
        return self

    def over(self) -> bool:
        """Whether sampling ends now for every target."""
        return False

    def __or__(self, other: "Rule") -> "Rule":
        if not isinstance(other, Rule):
            return NotImplemented
        return Either(self, other)


@dataclass(frozen=True)
class Either(Rule):
    """Stops as soon as one of two rules does."""

    one: Rule
    other: Rule

    def settled(self, votes: Votes, samples: int) -> BoolArray:
        """Settled for either rule."""
        return self.one.settled(votes, samples) | self.other.settled(votes, samples)

    def begin(self) -> Rule:
        """Both clocks started."""
        return Either(self.one.begin(), self.other.begin())

    def over(self) -> bool:
        """Over for either rule."""
        return self.one.over() or self.other.over()


@dataclass(frozen=True)
class Budget(Rule):
    """Stop all sampling after this many seconds; the block being counted is finished and kept."""

    seconds: float
    started: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (
            isinstance(self.seconds, bool)
            or not isinstance(self.seconds, int | float)
            or not self.seconds > 0
        ):
            raise InputError(f"seconds must be a number above 0, not {self.seconds!r}.")

    def begin(self) -> Rule:
        """The time starts now."""
        return replace(self, started=time.monotonic())

    def over(self) -> bool:
        """Whether the seconds have passed since `begin`."""
        return self.started is not None and time.monotonic() - self.started >= self.seconds


@dataclass(frozen=True)
class UntilSize(Rule):
    """Stop asking about a target once its certified size is at least `size`, or can no longer become that.

    `alpha` is the level the votes will be certified at with bounds="anytime". A size is out of reach when even unanimous
    answers in all remaining samples would not prove it, or when the votes already show, at the same level over all looks,
    that the label is not probable enough. Stopping there costs nothing but the chance of a larger size.

    >>> UntilSize(size=10)
    UntilSize(size=10, alpha=0.001)
    """

    size: int
    alpha: float = 0.001

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int | np.integer) or self.size < 0:
            raise InputError(f"size must be a whole number from 0 up, not {self.size!r}.")
        check_level(self.alpha)

    def settled(self, votes: Votes, samples: int) -> BoolArray:
        """Reached, or out of reach."""
        goal = np.minimum(self.size, votes.entries)
        reached = certify(votes, alpha=self.alpha, bounds="anytime").size >= goal
        settled = reached | (self._possible(votes) < goal)
        left = np.flatnonzero(~settled)
        settled[left] = self._hopeful(votes, left, samples) < goal[left]
        return settled

    def _possible(self, votes: Votes) -> IntArray:
        """A size that no number of samples will exceed, at level alpha over all looks and every label.

        The label's probability is at most `top`; of the rest, which has C outcomes, the largest has at least a C-th, and
        at least the runner-up's lower limit. Any other label has fewer votes, so its limits are no better.
        """
        counts, drawn = votes.counts, votes.samples
        outcomes = np.sort(np.column_stack([counts, votes.no_answer]), axis=1)
        share = 2 * votes.classes * len(looks(int(drawn.max())))
        top = upper_limit(counts.max(axis=1), drawn, self.alpha, share)
        runner_up = np.where(counts.max(axis=1) == outcomes[:, -1], outcomes[:, -2], outcomes[:, -1])
        rest = np.maximum(lower_limit(runner_up, drawn, self.alpha, share), (1 - top) / votes.classes)
        return certified_size(top, rest, votes.noise, votes.entries, ones=votes.ones)

    def _hopeful(self, votes: Votes, index: IntArray, samples: int) -> IntArray:
        """The size if every sample still to come were answered with the label that leads now."""
        if not len(index):
            return np.zeros(0, np.int64)
        counts = votes.counts[index]
        samples = max(samples, int(votes.samples[index].max()))
        counts[np.arange(len(index)), counts.argmax(axis=1)] += samples - votes.samples[index]
        best = Votes.from_counts(
            counts,
            votes.noise,
            votes.entries[index],
            samples=samples,
            ones=None if votes.ones is None else votes.ones[index],
        )
        return certify(best, alpha=self.alpha, bounds="anytime").size


Target = UntilSize  # its old name


def join(votes: Votes | None, fresh: Votes) -> Votes:
    """Both sets of votes; `fresh` may fill in targets that an earlier look had left out of the same block."""
    if votes is None:
        return fresh
    same = (votes.starts == fresh.starts[0]) & (votes.stops == fresh.stops[0])
    if not same.any():
        return votes + fresh
    at = int(np.flatnonzero(same)[0])
    if np.any(votes.polled[at] & fresh.polled[0]):
        raise InputError("These votes cannot be joined: the same samples of a target would count twice.")
    blocks, polled = votes.blocks.copy(), votes.polled.copy()
    blocks[at] += fresh.blocks[0]
    polled[at] |= fresh.polled[0]
    return replace(votes, blocks=blocks, polled=polled, notes=joined(votes.notes, fresh.notes))


def gaps(votes: Votes | None, start: int, stop: int, wanted: IntArray) -> list[tuple[int, int, IntArray]]:
    """(start, stop, targets) still to be counted so that these targets have all samples start .. stop - 1."""
    if votes is None:
        return [(start, stop, wanted)]
    inside = np.flatnonzero((votes.starts >= start) & (votes.stops <= stop))
    found, at = [], start
    for block in inside[np.argsort(votes.starts[inside])]:
        if votes.starts[block] > at:
            found.append((at, int(votes.starts[block]), wanted))
        found.append(
            (int(votes.starts[block]), int(votes.stops[block]), wanted[~votes.polled[block][wanted]])
        )
        at = int(votes.stops[block])
    if at < stop:
        found.append((at, stop, wanted))
    return [gap for gap in found if len(gap[2])]
