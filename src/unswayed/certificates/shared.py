"""One attacker, many targets: at most how many a total budget can flip, wherever that can be said at all.

A family says for whom a change counts: "anywhere" (it may count for every target), "apart" (for one target only), "rows" (for
the two ends of an edge), or it refuses with the reason.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates.presenting import with_article
from unswayed.errors import InputError, Unsupported
from unswayed.theory.shared import flipped_anywhere, flipped_apart, flipped_rows, flipped_within

if TYPE_CHECKING:
    from unswayed.certificates.about import About
    from unswayed.certificates.protocol import Certified

BOUNDS: dict[str, Callable[[npt.ArrayLike, int], int]] = {
    "anywhere": flipped_anywhere,
    "apart": flipped_apart,
    "rows": flipped_rows,
}


#: Why no more can be flipped, by what a change counts for.
HOW = {
    "anywhere": "counted one by one, since a change may count for all of them",
    "apart": "since a change counts for one of them alone",
    "rows": "since a link counts for its two ends alone",
    "fields": "by a linear programme, since a deletion counts for those alone who can see the edge",
}


def how_shared(certs: "Certified", fields: Any = None) -> str:
    """Which bound is used: "fields" for the programme, else what a change counts for."""
    return certs.reach if fields is None else "fields"


def flipped(
    certs: "Certified", budget: int, change: str = "any", fields: Sequence[npt.ArrayLike] | None = None
) -> int:
    """At most how many of the certified targets an attacker with so many changes of this kind in total can flip."""
    sure = ~certs.abstained
    sizes = certs.sizes(change)[sure]
    if fields is not None:
        certs.check_fields(change)
        if len(fields) != len(certs):
            raise InputError(f"There are {len(certs)} targets but {len(fields)} fields.")
        if not np.array_equal(getattr(fields, "nodes", certs.targets), certs.targets):
            raise InputError(
                "These fields are of other nodes than the certificates, or in another order; give receptive_fields the nodes that the "
                "threat was given."
            )
        known = certs.about.entries, certs.about.ones
        counts = getattr(fields, "counts", known)
        if any(one is not None and np.any(one != other) for one, other in zip(known, counts, strict=True)):
            raise InputError(
                "These fields are of a graph with other nodes or edges than the certified one; give receptive_fields that graph."
            )
        seen = [np.asarray(fields[i], np.int64) for i in np.flatnonzero(sure).tolist()]
        last = max((int(field.max(initial=-1)) for field in seen), default=-1)
        return flipped_within(sizes, seen, last + 1, budget)
    reach = certs.reach
    if reach != "anywhere" and len(np.unique(certs.targets)) < len(certs):
        raise Unsupported(
            f"{with_article(certs.unit).capitalize()} is named twice, and one change would count for both; name each {certs.unit} once."
        )
    return BOUNDS[reach](sizes, budget)


def reach_of_votes(about: "About") -> str:
    """For whom a change counts where any model was asked: the threat decides."""
    kind = about.threat.get("kind")
    if kind == "bits" or (kind in ("all-pairs", "pairs") and about.words.unit == "graph"):
        return "apart"
    if kind in ("all-pairs", "pairs", "inject"):
        return "anywhere"
    if kind == "row":
        raise Unsupported(
            "A certificate of a row covers that row alone, and another target's row may reach the answer of a model with two layers: "
            "certify against AllPairs, or prove a ballot network whose voters are features."
        )
    raise Unsupported(
        "Nothing is known of the threat, so it cannot be said which targets one change counts for."
    )


def in_words(certs: "Certified", budget: int, change: str = "any", fields: Any = None) -> str:
    """What one attacker with a total budget can do, in a sentence or two; or why that cannot be said."""
    kind = {"any": "changes", "adds": "additions", "deletes": "deletions"}[change]
    means = f"{budget:,} {'nodes' if certs.about.counts_nodes else kind} in total"
    try:
        most, how = flipped(certs, budget, change, fields), HOW[how_shared(certs, fields)]
    except Unsupported as reason:
        return f"How many {certs.unit}s one attacker with {means} can flip cannot be said: {reason}"
    sure, rest = int((~certs.abstained).sum()), of_the_silent(certs)
    return f"One attacker with {means} can flip at most {most:,} of the {sure:,} {certs.unit}s with a guarantee, {how}.{rest}"


def of_the_silent(certs: "Certified") -> str:
    """A sentence about those that abstained, for the end of what is said of the others; empty where there are none."""
    silent = int(certs.abstained.sum())
    return f" About the {silent:,} that abstained nothing is promised." if silent else ""
