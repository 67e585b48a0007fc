"""Training pair ballots: a network for whole graphs whose edges vote, taught to be right after the worst changes too.

Nodes with equal features say the same, so that a graph is what its nodes and links are, counted by kind; all graphs are
learnt at once. A network whose links are silent, which no attack on links can change, is always among what is tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from unswayed.ballots.pairs import PairBallots, merged
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models.training.keeping import Progress, seeded
from unswayed.models.training.stepping import descend
from unswayed.sampling.threads import threads

MOST = 2**27  # graphs times kinds of pairs that are kept in memory


@dataclass(frozen=True)
class PairSettings:
    """What is tried, and how it is learnt; folds of the development graphs choose, and the chosen one learns all of these."""

    attack_sizes: tuple[int | None, ...] = (None, 1, 3)  # trained against; None: links are silent
    judged_at: tuple[int, ...] = (0, 1, 2, 5)
    steps: int = 300
    warm_up: int = 50  # steps before the worst case begins to count
    worst_weight: float = 0.5
    lr: float = 0.02
    weight_decay: float = 1e-3
    folds: int = 3


@dataclass(frozen=True, eq=False)
class Counted:
    """Graphs by what they are made of: `kinds` [D, F] of nodes and pairs of them, `nodes` [G, D] and `links` [G, R] counts.

    `free` and `linked` bool[G, R] say whether pairs of that kind are left to be linked, or to be cut; `scale` makes scores logits.
    """

    kinds: Tensor
    ends: Tensor
    nodes: Tensor
    links: Tensor
    free: Tensor
    linked: Tensor
    y: Tensor
    scale: float

    @classmethod
    def of(cls, graphs: Sequence[Data], y: Tensor) -> "Counted":
        """The counts of these graphs."""
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        kinds, kind = torch.unique(torch.cat([graph.x for graph in graphs]), dim=0, return_inverse=True)
        many = len(kinds)
        if len(graphs) * many**2 > 2 * MOST:
            raise InputError(
                f"The nodes have {many} different rows of features, too many for pairs of them to vote; use fewer features."
            )
        first, second = torch.tril_indices(many, many)
        owner = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
        nodes = torch.zeros(len(graphs), many).index_put_((owner, kind), torch.tensor(1.0), accumulate=True)
        starts = sizes.cumsum(0) - sizes
        joined = [graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)]
        one, other = merged(torch.cat(joined, dim=1), len(owner))
        high, low = torch.maximum(kind[one], kind[other]), torch.minimum(kind[one], kind[other])
        place = high * (high + 1) // 2 + low
        links = torch.zeros(len(graphs), len(first))
        links.index_put_((owner[one], place), torch.tensor(1.0), accumulate=True)
        pairs = nodes[:, first] * (nodes[:, second] - (first == second).float())
        pairs = torch.where(first == second, pairs / 2, pairs)
        return cls(kinds, torch.stack([first, second]), nodes, links, pairs > links, links > 0, y, float(sizes.float().mean()) ** 0.5)  # fmt: skip

    def to(self, device: str) -> "Counted":
        """The same on a device."""
        moved: dict[str, Any] = {
            name: part.to(device) for name, part in vars(self).items() if isinstance(part, Tensor)
        }
        return replace(self, **moved)

    def take(self, graphs: Tensor) -> "Counted":
        """These graphs alone."""
        parts = {name: getattr(self, name)[graphs] for name in ("nodes", "links", "free", "linked", "y")}
        return replace(self, **parts)

    def centred(self) -> "Counted":
        """The same less the average graph, which lets single kinds be learnt; the average's score is a constant."""
        return replace(
            self, nodes=self.nodes - self.nodes.mean(dim=0), links=self.links - self.links.mean(dim=0)
        )

    def scores(self, network: PairBallots) -> tuple[Tensor, Tensor]:
        """[G, C] what is said of each graph, and [R, C] what each kind of pair says."""
        said = network.pair_ballots(self.kinds[self.ends[0]], self.kinds[self.ends[1]])
        return network.base + self.nodes @ network.own(self.kinds) + self.links @ said, said

    def margins(self, network: PairBallots) -> tuple[Tensor, Tensor]:
        """[G, C] twice: how far the label is ahead of each class, and the most that one change can take from that."""
        score, said = self.scores(network)
        margin = score.gather(1, self.y[:, None]) - score
        # [C, G, R]: what a pair says for a class, less for the label
        against = said.T[:, None] - said.T[self.y]
        adding = against.masked_fill(~self.free, 0).amax(dim=2)
        deleting = (-against).masked_fill(~self.linked, 0).amax(dim=2)
        return margin / self.scale, torch.maximum(adding, deleting).T / self.scale

    def judge(self, network: PairBallots, sizes: Sequence[int]) -> float:
        """The share of graphs that stay right after any so many changes, averaged over the sizes; a lower bound."""
        with torch.no_grad():
            margin, harm = self.margins(network)
        rivals = functional.one_hot(self.y, margin.shape[1]) == 0
        holds = [((margin - size * harm > 0) | ~rivals).all(dim=1).float().mean() for size in sizes]
        return float(torch.stack(holds).mean())


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
    chosen = settings or PairSettings()
    known = torch.cat([split.train, split.val])
    graphs = [dataset.graphs[place] for place in known.tolist()]
    if not dataset.num_features:
        graphs = [Data(x=torch.ones(graph.num_nodes, 1), edge_index=graph.edge_index) for graph in graphs]
    counted = Counted.of(graphs, dataset.labels[known]).to(device)
    mixed = torch.randperm(len(known), generator=torch.Generator().manual_seed(seed)).to(device)
    options = chosen.attack_sizes
    total, scores = len(options) * chosen.folds + 1, [0.0] * len(options)
    for place, size in enumerate(options):
        for fold in range(chosen.folds):
            held = torch.arange(len(mixed), device=device) % chosen.folds == fold
            network = _taught(dataset, counted.take(mixed[~held]), size, chosen, seed, device)
            scores[place] += counted.take(mixed[held]).judge(network, chosen.judged_at) / chosen.folds
            if progress is not None:
                progress(place * chosen.folds + fold + 1, total, f"proved {max(scores):.3f}")
    best = options[max(range(len(options)), key=scores.__getitem__)]
    network = _taught(dataset, counted, best, chosen, seed, device)
    if progress is not None:
        progress(total, total, f"proved {max(scores):.3f}")
    return network.cpu().eval()


def _taught(
    dataset: Dataset,
    counted: Counted,
    size: int | None,
    settings: PairSettings,
    seed: int,
    device: str,
) -> PairBallots:
    """A network after it has learnt these graphs' labels, and to withstand so many changes of their links."""
    with seeded(seed, device):
        network = PairBallots(dataset.num_features, dataset.num_classes).to(device)
        if size is None:
            for weight in network.voice.parameters():
                nn.init.zeros_(weight).requires_grad_(False)
        weights = [weight for weight in network.parameters() if weight.requires_grad]
        optimiser = torch.optim.Adam(weights, lr=settings.lr, weight_decay=settings.weight_decay)
        lesson = counted.centred()
        for step in range(settings.steps):
            share = settings.worst_weight * min(max(step - settings.warm_up, 0) / settings.warm_up, 1.0)
            margin, harm = lesson.margins(network)
            loss = (1 - share) * functional.cross_entropy(-margin, counted.y)
            loss = loss + share * functional.cross_entropy(-(margin - (size or 0) * harm), counted.y)
            descend(optimiser, loss)
        with torch.no_grad():
            network.base.add_((lesson.scores(network)[0] - counted.scores(network)[0])[0])
    return network
