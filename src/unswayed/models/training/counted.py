"""Graphs by what they are made of, as far as pair ballots can tell: nodes and links counted by kind, many graphs at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from unswayed.ballots.pairs import PairBallots, merged
from unswayed.errors import InputError
from unswayed.models.training.graphs import ragged

MOST = 2**22  # kinds of pairs, over all graphs, that are learnt from


@dataclass(frozen=True, eq=False)
class Counted:
    """Nodes with equal features say the same, so that a graph is which nodes it has, and how many pairs of which kinds are linked.

    `sums` [G, F] are those of the nodes' features. One entry for each graph and kind of pair that it has room for, in the order of graphs: `owner`
    [P], `ends` [2, P] (rows of `kinds`), `links` [P] how many are linked, `free` and `linked` bool[P] whether any is left to be linked, or to be cut.
    """

    kinds: Tensor
    sums: Tensor
    y: Tensor
    owner: Tensor
    ends: Tensor
    links: Tensor
    free: Tensor
    linked: Tensor

    @classmethod
    def of(cls, graphs: Sequence[Data], y: Tensor) -> "Counted":
        """The counts of these graphs."""
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        x = torch.cat([graph.x for graph in graphs])
        kinds, kind = torch.unique(x, dim=0, return_inverse=True)
        owner, many = torch.repeat_interleave(torch.arange(len(graphs)), sizes), len(kinds)
        there, count = torch.unique(owner * many + kind, return_counts=True)
        _check_room(torch.bincount(there // many))
        first, second, room = _room(there // many, count)
        starts = sizes.cumsum(0) - sizes
        joined = [graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)]
        one, other = merged(torch.cat(joined, dim=1), len(owner))
        low, high = torch.minimum(kind[one], kind[other]), torch.maximum(kind[one], kind[other])
        # both in the order of graphs, then of the first kind, then of the second
        known = there[first] * many + there[second] % many
        code, links = torch.unique((owner[one] * many + low) * many + high, return_counts=True)
        number = torch.zeros(len(known)).index_copy(0, torch.searchsorted(known, code), links.float())
        sums = x.new_zeros(len(graphs), x.shape[1]).index_add(0, owner, x)
        ends = torch.stack([there[first] % many, there[second] % many])
        return cls(kinds, sums, y, there[first] // many, ends, number, room > number, number > 0)

    def to(self, device: str) -> "Counted":
        """The same on a device."""
        moved: dict[str, Any] = {name: part.to(device) for name, part in vars(self).items()}
        return replace(self, **moved)

    def take(self, graphs: Tensor) -> "Counted":
        """These graphs alone, in this order."""
        size = torch.bincount(self.owner, minlength=len(self.y))
        owner, place = ragged((size.cumsum(0) - size)[graphs], size[graphs])
        parts = {name: getattr(self, name)[place] for name in ("links", "free", "linked")}
        return replace(
            self, sums=self.sums[graphs], y=self.y[graphs], owner=owner, ends=self.ends[:, place], **parts
        )

    def scores(self, network: PairBallots) -> tuple[Tensor, Tensor]:
        """By each member: [members, G, C] what is said of the nodes, and [members, P, C] what a link of each entry says."""
        about, ends = network.own.standard(self.sums), network.end(self.kinds)
        heard = ends[self.ends[0]] + ends[self.ends[1]] + network.about(about)[self.owner]
        return network.own.each(about), network.voices(heard)

    def margins(self, own: Tensor, said: Tensor) -> tuple[Tensor, Tensor]:
        """[members, G, C] twice: how far the label is ahead of each class, and the most that one change can take from that."""
        score = own.index_add(1, self.owner, self.links[:, None] * said)
        margin = score.gather(2, self.y[:, None].expand(len(own), -1, 1)) - score
        # what a pair says for a class, less for the label
        label = self.y[self.owner][:, None].expand(len(own), -1, 1)
        against = said - said.gather(2, label)
        adding = torch.where(self.free[:, None], against, 0.0)
        deleting = torch.where(self.linked[:, None], -against, 0.0)
        where = self.owner[:, None].expand_as(said)
        most = torch.zeros_like(own).scatter_reduce(1, where, torch.maximum(adding, deleting), "amax")
        return margin, most

    @torch.no_grad()
    def proved(self, network: PairBallots, sizes: Sequence[int]) -> float:
        """How many graphs stay right after any so many changes, averaged over the sizes; a lower bound."""
        own = network.own(network.own.standard(self.sums))
        said = self.scores(network)[1].mean(dim=0)
        margin, harm = (part[0] for part in self.margins(own[None], said[None]))
        rivals = functional.one_hot(self.y, margin.shape[1]) == 0
        holds = [((margin - size * harm > 0) | ~rivals).all(dim=1).sum() for size in sizes]
        return float(torch.stack(holds).double().mean())


def _check_room(kinds: Tensor) -> None:
    """Refuse graphs with so many different nodes that their pairs would not fit into memory."""
    if int((kinds * (kinds + 1) // 2).sum()) > MOST:
        raise InputError(
            f"The nodes of a graph have up to {int(kinds.max()):,} different rows of features, too many for pairs of them to vote; "
            "use fewer features."
        )


def _room(owner: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each pair of kinds a <= b of one graph that two nodes can have: the places of a and b, and how many such pairs there are."""
    kinds = torch.bincount(owner)
    last = kinds.cumsum(0)[owner]
    place = torch.arange(len(owner))
    first, second = ragged(place, last - place)
    pairs = count[first] * torch.where(first == second, (count[first] - 1) / 2, count[second])
    return first[pairs > 0], second[pairs > 0], pairs[pairs > 0]
