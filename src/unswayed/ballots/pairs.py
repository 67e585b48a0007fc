"""PairBallots: graph classification in which every edge has a say, q_ij from the features of its two ends.

The score of a graph is a constant plus Σ f(x_v) over its nodes plus Σ q(x_i, x_j) over its edges: linear in the pairs, so `prove` gives its
exact K. Frozen, both are looked up by what the features are, and added as whole numbers.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.ballots.fixed import EXACT, LARGEST, SCALE, check_not_structural, fixed
from unswayed.ballots.links import Links, codes
from unswayed.ballots.tables import EXACT_TWINS, Tabled
from unswayed.ballots.unaltered import check_unaltered
from unswayed.certificates.proofs import Proofs
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, UnsoundModel, Unsupported
from unswayed.sampling.inputs import Graph, pair_entries, read_graphs
from unswayed.sampling.threats import Threat
from unswayed.theory.ballots import Linear
from unswayed.theory.records import Several

AT_ONCE = 2**16  # pairs whose ballots are computed together
FIXED = "The ballots are frozen, and features and nodes are taken as fixed."


class PairBallots(Tabled):
    """A network for whole graphs whose answer is a sum of what nodes and edges say, each edge at most ±cap a class.

    An edge says cap · tanh(voice(Ax_i + Ax_j)), the same from either end. `in_channels` 0 is for graphs without features.
    Train it as any module `forward(x, edge_index, batch)`; `freeze(graphs)` fixes what every pair of nodes of these graphs
    would say, present or not, and `prove(net, AllPairs(graphs))` does so if need be.
    """

    TABLES = ("own_table", "kinds", "pair_codes", "ballot_table", "base_table")
    own_table: Tensor  # int64[D, C]: what each kind of node says
    kinds: Tensor  # float64[D, F]: the features of each kind
    pair_codes: (
        Tensor  # int64[R], sorted: a · D + b with a <= b, the pairs of kinds that occur within a graph
    )
    ballot_table: Tensor  # int32[R, C]: what they say when they are linked
    base_table: Tensor  # int64[C]: what is said of every graph

    def __init__(self, in_channels: int, out_channels: int, *, hidden: int = 64, cap: float = 3.0) -> None:
        super().__init__()
        for name, value, least in (("in_channels", in_channels, 0), ("out_channels", out_channels, 2), ("hidden", hidden, 1)):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number from {least} up, not {value!r}.")
        if not isinstance(cap, int | float) or not 0 < cap <= LARGEST // SCALE:
            raise InputError(f"cap must be a number above 0 and at most {LARGEST // SCALE}, not {cap!r}.")
        self.in_channels, self.classes, self.hidden, self.cap = in_channels, out_channels, hidden, float(cap)
        wide = max(in_channels, 1)
        self.own = nn.Sequential(nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, out_channels))
        self.end, self.voice = nn.Linear(wide, hidden), nn.Linear(hidden, out_channels)
        self.base = nn.Parameter(torch.zeros(out_channels))

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.in_channels}, {self.classes}, hidden={self.hidden}, cap={self.cap:g}, frozen={self.frozen}"

    def pair_ballots(self, first: Tensor, second: Tensor) -> Tensor:
        """[pairs, C]: what a link between nodes with these features says."""
        said: Tensor = self.cap * torch.tanh(self.voice((self.end(first) + self.end(second)).relu()))
        return said

    def forward(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Scores [graphs, C]; frozen: exact multiples of 1/SCALE in float64, for graphs made of kinds of nodes it knows."""
        features = self._features(x, edge_index, batch)
        of = torch.zeros(len(features), dtype=torch.int64, device=features.device) if batch is None else batch
        graphs = int(of.max()) + 1 if len(of) else 1
        first, second = merged(edge_index, len(features))
        if self.frozen and not self.training:
            base = self.base_table
            self._check_room(int(torch.bincount(of).max()) if len(of) else 0)
            own, said = self._looked_up(features, first, second)
        else:
            features, base = features.to(self.voice.weight), self.base
            own, said = self.own(features), self.pair_ballots(features[first], features[second])
        total = base.expand(graphs, -1).index_add(0, of, own).index_add(0, of[first], said)
        return total.double() / SCALE if not total.is_floating_point() else total

    def freeze(self, graphs: Any) -> Self:
        """The network itself, in evaluation mode, with what nodes and pairs of these graphs say fixed as whole numbers."""
        read = read_graphs(graphs)
        EXACT_TWINS.pop(self, None)
        check_not_structural(_union(read))
        rows = [self._of(graph).double().numpy() for graph in read]
        kinds, place = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        if not np.isfinite(kinds).all():
            raise UnsoundModel("The features are not finite.")
        ends = np.split(place.reshape(-1), np.cumsum([len(part) for part in rows])[:-1])
        found = np.unique(np.concatenate([_kind_pairs(part, len(kinds)) for part in ends]))
        with torch.no_grad():
            own, said = self._spoken(torch.from_numpy(kinds), torch.from_numpy(found))
            base = fixed(self.exact().base)
        self._check_sums(own, said, base, max(len(part) for part in rows))
        return self.keep(
            own_table=own,
            kinds=torch.from_numpy(kinds),
            pair_codes=torch.from_numpy(found),
            ballot_table=said.to(torch.int32),
            base_table=base,
        )

    def prove_under(self, threat: Threat) -> Proofs:
        """Exact proofs for whole graphs, every pair of their nodes attackable or the listed ones; frozen on them if need be."""
        check_unaltered(self, "forward", "margins", "_looked_up", "_kind_of")
        if threat.kind not in ("all-pairs", "pairs") or getattr(threat, "nodes", None) is not None:
            raise Unsupported(
                "Pairs vote on whole graphs: prove this network under AllPairs(graphs) or Pairs(data, pairs); for nodes use "
                "BallotNetwork."
            )
        graphs = threat.graphs  # type: ignore[attr-defined]
        if not self.frozen:
            self.freeze(graphs)
        listed = getattr(threat, "pairs", None)
        parts = [self.margins(graph, listed) for graph in graphs]
        return Proofs.of(
            Several.of(parts),
            About(threat.targets, threat.entries, self.classes, threat.ones, threat.describe()),
            told=FIXED,
            model={"name": type(self).__name__, "tables sha256": self.table_hash},
            reads="separate",
            unit_scale=float(SCALE),
        )

    def margins(self, graph: Graph, listed: Tensor | None = None) -> Linear:
        """The exact margins of one graph: entry j(j−1)/2 + i is the pair i < j, or entry e the e-th of the listed pairs."""
        count = graph.num_nodes
        first, second = torch.tril_indices(count, count, offset=-1).flip(0) if listed is None else listed
        features = self._of(graph)
        self._check_room(count)
        own, said = self._looked_up(features, *graph.pairs)
        _, effect = self._looked_up(features, first, second)
        present = torch.isin(pair_entries(torch.stack([first, second])), pair_entries(graph.pairs))
        scores = self.base_table + own.sum(dim=0) + said.sum(dim=0)
        return Linear.of_scores(scores[None].cpu().numpy(), effect[None].cpu().numpy(), present[None].numpy())

    def _spoken(self, kinds: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
        """In fixed point: what each kind of node and each pair of kinds says, computed in float64."""
        exact, many = self.exact(), len(kinds)
        said = [
            fixed(exact.pair_ballots(kinds[part // many], kinds[part % many]))
            for part in torch.split(found, AT_ONCE)
        ]
        return fixed(exact.own(kinds)), torch.cat(said)

    def _check_sums(self, own: Tensor, said: Tensor, base: Tensor, nodes: int) -> None:
        """Refuse tables whose sums over the largest graph a double might not hold."""
        loudest = int(said.abs().max()) if said.numel() else 0
        alone = int(base.abs().max()) + nodes * int(own.abs().max())
        if alone + nodes * (nodes - 1) // 2 * loudest >= EXACT:
            raise UnsoundModel("The scores are too large to be added exactly; train with smaller weights.")

    def _check_room(self, nodes: int) -> None:
        """Refuse a graph so much larger than those of `freeze` that a double might not hold its score."""
        self._check_sums(self.own_table, self.ballot_table, self.base_table, nodes)

    def _looked_up(self, features: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """(what each node says, what each link says), int64, from the tables."""
        kind = self._kind_of(features).to(self.kinds.device)
        low, high = torch.minimum(kind[first], kind[second]), torch.maximum(kind[first], kind[second])
        code = low * len(self.kinds) + high
        place = torch.searchsorted(self.pair_codes, code)
        known = torch.cat([self.pair_codes, self.pair_codes.new_full((1,), -1)])
        if not torch.equal(known[place], code):
            raise InputError(
                "Two nodes are linked whose features were never in one graph when the network was frozen; freeze it on this "
                "graph, or call thaw()."
            )
        return self.own_table[kind], self.ballot_table[place].long()

    def _kind_of(self, features: Tensor) -> Tensor:
        """int64[n]: the kind of each node, by its exact features."""
        known, asked = self.kinds.cpu().numpy(), features.detach().cpu().double().numpy()
        if asked.shape[1] != known.shape[1]:
            raise InputError(
                f"The network was frozen with {known.shape[1]} features a node, not {asked.shape[1]}."
            )
        every, place = np.unique(np.concatenate([known, asked]), axis=0, return_inverse=True)
        place = place.reshape(-1)
        if len(every) != len(known):
            raise InputError(
                "A node has features that the network was not frozen with; freeze it on this graph, or call thaw()."
            )
        return torch.from_numpy(np.argsort(place[: len(known)])[place[len(known) :]]).to(features.device)

    def _of(self, graph: Graph) -> Tensor:
        """The features that are read of a graph's nodes."""
        return self._checked(graph.x, graph.num_nodes)

    def _features(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None) -> Tensor:
        if x is not None or batch is not None:
            return self._checked(x, len(x) if x is not None else len(batch)).to(edge_index.device)  # type: ignore[arg-type]
        return self._checked(x, int(edge_index.max()) + 1 if edge_index.numel() else 1).to(edge_index.device)

    def _checked(self, x: Tensor | None, nodes: int) -> Tensor:
        if not self.in_channels:
            return torch.ones(nodes, 1)
        if x is None or x.shape != (nodes, self.in_channels):
            told = "none" if x is None else f"shape {tuple(x.shape)}"
            raise InputError(
                f"The network reads {self.in_channels} features for each node, but there are {told}."
            )
        return x


def merged(edge_index: Tensor, nodes: int) -> Tensor:
    """int64[2, pairs]: each undirected pair once, i < j, without self-loops, sorted."""
    code = codes(edge_index, nodes)
    first, second = code // nodes, code % nodes
    return torch.stack([first, second])[:, first < second]


def _kind_pairs(kind: npt.NDArray[np.int64], many: int) -> npt.NDArray[np.int64]:
    """The codes of all pairs of kinds within one graph; a kind meets itself where two nodes are of it."""
    own, count = np.unique(kind, return_counts=True)
    first, second = np.triu_indices(len(own))
    there = (first != second) | (count[first] > 1)
    return np.asarray((own[first] * many + own[second])[there], dtype=np.int64)


def _union(graphs: list[Graph]) -> Links:
    """All graphs side by side."""
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    pairs = [graph.pairs + int(start) for graph, start in zip(graphs, starts, strict=False)]
    code = codes(torch.cat(pairs, dim=1), int(starts[-1]))
    x = None if graphs[0].x is None else torch.cat([graph.x for graph in graphs if graph.x is not None])
    return Links(int(starts[-1]), code % int(starts[-1]), code // int(starts[-1]), x)
