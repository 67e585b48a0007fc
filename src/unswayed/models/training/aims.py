"""Aims: at which sizes a network's proofs count, read off the labelled nodes before anything is trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unswayed.ballots.models import BallotModel
from unswayed.models.training.ballot_settings import FEW
from unswayed.models.training.classroom import ENOUGH, Classroom

# where links say more, the share of what untrained label ballots are right about that no network may fall below: judges
# some of whose links are out of sight would else prefer one that ignores links, or says the most common label in doubt
KEPT = 0.9
SEEN_OVER = (
    0.5  # the share of judges that have more links than a size, for the size to be inside the degree wall
)


@dataclass(frozen=True)
class Aims:
    """Which of the judged sizes count (none named: all, alike), and the least that must be proved at each."""

    counted: tuple[int, ...] = ()
    least: tuple[float, ...] = ()

    @property
    def features_lead(self) -> bool:
        """Whether features say more than links, so that not every size counts."""
        return bool(self.counted)

    def score(self, proved: Sequence[float]) -> float:
        """The mean of what is proved at the sizes that count; 0 where it is too little at another."""
        if any(share < least for share, least in zip(proved, self.least, strict=False)):
            return 0.0
        counted = [proved[place] for place in self.counted or range(len(proved))]
        return sum(counted) / len(counted)


def aims_of(room: Classroom, silent: BallotModel | None, counted_to: int = FEW) -> Aims:
    """Every size counts where untrained label ballots prove more, over all of them, than own scores are right about.

    Elsewhere features say more than links, and changes up to `counted_to` count. At sizes that most judges have no more links
    than in the whole graph, nobody can do better than own scores, and no network may do worse. `silent` is the network with its
    ballots off; None where nodes have no features, so that links lead.
    """
    sizes = room.judged_at
    spoken = room.proved(room.untrained, room.seen.share)
    if silent is None:  # nothing but links can tell classes apart
        if room.seen.share < ENOUGH:
            return Aims(least=(spoken[0],))
        common = room.most_common * len(sizes)
        return Aims(least=(KEPT * spoken[0],)) if sum(spoken) > common else Aims()
    alone = room.proved(silent)
    if sum(spoken) > sum(alone):
        return Aims(least=(KEPT * spoken[0],))
    degree = torch.bincount(room.links.target, minlength=room.links.nodes)
    judges = room.judges.to(degree.device)
    # of the `size` + 1 links or more that a judge inside the wall has, a share is in sight
    inside = [
        float((degree[judges] >= (size + 1) * room.seen.share).float().mean()) > SEEN_OVER for size in sizes
    ]
    least = tuple(0.0 if over else share for over, share in zip(inside, alone, strict=True))
    return Aims(tuple(place for place, size in enumerate(sizes) if size <= counted_to), least)
