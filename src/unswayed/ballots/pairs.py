"""PairBallots: graph classification in which every edge has a say, q_ij from the features of its two ends.

The score of a graph is o(N) plus Σ q(x_i, x_j, N) over its edges, where N says which nodes there are. Nodes are fixed, so that both may
be any function of N; in the pairs the score is linear, and `prove` gives its exact K. Frozen, both are looked up by what the features are,
and added as whole numbers.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unswayed.ballots.counts import READOUTS, CountsScore, node_keys
from unswayed.ballots.fixed import EXACT, LARGEST, SCALE, check_not_structural, fixed
from unswayed.ballots.links import NO_NODES, Links, codes
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
    """A network for whole graphs whose answer is what their nodes say together, and what each edge says: at most ±cap a class.

    Nodes speak through `members` readouts ("mlp" or "linear") of the sum of their features. An edge says the members' mean of
    cap · tanh(voice(Ax_i + Ax_j + BN)), N that sum: the same from either end, in every graph of these nodes. `in_channels` 0 is for
    graphs without features, whose N is their number of nodes. Train it as any module `forward(x, edge_index, batch)`, after
    `standardise(graphs)` where sums are large; `freeze(graphs)` fixes what the nodes of these graphs and every pair of them
    would say, present or not, and `prove(net, AllPairs(graphs))` does so if need be.
    """

    TABLES = ("own_table", "kinds", "node_table", "pair_codes", "ballot_table")
    own_table: Tensor  # int64[N, C]: what is said of each set of nodes
    kinds: Tensor  # float64[D, F]: the features of each kind of node
    node_table: Tensor  # uint8[N, 32]: which kinds there are in each set, as `node_keys` has it
    # int64[R], sorted: (s · D + a) · D + b with a <= b, the pairs of kinds a and b that occur within set s
    pair_codes: Tensor
    ballot_table: Tensor  # int32[R, C]: what they say when they are linked

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden: int = 64,
        cap: float = 3.0,
        members: int = 1,
        readout: str = "mlp",
    ) -> None:
        super().__init__()
        for name, value, least in (("in_channels", in_channels, 0), ("out_channels", out_channels, 2), ("hidden", hidden, 1), ("members", members, 1)):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number from {least} up, not {value!r}.")
        if not isinstance(cap, int | float) or not 0 < cap <= LARGEST // SCALE:
            raise InputError(f"cap must be a number above 0 and at most {LARGEST // SCALE}, not {cap!r}.")
        if readout not in READOUTS:
            raise InputError(f"readout must be one of {', '.join(READOUTS)}, not {readout!r}.")
        self.in_channels, self.classes, self.hidden, self.cap = in_channels, out_channels, hidden, float(cap)
        wide = max(in_channels, 1)
        self.own = CountsScore(in_channels, out_channels, hidden=hidden, members=members, readout=readout)
        self.end, self.about = (
            nn.Linear(wide, members * hidden),
            nn.Linear(wide, members * hidden, bias=False),
        )
        self.voice = nn.ModuleList(nn.Linear(hidden, out_channels) for _ in range(members))

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.in_channels}, {self.classes}, hidden={self.hidden}, cap={self.cap:g}, frozen={self.frozen}"

    def standardise(self, graphs: Any) -> Self:
        """The network itself, which measures sums of features from now on as they spread over these graphs."""
        rows = [self._of(graph).to(self.own.centre) for graph in read_graphs(graphs)]
        self.own.standardise(torch.stack([part.sum(dim=0) for part in rows]))
        return self

    def voices(self, heard: Tensor) -> Tensor:
        """[members, pairs, C]: what each member makes a link say; `heard` is `end` of both ends and `about` of their graph, added."""
        parts = heard.relu().view(len(heard), len(self.voice), self.hidden).unbind(dim=1)
        said = [voice(part) for voice, part in zip(self.voice, parts, strict=True)]
        return self.cap * torch.tanh(torch.stack(said))

    def forward(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Scores [graphs, C]; frozen: exact multiples of 1/SCALE in float64, for graphs of nodes that it was frozen with."""
        features = self._features(x, edge_index, batch)
        of = torch.zeros(len(features), dtype=torch.int64, device=features.device) if batch is None else batch
        graphs = int(of.max()) + 1 if len(of) else 1
        first, second = merged(edge_index, len(features))
        if self.frozen and not self.training:
            kind, place = self._known(features, of, graphs)
            own, said = self.own_table[place], self._looked_up(kind, of, place, first, second)
        else:
            features = features.to(self.end.weight)
            about = self.own.standard(
                features.new_zeros(graphs, features.shape[1]).index_add(0, of, features)
            )
            ends = self.end(features)
            own, said = (
                self.own(about),
                self.voices(ends[first] + ends[second] + self.about(about)[of[first]]).mean(dim=0),
            )
        total = own.index_add(0, of[first], said)
        return total.double() / SCALE if not total.is_floating_point() else total

    def freeze(self, graphs: Any) -> Self:
        """The network itself, in evaluation mode, with what the nodes of these graphs and their pairs say fixed as whole numbers."""
        read = read_graphs(graphs)
        EXACT_TWINS.pop(self, None)
        check_not_structural(_union(read))
        rows = [self._of(graph).double().numpy() for graph in read]
        kinds, kind = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        if not np.isfinite(kinds).all():
            raise UnsoundModel("The features are not finite.")
        sizes = np.array([len(part) for part in rows])
        owner = torch.from_numpy(np.repeat(np.arange(len(rows)), sizes))
        keys, which = np.unique(
            node_keys(torch.from_numpy(kind.reshape(-1)), owner, len(rows)), axis=0, return_index=True
        )
        every = np.split(kind.reshape(-1), np.cumsum(sizes)[:-1])
        sets = [np.sort(every[place]) for place in which]
        found = np.concatenate([_kind_pairs(part, len(kinds), place) for place, part in enumerate(sets)])
        with torch.no_grad():
            own, said = self._spoken(torch.from_numpy(kinds), sets, torch.from_numpy(found))
        self._check_sums(own, said, int(sizes.max()))
        return self.keep(
            own_table=own,
            kinds=torch.from_numpy(kinds),
            node_table=torch.from_numpy(keys),
            pair_codes=torch.from_numpy(found),
            ballot_table=said.to(torch.int32),
        )

    def prove_under(self, threat: Threat) -> Proofs:
        """Exact proofs for whole graphs, every pair of their nodes attackable or the listed ones; frozen on them if need be."""
        check_unaltered(self, "forward", "margins", "_known", "_looked_up", "_kind_of")
        if threat.kind not in ("all-pairs", "pairs") or getattr(threat, "nodes", None) is not None:
            raise Unsupported(
                "Pairs vote on whole graphs: prove this network under AllPairs(graphs) or Pairs(data, pairs); for nodes use "
                "BallotNetwork."
            )
        graphs = threat.graphs  # type: ignore[attr-defined]
        self.eval()  # what is proved is what the tables say, and so must the network from now on
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
        of = torch.zeros(count, dtype=torch.int64)
        kind, place = self._known(self._of(graph), of, 1)
        said, effect = (
            self._looked_up(kind, of, place, *pairs) for pairs in (graph.pairs, torch.stack([first, second]))
        )
        present = torch.isin(pair_entries(torch.stack([first, second])), pair_entries(graph.pairs))
        scores = self.own_table[place[0]] + said.sum(dim=0)
        return Linear.of_scores(scores[None].cpu().numpy(), effect[None].cpu().numpy(), present[None].numpy())

    def _spoken(
        self, kinds: Tensor, sets: list[npt.NDArray[np.int64]], found: Tensor
    ) -> tuple[Tensor, Tensor]:
        """In fixed point: what is said of each set of nodes and of each pair of kinds in it, computed in float64."""
        exact, many = self.exact(), len(kinds)
        about = exact.own.standard(torch.stack([kinds[part].sum(dim=0) for part in sets]))
        ends, context = exact.end(kinds), exact.about(about)
        said = [
            fixed(
                exact.voices(ends[part // many % many] + ends[part % many] + context[part // many**2]).mean(
                    dim=0
                )
            )
            for part in torch.split(found, AT_ONCE)
        ]
        return fixed(exact.own(about)), torch.cat(said)

    def _check_sums(self, own: Tensor, said: Tensor, nodes: int) -> None:
        """Refuse tables whose sums over the largest graph a double might not hold."""
        loudest = int(said.abs().max()) if said.numel() else 0
        if int(own.abs().max()) + nodes * (nodes - 1) // 2 * loudest >= EXACT:
            raise UnsoundModel("The scores are too large to be added exactly; train with smaller weights.")

    def _known(self, features: Tensor, of: Tensor, graphs: int) -> tuple[Tensor, Tensor]:
        """(the kind of each node, the row of each graph's nodes in the tables); refused where nodes were not frozen together."""
        kind = self._kind_of(features)
        rows = {key.tobytes(): row for row, key in enumerate(self.node_table.cpu().numpy())}
        place = [rows.get(key.tobytes(), -1) for key in node_keys(kind, of, graphs)]
        if min(place) < 0:
            raise InputError(
                "The network was not frozen with a graph of these nodes; freeze it on this graph, or call thaw()."
            )
        where = self.kinds.device
        return kind.to(where), torch.tensor(place, device=where)

    def _looked_up(self, kind: Tensor, of: Tensor, place: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """int64[links, C]: what each link says, from the tables."""
        if not torch.equal(of[first], of[second]):
            raise InputError("A link joins nodes of two graphs of the batch; give each graph its own links.")
        low, high = torch.minimum(kind[first], kind[second]), torch.maximum(kind[first], kind[second])
        code = (place[of[first]] * len(self.kinds) + low) * len(self.kinds) + high
        return self.ballot_table[torch.searchsorted(self.pair_codes, code)].long()

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
        raise InputError(NO_NODES)

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


def _kind_pairs(kind: npt.NDArray[np.int64], many: int, place: int) -> npt.NDArray[np.int64]:
    """The codes of all pairs of kinds within one set of nodes; a kind meets itself where two nodes are of it."""
    own, count = np.unique(kind, return_counts=True)
    first, second = np.triu_indices(len(own))
    there = (first != second) | (count[first] > 1)
    return np.asarray(((place * many + own[first]) * many + own[second])[there], dtype=np.int64)


def _union(graphs: list[Graph]) -> Links:
    """All graphs side by side."""
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    pairs = [graph.pairs + int(start) for graph, start in zip(graphs, starts, strict=False)]
    code = codes(torch.cat(pairs, dim=1), int(starts[-1]))
    x = None if graphs[0].x is None else torch.cat([graph.x for graph in graphs if graph.x is not None])
    return Links(int(starts[-1]), code % int(starts[-1]), code // int(starts[-1]), x)
