"""What a larger certificate would cost, for the targets of a poll."""

from typing import TYPE_CHECKING

import numpy as np

from unswayed.theory.bounds import bound_votes, ceiling
from unswayed.theory.size import certified_size

if TYPE_CHECKING:
    from unswayed.certificates.smoothed import Certificates

MOST = 10**8  # samples beyond which "more samples" is no practical advice


def own_ceiling(certs: "Certificates", position: int) -> int:
    """The size that as many unanimous votes as this target has would prove for it."""
    votes = certs.votes
    return ceiling(
        votes.noise,
        int(votes.samples[position]),
        certs.level,
        votes.classes,
        certs.bounds,
        cap=votes.entries[[position]],
        ones=None if votes.ones is None else votes.ones[[position]],
        rivals=certs.rivals,
    )


def samples_needed(certs: "Certificates", position: int, size: int) -> int | None:
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
        found = bound_votes(scaled, samples, certs.level, certs.bounds, rivals=certs.rivals)
        return reaches(float(found.p_top[0]), float(found.p_rest[0]))

    silent = drawn - counts.sum() if certs.rivals == "all" else 0
    second, first = np.sort(np.append(counts, silent))[-2:] / drawn
    if size > entries or not reaches(first, second):  # not even with the shares known exactly
        return None
    high = drawn
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2 if high > drawn else 0
    while high - low > max(1, high // 200):  # advice to half a percent is near enough
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def next_size_in_words(size: int, drawn: int, needed: int | None) -> str:
    """What this size would take, in one or two sentences."""
    if needed is None:
        return (
            f"K = {size} is out of reach for these votes: even if their shares were known exactly, they would "
            "not prove it. It takes a model that agrees with itself more often under noise, or another noise."
        )
    return (
        f"K = {size} would take about {needed:,} samples, {needed - drawn:,} more, if the votes keep these shares. "
        "Decide on the number before looking again: draw it with a new seed, or use anytime bounds."
    )
