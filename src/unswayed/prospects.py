"""Can certificates pay on this graph? An estimate, before anything is certified, from degrees and what structure adds.

No proof beats the degree wall: whoever may change K links of a node can erase the row of every node with K links or fewer,
whose answer is then what features alone say. How much of what lies beyond it can be proved is read off the nodes whose label is
known: no node's own label speaks for it, nor has a part in what labels mean to it, so label ballots prove a known node as they
would a stranger. What that is above the floor, the best model that never looks at an edge, is what a certificate can pay.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.ballots.labels import as_labels, read_known
from unswayed.ballots.links import Links
from unswayed.ballots.meaning import meaning_of, suited
from unswayed.ballots.networks import LabelBallots
from unswayed.errors import InputError
from unswayed.proving import prove
from unswayed.rounding import percent
from unswayed.sampling.threats import Row

Sizes = npt.NDArray[np.int64]

WORTH = 0.02  # a gain below it is not worth a certificate
TOLD = 0.005  # what two decimals show
SMALL = 1  # the size that is asked about where label ballots cannot pay
# a network trained from label ballots that prove so much less than the floor at one change, or fewer, has lain a little above it
NEAR = 0.1
JUDGES = 10_000  # known nodes that are proved, at the most
BUDGETS = (1, 2, 3, 5, 10, 15, 20)
MOST_COMMON = "the most common label"
UNREAD = (
    " Your nodes have features, which this has not read: only what is above a model of features alone is gained, so give its "
    "accuracy as the floor."
)
UNLIKE = (
    " (links go to other labels more often than to one's own, so a label is taken for what it means here)"
)
RARE = 0.25  # of two labels, the share below which the other is right almost always
FLAGS = (
    " Of two labels the rarer has {} here, and this counts right answers: how many stay flagged, at which precision, is another "
    "question (fit_flags; prove --positive LABEL --precision P)."
)


@dataclass(frozen=True, eq=False)
class Prospect:
    """What to expect of certificates against changes of a node's own links: an estimate, not a promise.

    `floor`: accuracy without edges. `base`: accuracy of label ballots. `sizes`: int64[judges], what they prove of each known node; −1
    where they are wrong. `degrees`: int64[n]. `accuracy`: of the user's own network, where it is known. `floor_of`: whose accuracy the
    floor is; `unread`: nodes have features that this floor knows nothing of; `unlike`: links go to other labels rather than to one's own;
    `rarer`: the share of the rarer of two labels, None of more.
    """

    floor: float
    base: float
    sizes: Sizes = field(repr=False)
    degrees: npt.NDArray[np.int64] = field(repr=False)
    accuracy: float | None = None
    floor_of: str = "a model without edges"
    unread: bool = False
    unlike: bool = False
    rarer: float | None = None

    def above(self, k: int) -> float:
        """The share of nodes with more than k links: no others can be proved by what their links say."""
        return float((self.degrees > k).mean())

    def certified(self, k: int) -> float:
        """The share of nodes that label ballots will prove right against k changes, about."""
        return float((self.sizes >= k).mean())

    def gain(self, k: int) -> float:
        """What that is above the floor; below 0 where a model without edges does better."""
        return self.certified(k) - self.floor

    @property
    def largest(self) -> int:
        """The largest k at which certificates are expected to pay; 0 where they pay at none."""
        top = min(int(self.sizes.max(initial=0)), int(self.degrees.max(initial=0)))
        return next((k for k in range(top, 0, -1) if self.gain(k) >= WORTH), 0)

    @property
    def near(self) -> bool:
        """Whether label ballots alone cannot pay, but prove nearly as much as a model of features: a trained network weighs both."""
        return not self.largest and self.floor_of != MOST_COMMON and self.gain(SMALL) > -NEAR

    @property
    def way(self) -> str:
        """What to do: "prove", "smooth" or "drop the edges"."""
        if self.largest or self.near:
            return "prove"
        known = self.base if self.accuracy is None else max(self.base, self.accuracy)
        if self.above(SMALL) * (known - self.floor) >= WORTH:
            return "smooth"
        return "drop the edges"

    def __str__(self) -> str:
        beyond = [f"{percent(self.above(k))} have more than {k}" for k in (1, 5, 10)]
        seen = f"Of all nodes, {beyond[0]} link, {beyond[1]} and {beyond[2]} links. Of {len(self.sizes):,} whose label is known, neighbours' labels alone are right for {percent(self.base)}"
        rare = FLAGS.format(percent(self.rarer)) if self.rarer is not None and self.rarer < RARE else ""
        return f"{seen}{UNLIKE * self.unlike}; {self.floor_of} is right for {percent(self.floor)}. {self._advice()}{UNREAD * self.unread}{rare}"

    def _advice(self) -> str:
        if self.near:
            less = f"{-self.gain(SMALL):.2f} less than"
            much = less if self.gain(SMALL) <= -TOLD else "about as much as"
            return (
                f"Label ballots alone prove {much} {self.floor_of} at K = {SMALL}; a network trained from them, which "
                "weighs links and features, may gain a little at few changes: prove (ballots)."
            )
        if self.way == "prove":
            over = MOST_COMMON if self.floor_of == MOST_COMMON else "the floor"
            gains = ", ".join(f"{self.gain(k):+.2f} at {k}" for k in BUDGETS if k <= self.largest)
            return (
                f"Label ballots can pay up to K = {self.largest}: prove (label ballots), expected gain over {over} {gains}; "
                "a network trained from them (ballots) may reach further."
            )
        if self.way == "smooth":
            return (
                f"The wall of degrees leaves little: at K = {SMALL} smoothing with little noise may pay, "
                "beyond it drop the edges, which nobody can then forge."
            )
        return (
            "Certificates are not expected to pay here at any K: drop the edges, which nobody can then forge."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        table = {str(k): {"above": self.above(k), "gain": self.gain(k)} for k in BUDGETS}
        numbers = {"floor": self.floor, "base": self.base, "near": self.near, "largest": self.largest}
        held = {
            "floor_of": self.floor_of, "unread": self.unread, "unlike": self.unlike,
            "judges": len(self.sizes), "rarer": self.rarer,
        }  # fmt: skip
        return {"way": self.way, **numbers, **held, "at": table, "sentence": str(self)}


def prospect(data: Any, known: Any, *, floor: Any = None, accuracy: float | None = None) -> Prospect:
    """What certificates can be expected to gain on this graph, from known labels alone, in seconds; an estimate.

    `known` int[n], −1 where unknown. `floor`: the accuracy of a model that never looks at an edge, or what `floor()`
    found, by its validation nodes (default: the most common label); `accuracy`: of your own network. A node's own label never speaks for it, so the known ones can judge.
    """
    links, labels = Links.of(data), as_labels(known)
    floor = getattr(floor, "validation", floor)  # no label of a test target
    classes = max(int(labels.max()) + 1, 2) if labels.numel() else 2
    labels = read_known(labels, links.nodes, classes)
    told = (labels >= 0).nonzero()[:, 0]
    if len(told) < 2:
        raise InputError("A prospect needs known labels of at least two nodes.")
    for name, share in (("floor", floor), ("accuracy", accuracy)):
        if share is not None and not (hasattr(share, "__float__") and 0 <= share <= 1):
            raise InputError(f"{name} is a share of right answers, between 0 and 1, not {share!r}.")
    count = labels[told].bincount(minlength=classes)
    beside: dict[str, Any] = {"rarer": float(count.min()) / len(told) if classes == 2 else None}
    if floor is None:
        floor = float(count.max()) / len(told)
        unread = links.x is not None and bool((links.x != links.x[:1]).any())
        beside |= {"floor_of": MOST_COMMON, "unread": unread}
    degrees = torch.bincount(links.target, minlength=links.nodes)
    plain = suited(links, labels, classes)
    beside["unlike"] = plain.meaning is not None
    judges = told[:: -(-len(told) // JUDGES)]
    if plain.meaning is None:
        sizes = _proved(data, links, plain, labels, judges)
    else:
        sizes = _proved_by_halves(data, links, labels, classes, judges)
    return Prospect(floor, float((sizes >= 0).mean()), sizes, degrees.numpy(), accuracy, **beside)


def _proved(data: Any, links: Links, ballots: LabelBallots, known: Tensor, judges: Tensor) -> Sizes:
    """What these ballots prove of each judge, given in order; −1 where they are wrong."""
    # as a mask, since a number might be a name
    asked = torch.zeros(links.nodes, dtype=torch.bool).index_fill(0, judges, True)
    proofs = prove(ballots.freeze(links, known=known), Row(data, asked))
    return np.where(proofs.label == known[judges].numpy(), proofs.size, -1)


def _proved_by_halves(data: Any, links: Links, known: Tensor, classes: int, judges: Tensor) -> Sizes:
    """The same where labels mean something else: to each half of the known nodes what the other half's labels say of it.

    Of many classes a meaning made from a node's own label would go some way to tell it.
    """
    sizes = np.full(links.nodes, -1, np.int64)
    for half in _halves(links, known):
        meaning = meaning_of(links, known.index_fill(0, half, -1), classes)
        asked = judges[torch.isin(judges, half)]
        if len(asked):
            ballots = LabelBallots(classes, meaning=meaning)
            sizes[asked.numpy()] = _proved(data, links, ballots, known, asked)
    own: Sizes = sizes[judges.numpy()]
    return own


def _halves(links: Links, known: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes whose label is known in two halves at random, the same in every call; nodes with links in both."""
    told = (known >= 0).nonzero()[:, 0]
    mixed = told[torch.randperm(len(told), generator=torch.Generator().manual_seed(len(told)))]
    linked = torch.isin(mixed, links.target)
    order = torch.cat([mixed[linked], mixed[~linked]])
    return order[::2], order[1::2]
