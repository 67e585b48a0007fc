"""The baseline of every ratio: build one noisy graph, call the model, look at the target."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.sampling.question import Question

Clock = Callable[[], float]


def votes_of_one(question: Question) -> int:
    """How many targets one noisy graph votes for."""
    return len(question.threat) if question.threat.together and question.shared else 1


def timed(work: Callable[[], Any], clock: Clock = time.perf_counter) -> tuple[float, Any]:
    """(seconds by this clock, what came of it); a card is waited for."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = clock()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - begin, result


def one_at_a_time(question: Question, graphs: int, clock: Clock = time.perf_counter) -> tuple[float, Any]:
    """(seconds, labels) of the first noisy graphs, sample by sample and target by target; drawing noise is not timed."""
    threat, count = question.threat, len(question.threat) // votes_of_one(question)
    model: nn.Module = question.model.to(question.device)
    entries = int(threat.entries.max()) + 1
    zero, one = question.stream.flips(0, -(-graphs // count), entries, question.noise, device=question.device)
    labels, spent = [], 0.0
    with torch.no_grad():
        for g in range(-1, graphs):  # the first is not counted
            target = g % count
            clean = threat.clean(target).to(question.device)
            drawn = zero[g // count][: len(clean)], one[g // count][: len(clean)]
            vector = torch.where(clean, ~drawn[1], drawn[0])
            if (view := threat.row_view()) is not None:
                known = view.graph.edge_index.to(question.device)
                work = partial(_ask_row, threat, known, vector, model, target)
            elif threat.nodes is not None:
                work = partial(_ask_nodes, threat, threat.layout(0).to(vector.device), vector, model)
            else:
                layout = threat.layout(target)
                known = torch.stack([layout.first, layout.second]).to(question.device)
                work = partial(_ask_graph, threat, known, vector, model, target)
            seconds, label = timed(work, clock)
            if g < 0:
                continue
            labels.append(label)
            spent += seconds
    return spent, np.array(labels)


def _ask_row(threat: Any, edges: Tensor, row: Tensor, model: nn.Module, target: int) -> int:
    graph, node = threat.graph, int(threat.nodes[target])
    row = row.clone()
    row[node] = False
    others = row.nonzero()[:, 0]
    here = torch.full_like(others, node)
    source, sink = edges
    kept = edges[:, ((source != node) & (sink != node)) | (source == sink)]
    noisy = torch.cat([kept, torch.stack([others, here]), torch.stack([here, others])], dim=1)
    return int(model(graph.x.to(row.device), noisy)[node].argmax())


def _ask_nodes(threat: Any, layout: Any, vector: Tensor, model: nn.Module) -> Any:
    """The labels of all targets, which one noisy graph votes for."""
    ends = torch.stack([layout.first[vector], layout.second[vector]])
    edges = torch.cat([layout.constant, ends, ends.flip(0)], dim=1)
    out = model(layout.graph.x.to(vector.device), edges)
    return out[threat.nodes.to(vector.device)].argmax(-1).cpu().numpy()


def _ask_graph(threat: Any, pairs: Tensor, vector: Tensor, model: nn.Module, target: int) -> int:
    graph = threat.graph_of(target)
    chosen = pairs[:, vector]
    batch = torch.zeros(graph.num_nodes, dtype=torch.int64, device=vector.device)
    x = None if graph.x is None else graph.x.to(vector.device)
    return int(model(x, torch.cat([chosen, chosen.flip(0)], dim=1), batch=batch)[0].argmax())
