"""Whatever a module does, its votes are those of the module itself asked one graph at a time, or it is refused.

The other side of the comparison shares the noise with the package and nothing else: it lists the edges of every noisy graph
itself, in the promised order, and hands them to a fresh copy of the module.
"""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import erdos_renyi_graph

from unswayed.errors import InputError
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Question
from unswayed.sampling.sparse import SparseStream
from unswayed.sampling.structures import layout_of
from unswayed.sampling.threats import AllPairs, Pairs, Row
from unswayed.theory.noise import AddDelete, Flip

from .odd_modules import ODD, SCALED
from .odd_parts import CLASSES, FEATURES, NODES

SAMPLES, BATCH = 24, 8
TARGETS = (3, 0, 9)
LISTED = ((0, 3), (3, 9), (1, 9), (0, 2), (5, 3), (9, 4), (2, 5), (0, 9))
TIE = 1e-9  # of the largest logit: below this, which label is first is a matter of rounding
THREATS = {
    "row": (lambda data: Row(data, TARGETS), Flip(0.7)),
    "all pairs": (lambda data: AllPairs(data, TARGETS), AddDelete(0.05, 0.4)),
    "pairs": (lambda data: Pairs(data, LISTED, TARGETS), Flip(0.7)),
}
REFUSED = {
    "order: lstm",  # wants edges sorted by their destination, and says so
    *("norm: batch statistics", "layer: cached"),
    *("state: cache", "state: cache by shape", "state: counter", "state: running mean", "state: random"),
    *(
        f"weight: {road}"
        for road in ("by attribute", "by getattr", "by item", "by helper", "by keyword", "by dict")
    ),
}


def graph(scale=1.0, weighted=False, dtype=torch.float64):
    """Two parts that no listed pair joins, one node without edges, a self-loop; one feature may be huge."""
    torch.manual_seed(4)
    edges = [pair for pair in erdos_renyi_graph(10, 0.35).T.tolist() if pair[0] < pair[1]]
    edges += [(10, 11), (11, 12)]
    both = torch.tensor([*edges, *[(b, a) for a, b in edges], (2, 2)]).T
    x = torch.randn(NODES, FEATURES).to(dtype)
    x[1:8:2] *= scale
    data = Data(x=x, edge_index=both, mask=torch.arange(NODES) % 3 == 0)
    if weighted:
        data.edge_weight = torch.rand(both.shape[1]).to(dtype)
    return data


def pairs_of(data):
    """The edges i < j, by entry j(j-1)/2 + i."""
    found = {(min(e), max(e)) for e in data.edge_index.T.tolist() if e[0] != e[1]}
    return sorted(found, key=lambda pair: pair[1] * (pair[1] - 1) // 2 + pair[0])


def both_ways(pairs):
    return [*pairs, *[(b, a) for a, b in pairs]]


def noisy(clean, flips, sample):
    """The entries that are there in this sample."""
    return [e for e, there in enumerate(clean) if there ^ bool(flips[int(there)][sample, e])]


def listed_edges(question, kind, data):
    """(sample, target position or None for all) -> the edge list of that noisy graph."""
    edges, loops = pairs_of(data), [(2, 2)]
    if kind == "row":
        flips = question.stream.flips(0, SAMPLES, NODES, question.noise, target=None)
        for place, node in enumerate(TARGETS):
            clean = [tuple(sorted((node, v))) in edges for v in range(NODES)]
            fixed = both_ways([pair for pair in edges if node not in pair]) + loops
            for sample in range(SAMPLES):
                row = [(node, v) for v in noisy(clean, flips, sample) if v != node]
                yield sample, [place], fixed + both_ways(row)
        return
    everyone = list(range(len(TARGETS)))
    every = (
        [(i, j) for j in range(NODES) for i in range(j)]
        if kind == "all pairs"
        else [(min(pair), max(pair)) for pair in LISTED]
    )
    clean = [pair in edges for pair in every]
    fixed = both_ways([pair for pair in edges if pair not in every]) + loops
    if question.sparse:
        present = [e for e, there in enumerate(clean) if there]
        drawn = SparseStream(question.stream).ones(
            0, SAMPLES, len(every), torch.tensor(present), question.noise
        )
        there = [sorted(drawn[1][drawn[0] == sample].tolist()) for sample in range(SAMPLES)]
    else:
        flips = question.stream.flips(0, SAMPLES, len(every), question.noise, target=None)
        there = [noisy(clean, flips, sample) for sample in range(SAMPLES)]
    for sample in range(SAMPLES):
        yield sample, everyone, fixed + both_ways([every[e] for e in there[sample]])


def alone(model, data, edges):
    """The module's own answer for one graph."""
    edge_index, code = torch.tensor(edges).T, getattr(model.forward, "__code__", None)
    with torch.no_grad():
        if code is not None and "data" in code.co_varnames[:2]:
            return model(Data(x=data.x, edge_index=edge_index, mask=data.mask))
        return model(data.x, edge_index)


def one_at_a_time(question, kind, model, data):
    """(votes [targets, classes], how many of each target's answers are decided by rounding)."""
    votes = torch.zeros(len(TARGETS), CLASSES, dtype=torch.int64)
    ties = torch.zeros(len(TARGETS), dtype=torch.int64)
    fresh, graphs = copy.deepcopy(model).eval(), list(listed_edges(question, kind, data))
    first = alone(fresh, data, graphs[0][2])
    for _, places, edges in graphs:
        answer = alone(fresh, data, edges)
        for place in places:
            said = answer[TARGETS[place]]
            if said.ndim == 0:
                votes[place, said] += 1
            elif not said.isnan().any():
                votes[place, said.argmax()] += 1
                best, second = said.topk(2).values
                ties[place] += bool(best - second <= TIE * said.abs().max()) and bool(best.isfinite())
    assert torch.equal(first.nan_to_num(), alone(fresh, data, graphs[0][2]).nan_to_num()), "it remembers"
    return votes, ties


def check(model, kind, data, refused, **settings):
    threat, noise = THREATS[kind]
    question = Question(model, threat(data), noise, seed=5, batch_size=BATCH, classes=CLASSES, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is asked one by one, or by a slower engine, is said
        try:
            counts = torch.as_tensor(choose(question).count(0, SAMPLES))
        except (InputError, ValueError):
            if not refused:
                raise
            return
    assert not refused, "it was answered"
    wanted, ties = one_at_a_time(question, kind, model, data)
    assert torch.all((counts - wanted).abs().sum(1) <= 2 * ties), (counts.tolist(), wanted.tolist())


@pytest.mark.parametrize("kind", THREATS)
def test_what_a_module_is_handed_depends_on_the_noisy_entries_alone(kind):
    make, noise = THREATS[kind]
    threat, random = make(graph()), torch.Generator().manual_seed(0)
    model = ODD["data: data"]()
    for target in range(len(TARGETS)):
        clean = threat.clean(target)
        for _ in range(20):
            z = torch.rand(len(clean), generator=random) < 0.3
            free = [
                e
                for e in torch.randperm(len(clean), generator=random).tolist()
                if kind != "row" or e != TARGETS[target]
            ]
            attacked = threat.attacked(target, torch.tensor(free[: len(clean) // 2]))
            before = layout_of(Question(model, threat, noise, draws="dense"), target)
            after = layout_of(Question(model, attacked, noise, draws="dense"), 0)
            assert not torch.equal(before.clean, after.clean)
            lists = [layout.edges(((z ^ layout.clean)[None],) * 2) for layout in (before, after)]
            assert torch.equal(*lists)


def test_there_are_many_odd_modules():
    assert len(ODD) >= 60
    assert set(ODD) >= REFUSED


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("kind", THREATS)
@pytest.mark.parametrize("name", ODD)
def test_votes_are_those_of_the_module_itself_or_it_is_refused(name, kind):
    torch.manual_seed(0)
    model = ODD[name]().double()
    check(model, kind, graph(weighted=name in REFUSED), name in REFUSED)


@pytest.mark.parametrize("kind", THREATS)
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("name", SCALED)
def test_features_of_any_size_do_not_move_the_votes(name, scale, kind):
    torch.manual_seed(0)
    check(SCALED[name](), kind, graph(scale, dtype=torch.float32), refused=False)


class Pooled(nn.Module):
    """An odd module whose answers are averaged over each graph."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.inner(x, edge_index), batch)


def triangle():
    edges = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    return Data(
        x=torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(1)).double(), edge_index=edges
    )


WHOLE = (
    "size: density",
    "size: first 120 edges",
    "anchor: node 0",
    "anchor: mean of all",
    "norm: graph norm",
)
WHOLE += (
    "altered: message",
    "altered: own call",
    "altered: replaced part",
    "order: first listed",
    "layer: sg",
)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_graphs_are_answered_as_each_alone(name):
    torch.manual_seed(0)
    model, noise, graphs = Pooled(ODD[name]().double()).eval(), Flip(0.7), [graph(), triangle()]
    question = Question(model, AllPairs(graphs), noise, seed=5, batch_size=BATCH, classes=CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = choose(question).count(0, SAMPLES)
    for data, counted, loops in zip(graphs, counts, ([(2, 2)], []), strict=True):
        every = [(i, j) for j in range(data.num_nodes) for i in range(j)]
        clean = [pair in pairs_of(data) for pair in every]
        flips = question.stream.flips(0, SAMPLES, len(every), noise, target=None)
        wanted = [0] * CLASSES
        for sample in range(SAMPLES):
            edges = torch.tensor(loops + both_ways([every[e] for e in noisy(clean, flips, sample)]))
            with torch.no_grad():
                batch = torch.zeros(data.num_nodes, dtype=torch.int64)
                answer = copy.deepcopy(model)(data.x, edges.reshape(-1, 2).T, batch)
            wanted[int(answer.argmax())] += 1
        assert counted.tolist() == wanted
