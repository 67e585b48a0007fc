"""One certificate in detail: what it says, what it rests on, and what a larger one would cost."""

from dataclasses import dataclass

import numpy as np

from unswayed.certificates import Certificates
from unswayed.report.summary import Summary
from unswayed.theory import bound_votes, ceiling, certified_size

MOST = 10**8  # samples beyond which "more samples" is no practical advice


@dataclass(frozen=True)
class Explanation:
    """Everything about one target; `needed` is None where no number of samples reaches the next size."""

    name: str
    label: str
    size: int
    statement: str
    votes: tuple[tuple[str, int], ...]
    no_answer: int
    samples: int
    p_top: float
    p_rest: float
    ceiling: int
    degree: int | None
    next_size: int
    needed: int | None

    @property
    def advice(self) -> str:
        """What the next size would take, in one or two sentences."""
        if self.needed is None:
            return (
                f"K = {self.next_size} is out of reach for these votes: even if their shares were known exactly, they would "
                "not prove it. It takes a model that agrees with itself more often under noise, or another noise."
            )
        more = self.needed - self.samples
        return (
            f"K = {self.next_size} would take about {self.needed:,} samples, {more:,} more, if the votes keep these shares. "
            "Decide on the number before looking again: draw it with a new seed, or use anytime bounds."
        )

    @property
    def wall(self) -> str | None:
        """A remark on what a K of at least the degree implies."""
        if self.degree is None or self.size < max(self.degree, 1):
            return None
        links = "its only link" if self.degree == 1 else f"all of its {self.degree} links"
        return f"K covers losing {links}: the label is the one it would get with no link at all."


def explain(summary: Summary, position: int) -> Explanation:
    """The explanation of the target at this position."""
    certs, votes = summary.certs, summary.certs.votes
    counts, size = votes.counts[position], int(certs.size[position])
    order = np.argsort(-counts, kind="stable")
    grown = max(size, 0) + 1 if size >= 0 else 0
    return Explanation(
        name=summary.target_name(position),
        label=summary.label_name(int(certs.label[position])),
        size=size,
        statement=certs.statement(position),
        votes=tuple((summary.label_name(int(label)), int(counts[label])) for label in order),
        no_answer=int(votes.no_answer[position]),
        samples=int(votes.samples[position]),
        p_top=float(certs.p_top[position]),
        p_rest=float(certs.p_rest[position]),
        ceiling=_own_ceiling(certs, position),
        degree=int(summary.degree[position])
        if summary.degree is not None and summary.unit == "node"
        else None,
        next_size=grown,
        needed=samples_needed(certs, position, grown),
    )


def _own_ceiling(certs: Certificates, position: int) -> int:
    """The size that as many unanimous votes as this target has would prove for it."""
    votes = certs.votes
    return ceiling(
        votes.noise,
        int(votes.samples[position]),
        certs.alpha / len(votes) if certs.family else certs.alpha,
        votes.classes,
        certs.bounds,
        cap=votes.entries[[position]],
        ones=None if votes.ones is None else votes.ones[[position]],
    )


def samples_needed(certs: Certificates, position: int, size: int) -> int | None:
    """The fewest samples that prove `size` if the votes keep their shares; None if none up to a hundred million do.

    The number is found by doubling and bisection, so it may be off by the rounding of vote counts.
    """
    votes = certs.votes
    counts, drawn = votes.counts[position], int(votes.samples[position])
    entries = int(votes.entries[position])
    ones = None if votes.ones is None else int(votes.ones[position])

    def reaches(p_top: float, p_rest: float) -> bool:
        found = certified_size(p_top, p_rest, votes.noise, entries, ones=ones)
        return int(np.asarray(found).reshape(-1)[0]) >= size

    def enough(samples: int) -> bool:
        scaled = counts[None] * samples // drawn
        family = len(votes) if certs.family else 1
        found = bound_votes(scaled, samples, certs.alpha, method=certs.bounds, family_size=family)
        return reaches(float(found.p_top[0]), float(found.p_rest[0]))

    second, first = np.sort(np.append(counts, drawn - counts.sum()))[-2:] / drawn
    if size > entries or not reaches(first, second):  # not even with the shares known exactly
        return None
    high = drawn
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2 if high > drawn else 0
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
