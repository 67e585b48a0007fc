"""Trust before the poll: a faster way of asking must say what the classifier says of one graph at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.sampling.classifier import Classifier
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.memory import is_out_of_memory
from unswayed.sampling.question import Question
from unswayed.sampling.soundness import check_batching, differs
from unswayed.sampling.threats import Threat
from unswayed.theory.noise import WORD, AddDelete, Flip, Noise

SHOWN = 16  # graphs of a batch whose answers are compared, shared among the targets tried …
FEWEST = 4  # … but at least so many of each
SAMPLES = 2  # of the noise itself, for each target tried …
ROUGH = 1  # … and of noise that changes half of all entries: each target has another structure then


def agree(engine: Any, alone: Alone, question: Question) -> bool:
    """Whether an engine gives each of several targets the logits, but for rounding, and the votes of one graph at a time.

    Votes alone would say little: where nearly all go to one class, a wrong engine has them right.
    """
    targets = unlike(question.threat)
    rough = half(question.noise)
    if alone.nearby is not None:
        rough = alone.nearby.rough(question.noise, question.threat.drawn(0))
    noises: list[Noise | None] = [None] if question.sparse else [None, rough]
    return all(_alike(engine, alone, targets, noise) for noise in noises)


def _alike(engine: Any, alone: Alone, targets: tuple[int, ...], noise: Noise | None) -> bool:
    samples = SAMPLES if noise is None else ROUGH
    theirs = alone.answers(range(samples), targets, noise)
    ours = engine.answers(0, samples, targets, noise)
    if ours.shape != theirs.shape or any(differs(theirs[:, i], ours[:, i]) for i in range(len(targets))):
        return False
    counted = engine.labels(0, samples, targets) if noise is None else alone.classifier.votes(ours)
    return torch.equal(counted.cpu(), alone.classifier.votes(theirs).cpu())


def coin(noise: Noise) -> Noise:
    """Noise that changes about half of all entries; zeros and ones alike where the noise itself does so."""
    noise = noise.stand_in
    alike = noise.thresholds[0] == noise.thresholds[1]
    return Flip(0.5) if alike else AddDelete(p_add=0.5, p_delete=0.5 + 2 / WORD)


def half(noise: Noise) -> Noise:
    """Noise that changes about half of all entries that the noise itself may change."""
    return AddDelete(p_add=0, p_delete=0.5) if noise.only_hides else coin(noise)


def unlike(threat: Threat) -> tuple[int, ...]:
    """Positions of the first, middle and last target, of those with the fewest and the most ones, and of the one with
    the largest feature among its neighbours: what it loses is what rounding could keep."""
    last, ones = len(threat) - 1, threat.ones
    places = {0, last // 2, last, int(ones.argmin()), int(ones.argmax()), _largest_near(threat)}
    return tuple(sorted(places))


def _largest_near(threat: Threat) -> int:
    graph, nodes = getattr(threat, "graph", None), getattr(threat, "nodes", None)
    if graph is None or nodes is None or graph.x is None or not graph.x.is_floating_point():
        return 0
    if int(nodes.max()) >= graph.num_nodes:  # they are not in the graph yet
        return 0
    size = _sizes(graph.x) if graph.x.numel() else graph.x.new_zeros(1)
    near = size.new_zeros(graph.num_nodes)
    first, second = graph.edge_index
    near.scatter_reduce_(0, first, size[second.clamp(max=len(size) - 1)], "amax")
    return int(near[nodes].argmax())


def _sizes(x: Tensor) -> Tensor:
    """The largest feature of each node, in size; 0 where one of them is no number."""
    flat = x.flatten(1)
    return torch.maximum(flat.amax(1), -flat.amin(1)).nan_to_num(0, 0, 0)


def shown(size: int, tried: int) -> list[int]:
    """Which graphs of a batch are asked alone as well: the first and last ones, and some between."""
    number = min(size, max(FEWEST, SHOWN // tried))
    return sorted({0, size - 1, *np.linspace(0, size - 1, number).round().astype(int).tolist()})


def try_batch(classifier: Classifier, alone: list[Tensor], together: Callable[[], Tensor]) -> None:
    """Ask one graph at a time from now on if the answers of a batch are not those of its graphs alone."""

    def answer() -> Tensor:
        try:
            return together()
        except RuntimeError as error:
            if is_out_of_memory(error):  # says nothing of the classifier
                raise MemoryError(str(error)) from error
            raise

    check_batching(classifier, alone, answer)
