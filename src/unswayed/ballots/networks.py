"""The ballot models of the package: LabelBallots, which needs no training, and BallotNetwork, which starts from it."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from unswayed.ballots.fixed import LARGEST, SCALE
from unswayed.ballots.labels import (
    Said,
    meant,
    one_hop,
    own_labels,
    read_known,
    to_newcomers,
    two_hop,
    unlike,
)
from unswayed.ballots.links import Links, in_one_order
from unswayed.ballots.models import BallotModel
from unswayed.errors import DoubtfulSetting, InputError
from unswayed.sampling.inputs import read_graph
from unswayed.sampling.modes import evaluating

SHARPNESS = 16
DROPOUT = 0.5  # of hidden channels, in training


TELL = "LabelBallots say known labels; give them first, as in model.freeze(data, known=labels)."


class LabelBallots(BallotModel):
    """Neighbours vote with known labels, their own or their other neighbours': no training, and an exact K from the start.

    `sharpness` turns a voter's shares into a clear word; `tau` is kept with the model and does not matter, as a node says
    nothing of itself. `meaning` is for graphs where like does not go with like: `meaning_of(data, known)`.
    """

    reads_links = True

    def __init__(
        self, classes: int, *, sharpness: float = SHARPNESS, tau: float = 0.5, meaning: Any = None
    ) -> None:
        super().__init__(classes, tau, meaning)
        if not isinstance(sharpness, int | float) or not 0 < sharpness < 2**20:
            raise InputError(f"sharpness must be a number above 0, not {sharpness!r}.")
        self.sharpness = float(sharpness)

    def extra_repr(self) -> str:
        """The settings."""
        meaning = "" if self.meaning is None else ", meaning=…"
        return f"classes={self.classes}, sharpness={self.sharpness:g}, tau={self.tau:g}{meaning}, frozen={self.frozen}"

    def freeze_for(self, threat: Any) -> None:
        """Refused: without known labels nobody has anything to say."""
        raise InputError(TELL)

    def freeze(self, data: Any, known: Any = None) -> Self:
        """The model itself, with what these known labels say fixed as whole numbers; without any it would answer the same to all."""
        if known is None:
            raise InputError(TELL)
        frozen = super().freeze(data, known)
        if not isinstance(data, Links):  # who hands over links has looked at them
            self._doubt(Links.of(data), known)
        return frozen

    def _doubt(self, links: Links, known: Any) -> None:
        """Warn where no label is known, so that nobody says anything, and where neighbours' labels are rather not one's own."""
        labels = read_known(known, links.nodes, self.classes)
        if not bool((labels >= 0).any()):
            warnings.warn(
                "No label is known, so label ballots say nothing: every node has the same label, which no attacker can change.",
                DoubtfulSetting,
                stacklevel=3,
            )
        elif self.meaning is None and unlike(links, labels):
            warnings.warn(
                "Links go to other labels more often than to one's own here, and label ballots take a neighbour's label for the node's: "
                "give LabelBallots(…, meaning=us.meaning_of(data, known)), which says what each label means.",
                DoubtfulSetting,
                stacklevel=3,
            )

    def own_scores(self, x: Tensor | None, nodes: int) -> Tensor:
        """Nothing: zeros."""
        return torch.zeros(nodes, self.classes, dtype=torch.float64, device=None if x is None else x.device)

    def ballots(self, links: Links, known: Tensor) -> Said:
        """Label ballots, the other end's own label left out."""
        said = two_hop(links, known, self.classes, self.sharpness)
        return Said(meant(said.rows, known[said.speaker] >= 0, self.meaning), said.speaker, said.row)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Voters that speak by what any network said of them once, on a trusted graph; that graph holds no edge of a target.

    `encoder` is a torch module `forward(x, edge_index)`, run once when this is made; `trusted` holds the same nodes as the
    graph to be proved, in the same order. `embeddings` float32[n, d], `seen` bool[n]: the nodes with edges there, which can be no
    targets; `names` are what they are called there.
    """

    encoder: Any
    trusted: Any
    embeddings: Tensor
    seen: Tensor
    names: tuple[Any, ...]

    def __init__(self, encoder: Any, trusted: Any) -> None:
        graph = read_graph(trusted)
        with torch.no_grad(), evaluating(encoder):
            said = encoder(graph.x, graph.edge_index)
        if not isinstance(said, Tensor) or said.ndim != 2 or len(said) != graph.num_nodes:
            raise InputError(
                f"The encoder of a Snapshot must give one row of numbers for each of the {graph.num_nodes} nodes."
            )
        object.__setattr__(self, "encoder", encoder)
        object.__setattr__(self, "trusted", trusted)
        object.__setattr__(self, "embeddings", said.detach().float())
        object.__setattr__(self, "seen", graph.degrees() > 0)
        object.__setattr__(self, "names", graph.names)


VOTERS = ("features", "two-hop")


class BallotNetwork(BallotModel):
    """A network whose answer is a sum of bounded ballots, so that `prove` gives its exact K.

    A neighbour says w · its label ballot + b · cap · tanh(voice), a node says a · own of itself; w = 1 and a = b = 0 at the
    start, so that training begins at label ballots. `voters`: "features" speak by their features and known label; "two-hop"
    also by the known labels around them; a `Snapshot` by stored embeddings. `in_channels` 0 is for graphs without features.
    `own_hidden` is the width of what a node says of itself, where that is another than `hidden`; `meaning` says what labels mean
    where like does not go with like, as in `LabelBallots`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden: int = 64,
        voters: Any = "features",
        tau: float = 2.0,
        cap: float = 3.0,
        own_hidden: int | None = None,
        meaning: Any = None,
    ) -> None:
        super().__init__(out_channels, tau, meaning)
        own_hidden = hidden if own_hidden is None else own_hidden
        widths = (("in_channels", in_channels, 0), ("hidden", hidden, 1), ("own_hidden", own_hidden, 1))
        for name, value, least in widths:
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number from {least} up, not {value!r}.")
        if not isinstance(cap, int | float) or not 0 < cap <= LARGEST // SCALE:
            raise InputError(f"cap must be a number above 0 and at most {LARGEST // SCALE}, not {cap!r}.")
        if not isinstance(voters, Snapshot) and voters not in VOTERS:
            raise InputError(f"voters must be {', '.join(VOTERS)} or a Snapshot, not {voters!r}.")
        self.in_channels, self.hidden, self.own_hidden, self.cap = in_channels, hidden, own_hidden, float(cap)
        self.snapshot = voters if isinstance(voters, Snapshot) else None
        self.voters = "snapshot" if self.snapshot is not None else str(voters)
        self.reads_links, self.reads_features = self.voters == "two-hop", in_channels > 0
        wide = in_channels if self.snapshot is None else self.snapshot.embeddings.shape[1]
        self.own, self.voice = (
            _speaker(in_channels, own_hidden, out_channels),
            _speaker(wide, hidden, out_channels),
        )
        self.own_weight, self.voice_weight = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.label_weight = nn.Parameter(torch.ones(()))

    def extra_repr(self) -> str:
        """The settings."""
        wide = f", own_hidden={self.own_hidden}" if self.own_hidden != self.hidden else ""
        wide += "" if self.meaning is None else ", meaning=…"
        return f"{self.in_channels}, {self.classes}, hidden={self.hidden}{wide}, voters={self.voters!r}, tau={self.tau:g}, cap={self.cap:g}, frozen={self.frozen}"

    def own_scores(self, x: Tensor | None, nodes: int) -> Tensor:
        """a · own(x), from each node's own features."""
        said: Tensor = self.own(self._features(x, nodes))
        return self.own_weight * said

    def ballots(self, links: Links, known: Tensor) -> Said:
        """w · label ballot + b · cap · tanh(voice), within ±cap."""
        count = self.classes
        said = two_hop(links, known, count, SHARPNESS) if self.reads_links else one_hop(links, known, count)
        labels = meant(said.rows, known[said.speaker] >= 0, self.meaning)
        return Said(self._told(labels, links, said.speaker), said.speaker, said.row)

    def newcomers(self, links: Links, known: Tensor) -> Tensor:
        """What each node says over a new link, without what is said over stored ones."""
        count, heard = self.classes, self.reads_links
        said = to_newcomers(links, known, count, SHARPNESS) if heard else own_labels(known, count)
        return self._told(meant(said, known >= 0, self.meaning), links)

    def _told(self, labels: Tensor, links: Links, speaker: Tensor | None = None) -> Tensor:
        voice = self.cap * torch.tanh(self.voice(self._heard(links)))
        voice = voice if speaker is None else voice[speaker]
        told = self.label_weight * labels.to(voice.dtype) + self.voice_weight * voice
        return told.clamp(-self.cap, self.cap)

    @property
    def fakes_reach(self) -> float | None:
        """A fake node has no known label, so that it speaks by its voice alone: at most |b| · cap, and never above the cap."""
        return min(1.0, abs(float(self.voice_weight.detach().double()))) * self.cap

    def seen_nodes(self, links: Links) -> Tensor | None:
        """Nodes with links in the snapshot's trusted graph; refused where that has its nodes in another order than this graph."""
        if self.snapshot is not None and not in_one_order(self.snapshot.names, links.names):
            raise InputError(
                "The snapshot's trusted graph calls its nodes otherwise than this graph, or has them in another order, so each would speak for "
                "another; make it with the same nodes in the same order."
            )
        return None if self.snapshot is None else self.snapshot.seen

    def constants(self) -> list[Any]:
        """The snapshot."""
        return [self.snapshot]

    def _heard(self, links: Links) -> Tensor:
        if self.snapshot is None:
            return self._features(links.x, links.nodes)
        if len(self.snapshot.embeddings) != links.nodes:
            raise InputError(
                f"The snapshot holds {len(self.snapshot.embeddings)} nodes, but the graph has {links.nodes}."
            )
        return self.snapshot.embeddings.to(self.own_weight)

    def _features(self, x: Tensor | None, nodes: int) -> Tensor:
        if not self.in_channels:
            return torch.zeros(nodes, 0, dtype=self.own_weight.dtype, device=self.own_weight.device)
        if x is None or x.shape != (nodes, self.in_channels):
            told = "none" if x is None else f"shape {tuple(x.shape)}"
            raise InputError(
                f"The network reads {self.in_channels} features for each node, but there are {told}."
            )
        return x.to(self.own_weight)


def _speaker(wide: int, hidden: int, classes: int) -> nn.Module:
    """Two layers on features; without features, the same numbers for every node."""
    if not wide:
        return _Constant(classes)
    return nn.Sequential(nn.Linear(wide, hidden), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(hidden, classes))


class _Constant(nn.Module):
    """The same learnable numbers for every node."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(classes) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        """[nodes, C]."""
        return self.values.expand(len(x), -1)
