"""Networks that flag one label, rare and important: the most that can be proved to stay flagged, at a precision that is asked for.

A trained ballot network, and every mixture of label ballots and own scores that learnt alone, are each made to say the label louder and
louder. On validation nodes the one is chosen that proves the most of its bearers, among those precise enough.
"""

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.ballots.links import Links
from unswayed.ballots.networks import BallotNetwork
from unswayed.datasets import Dataset, Split
from unswayed.datasets.own import check_parts
from unswayed.errors import DoubtfulSetting, InputError
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.ballots import fit_ballots, mixtures
from unswayed.models.training.classroom import known_labels
from unswayed.models.training.keeping import Progress
from unswayed.models.training.view import View, view
from unswayed.proving import prove
from unswayed.sampling.threads import threads
from unswayed.sampling.threats import Row

SHARES = np.linspace(0.02, 0.98, 97)  # of the validation nodes, that are flagged: what is tried


@dataclass(frozen=True)
class FlagSettings:
    """At which sizes the proved recall counts, each alike, and how the network among the candidates is trained: with rare labels
    counted as much as common ones, whatever is said there of that."""

    judged_at: tuple[int, ...] = (0, 1, 5, 10)
    network: BallotSettings = field(default_factory=BallotSettings)

    @property
    def balanced(self) -> BallotSettings:
        """How networks are trained that are to flag."""
        return replace(self.network, balanced=True, distil=False, presume=False)


@threads(1)
def fit_flags(
    dataset: Dataset,
    split: Split,
    *,
    precision: float,
    positive: int | str | None = None,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    settings: FlagSettings | None = None,
    progress: Progress | None = None,
) -> BallotNetwork:
    """The network that proves the most recall of the label `positive` on validation nodes, at no less than this precision there.

    `positive` is a class by number or name; by default 1, where classes have no names. The network is frozen on the whole graph with all
    labels but the test nodes', ready for `prove`. Under the inductive protocol test nodes, their features and their edges are absent from
    all training and choosing. A warning says so where no network is that precise.
    """
    chosen = settings or FlagSettings()
    flag = check_flags(dataset, split, precision, positive)
    judges = _Judges.of(view(dataset, split, protocol), flag, chosen.judged_at)
    trained = fit_ballots(
        dataset, split, protocol=protocol, seed=seed, device=device, settings=chosen.balanced, progress=progress
    )  # fmt: skip
    networks = [trained.cpu().thaw(), *mixtures(dataset, split, protocol, seed, chosen.balanced)]
    known = known_labels(dataset.labels, torch.cat([split.train, split.val]))
    network, found = judges.best(networks, precision, progress)
    network = network.freeze(dataset.graph, known=known).to(device)
    _found[network] = found
    return network


def judgement(network: BallotNetwork) -> "Judgement | None":
    """What validation nodes said of a network that `fit_flags` chose; None of any other."""
    return _found.get(network)


def check_flags(dataset: Dataset, split: Split, precision: float, positive: int | str | None) -> int:
    """The number of the class that is to be flagged; refused before anything is trained, where nothing could be chosen."""
    check_parts(dataset, split)
    if not 0 < precision <= 1:
        raise InputError(f"precision must be a share above 0 and up to 1, not {precision:g}.")
    if dataset.task != "node":
        raise InputError("Flags at a precision are for nodes, not for whole graphs.")
    flag = _place(dataset, positive)
    truly = int((dataset.labels[split.val] == flag).sum())
    if truly in (0, len(split.val)):
        name = dataset.class_names[flag] if dataset.class_names else f"of class {flag}"
        raise InputError(
            f"{'All' if truly else 'None'} of the {len(split.val):,} validation nodes {'are' if truly else 'is'} {name}, so they cannot say "
            "how precise a flag is; nodes of both kinds must be among them."
        )
    return flag


def _place(dataset: Dataset, positive: int | str | None) -> int:
    names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
    if positive is None and names[1] == "1":
        return 1
    place = names.index(positive) if isinstance(positive, str) and positive in names else positive
    if not isinstance(place, int | np.integer) or not 0 <= place < len(names):
        said = "has no default where classes have names" if positive is None else f"cannot be {positive!r}"
        raise InputError(f"positive {said}; it is one of {', '.join(names[:10])}, or its number from 0.")
    return int(place)


@dataclass(frozen=True)
class Judgement:
    """How a network did on the validation nodes that chose it, as their links are: so many of them it flags, `right` of those rightly.

    `recall` is the share of the label's bearers that is proved to stay flagged, averaged over the sizes that were asked for.
    """

    nodes: int
    flagged: int
    right: int
    recall: float

    @property
    def precision(self) -> float | None:
        """The share of right flags; None where nothing is flagged."""
        return self.right / self.flagged if self.flagged else None


_found: WeakKeyDictionary[BallotNetwork, Judgement] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Option:
    """A network that says the label louder by `shift`, and what it does to the judges as things are."""

    network: BallotNetwork
    shift: float
    precision: float
    recall: float


@dataclass(frozen=True, eq=False)
class _Judges:
    """The validation nodes, on the graph that may be seen, and the label that counts."""

    links: Links
    known: Tensor
    threat: Row
    truth: npt.NDArray[np.bool_]
    positive: int
    judged_at: Sequence[int]

    @classmethod
    def of(cls, seen: View, positive: int, judged_at: Sequence[int]) -> "_Judges":
        """All labels of the view's training and validation nodes are known, but none to its own bearer."""
        data = copy.copy(seen.data).cpu()
        known = known_labels(data.y, torch.cat([seen.train, seen.val]))
        truth = (data.y[seen.val] == positive).numpy()
        return cls(Links.of(data), known, Row(data, seen.val), truth, positive, judged_at)

    def best(
        self, networks: Sequence[BallotNetwork], precision: float, progress: Progress | None = None
    ) -> tuple[BallotNetwork, Judgement]:
        """The one that proves the most recall among those precise enough; where none is, the most precise."""
        options = [option for network in networks for option in self._louder(network)]
        best: tuple[BallotNetwork, Judgement] | None = None
        most = -1.0
        for turn, option in enumerate(sorted(options, key=lambda option: -option.recall), 1):
            if option.recall <= most:  # nothing is proved of what is not flagged
                break
            if progress is not None:
                progress(turn, len(options), f"flags, proved recall {max(most, 0.0):.3f}")
            if option.precision >= precision:
                network = louder(option.network, self.positive, option.shift)
                found = self.judge(network)
                if (found.precision or 0.0) >= precision and found.recall > most:
                    best, most = (network, found), found.recall
        if best is not None:
            return best
        nearest = max(options, key=lambda option: (option.precision, option.recall))
        warnings.warn(
            f"No network flags with a precision of {precision:g} on validation nodes; the most precise one has {nearest.precision:.3f} there.",
            DoubtfulSetting,
            stacklevel=4,
        )
        network = louder(nearest.network, self.positive, nearest.shift)
        return network, self.judge(network)

    def _louder(self, network: BallotNetwork) -> Iterator[_Option]:
        """The network so loud that more and more judges are flagged."""
        frozen = copy.deepcopy(network).freeze(self.links, known=self.known)
        with torch.no_grad():
            score = frozen(self.links.x, torch.stack([self.links.voter, self.links.target]))[
                self.threat.nodes
            ]
        weight = (
            network.tau + torch.bincount(self.links.target, minlength=self.links.nodes)[self.threat.nodes]
        )
        lead = score[:, self.positive].clone()
        score[:, self.positive] = -torch.inf
        behind = ((score.amax(dim=1) - lead) / weight).numpy()
        for shift in np.unique(np.quantile(behind, SHARES)):
            flagged = behind < shift
            right = float((flagged & self.truth).sum())
            yield _Option(
                network, float(shift), right / max(flagged.sum(), 1), right / max(self.truth.sum(), 1)
            )

    def judge(self, network: BallotNetwork) -> Judgement:
        """What it flags as things are, and what is proved to stay so."""
        proofs = prove(network.freeze(self.links, known=self.known), self.threat)
        flagged = proofs.label == self.positive
        right = flagged & self.truth
        held = [(right & (proofs.size >= size)).sum() for size in self.judged_at]
        recall = float(np.mean(held) / max(self.truth.sum(), 1))
        return Judgement(len(proofs), int(flagged.sum()), int(right.sum()), recall)


def louder(network: BallotNetwork, label: int, by: float) -> BallotNetwork:
    """The same network, in which every node, and what it hears over each link, says the label by so much louder."""
    out = copy.deepcopy(network).thaw()
    last: Any = out.own[-1] if out.in_channels else out.own  # type: ignore[index]
    with torch.no_grad():
        for weight in last.parameters():
            weight.mul_(out.own_weight)
        (last.bias if out.in_channels else last.values)[label] += by
        out.own_weight.fill_(1.0)
    return out.eval()
