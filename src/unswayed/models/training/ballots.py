"""Certified training of ballot networks: they learn to be right, and to stay right after the worst changes of a row.

Training starts from label ballots, which need none. In each step half of the known labels are hidden, and the nodes that
bear them are what is learnt from, so that no label echoes back to its own node. Untrained label ballots, and the network
with its ballots off (a model that ignores edges), are always among what the validation nodes choose from.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unswayed.ballots.links import Links
from unswayed.ballots.networks import BallotNetwork
from unswayed.datasets import Dataset, Split
from unswayed.models.side_by_side import Weights
from unswayed.models.training.aims import Aims, aims_of
from unswayed.models.training.asked import settled
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.classroom import (
    ENOUGH,
    Classroom,
    classroom_of,
    known_labels,
    presumed_labels,
    presuming_room,
)
from unswayed.models.training.keeping import Best, Progress, ThinDropout, seeded
from unswayed.models.training.own_scores import MEMBERS, OwnScores
from unswayed.models.training.stepping import descend
from unswayed.models.training.view import view
from unswayed.models.training.worst import Rows, margins, most_against, worst_harm
from unswayed.sampling.threads import threads

# how clearly own scores speak beside label ballots, as a start: their usual lead, in ballots
LEANINGS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
# how much louder or softer own scores are tried after training
LOUDER = (0.5, 0.7, 1.4, 2.0, 2.8, 4.0)
TINY = 1e-6


@threads(1)
def fit_ballots(
    dataset: Dataset,
    split: Split,
    *,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    settings: BallotSettings | None = None,
    teacher: Tensor | None = None,
    progress: Progress | None = None,
) -> BallotNetwork:
    """The network that proved the most on validation nodes, frozen on the whole graph with all labels but the test nodes'.

    Under the inductive protocol test nodes, their features and their edges are absent from all training and choosing; they
    are there when the network is frozen, where nothing is learnt any more. Where like does not go with like, labels speak for
    those they are met beside. Where it helped, voters also say presumed labels,
    made on the graph without any link of a test node; then only test nodes can be proved.
    """
    chosen = settled(settings, BallotSettings)
    seen = view(dataset, split, protocol).to(device)
    plain = classroom_of(dataset, seen, chosen)
    plain.tell_if_too_little()
    teach = _Teaching(dataset, plain, chosen, seed, device).aiming(protocol, teacher)
    presume = chosen.presume and chosen.voters == "two-hop" and not teach.aims.features_lead
    presuming = presuming_room(dataset, split, plain) if presume else plain
    # two, where untrained ballots prove more by presuming
    rooms = [plain] if presuming is plain else [presuming, plain]
    tried = [replace(teach, room=room) for room in rooms]
    found = [_best_of_all(each, progress, (turn, len(tried))) for turn, each in enumerate(tried)]
    best = max(found, key=lambda each: each.score)
    room, network = rooms[found.index(best)], teach.restored(best)
    known = known_labels(dataset.labels, torch.cat([split.train, split.val]))
    if room is plain:  # whom a snapshot has seen is known to the network itself
        return network.cpu().freeze(dataset.graph, known=known).to(device)
    trusted = Links.of(dataset.graph).without(split.test)
    frozen = network.cpu().freeze(dataset.graph, known=presumed_labels(known, trusted, room.untrained))
    others = torch.ones(trusted.nodes, dtype=torch.bool).index_fill(0, split.test, False)
    return frozen.keep(seen=others).to(device)


@threads(1)
def mixtures(
    dataset: Dataset, split: Split, protocol: str, seed: int, settings: BallotSettings
) -> list[BallotNetwork]:
    """Networks of which own scores alone have learnt: every way in which training may mix them with label ballots, at every `tau`."""
    room = classroom_of(dataset, view(dataset, split, protocol), settings)
    teach = _Teaching(dataset, room, settings, seed, "cpu").aiming(protocol, None)
    return [mixed for tau in settings.taus for mixed in teach.mixed(tau)]


def _best_of_all(teach: "_Teaching", progress: Progress | None, part: tuple[int, int]) -> Best:
    """The weights, and `tau`, that judged best over everything that was tried; `part` says which of how many such turns this is."""
    settings, best = teach.settings, Best()
    total = part[1] * len(settings.taus) * settings.steps
    for turn, tau in enumerate(settings.taus, part[0] * len(settings.taus)):
        candidate, taught = teach.start(tau, best), Best()
        with seeded(teach.seed, teach.device):
            for step in teach.learning(candidate, taught):
                if progress is not None and step % settings.check_every == 0:
                    score = max(taught.score, best.score or 0.0)
                    progress(turn * settings.steps + step, total, f"validation {score:.3f}")
        teach.tune(taught)
        if best.score is None or taught.score > best.score:
            best = taught
    if progress is not None:
        progress(total * (part[0] + 1) // part[1], total, f"validation {best.score:.3f}")
    return best if teach.sure_of(best) else teach.as_begun()


@dataclass(frozen=True, eq=False)
class _Teaching:
    """Everything that stays the same while candidates are trained."""

    dataset: Dataset
    room: Classroom
    settings: BallotSettings
    seed: int
    device: str
    own: tuple[Weights, ...] = ()  # own scores that learnt alone, the better ones first
    aims: Aims = field(default_factory=Aims)

    @property
    def attack(self) -> int:
        """The changes to learn against, where not the whole graph is in sight."""
        return max(1, round(self.settings.withstood * self.room.in_sight))

    def aiming(self, protocol: str, teacher: Tensor | None) -> "_Teaching":
        """The same with own scores that learnt alone, and the aims that follow from them."""
        taught = replace(self, own=tuple(self.own_scores(protocol, teacher)))
        silent = _ballots_off(taught.with_own(self.settings.taus[0])) if taught.own else None
        return replace(taught, aims=aims_of(self.room, silent, self.settings.counted_to))

    def with_own(self, tau: float, place: int = 0) -> BallotNetwork:
        """An untrained network whose own scores have learnt alone, but say nothing yet."""
        network = self.network(tau)
        if self.own:
            network.own.load_state_dict(self.own[place])
        return network

    def start(self, tau: float, best: Best) -> BallotNetwork:
        """Where training begins: at label ballots; mixtures of these and of own scores that learnt alone are offered as they are.

        Where features say more than links, own scores begin anew: those that learnt alone are too sure of the training nodes,
        and beside them links would learn nothing.
        """
        for mixed in self.mixed(tau):
            self._offer(best, mixed)
        return self.network(tau) if self.aims.features_lead else self.with_own(tau)

    def mixed(self, tau: float) -> Iterator[BallotNetwork]:
        """Own scores that learnt alone, without ballots, and beside untrained label ballots, from softly to loudly."""
        for place in range(len(self.own)):
            yield _ballots_off(self.with_own(tau, place))
            for lead in LEANINGS:
                mixed = self.with_own(tau, place)
                with torch.no_grad():
                    mixed.own_weight.fill_(lead / self._usual_lead(mixed))
                yield mixed.eval()

    def tune(self, best: Best) -> None:
        """Offer the best network with its own scores, which the training nodes have made too sure or too shy, louder and softer."""
        network = self.restored(best)
        for factor in LOUDER:
            tuned = copy.deepcopy(network)
            with torch.no_grad():
                tuned.own_weight.mul_(factor)
            self._offer(best, tuned.eval())

    def _usual_lead(self, network: BallotNetwork) -> float:
        """By how much own scores prefer one class to the next, for the median validation node."""
        seen = self.room.seen
        first, second = network.eval().own(seen.data.x[seen.val]).topk(2, dim=1).values.T
        return max(float((first - second).median()), TINY)

    def network(self, tau: float) -> BallotNetwork:
        """An untrained network; the seed decides its weights."""
        return self._drawn(self.seed, MEMBERS * self.settings.hidden, tau)

    def _drawn(self, seed: int, own_hidden: int, tau: float = 1.0) -> BallotNetwork:
        settings = self.settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = BallotNetwork(
                self.dataset.num_features, self.room.classes, hidden=settings.hidden, own_hidden=own_hidden,
                voters=settings.voters, tau=tau, meaning=self.room.meaning,
            )  # fmt: skip
        return network.to(self.device)

    def restored(self, best: Best) -> BallotNetwork:
        """The network that was kept."""
        assert best.weights is not None
        weights = dict(best.weights)
        network = self.network(weights.pop("tau").item())
        network.load_state_dict(weights)
        return network

    def sure_of(self, best: Best) -> bool:
        """Whether to prefer this to untrained label ballots; judges few of whose links are in sight take a chance for a gain."""
        if self.aims.features_lead or self.room.seen.share >= ENOUGH:
            return True
        return self.room.clearly_better(self.restored(best), self.room.untrained)

    def as_begun(self) -> Best:
        """Untrained label ballots as a network."""
        best = Best()
        self._offer(best, self.network(self.settings.taus[0]).eval())
        return best

    def own_scores(self, protocol: str, teacher: Tensor | None) -> list[Weights]:
        """Weights of own scores that learnt alone, from labels and from a teacher; without features there is nothing to learn."""
        if not self.dataset.num_features:
            return []
        alone = OwnScores(
            lambda seed: self._drawn(seed, self.settings.hidden).own,
            self.room.seen, self.room.classes, self.seed, self.device,
            self.room.weights if self.settings.balanced else None,
        )  # fmt: skip
        return alone.best(protocol, distil=self.settings.distil, teacher=teacher)

    def learning(self, network: BallotNetwork, best: Best) -> Iterator[int]:
        """Train step by step, offering `best` the network untrained, with its ballots off, and after every few steps."""
        settings, links = self.settings, self.room.links
        scalars = [network.own_weight, network.voice_weight, network.label_weight]
        others = [p for p in network.parameters() if all(p is not scalar for scalar in scalars)]
        groups: list[dict[str, Any]] = [
            {"params": others, "weight_decay": settings.weight_decay},
            {"params": scalars},
        ]
        optimiser = torch.optim.Adam(groups, lr=settings.lr)
        dropped = ThinDropout(links.x, settings.input_dropout) if links.x is not None else None
        starts = links.starts()
        self._offer(best, network)
        if not self.aims.features_lead:
            self._offer(best, _ballots_off(network))
        leads = () if self.dataset.num_features else (1, 2, settings.withstood, 2 * settings.withstood)
        for votes in leads:
            self._offer(best, self._with_default(network, votes))
        if not self.room.enough_to_learn:
            return
        better = 0
        for step in range(1, settings.steps + 1):
            network.train()
            shown = links if dropped is None else replace(links, x=dropped())
            descend(optimiser, self._loss(network, shown, starts, step))
            if step % settings.check_every == 0 or step == settings.steps:
                before = best.score
                self._offer(best, network.eval())
                better = step if best.score > before else better
            yield step
            if step - max(better, 2 * settings.warm_up) >= settings.patience:
                return

    def _with_default(self, network: BallotNetwork, votes: int) -> BallotNetwork:
        """The network in which the most common label starts so many votes ahead, for nodes of which little is said."""
        lead, labels = copy.deepcopy(network), self.room.known[self.room.known >= 0]
        common = functional.one_hot(labels.bincount(minlength=self.room.classes).argmax(), self.room.classes)
        with torch.no_grad():
            lead.own.get_parameter("values").copy_(votes / network.tau * common)
            lead.own_weight.fill_(1.0)
        return lead.eval()

    def _offer(self, best: Best, network: BallotNetwork) -> float:
        """How well this network is judged, which is kept if better than all before; of two equal ones the earlier, simpler one."""
        score = self.aims.score(self.room.proved(network))
        if best.score is None or score > best.score:
            best.score = score
            best.weights = {**copy.deepcopy(network.state_dict()), "tau": torch.tensor(network.tau)}
        return score

    def _loss(self, network: BallotNetwork, links: Links, starts: Tensor, step: int) -> Tensor:
        """Cross-entropy of the margins now, and of what the worst changes of the row leave of them.

        The labels of all targets are hidden, so that neighbours say to them what they would say to newcomers.
        """
        settings, room, train = self.settings, self.room, self.room.seen.train
        learnt = train[torch.randperm(len(train), device=train.device)][: max(len(train) // 2, 1)]
        said = network.newcomers(links, room.known.index_fill(0, learnt, -1))
        share = settings.worst_share(step)
        against = most_against(said, self.attack) if share else None
        loss, weight = torch.zeros((), device=said.device), torch.zeros((), device=said.device)
        parts = Rows.alike(starts, learnt[: settings.batch])
        targets = torch.cat([rows.targets for rows in parts])
        spoken = network.own_scores(None if links.x is None else links.x[targets], len(targets))
        each = torch.split(spoken, [len(rows.targets) for rows in parts])
        for rows, own in zip(parts, each, strict=True):
            label = room.seen.data.y[rows.targets]
            heard = said[links.voter[rows.place]]
            margin = margins(own, heard, rows, label, network.tau)
            scale = (2 + rows.degree)[:, None] / settings.sharpness  # a margin per link, whatever the degree
            loss = loss + (1 - share) * self._wrong(margin / scale, label)
            if against is not None:
                harm = worst_harm(own, heard, against, rows, label, self.attack, settings.change)
                attacked = (margin - harm) / (scale + self.attack / settings.sharpness)
                loss = loss + share * self._wrong(attacked, label)
            weight = weight + room.weights[label].sum()
        return loss / weight

    def _wrong(self, margin: Tensor, label: Tensor) -> Tensor:
        """The sum of weighted cross-entropies of these margins as logits."""
        return functional.cross_entropy(-margin, label, weight=self.room.weights, reduction="sum")


def _ballots_off(network: BallotNetwork) -> BallotNetwork:
    """The network as a model of a node's own features: no edge can change what it says."""
    silent = copy.deepcopy(network)
    with torch.no_grad():
        silent.own_weight.fill_(1.0)
        silent.label_weight.fill_(0.0)
        silent.voice_weight.fill_(0.0)
    return silent.eval()
