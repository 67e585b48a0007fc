"""Links that are listed beforehand, each there or not: what surrounds the classified nodes is found once for all samples.

The links that are always there and all that are listed make one graph. Going back from the classified nodes, it says whose
states each round needs in any sample; a sample then only says which of its links are there.
"""

from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.graphs.edges import Edges, Listed
from unswayed.sampling.engines.graphs.touched import Keys, Rounds, Tables
from unswayed.sampling.engines.plans.surroundings import Surroundings, begins, stretches
from unswayed.sampling.layout import Layout, noisy


class Superset:
    """All links that any sample may have, by receiver, then by sender; `entry` says by which entry each is switched."""

    def __init__(self, layout: Layout, around: Surroundings) -> None:
        """`around` holds the links that are always there."""
        self.n, self.entries = around.n, layout.first.numel()
        used = torch.ones(self.entries, dtype=torch.bool, device=layout.first.device)
        if layout.unused is not None:
            used[layout.unused] = False
        number = used.nonzero()[:, 0]
        first, second = layout.first[number], layout.second[number]
        fixed = around.edge_index
        to, by = torch.cat([fixed[0], first, second]), torch.cat([fixed[1], second, first])
        switch = torch.cat([torch.full_like(fixed[0], self.entries), number, number])
        order = torch.argsort(to * self.n + by)
        self.to, self.senders, self.entry = to[order], by[order], switch[order]
        self.starts = begins(torch.bincount(to, minlength=self.n))
        self.ends = Keys.union(self.n, first, second)

    def links(self, at: Keys) -> tuple[Tensor, Tensor]:
        """(starts, which links) of those to these nodes."""
        first = self.starts[at.keys]
        count = self.starts[at.keys + 1] - first
        return begins(count), stretches(first, count)[1]


class SwitchedLogits(Rounds):
    """Logits of some nodes of one graph, in ascending order, whose listed links are noisy."""

    def __init__(self, tables: Tables, layout: Layout, always: Surroundings, nodes: Tensor) -> None:
        """`always` holds the links that are always there."""
        self.layout, self.always, self.changed = layout, always, Superset(layout, always)
        self.switch: dict[int, Tensor] = {}  # by which entry each link of a round is there
        super().__init__(tables, Keys(nodes, always.n))
        self.moved = self._incidence(always.degree.dtype)
        ends = self.changed.ends  # which of them each node is, and one past the last for any other
        self.end = {
            depth: (place := ends.place(self.needed[depth - 1].keys)).where(place >= 0, ends.keys.numel())
            for depth in self.rounds
        }

    @property
    def width(self) -> int:
        """Links and states of all rounds, of one sample."""
        return sum(entry.numel() for entry in self.switch.values()) + sum(
            before.keys.numel() * self.tables.known.width for before in self.needed.values()
        )

    def differing(self) -> Keys:
        """The ends of listed links, and where degrees couple whoever may be linked with them."""
        ends = self.changed.ends
        if not self.tables.coupled:
            return ends
        return Keys.union(ends.size, ends.keys, self.changed.senders[self.changed.links(ends)[1]])

    def go_back(self, depth: int, at: Keys) -> tuple[Keys, Listed]:
        """The senders around these receivers in any sample."""
        starts, links = self.changed.links(at)
        senders = self.changed.senders[links]
        before = Keys.union(at.size, self.needed[depth].keys, senders)
        edges = Edges(starts, before.place(senders), before.keys.numel())
        self.switch[depth] = self.changed.entry[links]
        degree, loops = self.always.degree[before.keys], self.always.loops[before.keys]
        return before, Listed(edges, degree[None, :, None], loops[None, :, None], before.place(at.keys))

    def _incidence(self, kind: torch.dtype) -> Tensor:
        """[entries, ends]: 1 where a listed link has this end."""
        ends, used = self.changed.ends, self.changed.entry < self.changed.entries
        moved = torch.zeros((self.changed.entries, ends.keys.numel()), dtype=kind, device=used.device)
        moved[self.changed.entry[used], ends.place(self.changed.to[used])] = 1
        return moved

    def __call__(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, T, C]."""
        present = noisy(self.layout.clean, flips).to(self.moved.dtype)
        there = torch.cat([present, torch.ones_like(present[:, :1])], dim=1)
        more = torch.cat([present @ self.moved, torch.zeros_like(present[:, :1])], dim=1)
        rounds = {depth: self._round(depth, there, more) for depth in self.rounds}
        return self.output(rounds).expand(len(present), -1, -1)

    def _round(self, depth: int, there: Tensor, more: Tensor) -> Listed:
        """The links of these samples; `more` [S, ends + 1] neighbours than always has each end, and 0 any other node."""
        known = self.rounds[depth]
        degree = known.degree + more.index_select(1, self.end[depth])[..., None]
        here = there.index_select(1, self.switch[depth])
        around = Listed(known.edges, degree, known.loops, known.at, here)
        return around if depth > 1 else First(around, self.moving, self.still)

    @cached_property
    def moving(self) -> Tensor:
        """Which links of the first round are listed ones, or come from a node whose degree is not always the same."""
        senders = self.needed[0].keys[self.rounds[1].edges.senders]
        listed = self.switch[1] < self.changed.entries
        return (
            listed | (self.changed.ends.place(senders) >= 0) if self.tables.coupled else listed
        ).nonzero()[:, 0]

    @cached_property
    def still(self) -> tuple[Edges, Edges]:
        """The other links of the first round, and those that move."""
        edges, moves = self.rounds[1].edges, torch.zeros_like(self.switch[1], dtype=torch.bool)
        moves[self.moving] = True
        return edges.some(~moves), edges.some(moves)


class First(Listed):
    """A first round, where all samples send the same: what comes along links that never change is added up once."""

    def __init__(self, every: Listed, moving: Tensor, parts: tuple[Edges, Edges]) -> None:
        """`every` holds all links of the round; the first of the parts are those that never change."""
        numbers = every.degree, every.loops, every.at
        super().__init__(every.edges, *numbers, every.there)
        assert every.there is not None
        self.still, self.rest = parts[0], Listed(parts[1], *numbers, every.there.index_select(1, moving))

    def total(self, z: Tensor) -> Tensor:
        """Two sparse products."""
        return self.rest.total(z).add_(self.still.total(z))

    def scaled(self, z: Tensor, scale: Tensor, into: bool = False) -> tuple[Tensor, Tensor]:
        """Two sparse products; senders along links that never change have one scale in all samples."""
        total, own = self.rest.scaled(z, scale)
        return total.add_(self.still.total(scale[:1] * z)), own
