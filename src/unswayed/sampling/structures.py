"""Noisy structures of a question: where its samples become graphs, and which targets they vote for."""

import numpy as np
import torch
from torch import Tensor

from unswayed.sampling.layout import Layout, noisy
from unswayed.sampling.question import Question
from unswayed.sampling.sparse_graphs import SparseLayout

__all__ = ["Layout", "count_labels", "groups_of", "layout_of", "noisy"]


def layout_of(question: Question, target: int) -> Layout | SparseLayout:
    """The layout of the graph that votes for the target at this position, on the question's device."""
    if question.sparse:
        return SparseLayout.of(question)
    return question.threat.layout(target).to(torch.device(question.device))


def groups_of(question: Question, targets: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Targets that one noisy graph votes for at once: all nodes of one graph under shared noise, else each alone."""
    together = question.threat.together and question.shared
    return [targets] if together and targets else [(target,) for target in targets]


def count_labels(labels: Tensor, classes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """int64[targets, classes] from labels int64[samples, targets]; -1 is counted nowhere."""
    width = labels.shape[1]
    slot = (labels + 1) + torch.arange(width, device=labels.device) * (classes + 1)
    table = torch.bincount(slot.flatten(), minlength=width * (classes + 1)).view(width, classes + 1)
    return table[:, 1:].cpu().numpy()
