"""The teacher of `distill`: an average of clean-graph networks whose soft labels say what the graph knows of a node."""

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import Linear

from unswayed.ballots.links import Links
from unswayed.ballots.networks import LabelBallots
from unswayed.models.networks import DROPOUT
from unswayed.models.training.clean import CleanSettings, fit_clean
from unswayed.models.training.keeping import accuracy, seeded
from unswayed.models.training.spreading import Spread
from unswayed.models.training.view import View
from unswayed.sampling.threads import threads

MEMBERS = 3  # networks whose answers are averaged
HOPS, RETURN = 10, 0.1  # of personalised PageRank
EVERY_TEACHER = ("label ballots", "networks")


class Convolutions(nn.Module):
    """Two symmetrically normalised graph convolutions (Kipf and Welling 2017) on one graph, 64 hidden channels."""

    def __init__(self, spread: Spread, num_features: int, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.spread = spread
        self.first = Linear(num_features, hidden, bias=False, weight_initializer="glorot")
        self.second = Linear(hidden, num_classes, bias=False, weight_initializer="glorot")
        self.shifts = nn.ParameterList([torch.zeros(hidden), torch.zeros(num_classes)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = (self.spread(self.first(x)) + self.shifts[0]).relu()
        x = functional.dropout(x, DROPOUT, self.training)
        out: Tensor = self.spread(self.second(x)) + self.shifts[1]
        return out


class Propagation(nn.Module):
    """A perceptron whose answers are spread over one graph by personalised PageRank (Gasteiger et al. 2019)."""

    def __init__(self, spread: Spread, num_features: int, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.spread = spread
        self.first = nn.Linear(num_features, hidden)
        self.second = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        x = functional.dropout(self.first(x).relu(), DROPOUT, self.training)
        said: Tensor = self.second(x)
        out = said
        for _ in range(HOPS):
            out = (1 - RETURN) * self.spread(out) + RETURN * said
        return out


TEACHERS: dict[str, Callable[[Spread, int, int], nn.Module]] = {"gcn": Convolutions, "appnp": Propagation}


@threads(1)
def soft_labels(
    seen: View, num_classes: int, *, seed: int, device: str, done: Callable[[str], None] | None = None
) -> Tensor:
    """float[n, C]: what the teacher that did best on the validation nodes says of every node it may see.

    Training nodes keep their true labels. `done` is told of each network that has learnt.
    """
    settings, spread = CleanSettings(), Spread(seen.data)
    answers: dict[str, Tensor] = {}
    for name, make in TEACHERS.items():
        answers[name] = torch.zeros(seen.data.num_nodes, num_classes, device=device)
        for member in range(MEMBERS):
            with seeded(seed * MEMBERS + member, device):
                network = fit_clean(
                    make(spread, seen.data.num_features, num_classes).to(device), seen, settings=settings
                )
                with torch.no_grad():
                    answers[name] += network(seen.data.x, seen.data.edge_index).softmax(dim=1) / MEMBERS
            if done is not None:
                done(f"teacher {name}")
    best = max(answers.values(), key=lambda soft: accuracy(soft[seen.val], seen.data.y[seen.val]))
    best[seen.train] = functional.one_hot(seen.data.y[seen.train], num_classes).to(best.dtype)
    return best


@threads(1)
def taught(
    seen: View,
    classes: int,
    *,
    seed: int = 0,
    device: str = "cpu",
    teachers: Iterable[str] = EVERY_TEACHER,
    done: Callable[[str], None] | None = None,
) -> Tensor:
    """float[n, C]: what the best teacher says of every node it may see; training nodes keep their true labels.

    `done` is told of each network that has learnt.
    """
    answers = [
        _spoken(seen, classes)
        if name == EVERY_TEACHER[0]
        else soft_labels(seen, classes, seed=seed, device=device, done=done)
        for name in teachers
    ]
    best = max(answers, key=lambda soft: accuracy(soft[seen.val], seen.data.y[seen.val]))
    best[seen.train] = functional.one_hot(seen.data.y[seen.train], classes).to(best.dtype)
    return best


def _spoken(seen: View, classes: int) -> Tensor:
    """The shares of what label ballots say of each node; nobody's own label enters its own score."""
    data, told = copy.copy(seen.data).cpu(), torch.cat([seen.train, seen.val]).cpu()
    known = torch.full_like(data.y, -1).index_copy(0, told, data.y[told])
    scores: Tensor = LabelBallots(classes).freeze(Links.of(data), known=known)(data.x, data.edge_index) + 1e-6
    return (scores / scores.sum(dim=1, keepdim=True)).to(seen.data.x)
