"""What a classifier says without noise and without an attack: the model itself, as the engines would ask it."""

import numpy as np
import numpy.typing as npt
import torch

from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.question import Question


def clean_labels(question: Question) -> npt.NDArray[np.int64]:
    """int64[targets]: the unsmoothed labels on the structure as it is, −1 for no answer; one call for all nodes of one graph."""
    alone, threat = Alone(question), question.threat
    nodes, count = threat.nodes, len(threat)
    with alone.classifier.evaluation(), torch.no_grad():
        if alone.classifier.style == "bits":
            rows = torch.stack([threat.clean(i) for i in range(count)]).to(alone.device)
            said = [alone.classifier.bits(rows[i : i + 1]) for i in range(count)]
        elif nodes is not None and threat.rows_apart() is None:
            said = [_about(alone, 0, nodes.to(alone.device))]
        else:
            said = [_about(alone, i, alone.node(i))[None] for i in range(count)]
        return alone.classifier.votes(torch.cat(said)).cpu().numpy()


def _about(alone: Alone, target: int, node: torch.Tensor | None) -> torch.Tensor:
    """The answer to the graph of this target as it is; all nodes of a graph have the same one."""
    layout = alone.question.threat.layout(target).to(alone.device)
    edges = layout.listed(layout.clean[None].clone())
    return alone.about(alone.classifier, layout.graph, edges, node)
