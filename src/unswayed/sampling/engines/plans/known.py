"""Which steps each known layer of torch_geometric stands for. Exact classes and settings only; all else is Unsupported."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans import rowwise
from unswayed.sampling.engines.plans.altered import hooked
from unswayed.sampling.engines.plans.attention import Attention, Gated
from unswayed.sampling.engines.plans.layers import Largest, Layer, Sums, Symmetric
from unswayed.sampling.engines.plans.plan import Builder
from unswayed.sampling.engines.plans.steps import Blend, Plus, Shrunk, Weight

SUM, MEAN, MAX = gnn.SumAggregation, gnn.MeanAggregation, gnn.MaxAggregation
Maker = Callable[[Any, str, Builder, int], int]


def _plain(module: Any, name: str, *aggregations: type) -> type:
    """The aggregation of a layer whose inherited settings are all the usual ones."""
    if hooked(module):
        raise Unsupported(f"The layer '{name}' has hooks.")
    if module.flow != "source_to_target" or getattr(module, "decomposed_layers", 1) != 1 or module.explain:
        raise Unsupported(f"The layer '{name}' has an unusual flow, decomposition or explanation mode.")
    if (kind := type(module.aggr_module)) not in aggregations:
        raise Unsupported(
            f"The layer '{name}' aggregates with {module.aggr_module}, which no fast engine knows."
        )
    if getattr(module, "cached", False):
        raise Unsupported(f"The layer '{name}' is cached, so it ignores the noise.")
    if not isinstance(getattr(module, "in_channels", 0), int):
        raise Unsupported(f"The layer '{name}' is bipartite.")
    if getattr(module, "edge_dim", None) is not None:
        raise Unsupported(f"The layer '{name}' uses edge features.")
    return kind


def _aggregated(kind: type) -> Layer:
    return Largest() if kind is MAX else Sums(kind is MEAN)


def _with_bias(owner: Any, build: Builder, h: int) -> int:
    return h if owner.bias is None else build.rowwise(Plus(owner), h)


def _simple(module: Any, name: str, build: Builder, h: int) -> int:
    kind = _plain(module, name, SUM, MEAN, MAX)
    if module.combine_root not in (None, "self_loop", "sum") or (kind is MAX and module.combine_root):
        raise Unsupported(
            f"The layer '{name}' has combine_root={module.combine_root!r}, which no fast engine knows."
        )
    if kind is MAX:
        return build.conv(Largest(), h)
    total = build.conv(Sums(kind is MEAN, float(module.combine_root == "self_loop")), h)
    return build.rowwise(torch.add, total, h) if module.combine_root == "sum" else total


def _normalised(module: Any) -> Layer:
    """Symmetric normalisation as gcn_norm has it, or plain sums."""
    return Symmetric("all" if module.add_self_loops else "given") if module.normalize else Sums()


def _gcn(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    if module.improved:  # releases of torch_geometric differ in what it does to a graph without edge weights
        raise Unsupported(f"The layer '{name}' has improved=True, which no fast engine knows.")
    return _with_bias(module, build, build.conv(_normalised(module), build.rowwise(module.lin, h)))


def _sage(module: Any, name: str, build: Builder, h: int) -> int:
    kind, linear = _plain(module, name, SUM, MEAN, MAX), module.lin_l
    sent = build.rowwise(torch.relu, build.rowwise(module.lin, h)) if module.project else h
    if kind is MAX:  # a linear map does not commute with it
        out = build.rowwise(linear, build.conv(Largest(), sent))
    else:
        out = build.conv(Sums(kind is MEAN), build.rowwise(Weight(linear), sent))
        out = out if module.root_weight else _with_bias(linear, build, out)
    if module.root_weight:
        root = build.rowwise(module.lin_r, h)
        root = root if kind is MAX else _with_bias(linear, build, root)
        out = build.rowwise(torch.add, out, root)
    return build.rowwise(lambda x: fn.normalize(x, p=2.0, dim=-1), out) if module.normalize else out


def _graph(module: Any, name: str, build: Builder, h: int) -> int:
    kind, relation = _plain(module, name, SUM, MEAN, MAX), module.lin_rel
    root = build.rowwise(module.lin_root, h)
    if kind is MAX:
        return build.rowwise(torch.add, build.rowwise(relation, build.conv(Largest(), h)), root)
    total = build.conv(Sums(kind is MEAN), build.rowwise(Weight(relation), h))
    return build.rowwise(torch.add, total, _with_bias(relation, build, root))


def _gin(module: Any, name: str, build: Builder, h: int) -> int:
    from unswayed.sampling.engines.plans.recognise import trace_rowwise

    _plain(module, name, SUM)
    network = trace_rowwise(module.nn, f"{name}.nn")
    trained = isinstance(module.eps, nn.Parameter)
    loop: Any = (lambda: 1 + module.eps) if trained else 1 + float(module.eps)
    return build.inline(network, build.conv(Sums(loop=loop), h))


def _attention(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    return build.conv(Attention(module), h)


def _gated(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    if type(module.act) is not nn.Sigmoid:
        raise Unsupported(f"The layer '{name}' has another gate than a sigmoid.")
    out = build.conv(Gated(module), h)
    if module.root_weight:
        out = build.rowwise(torch.add, out, build.rowwise(module.lin_skip, h))
    return _with_bias(module, build, out)


def _transformer(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    out = build.conv(Attention(module), h)
    if not module.root_weight:
        return out
    root = build.rowwise(module.lin_skip, h)
    if module.lin_beta is None:
        return build.rowwise(torch.add, out, root)

    def gate(out: Tensor, root: Tensor) -> Tensor:
        beta = module.lin_beta(rowwise.concatenate([out, root, out - root])).sigmoid()
        mixed: Tensor = beta * root + (1 - beta) * out
        return mixed

    return build.rowwise(gate, out, root)


def _appnp(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    if module.dropout > 0 and module.training:
        raise Unsupported(f"The layer '{name}' drops edges at random.")
    start, layer, mix = h, _normalised(module), Blend(1 - module.alpha, module.alpha)
    for _ in range(module.K):
        h = build.rowwise(mix, build.conv(layer, h), start)
    return h


def _sgc(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    layer = Symmetric("all" if module.add_self_loops else "given")
    h = build.rowwise(Weight(module.lin), h)
    for _ in range(module.K):
        h = build.conv(layer, h)
    return _with_bias(module.lin, build, h)


def _tag(module: Any, name: str, build: Builder, h: int) -> int:
    """Σ A^k h W_k = z_0 + A(z_1 + A(z_2 + …)): as wide as what comes out, not as what goes in."""
    _plain(module, name, SUM)
    layer = Symmetric("given") if module.normalize else Sums()
    terms = [build.rowwise(linear, h) for linear in module.lins]
    out = terms.pop()
    while terms:
        out = build.rowwise(torch.add, build.conv(layer, out), terms.pop())
    return _with_bias(module, build, out)


def _cheb(module: Any, name: str, build: Builder, h: int) -> int:
    """Σ T_k(L) h W_k by Clenshaw: b_k = z_k + 2 L b_{k+1} - b_{k+2}, and z_0 + L b_1 - b_2 comes out; L is minus a sum."""
    _plain(module, name, SUM)
    if module.normalization is None:
        raise Unsupported(f"The layer '{name}' divides by the largest degree of the whole graph.")
    if module.normalization != "sym":
        raise Unsupported(f"The layer '{name}' has normalization={module.normalization!r}, unknown here.")
    terms: list[int] = [build.rowwise(linear, h) for linear in module.lins]
    later, out = None, terms.pop()
    while terms:
        spread = build.rowwise(
            Blend(1.0, -2.0 if len(terms) > 1 else -1.0), terms.pop(), build.conv(Symmetric("none"), out)
        )
        spread = spread if later is None else build.rowwise(Blend(1.0, -1.0), spread, later)
        later, out = out, spread
    return _with_bias(module, build, out)


def _gcn2(module: Any, name: str, build: Builder, h: int, start: int) -> int:
    _plain(module, name, SUM)
    second = "weight1" if module.weight2 is None else "weight2"
    spread = build.rowwise(Shrunk(module, "weight1", 1 - module.alpha), build.conv(_normalised(module), h))
    return build.rowwise(torch.add, spread, build.rowwise(Shrunk(module, second, module.alpha), start))


def _arma(module: Any, name: str, build: Builder, h: int) -> int:
    _plain(module, name, SUM)
    act = rowwise.unchanged if module.act is None else rowwise.module_program(module.act, f"{name}.act")
    stacks = []
    for k in range(module.num_stacks):
        out = h
        for t in range(module.num_layers):
            out = _arma_round(module, build, h, out, k, t, act)
        stacks.append(out)
    return build.rowwise(lambda *parts: sum(parts[1:], parts[0]) / len(parts), *stacks)


def _arma_round(module: Any, build: Builder, h: int, out: int, k: int, t: int, act: Any) -> int:
    at = 0 if module.shared_weights else t
    before = 0 if module.shared_weights else t - 1
    first: Any = (lambda x: x @ module.init_weight[k]) if t == 0 else (lambda x: x @ module.weight[before][k])

    def root(x: Tensor) -> Tensor:
        given: Tensor = fn.dropout(x, module.dropout, module.training) @ module.root_weight[at][k]
        return given if module.bias is None else given + module.bias[at][k]

    out = build.conv(Symmetric("given"), build.rowwise(first, out))
    return build.rowwise(act, build.rowwise(torch.add, out, build.rowwise(root, h)))


KNOWN: dict[type, Maker] = {
    gnn.SimpleConv: _simple,
    gnn.GCNConv: _gcn,
    gnn.SAGEConv: _sage,
    gnn.GraphConv: _graph,
    gnn.GINConv: _gin,
    gnn.GATConv: _attention,
    gnn.GATv2Conv: _attention,
    gnn.TransformerConv: _transformer,
    gnn.ResGatedGraphConv: _gated,
    gnn.APPNP: _appnp,
    gnn.SGConv: _sgc,
    gnn.TAGConv: _tag,
    gnn.ChebConv: _cheb,
    gnn.ARMAConv: _arma,
}


def write(module: Any, name: str, build: Builder, states: list[int]) -> int:
    """The steps of a layer whose class and settings are known exactly; where its result is."""
    if type(module) is gnn.GCN2Conv and len(states) == 2:
        return _gcn2(module, name, build, *states)
    if type(module) not in KNOWN:
        raise Unsupported(
            f"The layer '{name}' ({type(module).__name__}) is not one that a fast engine knows."
        )
    if len(states) != 1:
        raise Unsupported(f"The layer '{name}' gets more than node states and edge_index.")
    return KNOWN[type(module)](module, name, build, *states)
