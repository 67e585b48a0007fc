"""A module asked about what is in sight: features that are masked, or too far away, are zeros whatever they were."""

from typing import Any

import torch
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.signatures import GIVEN, parameters_of


class Masked(nn.Module):
    """Asks `model`, a module forward(x, edge_index[, batch]), about graphs that show no more than they may.

    Each graph's first node is the target. Its last stands for the mask: a node joined to it is masked, and the model is never
    told of it. The features of masked nodes, and of those that no path of at most `hops` edges joins to the target, are zeros. So
    whatever the model is, the answer at the target cannot depend on them.
    """

    def __init__(self, model: Any, hops: int) -> None:
        super().__init__()
        names = [p.name for p in parameters_of(model)] if isinstance(model, nn.Module) else []
        if "edge_index" not in names[:2] or any(name not in GIVEN for name in _required(model)):
            raise Unsupported(
                "Masking features needs a torch module forward(x, edge_index); wrap yours in one that takes just these."
            )
        self.model, self.hops, self.takes_batch = model, hops, "batch" in names

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """The model's answers at all nodes; those at a graph's last node mean nothing."""
        turn = batch[1:] != batch[:-1]
        end = turn.new_ones(1)
        first, last = torch.cat([end, turn]), torch.cat([turn, end])
        source, target = edge_index
        edges = edge_index[:, ~(last[source] | last[target])]
        shown = in_sight(first, edges, self.hops)
        shown[source[last[target]]] = False
        seen = torch.where(shown.view(-1, *[1] * (x.ndim - 1)), x, torch.zeros_like(x))
        number = torch.arange(len(x), device=x.device) - batch  # one node fewer in every graph before
        told = {"batch": batch[~last]} if self.takes_batch else {}
        out: Tensor = self.model(seen[~last], number[edges], **told)
        whole = out.new_zeros((len(x), *out.shape[1:]))
        whole[~last] = out
        return whole


def in_sight(start: Tensor, edges: Tensor, hops: int) -> Tensor:
    """bool[nodes]: what at most so many of these edges, listed both ways, join to where it starts."""
    near = start.clone()
    for _ in range(hops):
        near[edges[1][near[edges[0]]]] = True
    return near


def _required(model: Any) -> list[str]:
    listed = parameters_of(model) if isinstance(model, nn.Module) else []
    return [
        p.name for p in listed if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
