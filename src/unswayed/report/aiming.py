"""Which attack a report speaks of."""

import numpy as np

from unswayed.report.summary import Summary


def attack(summary: Summary, size: int | str, change: str = "any") -> str:
    """An attack of up to `size` changes, in words."""
    told = summary.words.attack(size, change)
    return told if change == "any" else f"only {told}"


def aim(summary: Summary) -> tuple[str, int, str]:
    """What a headline speaks of: the kind of change, the size that half of the good ones withstand (at least 1), the attack.

    The size is K; but where K is 0 everywhere, it is of deletions or additions alone.
    """
    sizes = {"any": summary.certs.size}
    if summary.apart:
        sizes |= {"deletes": summary.deletes, "adds": summary.adds}
    change = next((kind for kind, of in sizes.items() if (of[summary.right] > 0).any()), "any")
    good = np.sort(sizes[change][summary.right])
    size = max(int(good[len(good) // 2]) if good.size else 1, 1)
    return change, size, attack(summary, size, change)
