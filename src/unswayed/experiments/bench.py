"""How much faster than asking one noisy graph at a time: ratios measured in one run on this machine.

The baseline is what a user of torch_geometric writes first: build the noisy graph, call the model, look at the target. Its
noise is drawn beforehand and not timed, and the faster of one and of all threads counts, so it errs in its favour.
"""

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed import datasets
from unswayed.experiments.deep_networks import DEEP, trained
from unswayed.experiments.one_graph import one_at_a_time, timed, votes_of_one
from unswayed.models.training import fit
from unswayed.notes import SAME, Audit
from unswayed.polling import AUDIT
from unswayed.sampling.audit import asked_again
from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import heard
from unswayed.sampling.threats import AllPairs, Pairs, Row, Threat
from unswayed.theory.noise import AddDelete, Flip, Noise

BETA = 0.7


@dataclass(frozen=True)
class Case:
    """One line of the table: a model on a dataset, how many samples a target gets, and of which noise."""

    dataset: str
    model: str
    samples: int = 10_000
    targets: int = 100
    noise: Noise = Flip(beta=BETA)  # noqa: RUF009 (it is frozen)
    pairs: int = 0  # so many listed pairs around the targets instead of their rows
    features: int | None = None  # only the first ones, where many would make the comparison slow


CASES = (
    Case("cora", "gcn-mean"),
    Case("cora", "sage"),
    Case("cora", "gat"),
    Case("cora", "gcn"),
    Case("cora", "gin"),
    Case("mutag", "gin"),
    *(Case("cora", model, 10 if model in ("gcn2-8", "feast-2") else 60) for model in DEEP),
    *(
        Case("cora", model, 300, noise=AddDelete(p_add=0.001, p_delete=0.6))
        for model in ("gcn-3", "gat-3", "sage-3", "gin-3")
    ),
    *(
        Case("cora", model, 1000, targets=20, noise=AddDelete(p_add=0.05, p_delete=0.5), pairs=200)
        for model in ("gcn", "gcn-3", "gcn-mean", "sage-3")
    ),
)


@dataclass(frozen=True)
class Line:
    """What was measured: seconds for one noisy graph, three ways, their ratios, and what a poll's audit takes besides."""

    dataset: str
    model: str
    threat: str
    engine: str
    graphs: int
    seconds: float
    seconds_a_million: float
    baseline_graphs: int
    baseline_ms: float
    baseline_threads: int
    generic_ms: float
    times_baseline: float
    times_generic: float
    agreement: float
    noise: str
    why: str  # what keeps faster engines from a model that takes the slow way
    audit: int
    audit_agreed: int
    audit_seconds: float

    @property
    def audited_seconds(self) -> float:
        """Seconds for a million noisy graphs polled at once, audit and all."""
        return self.seconds_a_million + self.audit_seconds


def run(
    cases: tuple[Case, ...] = CASES, *, baseline: int = 200, quick: bool = False, device: str = "cpu"
) -> Iterator[Line]:
    """One line a case; `quick` draws a tenth of the samples."""
    for case in cases:
        yield measure(replace(case, samples=max(4, case.samples // 10)) if quick else case, baseline, device)


def measure(case: Case, baseline: int, device: str = "cpu") -> Line:
    """Train the model on the clean data, then time the fast engine, the generic one and one graph at a time."""
    question = question_of(case, device)
    engine = choose(question)
    engine.count(0, 64)  # warm
    apart = len(question.threat) // votes_of_one(question)  # graphs that one sample is about
    graphs = case.samples * apart
    seconds, _ = timed(lambda: engine.count(0, case.samples))
    slow = choose(replace(question, engine="generic"))
    few = tuple(range(len(question.threat)))[: baseline if apart > 1 else None]
    rounds = max(1, baseline // apart)
    slow.count(0, 4, few[:1] if apart > 1 else None)
    generic, _ = timed(lambda: slow.count(0, rounds, few))
    generic /= rounds * (len(few) if apart > 1 else 1)
    one_ms, threads, agreement = _baseline(question, baseline, engine)
    audit = audited(question, engine, number=min(AUDIT, 2 * baseline))
    return Line(
        dataset=case.dataset,
        model=case.model,
        threat=question.threat.kind,
        engine=engine.name,
        graphs=graphs,
        seconds=seconds,
        seconds_a_million=seconds / graphs * 1e6,
        baseline_graphs=baseline,
        baseline_ms=one_ms,
        baseline_threads=threads,
        generic_ms=1e3 * generic,
        times_baseline=one_ms / 1e3 / (seconds / graphs),
        times_generic=generic / (seconds / graphs),
        agreement=agreement,
        noise=str(question.noise),
        why=engine.why if engine.name == "generic" else "",
        audit=len(audit.heard),
        audit_agreed=audit.number(SAME),
        audit_seconds=audit.seconds,
    )


def audited(question: Question, engine: Engine, samples: int = 64, number: int = AUDIT) -> Audit:
    """As many answers asked again as a poll does by default, drawn from the first samples; it knows its own seconds."""
    block = Block(0, samples)
    counted = heard(replace(question, audit=number), block, engine.labels(block.start, block.stop))
    return asked_again(question, counted, lambda answers: None)


def question_of(case: Case, device: str) -> Question:
    """The case trained on the clean data of split 0, to be asked about its first test targets."""
    data = datasets.load(case.dataset)
    if case.features is not None:
        data = _narrowed(data, case.features)
    split = datasets.split(data, 0)
    graph: Any = data.data
    if case.model in DEEP:
        model = trained(case.model, graph, split.train, data.num_classes)
    else:
        model = fit(case.model, data, split, seed=0)
    threat: Threat
    if data.task == "node":
        nodes = split.test[: case.targets]
        threat = Pairs(graph, _around(graph, nodes, case.pairs), nodes) if case.pairs else Row(graph, nodes)
    else:
        assert data.graphs is not None
        threat = AllPairs([data.graphs[i] for i in split.test[: case.targets]])
    return Question(model, threat, case.noise, device=device)


def _narrowed(data: datasets.Dataset, features: int) -> datasets.Dataset:
    """The same nodes, described by their first features alone."""
    graph: Any = data.graph.clone()
    graph.x = graph.x[:, :features].contiguous()
    return replace(data, data=graph, num_features=features)


def _around(graph: Any, nodes: Tensor, count: int) -> Tensor:
    """int64[2, count]: pairs of a target and any other node, some of them edges; the same in every run."""
    drawn = torch.Generator().manual_seed(0)
    ends = torch.stack(
        [
            nodes[torch.randint(len(nodes), (2 * count,), generator=drawn)],
            torch.randint(graph.num_nodes, (2 * count,), generator=drawn),
        ]
    )
    linked = graph.edge_index[:, torch.isin(graph.edge_index[0], nodes)][:, : count // 4]
    ends = torch.cat([linked, ends], dim=1).sort(dim=0).values
    ends = ends[:, ends[0] != ends[1]]
    _, first = np.unique((ends[0] * graph.num_nodes + ends[1]).numpy(), return_index=True)
    return ends[:, np.sort(first)[:count]]


def _baseline(question: Question, graphs: int, engine: Engine) -> tuple[float, int, float]:
    """(milliseconds a graph, with how many threads, share of the engine's votes that are the same)."""
    usual = torch.get_num_threads()
    best, chosen, labels = float("inf"), 1, np.zeros(0)
    try:
        for threads in sorted({1, usual}):
            torch.set_num_threads(threads)
            seconds, labels = one_at_a_time(question, graphs)
            if seconds < best:
                best, chosen = seconds, threads
    finally:
        torch.set_num_threads(usual)
    count, shown = len(question.threat) // votes_of_one(question), min(graphs, 200)
    if count == 1 and labels.ndim == 2:
        same = engine.labels(0, shown).cpu().numpy() == labels[:shown]
    else:
        said = engine.labels(0, -(-shown // count)).cpu().numpy().flatten()[:shown]
        same = said == labels[:shown]
    return 1e3 * best / graphs, chosen, float(np.mean(same))


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import torch_geometric

    from unswayed._version import __version__

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_geometric": torch_geometric.__version__,
            "numpy": np.__version__,
            "unswayed": __version__,
        },
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def document(lines: list[Line], command: str) -> dict[str, Any]:
    """JSON-ready: the lines, the machine and the versions."""
    return {"beta": BETA, "command": command, "machine": machine(), "rows": [_row(line) for line in lines]}


def _row(line: Line) -> dict[str, Any]:
    return {**asdict(line), "audited_seconds": line.audited_seconds}
