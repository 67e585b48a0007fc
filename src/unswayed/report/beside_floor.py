"""The sentences that hold certificates against the best model that ignores the structure."""

import numpy as np

from unswayed.certificates.presenting import plural
from unswayed.report.aiming import aim
from unswayed.report.summary import ROUNDED, BoolArray, Summary
from unswayed.rounding import percent

FEW = 20  # targets below which a share says little


def whole(summary: Summary) -> BoolArray:
    """Who withstands all that the attacker can change."""
    about, size = summary.certs.about, summary.certs.size
    return np.zeros(len(size), bool) if about.counts_nodes else size >= about.entries


def floor_named(summary: Summary) -> str:
    """Which model that ignores the structure is meant, where it has a name of its own."""
    return "" if summary.floor_name == "structure-free model" else f" ({summary.floor_name})"


def floor_told(summary: Summary) -> str:
    """How the certified model compares with the floor; empty where none is known."""
    reach = summary.beats_floor_to
    if reach is None or summary.floor is None:
        return ""
    total = summary.total
    floor = f"A model that never looks at the structure{floor_named(summary)} is right on {percent(summary.floor)}, whatever the attacker does"
    if summary.positive is not None:  # where few bear the label, whoever flags none is nearly always right
        return f"{floor}; how many stay flagged is another question than how many are right."
    if total < FEW:
        return f"{floor}; but {plural(total, summary.unit)} {'is' if total == 1 else 'are'} too few to compare models by."
    if reach < 0:
        return _no_better(summary, floor)
    if whole(summary).all():
        return f"{floor}; the certified model is better, but through features, not through links."
    upto = (
        "only against no change at all" if reach == 0 else f"for attacks of up to {plural(reach, 'change')}"
    )
    return f"{floor}; the certified model is better {upto}."


def _no_better(summary: Summary, floor: str) -> str:
    """What it means that no more is proven at any size than the floor has right."""
    if whole(summary).all() and summary.certs.confidence is None:  # noise costs something, whatever is read
        return (
            f"{floor}, and the certified model on {percent(float(summary.share(0)))}: it reads no link that the attacker can change, "
            "so links neither bring nor cost it anything."
        )
    less = summary.below_floor(0)
    ends = "costs more than it brings" if less else "brings nothing"
    (change, size, _), much = aim(summary), "more" if less else "as much"
    if summary.below_floor(size, change, ties=True) and summary.share(size, change) > 0:
        beats = f"The model that ignores the structure{floor_named(summary)} has {much} right {'than' if less else 'as'} is proven here at any size"
    else:
        beats = f"{floor}: {much} {'than' if less else 'as'} is proven here at any size"
    return f"{beats}, so under this attack the structure {ends}."


def floor_flags_none(summary: Summary) -> str:
    """That the floor, however often right, flags nobody: where it says one label to all, which is another."""
    if summary.floor is None or summary.floor_name != "majority" or summary.positive is None:
        return ""
    truth = np.asarray(summary.truth)
    positive = float(np.mean(truth[summary.known] == summary.positive))
    if abs(summary.floor - positive) <= ROUNDED:  # it may be the positive label
        return ""
    return " The model that ignores the structure (majority) flags none."
