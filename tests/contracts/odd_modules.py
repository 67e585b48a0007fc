"""Modules that do odd things with a graph: name -> a function that makes one. All classify nodes.

Data for them: `NODES` nodes, `FEATURES` features, an edge_weight, a mask. Each does something by which an engine could come
to ask another function than the module itself: reading the order of edges, the size of the batch, nodes by number, state.
"""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
import torch_geometric.transforms as transforms
from torch import nn
from torch_geometric.utils import (
    add_self_loops,
    coalesce,
    degree,
    softmax,
    to_undirected,
)

from .odd_parts import (
    CLASSES,
    FEATURES,
    HIDDEN,
    Between,
    Cache,
    Counter,
    Embedded,
    InnerCall,
    Labels,
    Loud,
    MadeWeight,
    MessageNormed,
    Noting,
    OnData,
    OwnCall,
    Plain,
    Random,
    Running,
    SecondWeight,
    Seeded,
    ShapeCache,
    TakesWeight,
    Traceable,
    Two,
    WeightedData,
    altered,
    around_three,
    capped,
    components,
    global_attention,
    helper,
    hooked,
    listed,
    message_hooked,
    minus,
    other_aggregation,
    parametrised,
    per_node_bias,
    rank,
    ranked_pages,
    replaced_part,
    root_altered,
    spectral,
    traced,
    triangles,
    weighted,
)

ORDER = {
    "first listed": lambda: Two(edges=lambda e, x: listed(e, lambda r: r < 3)),
    "all but the first listed": lambda: Two(edges=lambda e, x: listed(e, lambda r: r > 0)),
    "even ranks": lambda: Two(edges=lambda e, x: listed(e, lambda r: r % 2 == 0)),
    "weight by rank": lambda: Two(x=lambda x, e: weighted(x, e, 1.0 / (1 + rank(e))[: e.shape[1]])),
    "weight by place": lambda: Two(x=lambda x, e: weighted(x, e, torch.arange(e.shape[1]) / 50)),
    "every other edge": lambda: Two(edges=lambda e, x: e[:, ::2]),
    "one direction": lambda: Two(edges=lambda e, x: e[:, e[0] < e[1]]),
    "second half": lambda: Two(edges=lambda e, x: e[:, e.shape[1] // 2 :]),
    "lstm": lambda: Two(gnn.SAGEConv(FEATURES, HIDDEN, aggr=gnn.LSTMAggregation(FEATURES, FEATURES))),
}
SIZES = {
    "first 120 edges": lambda: Two(edges=lambda e, x: e[:, :120]),
    "last 120 edges": lambda: Two(edges=lambda e, x: e[:, -120:]),
    "large graphs turned": lambda: Two(out=lambda out, e: out.flip(1) if e.shape[1] > 200 else out),
    "many nodes turned": lambda: Two(out=lambda out, e: out.flip(1) if len(out) > 20 else out),
    "few nodes turned": lambda: Two(out=lambda out, e: out.flip(1) if len(out) < 20 else out),
    "hub cap": lambda: Two(edges=lambda e, x: capped(e, 5)),
    "over the largest degree": lambda: Two(x=lambda x, e: x / degree(e[0], len(x)).amax().clamp_min(1)),
    "over the number of edges": lambda: Two(x=lambda x, e: x * e.shape[1] / 60),
    "density": lambda: Two(out=lambda out, e: out.flip(1) if e.shape[1] / len(out) > 4.5 else out),
}
ANCHORS = {
    "node 0": lambda: Two(h=lambda h, e: h + h[0]),
    "node 7": lambda: Two(h=lambda h, e: h - h[7]),
    "last node": lambda: Two(h=lambda h, e: h * h[-1]),
    "node 0 decides": lambda: Two(out=lambda out, e: out + 3 * out[:1]),
    "strongest node": lambda: Two(h=lambda h, e: h + h[h[:, 0].argmax()]),
    "around node 3": lambda: Two(x=around_three),
    "mean of all": lambda: Two(h=lambda h, e: h - h.mean(0)),
    "max of all": lambda: Two(h=lambda h, e: h + h.amax(0)),
    "virtual node": lambda: Two(h=lambda h, e: h + fn.relu(h.sum(0) / 14)),
    "sorted states": lambda: Two(h=lambda h, e: h + h.sort(0)[0]),
    "number of the node": lambda: Two(x=lambda x, e: x + torch.arange(len(x))[:, None].to(x) / 7),
    "share of the number": lambda: Two(x=lambda x, e: x + torch.linspace(0, 2, len(x))[:, None].to(x)),
    "odd numbers": lambda: Two(
        out=lambda out, e: torch.where((torch.arange(len(out)) % 2 > 0)[:, None], -out, out)
    ),
    "numbers modulo three": lambda: Two(h=lambda h, e: h * (1 + torch.arange(len(h))[:, None] % 3)),
    "embedding": lambda: Embedded(wraps=False),
    "embedding that wraps": lambda: Embedded(wraps=True),
    "global attention": lambda: Two(h=global_attention),
    "triangles": lambda: Two(x=triangles),
    "spectrum": lambda: Two(x=spectral),
    "pagerank": lambda: Two(x=ranked_pages),
    "components": lambda: Two(x=components),
}
NORMS = {
    "graph norm": lambda: Between(gnn.GraphNorm(HIDDEN)),
    "pair norm": lambda: Between(gnn.PairNorm()),
    "instance norm": lambda: Between(gnn.InstanceNorm(HIDDEN)),
    "mean subtraction": lambda: Between(gnn.MeanSubtractionNorm()),
    "size norm": lambda: Between(gnn.GraphSizeNorm()),
    "layer norm over graphs": lambda: Between(gnn.LayerNorm(HIDDEN)),
    "layer norm over nodes": lambda: Between(gnn.LayerNorm(HIDDEN, mode="node")),
    "batch norm": lambda: Between(nn.BatchNorm1d(HIDDEN)),
    "batch statistics": lambda: Between(nn.BatchNorm1d(HIDDEN, track_running_stats=False)),
    "group norm": lambda: Between(gnn.DiffGroupNorm(HIDDEN, 2)),
    "message norm": MessageNormed,
    "inner call": lambda: Between(InnerCall(HIDDEN, HIDDEN)),
}
ALTERED = {
    "message": lambda: altered("message", minus),
    "update": lambda: altered("update", minus),
    "propagate": lambda: altered("propagate", minus),
    "aggregate": lambda: altered("aggregate", minus),
    "forward": lambda: altered("forward", minus),
    "linear": lambda: altered("forward", minus, "first.lin_l"),
    "aggregation": lambda: altered("forward", minus, "first.aggr_module"),
    "root": root_altered,
    "own call": OwnCall,
    "per-node bias": per_node_bias,
    "replaced part": replaced_part,
    "other aggregation": other_aggregation,
    "hook": hooked,
    "message hook": message_hooked,
    "parametrised": parametrised,
    "subclass": lambda: Plain(Loud(FEATURES, HIDDEN)),
    "scripted": lambda: torch.jit.script(Traceable()),
    "traced": traced,
    "fx": lambda: torch.fx.symbolic_trace(Traceable()),
    "plain torch": Traceable,
}
WEIGHTS = {
    "made in forward": lambda: MadeWeight(gnn.GraphConv(FEATURES, HIDDEN)),
    "made for gcn": lambda: MadeWeight(gnn.GCNConv(FEATURES, HIDDEN)),
    "made for the second": lambda: SecondWeight(None, gnn.GraphConv(HIDDEN, CLASSES)),
    "by attribute": lambda: WeightedData(lambda data: data.edge_weight),
    "by getattr": lambda: WeightedData(lambda data: getattr(data, "edge_weight", None)),
    "by item": lambda: WeightedData(lambda data: data["edge_weight"]),
    "by helper": lambda: WeightedData(helper),
    "by keyword": TakesWeight,
    "by dict": lambda: WeightedData(lambda data: data.to_dict().get("edge_weight")),
}
DATA = {
    "data": OnData,
    "mask": lambda: OnData(lambda data: 1.0 + data.mask[:, None]),
    "mask by getattr": lambda: OnData(lambda data: 1.0 + getattr(data, "mask", torch.zeros(1))[:, None]),
    "number of nodes": lambda: OnData(lambda data: data.num_nodes / 10),
    "number of edges": lambda: OnData(lambda data: data.num_edges / 60),
    "undirected": lambda: Two(edges=lambda e, x: to_undirected(e, num_nodes=len(x))),
    "coalesced": lambda: Two(edges=lambda e, x: coalesce(e.flip(1), num_nodes=len(x))),
    "loops": lambda: Two(edges=lambda e, x: add_self_loops(e, num_nodes=len(x))[0]),
    "soft edges": lambda: Two(h=lambda h, e: weighted(h, e, softmax(h[e[0], 0], e[1], num_nodes=len(h)))),
    "transform": lambda: OnData(
        lambda data: transforms.LocalDegreeProfile()(copy.copy(data)).x[:, -1:].nan_to_num(1.0)
    ),
}
STATE = {
    "cache": Cache,
    "cache by shape": ShapeCache,
    "counter": Counter,
    "running mean": Running,
    "noting": Noting,
    "random": Random,
    "seeded": Seeded,
    "labels": Labels,
    "not a number": lambda: Two(out=lambda out, e: out.masked_fill(out[:, :1] > 0.3, torch.nan)),
    "infinite": lambda: Two(out=lambda out, e: out.masked_fill(out > 0.3, torch.inf)),
}
LAYERS = {
    "tag": lambda: Plain(gnn.TAGConv(FEATURES, HIDDEN)),
    "cheb": lambda: Plain(gnn.ChebConv(FEATURES, HIDDEN, 2)),
    "arma": lambda: Plain(gnn.ARMAConv(FEATURES, HIDDEN)),
    "edge": lambda: Plain(gnn.EdgeConv(nn.Linear(2 * FEATURES, HIDDEN))),
    "transformer": lambda: Plain(gnn.TransformerConv(FEATURES, HIDDEN)),
    "gen": lambda: Plain(gnn.GENConv(FEATURES, HIDDEN)),
    "sg": lambda: Plain(gnn.SGConv(FEATURES, HIDDEN, K=2)),
    "sage max": lambda: Plain(gnn.SAGEConv(FEATURES, HIDDEN, aggr="max")),
    "soft": lambda: Plain(gnn.SAGEConv(FEATURES, HIDDEN, aggr=gnn.SoftmaxAggregation(learn=True))),
    "several": lambda: Plain(gnn.SAGEConv(FEATURES, HIDDEN, aggr=["mean", "max", "std"])),
    "improved": lambda: Plain(gnn.GCNConv(FEATURES, HIDDEN, improved=True)),
    "turned flow": lambda: Plain(gnn.GCNConv(FEATURES, HIDDEN, flow="target_to_source")),
    "cached": lambda: Plain(gnn.GCNConv(FEATURES, HIDDEN, cached=True)),
    "three": lambda: gnn.GraphSAGE(FEATURES, HIDDEN, 3, CLASSES),
    "jumping": lambda: gnn.GCN(FEATURES, HIDDEN, 2, CLASSES, jk="lstm"),
}
ODD: dict[str, Callable[[], nn.Module]] = {
    f"{group}: {name}": make
    for group, modules in {
        "order": ORDER,
        "size": SIZES,
        "anchor": ANCHORS,
        "norm": NORMS,
        "altered": ALTERED,
        "weight": WEIGHTS,
        "data": DATA,
        "state": STATE,
        "layer": LAYERS,
    }.items()
    for name, make in modules.items()
}

SCALED = {
    "sage": lambda: Plain(),
    "sage sum": lambda: Plain(gnn.SAGEConv(FEATURES, HIDDEN, aggr="sum")),
    "graph": lambda: Plain(gnn.GraphConv(FEATURES, HIDDEN), gnn.GraphConv(HIDDEN, CLASSES)),
    "gcn": lambda: Plain(gnn.GCNConv(FEATURES, HIDDEN), gnn.GCNConv(HIDDEN, CLASSES)),
    "gin": lambda: Plain(gnn.GINConv(nn.Linear(FEATURES, HIDDEN)), gnn.GINConv(nn.Linear(HIDDEN, CLASSES))),
    "gat": lambda: Plain(gnn.GATConv(FEATURES, HIDDEN), gnn.GATConv(HIDDEN, CLASSES)),
}
