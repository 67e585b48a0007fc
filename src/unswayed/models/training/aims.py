"""Aims: at which sizes a network's proofs count, read off the labelled nodes before anything is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import torch

from unswayed.ballots.models import BallotModel
from unswayed.models.training.ballot_settings import FEW
from unswayed.models.training.classroom import ENOUGH, Classroom

# where links say more, the share of what untrained label ballots are right about that no network may fall below: judges
# some of whose links are out of sight would else prefer one that ignores links, or says the most common label in doubt
KEPT = 0.9
SEEN_OVER = 0.5  # of judges have more links than a size, where the size is inside the degree wall


@dataclass(frozen=True)
class Aims:
    """Which of the judged sizes count (by place; none: all), and the least that must be proved at each.

    `features_lead` says that features tell more than links.
    """

    counted: tuple[int, ...] = ()
    least: tuple[float, ...] = ()
    features_lead: bool = False

    def score(self, proved: Sequence[float]) -> float:
        """The mean of what is proved at the sizes that count; 0 where it is too little at another."""
        if any(share < least for share, least in zip(proved, self.least, strict=False)):
            return 0.0
        counted = [proved[place] for place in self.counted or range(len(proved))]
        return sum(counted) / len(counted)


def aims_of(room: Classroom, silent: BallotModel | None, counted_to: int = FEW) -> Aims:
    """Sizes inside the degree wall count where untrained label ballots prove no less, over these, than own scores do.

    Elsewhere features say more than links, and changes up to `counted_to` count; beyond the wall, where nobody can do better than
    own scores, no network may do worse. `silent` is the network with its ballots off; None where nodes have no features, so
    that links lead.
    """
    sizes, inside = room.judged_at, inside_wall(room)
    spoken = room.proved(room.untrained, room.seen.share)
    if silent is None and room.seen.share < ENOUGH:
        return Aims(least=(spoken[0],))
    alone = [room.most_common] * len(sizes) if silent is None else room.proved(silent)
    if any(inside) and sum(compress(spoken, inside)) >= sum(compress(alone, inside)):
        return Aims(tuple(compress(range(len(sizes)), inside)), (KEPT * spoken[0],))
    if silent is None:  # what is said beside links is the most common label
        return Aims()
    counted = tuple(place for place, size in enumerate(sizes) if size <= counted_to)
    least = tuple(0.0 if over else share for over, share in zip(inside, alone, strict=True))
    return Aims(counted, least, features_lead=True)


def inside_wall(room: Classroom) -> list[bool]:
    """For each judged size whether most judges have more links than it; the others give all their links to such an attack."""
    degree = torch.bincount(room.links.target, minlength=room.links.nodes)
    judges = room.judges.to(degree.device)
    # of the `size` + 1 links or more that a judge inside the wall has, a share is in sight
    return [
        float((degree[judges] >= (size + 1) * room.seen.share).float().mean()) > SEEN_OVER
        for size in room.judged_at
    ]
