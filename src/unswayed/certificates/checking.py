"""Which votes may be certified by which bounds, and what they are about."""

import warnings
from collections.abc import Mapping
from typing import Any

from unswayed.certificates.in_words import pending, refused
from unswayed.certificates.protocol import About, Certified
from unswayed.errors import DoubtfulSetting, InputError, RefusedVotes
from unswayed.theory.bounds import METHODS
from unswayed.votes import Votes


def certifiable(votes: Any, bounds: str, allowed: tuple[str, ...] = METHODS) -> None:
    """Refuse votes and bounds that would make a certificate say more than it may; warn of votes whose audit is still to come."""
    if not isinstance(votes, Votes):
        already = " (these are certificates already)" if isinstance(votes, Certified) else ""
        raise InputError(f"certify takes votes, as poll returns them, not {type(votes).__name__}{already}.")
    if bounds not in allowed:
        raise InputError(f"bounds must be one of {', '.join(allowed)}, not {bounds!r}.")
    if (why := refused(votes.notes)) is not None:
        raise RefusedVotes(f"These votes were refused: {why}")
    if votes.adaptive and bounds != "anytime":
        raise InputError(
            "Sampling of these votes was stopped by looking at them, which voids fixed-sample bounds; "
            'use bounds="anytime".'
        )
    threat = votes.provenance.get("threat")
    if isinstance(threat, Mapping) and threat.get("counts", "entries") != "entries" == votes.noise.counts:
        raise InputError(f"The threat counts {threat['counts']}, and {votes.noise} says nothing of them.")
    if votes.provenance.get("purpose") == "train":
        raise InputError("Noise of purpose 'train' may have trained the model; poll with purpose='certify'.")
    if left := pending(votes.notes):
        warnings.warn(
            f"This poll was stopped before its audit: {left:,} of its answers were to be asked again, and nobody has; the same poll with "
            "the same store goes on and asks them.",
            DoubtfulSetting,
            stacklevel=4,
        )


def about_votes(votes: Votes) -> About:
    """The targets of these votes."""
    threat = votes.provenance.get("threat")
    counted = {} if votes.noise.counts == "entries" else {"counts": votes.noise.counts}
    return About(
        votes.targets,
        votes.entries,
        votes.classes,
        votes.ones,
        {**(threat if isinstance(threat, Mapping) else {}), **counted},
        class_names=votes.class_names,
    )
