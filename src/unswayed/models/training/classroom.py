"""The graph that a ballot network learns on, the labels its voters may say, and the nodes that judge it."""

import copy
import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unswayed.ballots.labels import unlike
from unswayed.ballots.links import Links
from unswayed.ballots.meaning import meaning_of
from unswayed.ballots.models import BallotModel
from unswayed.ballots.networks import LabelBallots
from unswayed.datasets import Dataset, Split
from unswayed.errors import DoubtfulSetting
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.view import View
from unswayed.proving import prove
from unswayed.sampling.threats import Row

FOLDS = 5
# links in sight for each class, below which networks of nodes without features know little but the labelled nodes
LINKS_A_CLASS = 100
ENOUGH = 0.5  # the share of all nodes in sight, from which on sizes are judged as they are
CLEARLY = 1.0  # standard errors by which a network is better than what it began as, where fewer are in sight


@dataclass(frozen=True, eq=False)
class Panel:
    """Nodes that judge, and the labels that voters may say to them (−1: nobody knows).

    A judge's own label never enters its own score, so that judges may speak to each other.
    """

    judges: Tensor
    known: Tensor


@dataclass(frozen=True, eq=False)
class Classroom:
    """A visible graph and the panels before which a network is tried: at which sizes, which changes, how classes weigh.

    `meaning` is what labels say here, where like does not go with like; `features` tells whether nodes have any.
    """

    seen: View
    panels: tuple[Panel, ...]
    judged_at: tuple[int, ...]
    change: str
    weights: Tensor
    meaning: Tensor | None = None
    features: bool = True

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return len(self.weights)

    @property
    def in_sight(self) -> float:
        """The share of a number of changes by which networks are judged here, for that number in the whole graph.

        A margin grows with the links, and those to nodes out of sight are missing. Where at least half of the nodes are in
        sight judges are just stricter than need be; where fewer are, all that links say would seem lost.
        """
        return min(1.0, self.seen.share / ENOUGH)

    @property
    def most_common(self) -> float:
        """The weighted share of judges that bear the most common label."""
        count = torch.bincount(self.seen.data.y.cpu()[self.judges], weights=self.weight)
        return float(count.max() / count.sum())

    @cached_property
    def links_a_class(self) -> float:
        """How many links the labelled nodes have in sight, for each class."""
        degree = torch.bincount(self.links.target, minlength=self.links.nodes)
        return float(degree[torch.cat([self.seen.train, self.seen.val])].sum()) / self.classes

    @property
    def enough_to_learn(self) -> bool:
        """Whether networks can learn more than the nodes they learn from, which judge as well where nodes have no features."""
        return self.features or self.links_a_class >= LINKS_A_CLASS

    def tell_if_too_little(self) -> None:
        """Warn where nothing will be learnt."""
        if not self.enough_to_learn:
            warnings.warn(
                f"Nothing is learnt: labelled nodes have {self.links_a_class:.0f} links in sight for each class, fewer than "
                f"{LINKS_A_CLASS}, and no features. Label ballots are taken as they are, or the most common label where it proves more.",
                DoubtfulSetting,
                stacklevel=6,
            )

    @property
    def untrained(self) -> LabelBallots:
        """What every network here begins as."""
        return LabelBallots(self.classes, meaning=self.meaning)

    @cached_property
    def links(self) -> Links:
        """The visible graph's links, where training happens."""
        return Links.of(copy.copy(self.seen.data).cpu()).to(self.seen.train.device)

    @property
    def known(self) -> Tensor:
        """The labels that voters may say while the network learns."""
        return self.panels[0].known.to(self.seen.train.device)

    @cached_property
    def threats(self) -> tuple[Row, ...]:
        """Any change of a judge's row, for each panel; networks are tried on the CPU."""
        data = copy.copy(self.seen.data).cpu()
        return tuple(Row(data, panel.judges.cpu()) for panel in self.panels)

    @property
    def judges(self) -> Tensor:
        """Who judges, panel by panel."""
        return torch.cat([panel.judges.cpu() for panel in self.panels])

    @property
    def weight(self) -> Tensor:
        """float64[judges]: how much each judge counts."""
        return self.weights.cpu().double()[self.seen.data.y.cpu()[self.judges]]

    def held(self, network: BallotModel, in_sight: float | None = None) -> Tensor:
        """float64[sizes, judges]: 1 where the network is proved right about a judge at one of the sizes, or at this share of it."""
        part = self.in_sight if in_sight is None else in_sight
        tried, links, y = copy.deepcopy(network).cpu(), self.links.to("cpu"), self.seen.data.y.cpu()
        found = []
        for panel, threat in zip(self.panels, self.threats, strict=True):
            proofs = prove(tried.freeze(links, known=panel.known.cpu()), threat)
            right = torch.from_numpy(proofs.label == y[threat.nodes].numpy())
            size = torch.from_numpy(proofs.sizes(self.change).copy())
            found.append(torch.stack([_holds(size, k * part) * right for k in self.judged_at]))
        return torch.cat(found, dim=1)

    def proved(self, network: BallotModel, in_sight: float | None = None) -> list[float]:
        """The weighted share of judges for which the network is proved right at each of the sizes, or at this share of them."""
        return (self.held(network, in_sight) @ self.weight / self.weight.sum()).tolist()

    def clearly_better(self, network: BallotModel, plain: BallotModel) -> bool:
        """Whether the network is proved right about more than the plain one is, by more than chance among the judges may do."""
        more = (self.held(network) - self.held(plain)).mean(dim=0) * self.weight / self.weight.mean()
        chance = float(more.std()) / math.sqrt(len(more)) if len(more) > 1 else math.inf
        return float(more.mean()) > CLEARLY * chance

    def judge(self, network: BallotModel) -> float:
        """The same, averaged over the sizes."""
        return sum(self.proved(network)) / len(self.judged_at)


def _holds(size: Tensor, changes: float) -> Tensor:
    """float64: 1 for sizes that withstand so many changes; between two whole numbers, what holds at either counts in proportion."""
    fewer = math.floor(changes)
    return (fewer + 1 - changes) * (size >= fewer).double() + (changes - fewer) * (size > fewer).double()


def known_labels(y: Tensor, nodes: Tensor) -> Tensor:
    """int64[n]: the labels of these nodes, −1 elsewhere."""
    known = torch.full_like(y, -1)
    known[nodes] = y[nodes]
    return known


def presumed_labels(known: Tensor, trusted: Links, ballots: LabelBallots) -> Tensor:
    """int64[n]: known labels, and for every other node with links in the trusted graph what these ballots say of it there.

    Ballots made of these are proved against changes of rows that the trusted graph holds no link of.
    """
    model = ballots.freeze(trusted, known=known)
    with torch.no_grad():
        score = model(None, torch.stack([trusted.voter, trusted.target]))
    clear = score.amax(dim=1) > score.amin(dim=1)  # somebody has said something
    return torch.where((known < 0) & clear, score.argmax(dim=1), known)


def plain_panels(y: Tensor, labelled: Tensor, judges: Tensor) -> tuple[Panel, ...]:
    """One panel: the labels of labelled nodes are known to all but their bearers."""
    return (Panel(judges, known_labels(y, labelled)),)


def presuming_panels(
    y: Tensor, labelled: Tensor, judges: Tensor, trusted: Links, ballots: LabelBallots
) -> tuple[Panel, ...]:
    """Panels to which voters say presumed labels too; in what is presumed, no link and no label of a judge has a part.

    All judges in one panel, or in folds where labelled nodes would otherwise be lost to the rest.
    """
    known, folds = known_labels(y, labelled), FOLDS if len(judges) == len(labelled) else 1
    order = judges[torch.randperm(len(judges), generator=torch.Generator().manual_seed(len(judges)))]
    panels = []
    for fold in range(folds):
        held = order[fold::folds]
        others = known.clone()
        others[held] = -1
        presumed = presumed_labels(others, trusted.without(held), ballots)
        presumed[held] = known[held]
        panels.append(Panel(held, presumed))
    return tuple(panels)


def classroom_of(dataset: Dataset, seen: View, settings: BallotSettings) -> Classroom:
    """Validation nodes judge; without features nothing can be learnt by heart, so that training nodes judge as well.

    Labels are taken at their word, or for what they mean here where like does not go with like.
    """
    y, classes = seen.data.y, dataset.num_classes
    labelled = torch.cat([seen.val, seen.train])
    weights = torch.ones(classes, device=y.device)
    if settings.balanced:
        count = torch.bincount(y[labelled], minlength=classes).clamp(min=1)
        weights = len(labelled) / (classes * count.float())
    panels = plain_panels(y, labelled, seen.val if dataset.num_features else labelled)
    plain = Classroom(
        seen, panels, settings.judged_at, settings.change, weights, features=dataset.num_features > 0
    )
    return meaning_room(plain) if settings.meaning else plain


def presuming_room(dataset: Dataset, split: Split, plain: Classroom) -> Classroom:
    """The room in which voters say presumed labels too, if untrained label ballots prove more there; else the plain one."""
    seen, number = plain.seen, torch.full((len(dataset.labels),), -1)
    number[seen.kept.cpu()] = torch.arange(len(seen.kept))
    tested = number[split.test]
    trusted = plain.links.to("cpu").without(tested[tested >= 0])
    labelled = torch.cat([seen.val, seen.train]).cpu()
    panels = presuming_panels(
        seen.data.y.cpu(), labelled, plain.panels[0].judges.cpu(), trusted, plain.untrained
    )
    return better(replace(plain, panels=panels), plain)


def meaning_room(plain: Classroom) -> Classroom:
    """The room in which labels speak for those they are met beside, if like does not go with like and it proves more; else the plain one."""
    y, links = plain.seen.data.y.cpu(), plain.links.to("cpu")
    known = known_labels(y, plain.seen.train.cpu())
    if not unlike(links, known):
        return plain
    return better(replace(plain, meaning=meaning_of(links, known, plain.classes)), plain)


def better(room: Classroom, plain: Classroom) -> Classroom:
    """The room where untrained label ballots prove more; of two alike the plain one."""
    return room if room.judge(room.untrained) > plain.judge(plain.untrained) else plain
