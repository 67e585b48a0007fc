"""The dense engine: exact votes for graph classifiers when every pair of nodes is noisy, by batched adjacency matrices."""

from collections.abc import Iterator
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.engine import Elsewhere, FastEngine, Read, Said, spans
from unswayed.sampling.engines.graphs.matrices import Matrices
from unswayed.sampling.engines.machine.cores import cores
from unswayed.sampling.engines.machine.room import room
from unswayed.sampling.engines.plans.plan import Steps
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.rewriting import diagonal, frozen
from unswayed.sampling.inputs import Graph, pair_entries
from unswayed.sampling.question import Question
from unswayed.sampling.structures import noisy
from unswayed.theory.noise import Noise

# of one chunk: rows of states, and numbers of its adjacency matrices; a few times a core's cache, where the cost of calling
# an operation and of leaving the cache balance, or some of a card's memory
ROWS = {"cpu": 6144, "cuda": 2**22}
NUMBERS = {"cpu": 2**20, "cuda": 2**28}
SPAN = {"cpu": 2**26, "cuda": 2**31}  # bits of noise held at a time
SHARES = 4  # runs of samples for each worker, so that none waits long for another
FEWEST = 64  # samples of a run at the least


def graph_plan(model: nn.Module) -> Steps:
    """The plan of a model that reads out whole graphs; otherwise Unsupported."""
    plan = recognise(model)
    pooled: list[bool] = []
    for step in plan.steps:
        inputs = {pooled[i] for i in step.inputs}
        if len(inputs) > 1 or (step.kind in ("conv", "pool", "whole") and True in inputs):
            raise Unsupported(f"The step '{step.name}' mixes states of nodes and of whole graphs.")
        pooled.append(step.kind == "pool" or True in inputs)
    if not pooled[-1]:
        raise Unsupported("The module's output is not pooled over the nodes of each graph.")
    return plan


class DenseEngine(FastEngine):
    """For `AllPairs(graphs)` and known layers.

    Every graph has chunks of samples of its own size, so that graphs of 4 and of 600 nodes both fill the cache.
    """

    name = "dense"

    plan_of = staticmethod(graph_plan)

    @classmethod
    def unsuited(cls, question: Question) -> str | None:
        """All pairs of every graph must be noisy."""
        graphs = question.threat.graphs_view()
        if graphs is None:
            return Elsewhere("the threat is not AllPairs(graphs)")
        return "a graph has no features" if any(graph.x is None for graph in graphs) else None

    @cached_property
    def plan(self) -> Steps:
        """The module's, for evaluation only."""
        with self.asking():
            return frozen(graph_plan(self.classifier.model))

    def _settle(self) -> None:
        graphs = self.question.threat.graphs_view()
        assert graphs is not None
        self.threat, self.graphs = self.question.threat, graphs
        self.known, self.places = dict[int, Noisy](), dict[int, Tensor]()

    def _forget(self) -> None:
        self.known.clear()

    def _said(
        self, start: int, stop: int, asked: tuple[int, ...], read: Read, noise: Noise | None = None
    ) -> Iterator[Said]:
        widest = max(1, int(self.threat.entries[list(asked)].max(initial=0)))
        workers = torch.get_num_threads() if self.device.type == "cpu" else 1
        share = max(FEWEST, -(-(stop - start) // (SHARES * workers))) if workers > 1 else stop - start
        runs = list(spans(start, stop, min(room(SPAN, self.device) / widest / workers, share)))
        with cores(self.device) as on:
            said = on.map(lambda span: self._ask(asked, widest, span, read, noise), runs)
        yield from ((span, slice(None), one) for span, one in zip(runs, said, strict=True))

    def _ask(
        self, asked: tuple[int, ...], widest: int, span: range, read: Read, noise: Noise | None
    ) -> Tensor:
        """What is read of these samples: each worker draws the noise of its own, and a card is waited for once."""
        draw = partial(self.question.flips, span.start, span.stop, noise=noise)
        shared = draw(widest, None) if self.question.shared else None
        said = []
        for target in asked:
            graph = self._noisy(target)
            drawn = shared or draw(graph.entries, self.question.key_of(target))
            said.append(self._in_chunks(graph, drawn, read))
        return torch.stack(said, dim=1)

    def _in_chunks(self, graph: "Noisy", drawn: tuple[Tensor, Tensor], read: Read) -> Tensor:
        """The same of one graph's noisy versions, by chunks of about equal size."""
        chunks = -(-len(drawn[0]) // self._samples(graph.n))
        size = -(-len(drawn[0]) // chunks)
        zero = torch.split(drawn[0][:, : graph.entries], size)
        one = zero if drawn[0] is drawn[1] else torch.split(drawn[1][:, : graph.entries], size)
        return torch.cat([read(graph.logits(pair)) for pair in zip(zero, one, strict=True)])

    def _samples(self, n: int) -> int:
        """How many noisy versions of a graph of n nodes are asked about at once."""
        return max(1, min(room(ROWS, self.device) // n, room(NUMBERS, self.device) // n**2))

    def _noisy(self, target: int) -> "Noisy":
        """Built once a graph; graphs of equal size share what is large."""
        if target not in self.known:
            graph, n = self.graphs[target], self.graphs[target].num_nodes
            if n not in self.places:
                self.places[n] = _places(n, self.device)
            self.known[target] = Noisy(self.plan, graph, self.places[n], self.kind, self.device)
        return self.known[target]


def _places(n: int, device: torch.device) -> Tensor:
    """int64[n * n]: the entry of each pair in both directions; n(n-1)/2, one past the last, for a node and itself."""
    low = torch.tril_indices(n, n, offset=-1)
    place = torch.full((n, n), n * (n - 1) // 2)
    place[low[0], low[1]] = place[low[1], low[0]] = torch.arange(low.shape[1])
    return place.flatten().to(device)


class Noisy:
    """One graph and what is the same for all its noisy versions."""

    def __init__(
        self, plan: Steps, graph: Graph, places: Tensor, kind: torch.dtype, device: torch.device
    ) -> None:
        assert graph.x is not None
        n = graph.num_nodes
        self.plan, self.n, self.entries = plan, n, n * (n - 1) // 2
        self.x = graph.x.to(device=device, dtype=kind)
        self.clean = torch.zeros(self.entries, dtype=torch.bool, device=device)
        self.clean[pair_entries(graph.pairs).to(device)] = True
        looped, own = graph.loops.to(device), diagonal(plan)
        self.loops = torch.zeros((1, n), dtype=kind, device=device)
        self.loops[0, looped] = 1
        self.looped = bool(len(looped))
        self.places = places
        self.ends = [0.0] if own is None else [own, own + 1]  # values after the last entry
        if own is not None and len(looped):
            self.places = places.index_fill(0, looped * (n + 1), self.entries + 1)

    def adjacency(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, n, n]: the noisy graphs, with what the plan's layers expect on the diagonal."""
        vectors = noisy(self.clean, flips)
        values = self.x.new_empty((len(vectors), self.entries + len(self.ends)))
        # whole numbers convert several times faster than truth values
        values[:, : self.entries] = vectors.view(torch.uint8)
        for i, end in enumerate(self.ends):
            values[:, self.entries + i] = end
        return values.index_select(1, self.places).view(-1, self.n, self.n)

    def logits(self, flips: tuple[Tensor, Tensor]) -> Tensor:
        """[S, C] of the graphs with these entries flipped."""
        around = Matrices(self.adjacency(flips), self.loops, self.looped)
        out = self.plan.evaluate(
            self.x[None], lambda layer, h: layer.over(layer.send(h), around), around.pool, around.average
        )
        return out.expand(len(around.adjacency), out.shape[-1])
