"""What a classifier is put through before it is polled, and each time a larger batch is about to be used."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from unswayed.errors import UnsoundModel
from unswayed.sampling import soundness
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.asking.alone import Alone, Features, find_form
from unswayed.sampling.engines.asking.firstlayer import FirstLayer
from unswayed.sampling.engines.asking.gathering import indexing
from unswayed.sampling.engines.asking.probing import FEWEST, coin, shown, try_batch, unlike
from unswayed.sampling.engines.engine import Engine
from unswayed.sampling.inputs import Graph
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout, sample_numbers
from unswayed.sampling.structures import Layout, groups_of, layout_of, noisy
from unswayed.theory.noise import Noise

Flips = tuple[Tensor, Tensor]


class Checked(Engine):
    """An engine that asks the classifier in batches, which must say what it says of each graph alone."""

    # nodes plus edges (or rows) of the largest batch whose answers were those of single graphs
    trusted: float = 0
    _restricts: bool | None = None

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.alone = Alone(question, self.classifier)
        self.first_layer = FirstLayer(self.classifier.model)
        self._features = Features(question)
        self._repeated: tuple[Graph, int, Tensor] | None = None
        self._near: dict[tuple[int, ...], tuple[Layout, Tensor]] = {}

    def _about(
        self, classifier: Classifier, graph: Graph, edges: Tensor, count: int, nodes: Tensor | None
    ) -> Tensor:
        """The answers to `count` graphs with these edges, block-diagonal."""
        features, repeated = self._features.of(graph), self._repeat(graph, count)
        with self.first_layer.known(features, repeated, count), indexing(classifier.model, self.device):
            out = classifier.logits(graph, repeated, edges, count)
        if nodes is None:
            return out[:, None]
        return out.view(count, graph.num_nodes, *out.shape[1:])[:, nodes]

    def _repeat(self, graph: Graph, count: int) -> Tensor | None:
        """The features of `count` copies of the graph; kept while the size stays, since the first layer seldom reads it."""
        if (x := self._features.of(graph)) is None:
            return None
        kept = self._repeated
        if kept is None or kept[0] is not graph or kept[1] < count or kept[2]._version != 0:
            self._repeated = kept = (graph, count, x.repeat(count, *[1] * (x.ndim - 1)))
        return kept[2][: count * graph.num_nodes]  # a smaller last batch needs no copy of its own

    def _place(self, group: tuple[int, ...]) -> tuple[Layout | SparseLayout, Tensor | None]:
        """The graph that votes for these targets, cut down to what can matter to them, and where they are in it."""
        nodes = self._nodes(group)
        if nodes is None or not self.restricts:
            return layout_of(self.question, group[0]), nodes
        if group not in self._near:
            layout = layout_of(self.question, group[0])
            assert isinstance(layout, Layout)
            self._near[group] = layout.around(nodes)
        return self._near[group]

    def _draw(self, low: int, high: int, entries: int, key: int | None, noise: Noise | None = None) -> Flips:
        if self.question.sparse:
            return sample_numbers(low, high)
        return self.question.flips(low, high, entries, key, noise)

    def _nodes(self, group: tuple[int, ...]) -> Tensor | None:
        nodes = self.question.threat.nodes
        return None if nodes is None else nodes[list(group)].to(self.device)

    def _check(self) -> None:
        """Refuse an unsound classifier."""
        soundness.check_modules(self.classifier)
        with self.classifier.evaluation():
            if self.classifier.style == "bits":
                self._check_bits()
            else:
                self._check_graphs()

    def _check_bits(self) -> None:
        rows = self._trial_rows(2)

        def alone(classifier: Classifier, i: int) -> Tensor:
            return classifier.bits(rows[i : i + 1])

        soundness.check_repeatable(self.classifier, alone)

    def _trial_rows(self, count: int) -> Tensor:
        """bool[count, n]: rows that differ in about half of all entries from each other."""
        drawn = self._draw(
            0, count, int(self.question.threat.entries[0]), self.question.key_of(0), coin(self.question.noise)
        )
        return noisy(self.question.threat.clean(0).to(self.device), drawn)

    def _trust_rows(self, size: int) -> int:
        """`size`, if as many rows in one call get the answers that each of them gets alone; otherwise 1."""
        if size > 1 and self.classifier.batched and size > self.trusted:
            rows, which = self._trial_rows(size), shown(size, 1)
            alone = [self.classifier.bits(rows[i : i + 1]) for i in which]
            try_batch(self.classifier, alone, lambda: self.classifier.bits(rows)[which])
            self.trusted = size
        return size if self.classifier.batched else 1

    def _check_graphs(self) -> None:
        target = int(self.question.threat.entries.argmax())  # a graph of one node would show nothing
        layout, nodes = layout_of(self.question, target), self._nodes((target,))
        for graph in self.question.threat.graphs_view() or [layout.graph]:
            soundness.check_edge_data(self.classifier, graph)

        def alone(classifier: Classifier, i: int) -> Tensor:
            return self._try_alone(layout, nodes, i, classifier)

        if self.classifier.style == "dense":
            find_form(self.classifier, lambda: alone(self.classifier, 0))
        soundness.check_repeatable(self.classifier, alone)
        if not self.classifier.can_batch:
            self.classifier.batched = False
        if self.question.threat.newcomers:
            self._refuse_company(layout, nodes)

    def _refuse_company(self, layout: Layout | SparseLayout, nodes: Tensor | None) -> None:
        """Refuse a classifier whose answer for a node depends on nodes that no path joins to it."""
        if self.classifier.style == "edges" and nodes is not None:
            none, edges = (
                layout.graph.loops.expand(2, -1).to(self.device),
                layout.trial(self.question.noise, 0, 1),
            )
            bare, there = layout.graph, torch.arange(len(nodes), device=self.device)
            try:
                asked = [
                    (bare, edges, nodes, in_company(bare), edges, nodes),
                    (bare, none, nodes, *without_others(bare, nodes), there),
                ]
                said = [(self._said(*two[:3]), self._said(*two[3:])) for two in asked]
            except Exception as error:
                raise UnsoundModel(
                    f"The classifier cannot be asked about a graph with other nodes ({type(error).__name__}), so it says "
                    "nothing of fake nodes."
                ) from error
            if not any(soundness.differs(*two) for two in said):
                return
        raise UnsoundModel(
            "A node that nobody is joined to may matter to this classifier (it pools, normalises over the graph, or is no "
            "module forward(x, edge_index)), so hiding fake nodes proves nothing; use message passing without global parts."
        )

    def _said(self, graph: Graph, edges: Tensor, nodes: Tensor) -> Tensor:
        return self.alone.about(self.classifier, graph, edges, nodes)

    def _try_alone(
        self,
        layout: Layout | SparseLayout,
        nodes: Tensor | None,
        i: int,
        classifier: Classifier | None = None,
    ) -> Tensor:
        """The answer to the trial graph i in a call of its own, [1, targets, classes]."""
        make = layout.trial if self.alone.nearby is None else layout.sampled
        edges = make(self.question.noise, i, i + 1)
        return self._alone(layout, nodes, edges, classifier or self.classifier)

    def _alone(
        self, layout: Layout | SparseLayout, nodes: Tensor | None, edges: Tensor, classifier: Classifier
    ) -> Tensor:
        out = self.alone.about(classifier, layout.graph, edges, nodes)
        return out[None, None] if nodes is None else out[None]

    def _trust(self, size: int, drawn: int, layout: Layout | SparseLayout) -> int:
        """`size`, if as large a batch of trial graphs gets the answers that each of them gets alone; otherwise 1."""
        cost = min(size, drawn) * layout.size(self.question)  # no more are asked at once, or tried
        if size > 1 and self.classifier.batched and cost > self.trusted:
            asked = unlike(self.question.threat)
            groups = groups_of(self.question, asked)
            for number, group in enumerate(groups):
                if self.classifier.batched:
                    self._try_batch(group, cost, drawn, number, len(groups))
            self.trusted = cost
        return size if self.classifier.batched else 1

    def _try_batch(self, group: tuple[int, ...], cost: float, drawn: int, number: int, tried: int) -> None:
        """Try two batches that no other group is tried on: what one hides by chance, all hardly do.

        In one, graphs differ as much as they can; the other is what the poll will bring, with as many edges.
        """
        layout, nodes = self._place(group)
        size = max(2, min(drawn, round(cost / layout.size(self.question))))
        which, first = shown(size, tried), 2 * size * number
        for make in (layout.trial, layout.sampled):
            together = make(self.question.noise, first, first + size)
            apart = [make(self.question.noise, first + i, first + i + 1) for i in which]
            alone = [self._alone(layout, nodes, edges, self.classifier) for edges in apart]
            ask = partial(self._about, self.classifier, layout.graph, together, size, nodes)
            try_batch(self.classifier, alone, lambda ask=ask: ask()[which])  # type: ignore[misc]
            if not self.classifier.batched:
                return

    @property
    def restricts(self) -> bool:
        """Whether parts of the graph that listed pairs never join to a target are left out: found out when first asked."""
        if self._restricts is None:
            with self.classifier.evaluation():
                self._restricts = self._may_restrict()
        return self._restricts

    def _may_restrict(self) -> bool:
        """Whether a network that sees no `batch` treats those parts as it treats the other graphs of a batch, and says
        the same without them."""
        ours, threat = self.classifier, self.question.threat
        separate = ours.batched and ours.style == "edges" and not ours.takes_batch
        if not (threat.parts and threat.nodes is not None and separate):
            return False
        if not isinstance(ours.model, torch.nn.Module):
            return False
        layout = layout_of(self.question, 0)
        assert isinstance(layout, Layout)
        # as they are asked about: what several targets together leave out may be nothing
        return all(self._same_without(layout, group) for group in groups_of(self.question, unlike(threat)))

    def _same_without(self, layout: Layout, group: tuple[int, ...]) -> bool:
        """Whether these targets hear the same without what is never joined to them."""
        nodes = self._nodes(group)
        assert nodes is not None
        near, there = layout.around(nodes)
        whole = self._tried_alone(layout, nodes)
        try:
            part = self._tried_alone(near, there)
        except Exception:  # whatever a module raises on a smaller graph than its own
            return False
        return not soundness.differs(whole, part)

    def _tried_alone(self, layout: Layout, nodes: Tensor) -> Tensor:
        """The answers to graphs that differ as much as they can, and to such as the poll will bring, one at a time."""
        edges = [
            make(self.question.noise, i, i + 1)
            for make in (layout.trial, layout.sampled)
            for i in range(FEWEST)
        ]
        return torch.cat([self._alone(layout, nodes, one, self.classifier) for one in edges])


STRANGE = 1e11  # features so large that no mean over a graph's nodes can hide them


def without_others(graph: Graph, nodes: Tensor) -> tuple[Graph, Tensor]:
    """The graph of these nodes alone, numbered in this order, and its edges: none but their self-loops.

    Strangers may be too strange to be heard, by attention that falls off or where features are numbers of words, or be copies of
    what is there; that nobody is there at all is noticed by whatever reads a whole graph.
    """
    own = nodes.cpu()
    loops = torch.isin(own, graph.loops).nonzero()[:, 0]
    x = None if graph.x is None else graph.x[own]
    left = Graph(num_nodes=len(own), pairs=graph.pairs[:, :0], loops=loops, x=x)
    return left, loops.expand(2, -1).to(nodes.device)


def in_company(graph: Graph) -> Graph:
    """The graph with three nodes more, without edges and with features like no other's."""
    if graph.x is None:
        return replace(graph, num_nodes=graph.num_nodes + 3)
    strange = graph.x[:3].flip(0)
    if graph.x.is_floating_point():
        most = torch.finfo(graph.x.dtype).max / 32
        size = (graph.x.abs().nan_to_num(0, 0, 0).amax() + 1).clamp(min=min(STRANGE, most), max=most)
        strange = size * torch.linspace(-7, 11, 3, dtype=graph.x.dtype)[:, None].expand(3, graph.x[0].numel())
        strange = strange.reshape(3, *graph.x.shape[1:])
    return replace(graph, num_nodes=graph.num_nodes + len(strange), x=torch.cat([graph.x, strange]))
