"""Additions alone, deletions alone: who withstands every one that there can be has no number to be held against K."""

import numpy as np

from unswayed.report.summary import BoolArray, Summary, median


def withstands_all(summary: Summary, change: str) -> BoolArray:
    """Which targets withstand every addition (or deletion) that there can be."""
    sizes, limit = summary.sides[change], summary.certs.about.limit(change)
    return np.zeros(len(sizes), bool) if limit is None else sizes >= limit


def walls(summary: Summary) -> BoolArray:
    """Which nodes are proven to keep their label if they lose every link they have.

    Where it is not known which nodes an entry joins (listed pairs, one relation, one direction), some links may be no entries.
    """
    degree, joins = summary.degree, summary.certs.about.ends(0, 0)
    if degree is None or joins is None or summary.unit != "node" or not summary.sides:
        return np.zeros(len(summary.certs), bool)
    return np.asarray((degree > 0) & (summary.deletes >= degree), bool)


def median_of(summary: Summary, change: str, among: BoolArray | None = None) -> int | None:
    """Half of the targets withstand so many additions (or deletions) alone; None for all that there can be."""
    endless = np.iinfo(np.int64).max
    sizes = np.where(withstands_all(summary, change), endless, summary.sides[change])
    middle = median(sizes if among is None else sizes[among])
    return None if middle == endless else middle


def shown(summary: Summary, change: str, place: int) -> str:
    """How many one target withstands, as a table says it."""
    size = int(summary.sides[change][place])
    if size > 0 and withstands_all(summary, change)[place]:
        return f"all {size}"
    return str(size) if size >= 0 else "-"
