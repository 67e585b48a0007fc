"""Only what a sample touches: states are computed anew around changed links, and read from a table everywhere else.

Going back from the classified nodes, each round of message passing needs the states of neighbours one round earlier. After
the first round only nodes at a changed link (or next to one, where degrees couple) differ from the clean graph. Whatever is
computed anew is a full sum over the neighbours that are there, in the order of their numbers: nothing is taken away from a
clean sum, and equal noisy structures give equal sums, whichever clean graph they came from.
"""

from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.graphs.edges import Edges, Listed
from unswayed.sampling.engines.graphs.planned import Planned
from unswayed.sampling.engines.plans.surroundings import Surroundings, begins, stretches
from unswayed.sampling.layout import Layout


class Tables:
    """The clean graph, and every state after one round of message passing in it."""

    def __init__(self, known: Planned, around: Surroundings) -> None:
        self.known, self.around = known, around
        self.starts, self.columns = around.adjacency.crow_indices(), around.adjacency.col_indices()
        self.count = self.starts.diff()
        edges, rounds = Edges(self.starts, self.columns, around.n), known.plan.rounds
        graph = Listed(edges, around.degree[None, :, None], around.loops[None, :, None])
        self.first = {
            i: rounds[i].over(tuple(t[None] for t in sent), graph)[0] for i, sent in known.sent.items()
        }
        self.coupled = any(rounds[i].coupled for i in self.first)


class Keys:
    """Keys in ascending order, and where each of them is: by tables where they are not too few, which is much faster.

    Here and below numbers are picked by `index_select`, several times as fast as indexing.
    """

    MANY = 1 / 1024  # of all keys that there might be: enough for tables …
    SORTED = 1 / 12  # … and too many to be sorted

    def __init__(self, keys: Tensor, size: int, there: Tensor | None = None) -> None:
        """Keys are below `size`; `there` bool[size] says which of them are there, if it is known."""
        self.keys, self.size, self.there = keys, size, there
        if there is None and keys.numel() >= self.MANY * size:
            self.there = torch.zeros(size, dtype=torch.bool, device=keys.device).index_fill_(0, keys, True)

    @classmethod
    def union(cls, size: int, *parts: Tensor) -> "Keys":
        """All keys of these parts, each once."""
        if sum(part.numel() for part in parts) < cls.SORTED * size:
            return cls(torch.unique(torch.cat(parts)), size)
        there = torch.zeros(size, dtype=torch.bool, device=parts[0].device)
        for part in parts:
            there.index_fill_(0, part, True)
        return cls(there.nonzero()[:, 0], size, there)

    @cached_property
    def table(self) -> Tensor:
        """Where each key is; nothing that means anything where there is none."""
        table = torch.empty(self.size, dtype=torch.int64, device=self.keys.device)
        return table.scatter_(0, self.keys, torch.arange(self.keys.numel(), device=self.keys.device))

    def has(self, wanted: Tensor) -> Tensor:
        """bool: whether these keys are there."""
        return self.place(wanted) >= 0 if self.there is None else self.there.index_select(0, wanted)

    def at(self, wanted: Tensor) -> Tensor:
        """Where these keys are, all of which are there."""
        if self.there is None:
            return torch.searchsorted(self.keys, wanted)
        return self.table.index_select(0, wanted)

    def place(self, wanted: Tensor) -> Tensor:
        """Where these keys are, or -1 where they are not."""
        if self.there is not None:
            return torch.where(self.has(wanted), self.at(wanted), -1)
        if not self.keys.numel():
            return torch.full_like(wanted, -1)
        place = torch.searchsorted(self.keys, wanted).clamp_(max=self.keys.numel() - 1)
        return torch.where(self.keys.index_select(0, place) == wanted, place, -1)


class Rounds:
    """Which nodes are needed after each round, going back from those that are classified, and their states [B, rows, F]."""

    def __init__(self, tables: Tables, classified: Keys) -> None:
        """Keys are of nodes by their remainders: there are `n` of these."""
        self.tables, self.plan, self.n = tables, tables.known.plan, tables.around.n
        self.needed = {self.plan.depth: classified}  # after each round
        self.rounds: dict[int, Listed] = {}
        for depth in range(self.plan.depth, 0, -1):
            at = self.needed[depth]
            if depth == 1:
                self.anew = self.differing().has(at.keys).nonzero()[:, 0]
                few = self.anew.numel()
                number = torch.arange(at.keys.numel() + few, device=at.keys.device)
                self.either = number[few:].scatter(0, self.anew, number[:few])  # computed anew, or known
                at = Keys(at.keys.index_select(0, self.anew), at.size)
            self.needed[depth - 1], self.rounds[depth] = self.go_back(depth, at)

    def differing(self) -> Keys:
        """The nodes that the first round may give another state than in the clean graph."""
        raise NotImplementedError

    def go_back(self, depth: int, at: Keys) -> tuple[Keys, Listed]:
        """Whose states the round needs to answer at these nodes, and its links; they include all that are needed after it."""
        raise NotImplementedError

    def output(self, rounds: dict[int, Listed]) -> Tensor:
        """[B, rows, C]: the last step at the nodes that are classified."""
        values: dict[int, Tensor] = {}
        for i, step in enumerate(self.plan.steps):
            if i not in self.plan.used or step.depth == 0:
                continue
            if step.layer is not None:
                values[i] = self._sent(i, values, rounds[step.depth])
            else:
                assert step.run is not None
                values[i] = step.run(*(self._at(j, step.depth, values) for j in step.inputs))
        return self._at(len(self.plan.steps) - 1, self.plan.depth, values)

    def _sent(self, i: int, values: dict[int, Tensor], around: Listed) -> Tensor:
        """The states after a round of message passing."""
        step = self.plan.steps[i]
        assert step.layer is not None
        if step.depth > 1:
            return step.layer.over(step.layer.send(self._at(step.inputs[0], step.depth - 1, values)), around)
        rows = self.needed[0].keys % self.n
        sent = tuple(t.index_select(0, rows)[None] for t in self.tables.known.sent[i])
        anew = step.layer.over(sent, around)
        if anew.shape[1] == self.needed[1].keys.numel():
            return anew
        known = self.tables.first[i].index_select(0, self.needed[1].keys % self.n)
        both = torch.cat([anew, known.expand(len(anew), -1, -1)], dim=1)
        return both.index_select(1, self.either)  # faster than writing some over others

    def _at(self, i: int, depth: int, values: dict[int, Tensor]) -> Tensor:
        """The states of step i at the nodes that are needed after this many rounds."""
        here, made = self.needed[depth].keys, self.plan.steps[i].depth
        if made == 0:
            return self.tables.known.rest[i].index_select(0, here % self.n)[None]
        return values[i] if made == depth else values[i].index_select(1, self.needed[made].at(here))


class Changed:
    """Which links of each sample are changed; nodes of samples go by keys: sample times n, plus node."""

    def __init__(self, layout: Layout, flips: tuple[Tensor, Tensor], n: int) -> None:
        self.n, self.samples = n, len(flips[0])
        changed = flips[0].clone()
        if flips[0] is not flips[1]:
            ones = layout.clean.nonzero()[:, 0]
            changed.index_copy_(1, ones, flips[1].index_select(1, ones))
        if layout.unused is not None:
            changed[:, layout.unused] = False
        sample, entry = changed.nonzero(as_tuple=True)
        first, second, gone = (t.index_select(0, entry) for t in (layout.first, layout.second, layout.clean))
        ends, there = torch.cat([first, second]) + (sample * n).repeat(2), torch.cat([second, first])
        link, gone = ends * n + there, torch.cat([gone, gone])
        self.added, self.gone = (link.masked_select(those).sort().values for those in (~gone, gone))
        self.to = self.added // n
        self.by = self.to - self.to % n + self.added % n
        self.size = self.samples * n
        self.ends = Keys.union(self.size, ends)
        change = torch.where(gone, -1, 1)
        self.change = torch.zeros_like(self.ends.keys).index_add_(0, self.ends.at(ends), change)

    def degree(self, keys: Tensor, clean: Tensor) -> Tensor:
        """How many neighbours the nodes of samples have."""
        degree, moved = clean.index_select(0, keys % self.n), self.ends.has(keys).nonzero()[:, 0]
        change = self.change.index_select(0, self.ends.at(keys.index_select(0, moved)))
        return degree.index_add_(0, moved, change.to(degree.dtype))

    def links(self, at: Keys, tables: Tables) -> tuple[Tensor, Tensor]:
        """(starts, senders' keys) of the links to the nodes with these keys, by their numbers."""
        keys, node = at.keys, at.keys % self.n
        first, count = tables.starts.index_select(0, node), tables.count.index_select(0, node)
        to, place = stretches(first, count)
        sender = tables.columns.index_select(0, place)
        receiver, by = keys.index_select(0, to), (keys - node).index_select(0, to).add_(sender)
        link = receiver * self.n + sender
        if self.gone.numel():
            lost = self._lost(link, receiver, by)
            count = count.index_add(0, to.index_select(0, lost), -torch.ones_like(lost))
            kept = torch.ones_like(link, dtype=torch.bool).index_fill_(0, lost, False)
            link, by = link.masked_select(kept), by.masked_select(kept)
        new = at.place(self.to)
        here = (new >= 0).nonzero()[:, 0]
        count = count.index_add(0, new.index_select(0, here), torch.ones_like(here))
        added, more = self.added.index_select(0, here), self.by.index_select(0, here)
        return begins(count), _inserted(by, more, torch.searchsorted(link, added))

    def _lost(self, link: Tensor, receiver: Tensor, by: Tensor) -> Tensor:
        """Which of these links of the clean graph are gone: both ends of such a link are ends of changed ones."""
        some = (self.ends.has(receiver) & self.ends.has(by)).nonzero()[:, 0]
        link = link.index_select(0, some)
        place = torch.searchsorted(self.gone, link).clamp_(max=self.gone.numel() - 1)
        return some.masked_select(self.gone.index_select(0, place) == link)


def _inserted(values: Tensor, more: Tensor, before: Tensor) -> Tensor:
    """The values with more of them, each before the value at the place that is said, in ascending order of places."""
    place = before + torch.arange(len(more), device=more.device)
    out = values.new_empty(len(values) + len(more))
    rest = torch.ones_like(out, dtype=torch.bool).index_fill_(0, place, False)
    return out.masked_scatter_(rest, values).scatter_(0, place, more)


class Samples(Rounds):
    """Some samples: the nodes that they touch, by keys."""

    def __init__(self, tables: Tables, changed: Changed, nodes: Tensor) -> None:
        self.changed = changed
        shift = torch.arange(changed.samples, device=nodes.device)[:, None] * changed.n
        super().__init__(tables, Keys((shift + nodes).flatten(), changed.size))

    def differing(self) -> Keys:
        """The ends of changed links, and where degrees couple whoever is linked with them."""
        ends, size = self.changed.ends, self.changed.size
        if not self.tables.coupled:
            return ends
        return Keys.union(size, ends.keys, self.changed.links(ends, self.tables)[1])

    def go_back(self, depth: int, at: Keys) -> tuple[Keys, Listed]:
        """The senders around these receivers."""
        around, changed = self.tables.around, self.changed
        starts, senders = changed.links(at, self.tables)
        before = Keys.union(changed.size, self.needed[depth].keys, senders)
        edges = Edges(starts, before.at(senders), before.keys.numel())
        degree = changed.degree(before.keys, around.degree)[None, :, None]
        loops = around.loops.index_select(0, before.keys % changed.n)[None, :, None]
        return before, Listed(edges, degree, loops, before.at(at.keys))


def touched_logits(tables: Tables, layout: Layout, nodes: Tensor, flips: tuple[Tensor, Tensor]) -> Tensor:
    """[S, T, C] of some nodes of one graph, in ascending order, whose listed links are noisy."""
    samples = Samples(tables, Changed(layout, flips, tables.around.n), nodes)
    return samples.output(samples.rounds).view(len(flips[0]), nodes.numel(), -1)
