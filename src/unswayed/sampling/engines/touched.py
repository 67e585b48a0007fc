"""Only what a sample touches: states are computed anew around changed links, and read from a table everywhere else.

Going back from the classified nodes, each round of message passing needs the states of neighbours one round earlier. After
the first round only nodes at a changed link (or next to one, where degrees couple) differ from the clean graph. Whatever is
computed anew is a full sum over the neighbours that are there, in the order of their numbers: nothing is taken away from a
clean sum, and equal noisy structures give equal sums, whichever clean graph they came from.
"""

from functools import cached_property

import torch
from torch import Tensor

from unswayed.sampling.engines.edges import Edges, Listed
from unswayed.sampling.engines.planned import Planned
from unswayed.sampling.engines.surroundings import Surroundings
from unswayed.sampling.layout import Layout
from unswayed.sampling.sparse import merge


class Tables:
    """The clean graph, and every state after one round of message passing in it."""

    def __init__(self, known: Planned, around: Surroundings) -> None:
        self.known, self.around = known, around
        self.starts, self.columns = around.adjacency.crow_indices(), around.adjacency.col_indices()
        edges, steps = Edges(self.starts, self.columns, around.n), known.plan.steps
        graph = Listed(edges, around.degree[None, :, None], around.loops[None, :, None])
        self.first: dict[int, Tensor] = {}
        for i in known.plan.convs:
            layer = steps[i].layer
            assert layer is not None
            if steps[i].depth == 1:
                self.first[i] = layer.over(tuple(t[None] for t in known.sent[i]), graph)[0]
        self.coupled = any(steps[i].layer.coupled for i in self.first)  # type: ignore[union-attr]


class Changed:
    """Which links of each sample are changed; nodes of samples go by keys: sample times n, plus node."""

    def __init__(self, layout: Layout, flips: tuple[Tensor, Tensor], n: int) -> None:
        self.n, self.samples = n, len(flips[0])
        changed = flips[0] if flips[0] is flips[1] else torch.where(layout.clean, flips[1], flips[0])
        if layout.unused is not None:
            changed = changed.clone()
            changed[:, layout.unused] = False
        sample, entry = changed.nonzero(as_tuple=True)
        one, other = layout.first[entry] + sample * n, layout.second[entry] + sample * n
        gone = layout.clean[entry]
        ends, there = torch.cat([one, other]), torch.cat([layout.second[entry], layout.first[entry]])
        link, gone = ends * n + there, torch.cat([gone, gone])
        self.added, self.gone = link[~gone].sort().values, link[gone].sort().values
        self.keys, place = torch.unique(ends, return_inverse=True)
        change = torch.where(gone, -1, 1)
        self.change = torch.zeros_like(self.keys).index_add_(0, place, change)

    def degree(self, keys: Tensor, clean: Tensor) -> Tensor:
        """How many neighbours the nodes of samples have."""
        degree = clean[keys % self.n]
        place, found = _find(self.keys, keys)
        return degree if place is None else degree + found * self.change[place]

    def links(self, keys: Tensor, tables: Tables) -> tuple[Tensor, Tensor]:
        """(starts, senders' keys) of the links to the nodes with these keys, by their numbers."""
        node = keys % self.n
        first, count = tables.starts[node], tables.starts[node + 1] - tables.starts[node]
        to = torch.repeat_interleave(torch.arange(keys.numel(), device=keys.device), count)
        within = torch.arange(to.numel(), device=keys.device) - (count.cumsum(0) - count)[to]
        link = keys[to] * self.n + tables.columns[first[to] + within]
        _, lost = _find(self.gone, link)
        _, wanted = _find(keys, self.added // self.n)
        link = merge(link[~lost], self.added[wanted])
        receiver = link // self.n
        starts = torch.searchsorted(receiver, torch.cat([keys, keys.new_full((1,), self.samples * self.n)]))
        return starts, receiver - receiver % self.n + link % self.n


def _find(ordered: Tensor, wanted: Tensor) -> tuple[Tensor | None, Tensor]:
    """(where each of the wanted is in an ordered list, whether it is there)."""
    if not ordered.numel():
        return None, torch.zeros_like(wanted, dtype=torch.bool)
    place = torch.searchsorted(ordered, wanted).clamp_(max=ordered.numel() - 1)
    return place, ordered[place] == wanted


class TouchedLogits:
    """Logits of some nodes of one graph whose listed links are noisy."""

    def __init__(self, tables: Tables, layout: Layout, nodes: Tensor) -> None:
        self.tables, self.layout, self.known = tables, layout, tables.known
        self.nodes, order = nodes.sort()
        self.back = order.argsort()

    def __call__(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, T, C]."""
        samples = Samples(self.tables, Changed(self.layout, flips, self.tables.around.n), self.nodes)
        out: Tensor = samples.output().view(len(flips[0]), self.nodes.numel(), -1)[:, self.back]
        return out


class Samples:
    """Some samples: which nodes are needed after each round, and their states."""

    def __init__(self, tables: Tables, changed: Changed, nodes: Tensor) -> None:
        self.tables, self.changed, self.plan = tables, changed, tables.known.plan
        shift = torch.arange(changed.samples, device=nodes.device)[:, None] * changed.n
        self.needed = {self.plan.depth: (shift + nodes).flatten()}  # keys after each round
        self.rounds: dict[int, Listed] = {}
        self.values: dict[int, Tensor] = {}
        for depth in range(self.plan.depth, 0, -1):
            self._go_back(depth)

    @cached_property
    def differ(self) -> Tensor:
        """The keys of nodes that the first round gives another state than in the clean graph, or may give one."""
        keys: Tensor = self.changed.keys
        if self.tables.coupled:
            keys = torch.unique(torch.cat([keys, self.changed.links(keys, self.tables)[1]]))
        return keys

    def _go_back(self, depth: int) -> None:
        """What the round before must have computed."""
        around, needed = self.tables.around, self.needed[depth]
        keys = needed
        if depth == 1:
            self.anew = _find(self.differ, needed)[1]
            keys = needed[self.anew]
        starts, senders = self.changed.links(keys, self.tables)
        before = torch.unique(torch.cat([needed, senders]))
        edges = Edges(starts, torch.searchsorted(before, senders), before.numel())
        degree = self.changed.degree(before, around.degree)[None, :, None]
        at, loops = torch.searchsorted(before, keys), around.loops[before % self.changed.n][None, :, None]
        self.needed[depth - 1], self.rounds[depth] = before, Listed(edges, degree, loops, at)

    def output(self) -> Tensor:
        """[rows, C]: the last step at the nodes that are classified."""
        for i, step in enumerate(self.plan.steps):
            if i not in self.plan.used or step.depth == 0:
                continue
            if step.layer is not None:
                self.values[i] = self._sent(i)
            else:
                assert step.run is not None
                self.values[i] = step.run(*(self._at(j, step.depth) for j in step.inputs))
        return self._at(len(self.plan.steps) - 1, self.plan.depth)

    def _sent(self, i: int) -> Tensor:
        """The states after a round of message passing."""
        step = self.plan.steps[i]
        assert step.layer is not None
        if step.depth > 1:
            sent = step.layer.send(self._at(step.inputs[0], step.depth - 1)[None])
            return step.layer.over(sent, self.rounds[step.depth])[0]
        rows = self.needed[0] % self.changed.n
        sent = tuple(t.index_select(0, rows)[None] for t in self.tables.known.sent[i])
        anew = step.layer.over(sent, self.rounds[1])[0]
        known = self.tables.first[i].index_select(0, self.needed[1] % self.changed.n)
        known[self.anew] = anew
        return known

    def _at(self, i: int, depth: int) -> Tensor:
        """The states of step i at the nodes that are needed after this many rounds."""
        here, made = self.needed[depth], self.plan.steps[i].depth
        if made == 0:
            return self.tables.known.rest[i].index_select(0, here % self.changed.n)
        value = self.values[i]
        return value if made == depth else value[torch.searchsorted(self.needed[made], here)]
