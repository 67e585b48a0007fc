"""Random small cases for `prove_check.py`: a model, a threat, its proof, and the model itself to ask about any attack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data
from torch_geometric.nn import GCN, global_mean_pool

import unswayed as us

FEATURES = 3
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Case:
    """One target: `ask` returns the model's own label after changing these entries; `present` says which are there."""

    proofs: Any
    present: np.ndarray
    ask: Callable[[Sequence[int]], int]
    names: Sequence[int] | None = None  # how the proof numbers the entries, where not from 0


@dataclass(frozen=True, eq=False)
class Injection:
    """One target: `ask` returns the model's own label beside fake nodes with these features and these links."""

    proofs: Any
    target: int
    nodes: int
    ask: Callable[[np.ndarray, Sequence[tuple[int, int]]], int]


def random_pairs(rng: Rng, nodes: int) -> set[tuple[int, int]]:
    share = rng.choice([0.2, 0.5, 0.8])
    return {pair for pair in combinations(range(nodes), 2) if rng.random() < share}


def edge_index(pairs: set[tuple[int, int]]) -> torch.Tensor:
    both = [*pairs, *((j, i) for i, j in pairs)]
    return torch.tensor(sorted(both), dtype=torch.int64).reshape(-1, 2).T


def random_graph(rng: Rng, nodes: int) -> tuple[Data, set[tuple[int, int]]]:
    pairs = random_pairs(rng, nodes)
    x = torch.from_numpy(rng.normal(size=(nodes, FEATURES))).float()
    return Data(x=x, edge_index=edge_index(pairs), num_nodes=nodes), pairs


def top(scores: torch.Tensor) -> int:
    return int(scores.detach().double().numpy().argmax())


def random_network(rng: Rng, classes: int, voters: Any) -> torch.nn.Module:
    if voters == "labels":
        return us.LabelBallots(classes, sharpness=float(rng.choice([1, 4, 16])))
    torch.manual_seed(int(rng.integers(2**31)))
    net = us.BallotNetwork(
        FEATURES,
        classes,
        hidden=4,
        voters=voters,
        tau=float(rng.choice([0.5, 2])),
        cap=float(rng.choice([1, 3])),
    )
    quiet = rng.random() < 0.2  # ballots of whole labels: ties are common
    with torch.no_grad():
        net.own_weight.fill_(0.0 if quiet else 0.3 * float(rng.normal()))
        net.voice_weight.fill_(0.0 if quiet else float(rng.normal()))
        net.label_weight.fill_(1.0 if quiet else float(rng.uniform(0, 2)))
    return net


def snapshot(rng: Rng, data: Data, pairs: set[tuple[int, int]], target: int) -> us.Snapshot:
    torch.manual_seed(int(rng.integers(2**31)))
    trusted = {pair for pair in pairs if target not in pair}
    return us.Snapshot(
        GCN(FEATURES, 4, 2, 4), Data(x=data.x, edge_index=edge_index(trusted), num_nodes=len(data.x))
    )


def known_labels(rng: Rng, nodes: int, classes: int) -> np.ndarray:
    return np.where(rng.random(nodes) < 0.6, rng.integers(0, classes, nodes), -1)


def node_case(rng: Rng, voters: str, threat: str) -> Case:
    """A node of a small graph, under one of the threats that its voters allow."""
    nodes, classes = int(rng.integers(4, 7)) if threat != "all-pairs" else 4, int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    target = int(rng.integers(nodes))
    speak = snapshot(rng, data, pairs, target) if voters == "snapshot" else voters
    net = random_network(rng, classes, speak).freeze(data, known=known_labels(rng, nodes, classes))
    if threat == "row":
        entries = [tuple(sorted((target, v))) for v in range(nodes) if v != target]
        proofs = us.prove(net, us.Row(data, [target]))
    elif threat == "all-pairs":
        entries = [(i, j) for j in range(nodes) for i in range(j)]
        proofs = us.prove(net, us.AllPairs(data, [target]))
    else:
        every = list(combinations(range(nodes), 2))
        every = every if voters in ("features", "snapshot") else [pair for pair in every if target in pair]
        chosen = rng.permutation(len(every))[: rng.integers(1, 7)]
        entries = [every[i] for i in chosen]
        proofs = us.prove(net, us.Pairs(data, entries, [target]))
    names = [v for v in range(nodes) if v != target] if threat == "row" else None

    def ask(changed: Sequence[int]) -> int:
        now = pairs ^ {entries[i] for i in changed}
        return top(net(data.x, edge_index(now))[target])

    return Case(proofs, np.array([pair in pairs for pair in entries]), ask, names)


def arriving_case(rng: Rng, voters: str) -> Case:
    """A node that arrives; asked of the same network frozen on the graph in which it has arrived."""
    nodes, classes = int(rng.integers(4, 6)), int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    known = known_labels(rng, nodes, classes)
    net = random_network(rng, classes, voters).freeze(data, known=known)
    x = torch.from_numpy(rng.normal(size=(1, FEATURES))).float()
    linked = [v for v in range(nodes) if rng.random() < 0.5]
    proofs = us.prove(net, us.Row.new(data, x, [linked]))
    arrived = pairs | {(v, nodes) for v in linked}
    whole = Data(x=torch.cat([data.x, x]), edge_index=edge_index(arrived), num_nodes=nodes + 1)
    there = net.thaw().freeze(whole, known=np.append(known, -1))

    def ask(changed: Sequence[int]) -> int:
        now = arrived ^ {(v, nodes) for v in changed}
        return top(there(whole.x, edge_index(now))[nodes])

    return Case(proofs, np.isin(np.arange(nodes), linked), ask)


def graph_case(rng: Rng) -> Case:
    """A whole graph on which its pairs vote."""
    nodes, classes = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    torch.manual_seed(int(rng.integers(2**31)))
    net = us.PairBallots(FEATURES, classes, hidden=4, cap=float(rng.choice([0.1, 0.5, 2]))).freeze([data])
    entries = [(i, j) for j in range(nodes) for i in range(j)]

    def ask(changed: Sequence[int]) -> int:
        return top(net(data.x, edge_index(pairs ^ {entries[i] for i in changed}))[0])

    proofs = us.prove(net, us.AllPairs([data]))
    return Case(proofs, np.array([pair in pairs for pair in entries]), ask)


def bits_case(rng: Rng) -> Case:
    """A row of bits under a linear classifier; half of them with coefficients that tie."""
    columns, classes = int(rng.integers(3, 8)), int(rng.integers(2, 4))
    x, y = rng.random((40, columns)) < 0.5, rng.permutation(np.arange(40) % classes)
    kinds = [LogisticRegression(), RidgeClassifier(), Perceptron(random_state=0), BernoulliNB()]
    kinds.append(make_pipeline(StandardScaler(), LogisticRegression()))
    model = kinds[rng.integers(len(kinds))].fit(x, y)
    if isinstance(model, Perceptron):
        model.coef_ = rng.integers(-3, 4, model.coef_.shape) / 4
        model.intercept_ = rng.integers(-3, 4, model.intercept_.shape) / 4
    row = x[:1]

    def ask(changed: Sequence[int]) -> int:
        now = row.copy()
        now[0, list(changed)] ^= True
        return int(model.predict(now)[0])

    return Case(us.prove(model, us.Bits(row)), row[0], ask)


class Pooled(torch.nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 4, 2, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return global_mean_pool(self.net(x, edge_index), batch)


def hashed_case(rng: Rng, threat: str) -> Case:
    """Any model, by groups of edges."""
    nodes, classes = 4, int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    torch.manual_seed(int(rng.integers(2**31)))
    model = Pooled(classes) if threat == "graphs" else GCN(FEATURES, 4, 2, classes)
    net = us.Hashed(model, int(rng.integers(1, 12))).eval()
    target = int(rng.integers(nodes))
    entries = [(i, j) for j in range(nodes) for i in range(j)]
    if threat == "row":
        entries = [tuple(sorted((target, v))) for v in range(nodes) if v != target]
        proofs = us.prove(net, us.Row(data, [target]))
    elif threat == "graphs":
        target, proofs = 0, us.prove(net, us.AllPairs([data]))
    else:
        proofs = us.prove(net, us.AllPairs(data, [target]))

    def ask(changed: Sequence[int]) -> int:
        return top(net(data.x, edge_index(pairs ^ {entries[i] for i in changed}))[target])

    return Case(proofs, np.array([pair in pairs for pair in entries]), ask)


def hashed_injection(rng: Rng) -> Injection:
    """Any model, by groups of source nodes, beside fake nodes."""
    nodes, classes = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    torch.manual_seed(int(rng.integers(2**31)))
    net = us.Hashed(GCN(FEATURES, 4, 2, classes), int(rng.integers(3, 10)), by="nodes").eval()
    target = int(rng.integers(nodes))

    def ask(x: np.ndarray, links: Sequence[tuple[int, int]]) -> int:
        more = torch.cat([data.x, torch.from_numpy(x).float()])
        return top(net(more, edge_index(pairs | set(links)))[target])

    return Injection(us.prove(net, us.Inject(data, [target])), target, nodes, ask)


def ballot_injection(rng: Rng, voters: str) -> Injection:
    """A ballot network beside fake nodes: frozen anew on the graph that holds them, by the same weights."""
    nodes, classes = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    data, pairs = random_graph(rng, nodes)
    target = int(rng.integers(nodes))
    known = known_labels(rng, nodes, classes)
    net = random_network(rng, classes, voters).freeze(data, known=known)
    proofs = us.prove(net, us.Inject(data, [target]))

    def ask(x: np.ndarray, links: Sequence[tuple[int, int]]) -> int:
        more = torch.cat([data.x, torch.from_numpy(x).float()])
        edges = edge_index(pairs | set(links))
        whole = Data(x=more, edge_index=edges, num_nodes=len(more))
        there = net.thaw().freeze(whole, known=np.concatenate([known, np.full(len(x), -1)]))
        return top(there(more, edges)[target])

    return Injection(proofs, target, nodes, ask)


EXACT: dict[str, Callable[[Rng], Case]] = {
    **{
        f"{voters}, {threat}": lambda rng, v=voters, t=threat: node_case(rng, v, t)
        for voters, threats in {
            "labels": ("row", "pairs"),
            "two-hop": ("row", "pairs"),
            "features": ("row", "pairs", "all-pairs"),
            "snapshot": ("row", "pairs", "all-pairs"),
        }.items()
        for threat in threats
    },
    **{
        f"{voters}, arriving": lambda rng, v=voters: arriving_case(rng, v)
        for voters in (("labels", "two-hop", "features") if hasattr(us.Row, "new") else ())
    },
    "pairs of graphs": graph_case,
    "linear, bits": bits_case,
}
LOWER: dict[str, Callable[[Rng], Case]] = {
    f"hashed, {threat}": lambda rng, t=threat: hashed_case(rng, t)
    for threat in ("row", "all-pairs", "graphs")
}
FAKES: dict[str, Callable[[Rng], Injection]] = {
    "hashed, inject": hashed_injection,
    "features, inject": lambda rng: ballot_injection(rng, "features"),
}
