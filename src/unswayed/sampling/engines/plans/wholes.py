"""Steps that read all nodes of a graph: norms with statistics of the graph, and readouts."""

from collections.abc import Callable
from typing import Any

import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans.plan import Builder

Average = Callable[[Tensor], Tensor]  # over the nodes of each graph, with the dimension kept
READOUTS = {gnn.SumAggregation: "sum", gnn.MeanAggregation: "mean", gnn.MaxAggregation: "max"}


def reads_all(module: nn.Module) -> bool:
    """Whether this is a norm whose statistics are those of a graph's nodes."""
    return type(module) is gnn.GraphNorm or (type(module) is gnn.LayerNorm and module.mode == "graph")


def norm(module: Any, told: bool) -> Callable[[Tensor, Average], Tensor]:
    """The norm as a step; `told` says whether the module is given `batch`, which moves its eps."""
    if type(module) is gnn.GraphNorm:

        def graph_norm(x: Tensor, average: Average) -> Tensor:
            out = x - average(x) * module.mean_scale
            scaled: Tensor = module.weight * out / (average(out.square()) + module.eps).sqrt() + module.bias
            return scaled

        return graph_norm

    def layer_norm(x: Tensor, average: Average) -> Tensor:
        x = x - average(x).mean(-1, keepdim=True)
        variance = average(x.square()).mean(-1, keepdim=True)
        out: Tensor = x / ((variance + module.eps).sqrt() if told else variance.sqrt() + module.eps)
        return out if module.weight is None or module.bias is None else out * module.weight + module.bias

    return layer_norm


def readout(module: Any, name: str, build: Builder, h: int, trace_rowwise: Callable[..., Any]) -> int:
    """The steps of an aggregation module that reads out whole graphs; where its result is."""
    if type(module) in READOUTS:
        return build.add("pool", h, pool=READOUTS[type(module)])
    if type(module) is not gnn.AttentionalAggregation:
        raise Unsupported(
            f"The readout '{name}' ({type(module).__name__}) is not one that a fast engine knows."
        )
    if module.gate_nn is None or module.mlp is not None:
        raise Unsupported(f"The readout '{name}' hands `batch` on to a network of its own.")
    gate = build.inline(trace_rowwise(module.gate_nn, f"{name}.gate_nn"), h)
    value = h if module.nn is None else build.inline(trace_rowwise(module.nn, f"{name}.nn"), h)
    return build.add("pool", value, gate, pool="attentional")
