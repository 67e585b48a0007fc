"""One noisy graph votes for every node, and layers that aggregate before a linear transform do it the other way round.

Sums and means of neighbours are linear, so W·mean(x_v) = mean(W·x_v): transforming first lets the product with the
constant features be computed once for all samples, and aggregates as many numbers as the layer puts out instead of as many
as it takes in (Cora: 1,433). Everything else is the generic engine, asked about the rewritten copy of the module.
"""

import copy
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.engine import Elsewhere
from unswayed.sampling.engines.plans.altered import alteration, hooked
from unswayed.sampling.engines.plans.rowwise import LINEARS
from unswayed.sampling.question import Question

LINEAR_SUMS = ("mean", "add", "sum")


class WholeGraphEngine(GenericEngine):
    """Exactly the generic engine's votes for nodes of a whole graph, but for logits that tie within rounding."""

    name = "whole-graph"

    @classmethod
    def supports(cls, question: Question) -> str | None:
        """None if a layer of the module can be turned round, otherwise the obstacle in words."""
        if question.threat.whole_view() is None:
            return Elsewhere("the threat is not AllPairs(data, nodes)")
        if not question.shared:
            return "each target has noise of its own"
        if not isinstance(question.model, nn.Module):
            return "the classifier is not a torch module"
        if not any(_turnable(module) for module in question.model.modules()):
            return "no layer aggregates before its linear transform, so the generic engine is as fast"
        return None

    def __init__(self, question: Question) -> None:
        super().__init__(replace(question, model=transform_first(question.model)))


def transform_first(model: nn.Module) -> nn.Module:
    """A twin of the module with the same parameters, equal but for rounding, whose narrowing layers transform first."""
    own = [*model.parameters(), *model.buffers()]
    twin = copy.deepcopy(model, {id(tensor): tensor for tensor in own})
    if _turnable(twin):
        return _Turned(twin)
    for module in list(twin.modules()):
        for name, child in list(module.named_children()):
            if _turnable(child):
                setattr(module, name, _Turned(child))
    return twin


def _turnable(module: nn.Module) -> bool:
    """Whether this is exactly a known layer, without hooks, that sums or averages more numbers than it puts out."""
    from torch_geometric.nn import GINConv, GraphConv, SAGEConv

    if type(module) not in (SAGEConv, GraphConv, GINConv):
        return False
    if any(hooked(part) or alteration(part) is not None for part in module.modules()):
        return False
    if module.flow != "source_to_target" or module.aggr not in LINEAR_SUMS or module.decomposed_layers != 1:
        return False
    if type(module) is SAGEConv and module.project:
        return False
    linear = _aggregated(module)
    # a lazy layer has no weight yet
    if type(linear) not in LINEARS or type(linear.weight) is not nn.Parameter:
        return False
    return bool(linear.weight.shape[1] > linear.weight.shape[0])


def _aggregated(layer: Any) -> Any:
    """The layer that receives the aggregate."""
    from torch_geometric.nn import GINConv, GraphConv

    if isinstance(layer, GINConv):
        return layer.nn[0] if type(layer.nn) is nn.Sequential and len(layer.nn) > 0 else None
    return layer.lin_rel if isinstance(layer, GraphConv) else layer.lin_l


def _shared_weight(linear: Any) -> nn.Linear:
    """A plain linear layer with the same weight tensor and no bias: the bias must not be aggregated."""
    plain = nn.Linear(linear.weight.shape[1], linear.weight.shape[0], bias=False, device="meta")
    plain.weight = linear.weight
    return plain


class _Turned(nn.Module):
    """The layer, transforming first: aggregate, add what the node itself and the bias give, then the rest of its network."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, linear = layer, _aggregated(layer)
        self.first, self.bias = _shared_weight(linear), linear.bias
        summed = layer.lin_r if getattr(layer, "root_weight", False) else None
        self.root = getattr(layer, "lin_root", summed)
        self.rest = layer.nn[1:] if hasattr(layer, "nn") else None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """What the layer itself would answer, but for rounding."""
        narrow = self.first(x)
        weighted = {"edge_weight": None} if hasattr(self.layer, "lin_rel") else {}
        out: Tensor = self.layer.propagate(edge_index, x=(narrow, narrow), size=None, **weighted)
        if self.rest is not None:
            out = out + (1 + self.layer.eps) * narrow
        if self.bias is not None:
            out = out + self.bias
        if self.root is not None:
            out = out + self.root(x)
        if self.rest is not None:
            out = self.rest(out)
        return nn.functional.normalize(out, p=2.0, dim=-1) if getattr(self.layer, "normalize", False) else out
