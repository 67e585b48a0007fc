"""One certificate in detail: what its family says of it, and what the graph around the target adds."""

from dataclasses import replace

from unswayed.certificates import Explanation
from unswayed.report.alone import walls
from unswayed.report.summary import Summary


def explain(summary: Summary, position: int) -> Explanation:
    """The explanation of the target at this position."""
    found = summary.certs.explanation(position)
    said = wall(summary, position)
    facts = {**found.facts, "degree": _degree(summary, position), "wall": said}
    return replace(found, sentences=(*filter(None, (said,)), *found.sentences), facts=facts)


def _degree(summary: Summary, position: int) -> int | None:
    known = summary.degree is not None and summary.unit == "node"
    return int(summary.degree[position]) if known and summary.degree is not None else None


def wall(summary: Summary, position: int) -> str | None:
    """A remark on what a proof against as many deletions as the node has links implies."""
    if not walls(summary)[position]:
        return None
    degree = _degree(summary, position)
    links = "its only link" if degree == 1 else f"all of its {degree} links"
    return f"This covers losing {links}: the label is the one it would get with no link at all."
