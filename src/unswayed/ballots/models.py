"""BallotModel: a network whose score is τ·o + Σ (o + q) over the neighbours, o of the target alone, q what a neighbour says.

Trained in floats. `freeze` computes own scores and ballots once, in float64 on the CPU, rounds them to whole numbers, and
keeps those tables; from then on every answer is a sum of integers, the same in any order and on any device.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from unswayed.ballots.claims import Sizing, proofs
from unswayed.ballots.fixed import (
    SCALE,
    check_exact,
    check_not_structural,
    fixed,
    hash_of,
    hash_of_names,
    same_memory,
)
from unswayed.ballots.labels import Said, read_known, read_meaning
from unswayed.ballots.links import Links, codes
from unswayed.ballots.tables import EXACT_TWINS, Tabled
from unswayed.ballots.unaltered import check_unaltered
from unswayed.certificates.proofs import Proofs
from unswayed.errors import InputError

TALLIED = 2**14  # links whose ballots are added together: as many as stay near the processor
ANSWERED = ("forward", "_tally", "_stored", "own_of_new", "exact")  # by what an answer is made of the tables
WEIGHED: WeakKeyDictionary[nn.Module, list[Any]] = WeakKeyDictionary()  # weights found to be the frozen ones
# features found to be those of this hash
CHECKED: WeakKeyDictionary[nn.Module, tuple[Tensor, Tensor]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Spoken:
    """In floats and differentiable: `own` [n, C]; `links` [2m, C], what stored links say; `newcomers` [n, C], new ones."""

    own: Tensor
    links: Tensor
    newcomers: Tensor


class BallotModel(Tabled):
    """What every ballot model has: `freeze`, and after it an answer that is an exact sum of its tables."""

    TABLES = (
        "own_table",
        "base_table",
        "ballot_table",
        "link_codes",
        "link_rows",
        "feature_hash",
        "name_hash",
        "seen",
        "reach",
        "tau_table",
        "weight_hash",
    )
    reads_links = False  # whether ballots depend on the voters' own links, so that only the target's row may be attacked
    reads_features = False
    own_table: Tensor  # int64[n, C]: o
    base_table: Tensor  # int64[n, C]: τ·o
    ballot_table: Tensor  # int32[R, C]: q, the first n rows what each node says to a newcomer
    # int64[2m], sorted: target · n + voter, where stored links speak by rows of their own
    link_codes: Tensor | None
    link_rows: Tensor | None  # int32[2m]: those rows
    feature_hash: Tensor | None  # uint8[32]
    name_hash: Tensor | None  # uint8[33] of what the nodes are called, where they are not just numbered
    seen: Tensor | None  # bool[n]: nodes whose links have shaped the ballots
    reach: Tensor | None  # int64: how far from 0 the ballot of a node with arbitrary features can be
    tau_table: Tensor | None  # float64: τ, which a node that arrives is scored with
    weight_hash: Tensor | None  # uint8[32] of the weights, which it is scored with too
    meaning: Tensor | None  # float[2, C, C]: what labels say of a neighbour's class; None: that it is theirs
    classes: int
    tau: float

    def __init__(self, classes: int, tau: float, meaning: Any = None) -> None:
        super().__init__()
        if isinstance(classes, bool) or not isinstance(classes, int) or classes < 2:
            raise InputError(f"A ballot model needs two classes or more, not {classes!r}.")
        if not isinstance(tau, int | float) or not 0 < tau < 2**20:
            raise InputError(f"tau must be a number above 0, not {tau!r}.")
        self.classes, self.tau = classes, float(tau)
        self.register_buffer("meaning", None if meaning is None else read_meaning(meaning, classes))

    @abstractmethod
    def own_scores(self, x: Tensor | None, nodes: int) -> Tensor:
        """[nodes, C]: what each node says of itself, from its features alone."""

    @abstractmethod
    def ballots(self, links: Links, known: Tensor) -> Said:
        """What each node says to a newcomer and over each stored link, without the other end's label."""

    def newcomers(self, links: Links, known: Tensor) -> Tensor:
        """[n, C]: what each node says over a new link, or over one to a node whose own label is unknown."""
        return self.ballots(links, known).rows[: links.nodes]

    @property
    def fakes_reach(self) -> float | None:
        """How far from 0 the ballot of a node with arbitrary features and no known label can be; None: not bounded here."""
        return None

    # in floats, for training

    def speak(self, data: Any, known: Any = None, hidden: Tensor | None = None) -> Spoken:
        """Own scores and ballots on this graph, differentiable; labels under the mask `hidden` count as unknown.

        `data` may be a `Links`, which saves reading the graph anew in each step; `links` are in its order.
        """
        links = Links.of(data)
        labels = known if isinstance(known, Tensor) else read_known(known, links.nodes, self.classes)
        labels = labels.to(links.voter.device)
        labels = labels if hidden is None else labels.masked_fill(hidden, -1)
        said = self.ballots(links, labels)
        own = self.own_scores(links.x, links.nodes)
        return Spoken(own, said.rows[said.row], said.rows[: links.nodes])

    def score(self, links: Links, spoken: Spoken) -> Tensor:
        """[n, C]: τ·o + Σ (o + q), in floats."""
        total = self.tau * spoken.own
        return total.index_add(0, links.target, (spoken.links + spoken.own[links.target]).to(total.dtype))

    # frozen

    def freeze(self, data: Any, known: Any = None) -> Self:
        """The model itself, in evaluation mode, with its own scores and ballots on this graph fixed as whole numbers.

        `known` int[n] are the labels that may be told, −1 where unknown (none by default).
        """
        links = Links.of(data).to("cpu")
        labels = read_known(known, links.nodes, self.classes)
        if self.reads_features:
            check_not_structural(links)
        EXACT_TWINS.pop(self, None)
        CHECKED.pop(self, None)
        WEIGHED.pop(self, None)
        with torch.no_grad():
            exact = self.exact()
            own = exact.own_scores(links.x, links.nodes)
            said = exact.ballots(links, labels)
        tables = {
            "own_table": fixed(own),
            "base_table": fixed(self.tau * own),
            "ballot_table": fixed(said.rows).to(torch.int32),
            "feature_hash": hash_of(links.x) if self.reads_features and links.x is not None else None,
            "name_hash": hash_of_names(links.names),
            "link_codes": links.codes if self.reads_links else None,
            "link_rows": said.row.to(torch.int32) if self.reads_links else None,
            "seen": self.seen_nodes(links),
            "reach": self._reach_of_fakes(),
            "tau_table": torch.tensor(self.tau, dtype=torch.float64),
            "weight_hash": self._weights(),
        }
        check_exact(fixed(own), fixed(self.tau * own), fixed(said.rows), links.nodes)
        return self.keep(**tables)

    def prove_under(self, threat: Any, sizes: Sizing | None = None) -> Proofs:
        """Exact proofs under a threat; freezes the model on the threat's graph, without known labels, if it is not frozen.

        `sizes` finds the sizes of an electorate elsewhere.
        """
        check_unaltered(self, *ANSWERED)
        if not self.frozen:
            self.freeze_for(threat)
        return proofs(self.eval(), threat, sizes)

    def freeze_for(self, threat: Any) -> None:
        """Freeze on the graph of a threat."""
        graph = getattr(threat, "graph", None)
        if graph is None and getattr(threat, "nodes", None) is not None:
            graph = threat.graphs[0]
        if graph is not None:
            self.freeze(graph)

    def _reach_of_fakes(self) -> Tensor | None:
        """None where fake nodes could also change what others say."""
        far = self.fakes_reach
        return None if far is None or self.reads_links else torch.tensor(int(far * SCALE) + 1)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Refuse tables made by voters of another kind; τ comes with the tables it was used for."""
        frozen = state_dict.get(prefix + self.TABLES[0]) is not None
        if frozen and (state_dict.get(prefix + "link_codes") is not None) != self.reads_links:
            kind = "features or a snapshot" if self.reads_links else "the links around them (two-hop)"
            raise InputError(
                f"The stored tables are of voters that speak by {kind}; build the model with the same voters as the stored one."
            )
        if frozen and (tau := state_dict.get(prefix + "tau_table")) is not None:
            self.tau = float(tau)
        meaning = state_dict.get(prefix + "meaning")
        self.meaning = None if meaning is None else torch.empty_like(meaning)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def own_of_new(self, x: Tensor | None, nodes: int) -> tuple[Tensor, Tensor]:
        """int64[nodes, C] twice: the frozen own scores and base of nodes that arrive, each computed alone."""
        self._check_weights()
        exact, tau = self.exact(), self.tau if self.tau_table is None else float(self.tau_table)
        with torch.no_grad():
            rows = [exact.own_scores(None if x is None else x[i : i + 1].cpu(), 1) for i in range(nodes)]
        own = torch.cat(rows) if rows else torch.zeros(0, self.classes, dtype=torch.float64)
        return fixed(own), fixed(tau * own)

    def _weights(self) -> Tensor:
        """uint8[32]: the hash of all weights as doubles."""
        flat = [weight.detach().cpu().double().reshape(-1) for weight in self.parameters()]
        return hash_of(torch.cat([torch.zeros(1, dtype=torch.float64), *flat]))  # one where there are none

    def _check_weights(self) -> None:
        """Refuse weights that have changed since the model was frozen; those that nobody has written to are not read again."""
        now = [(weight, weight._version) for weight in self.parameters()]
        known = WEIGHED.get(self, [])
        if len(known) == len(now) and all(
            a is b and v == w for (a, v), (b, w) in zip(known, now, strict=True)
        ):
            return
        if self.weight_hash is not None and not torch.equal(self.weight_hash.cpu(), self._weights()):
            raise InputError(
                "The weights have changed since the model was frozen, so nodes that arrive would be scored by others than the rest; "
                "freeze it again."
            )
        WEIGHED[self] = now

    def seen_nodes(self, links: Links) -> Tensor | None:
        """bool[n]: nodes whose links have shaped the ballots, which can be no targets; None where there are none."""
        return None

    def forward(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Scores [nodes, C]; frozen: exact multiples of 1/SCALE in float64, for one or more copies of the frozen graph's nodes.

        A frozen model answers for any links among the nodes it was frozen with, features unchanged; a link that was there
        speaks by its own ballot, a new one by its voter's ballot for newcomers.
        """
        if self.frozen and not self.training:
            return self._tally(x, edge_index, batch)
        nodes = self._nodes(x, edge_index, batch)
        code = codes(edge_index, nodes)
        links = Links(nodes, code % nodes, code // nodes, x)
        return self.score(links, self.speak(links))

    def _tally(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None) -> Tensor:
        n = len(self.own_table)
        copies = self._copies(x, edge_index, batch)
        code = codes(edge_index, n)
        target, voter = code // n, code % n
        row = voter if self.link_codes is None else self._stored(target % n * n + voter, voter)
        degree = torch.bincount(target, minlength=copies * n)
        total = (self.base_table + degree.view(copies, n, 1) * self.own_table).view(copies * n, -1)
        for start in range(0, len(row), TALLIED):
            some = slice(start, start + TALLIED)
            total.index_add_(0, target[some], self.ballot_table[row[some]].long())
        return total.double() / SCALE

    def _stored(self, code: Tensor, voter: Tensor) -> Tensor:
        """The row by which each link speaks: its own if it was there when the model was frozen."""
        assert self.link_codes is not None
        assert self.link_rows is not None
        if not len(self.link_codes):
            return voter
        place = torch.searchsorted(self.link_codes, code).clamp(max=len(self.link_codes) - 1)
        return torch.where(self.link_codes[place] == code, self.link_rows[place].long(), voter)

    def _copies(self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None) -> int:
        """How many copies of the frozen graph's nodes these are; refused where they are not."""
        n = len(self.own_table)
        total = self._nodes(x, edge_index, batch, default=n)
        graphs = None if batch is None or not len(batch) else int(batch.max()) + 1
        if total % n or (graphs is not None and total != graphs * n) or not total:
            raise InputError(
                f"The model is frozen for a graph of {n} nodes and was given {total}; freeze it on this graph, or call thaw()."
            )
        crossing = edge_index.numel() and bool((edge_index[0] // n != edge_index[1] // n).any())
        if crossing or (
            edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < total
        ):
            raise InputError("An edge names a node that is not in its graph.")
        self.check_features(x, total // n)
        return total // n

    def check_features(self, x: Tensor | None, copies: int = 1) -> None:
        """Refuse features other than those that the ballots were made of; what was checked once is not read again."""
        if x is None or self.feature_hash is None:
            return
        known = CHECKED.get(self)
        if known is not None and known[0] is self.feature_hash and same_memory(known[1], x):
            return
        apart = x.reshape(copies, len(self.own_table), -1)
        found = hash_of(apart[0])
        if not bool((apart == apart[:1]).all()) or not torch.equal(found, self.feature_hash.cpu()):
            raise InputError(
                "The features are not those the model was frozen with; freeze it on this graph, or call thaw()."
            )
        CHECKED[self] = (self.feature_hash, x)

    def _nodes(
        self, x: Tensor | None, edge_index: Tensor, batch: Tensor | None, default: int | None = None
    ) -> int:
        if x is not None:
            return len(x)
        if batch is not None:
            return len(batch)
        if default is not None:
            return default
        return int(edge_index.max()) + 1 if edge_index.numel() else 0
