"""Training pair ballots: a network for whole graphs whose edges vote, taught to be right after the worst changes too.

Every structure-free model that the floor is chosen from is among what is tried, as a network whose links are silent: no attack on links can
change it. Others let links vote, beside nodes that begin anew or as the best of those models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from unswayed.ballots.pairs import PairBallots
from unswayed.datasets import Dataset, Split
from unswayed.models.ensembles import Ensemble, Member
from unswayed.models.floors.graphs import COUNTS, FOLDS, counts_taught, development, folds
from unswayed.models.floors.judging import most_common
from unswayed.models.training.asked import settled
from unswayed.models.training.counted import Counted
from unswayed.models.training.keeping import Progress, seeded
from unswayed.models.training.stepping import descend
from unswayed.sampling.threads import threads

MEMBERS = 5
AT_ONCE = 2**18  # kinds of pairs, over all graphs of a step
QUIET = 0.01  # spread of the weights of links' voices at first: nodes are heard before them


@dataclass(frozen=True)
class Voting:
    """How links learn to vote: against attacks of this size, beside nodes that begin anew, or as the best structure-free model."""

    attack_size: int
    anew: bool
    worst_weight: float  # of being right after the attack; the rest is for being right without


@dataclass(frozen=True)
class PairSettings:
    """What is tried, and how it is learnt; folds of the development graphs choose, and the chosen one learns all of these."""

    voting: tuple[Voting, ...] = (Voting(1, True, 0.5), Voting(3, True, 0.5), Voting(1, False, 0.9), Voting(3, False, 0.9))  # fmt: skip
    silent: tuple[str, ...] = tuple(
        COUNTS
    )  # structure-free models by the floor's names; the most common label is always there
    judged_at: tuple[int, ...] = (0, 1, 2, 5)
    steps: int = 400
    warm_up: int = 80  # steps before the worst case begins to count, and until it counts in full
    batch: int = 256
    lr: float = 0.01
    own_lr: float = 0.1  # how much slower than links nodes learn that have learnt before
    weight_decay: float = 1e-3


@threads(1)
def fit_pairs(
    dataset: Dataset,
    split: Split,
    *,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    settings: PairSettings | None = None,
) -> PairBallots:
    """Pair ballots in evaluation mode that are proved for the most graphs of folds they had not learnt; `prove` freezes them."""
    lessons = _Lessons(dataset, split, settled(settings, PairSettings), seed, device, progress)
    return lessons.best().cpu().eval()


class _Lessons:
    """Everything that is tried on one split."""

    def __init__(
        self,
        dataset: Dataset,
        split: Split,
        settings: PairSettings,
        seed: int,
        device: str,
        told: Progress | None,
    ) -> None:
        self.dataset, self.settings, self.seed, self.device, self.told = dataset, settings, seed, device, told
        self.known = development(split, seed)
        self.common = most_common(dataset.labels, split)
        self.place = torch.full((len(dataset.labels),), -1).index_copy(
            0, self.known, torch.arange(len(self.known))
        )
        self.counted = Counted.of(_seen(dataset, self.known), dataset.labels[self.known]).to(device)
        self.done, self.most = 0, 0.0

    def best(self) -> PairBallots:
        """The network that did best on folds, taught all graphs; of equals the first, so that links speak only where it helps."""
        parts, silent = folds(self.known), self.settings.silent
        heard = {name: [self.alone(name, others) for _, others in parts] for name in silent}
        merit = [self.judged(heard[name], parts) for name in silent]
        begin = silent[max(range(len(silent)), key=merit.__getitem__)]
        merit.append(self.judged([self.constant()] * len(parts), parts))
        for voting in self.settings.voting:
            networks = [
                self.taught(voting, own, others) for own, (_, others) in zip(heard[begin], parts, strict=True)
            ]
            merit.append(self.judged(networks, parts))
        chosen = max(range(len(merit)), key=merit.__getitem__)
        if chosen == len(silent):
            return self.constant()
        if chosen < len(silent):
            return self.alone(silent[chosen], self.known)
        return self.taught(
            self.settings.voting[chosen - len(silent) - 1], self.alone(begin, self.known), self.known
        )

    def judged(self, networks: Sequence[PairBallots], parts: Sequence[tuple[Tensor, Tensor]]) -> float:
        """The share of graphs that are proved, averaged over sizes, each by the network that had not learnt it."""
        right = [
            self.graphs(held).proved(network, self.settings.judged_at)
            for network, (held, _) in zip(networks, parts, strict=True)
        ]
        self.most = max(self.most, sum(right) / len(self.known))
        return sum(right) / len(self.known)

    def graphs(self, chosen: Tensor) -> Counted:
        """The counts of these graphs."""
        return self.counted.take(self.place[chosen].to(self.device))

    def alone(self, name: str, graphs: Tensor) -> PairBallots:
        """A network with silent links that answers as the structure-free model of this name does after learning these graphs."""
        network = self.silent(COUNTS[name][0])
        _listen(network, counts_taught(name, self.dataset, graphs, self.seed))
        self.tell()
        return network.to(self.device)

    def silent(self, readout: str) -> PairBallots:
        """A network whose links say nothing; the seed decides even the weights that are not heard, as they are part of its hash."""
        with seeded(self.seed, "cpu"):
            return _network(self.dataset, readout)

    def constant(self) -> PairBallots:
        """A network that always says the most common label."""
        network = self.silent("linear")
        with torch.no_grad():
            for member in network.own.members:
                assert isinstance(member, nn.Linear)
                nn.init.zeros_(member.weight)
                member.bias.copy_(torch.arange(len(member.bias)) == self.common)
        return network.to(self.device)

    def taught(self, voting: Voting, own: PairBallots, graphs: Tensor) -> PairBallots:
        """A network whose links vote, after it has learnt these graphs' labels, and to withstand so many changes of their links."""
        lesson = self.graphs(graphs)
        with seeded(self.seed, self.device):
            network = _network(self.dataset, "mlp" if voting.anew else own.own.readout, silent=False)
            if voting.anew:
                network.own.standardise(lesson.sums.cpu())
            else:
                network.own.load_state_dict(own.own.state_dict())
            network.to(self.device)
            _learn(network, lesson, voting, self.settings)
        self.tell()
        return network

    def tell(self) -> None:
        """Say that one more network has learnt."""
        self.done += 1
        total = (len(self.settings.silent) + len(self.settings.voting)) * FOLDS + 2
        if self.told is not None:
            self.told(min(self.done, total), total, f"proved {self.most:.3f}")


def _seen(dataset: Dataset, chosen: Tensor) -> list[Data]:
    """These graphs, with features that are all alike where they have none."""
    graphs = [dataset.graphs[place] for place in chosen.tolist()]
    if dataset.num_features:
        return graphs
    return [Data(x=torch.ones(graph.num_nodes, 1), edge_index=graph.edge_index) for graph in graphs]


def _network(dataset: Dataset, readout: str, *, silent: bool = True) -> PairBallots:
    """A network to begin with; links say nothing yet, or next to nothing."""
    network = PairBallots(dataset.num_features, dataset.num_classes, members=MEMBERS, readout=readout)
    for voice in network.voice:
        assert isinstance(voice, nn.Linear)
        nn.init.zeros_(voice.bias)
        nn.init.zeros_(voice.weight) if silent else nn.init.normal_(voice.weight, std=QUIET)
    return network


def _listen(network: PairBallots, ensemble: Ensemble) -> None:
    """Let the nodes say what this ensemble says of them."""
    for own, member in zip(network.own.members, ensemble.members, strict=True):
        assert isinstance(member, Member)
        own.load_state_dict(member.own.state_dict())
        network.own.centre.copy_(member.centre)
        network.own.rate.copy_(member.rate)


def _learn(network: PairBallots, lesson: Counted, voting: Voting, settings: PairSettings) -> None:
    """Each member learns by itself, as members of an ensemble do; all on the same graphs in a step."""
    slower = 1.0 if voting.anew else settings.own_lr
    links = [weight for name, weight in network.named_parameters() if not name.startswith("own.")]
    groups: list[dict[str, Any]] = [
        {"params": links},
        {"params": list(network.own.parameters()), "lr": settings.lr * slower},
    ]
    optimiser = torch.optim.Adam(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps, eta_min=settings.lr / 50)
    count = len(lesson.y)
    batch = max(1, min(settings.batch, count, AT_ONCE * count // max(len(lesson.owner), 1)))
    for step in range(settings.steps):
        part = lesson.take(torch.randperm(count)[:batch].to(lesson.y.device))
        share = voting.worst_weight * min(max(step - settings.warm_up, 0) / settings.warm_up, 1.0)
        descend(optimiser, _loss(part, network, voting.attack_size, share))
        schedule.step()


def _loss(part: Counted, network: PairBallots, size: int, share: float) -> Tensor:
    """Cross-entropy of each member's margins as they are, and after the worst changes, which have this share; summed over members."""
    margin, harm = part.margins(*part.scores(network))
    y = part.y.expand(len(margin), -1)
    before, after = (
        functional.cross_entropy(-left.flatten(0, 1), y.flatten()) for left in (margin, margin - size * harm)
    )
    return len(margin) * ((1 - share) * before + share * after)
