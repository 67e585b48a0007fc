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
SEVERAL = (gnn.SimpleConv, gnn.SAGEConv, gnn.GraphConv)  # known with each of these, all others with sums


def _refuse_unusual(module: Any, name: str) -> None:
    """Known is a layer whose inherited settings are all the usual ones."""
    if hooked(module):
        raise Unsupported(f"The layer '{name}' has hooks.")
    if module.flow != "source_to_target" or getattr(module, "decomposed_layers", 1) != 1 or module.explain:
        raise Unsupported(f"The layer '{name}' has an unusual flow, decomposition or explanation mode.")
    known = (SUM, MEAN, MAX) if type(module) in SEVERAL else (SUM,)
    if type(module.aggr_module) not in known:
        raise Unsupported(
            f"The layer '{name}' aggregates with {module.aggr_module}, which no fast engine knows."
        )
    if getattr(module, "cached", False):
        raise Unsupported(f"The layer '{name}' is cached, so it ignores the noise.")
    if not isinstance(getattr(module, "in_channels", 0), int):
        raise Unsupported(f"The layer '{name}' is bipartite.")
    if getattr(module, "edge_dim", None) is not None:
        raise Unsupported(f"The layer '{name}' uses edge features.")


def _with_bias(owner: Any, build: Builder, h: int) -> int:
    return h if owner.bias is None else build.rowwise(Plus(owner), h)


def _simple(module: Any, name: str, build: Builder, h: int) -> int:
    kind = type(module.aggr_module)
    if module.combine_root not in (None, "self_loop", "sum") or (kind is MAX and module.combine_root):
        raise Unsupported(
            f"The layer '{name}' has combine_root={module.combine_root!r}, which no fast engine knows."
        )
    if kind is MAX:
        return build.conv(Largest(), h)
    total = build.conv(Sums(kind is MEAN, float(module.combine_root == "self_loop")), h)
    return build.rowwise(torch.add, total, h) if module.combine_root == "sum" else total


def _normalised(module: Any) -> Layer:
    """Symmetric normalisation as gcn_norm has it, or plain sums; some layers leave no choice."""
    if not getattr(module, "normalize", True):
        return Sums()
    return Symmetric("all" if getattr(module, "add_self_loops", False) else "given")


def _gcn(module: Any, name: str, build: Builder, h: int) -> int:
    if module.improved:  # releases of torch_geometric differ in what it does to a graph without edge weights
        raise Unsupported(f"The layer '{name}' has improved=True, which no fast engine knows.")
    return _with_bias(module, build, build.conv(_normalised(module), build.rowwise(module.lin, h)))


def _rooted(build: Builder, kind: type, linear: Any, sent: int, root: int | None) -> int:
    """A linear map of what was aggregated, and what the node itself adds; the map commutes with sums, not with maxima."""
    if kind is MAX:
        out = build.rowwise(linear, build.conv(Largest(), sent))
    else:
        out = build.conv(Sums(kind is MEAN), build.rowwise(Weight(linear), sent))
        if root is None:
            return _with_bias(linear, build, out)
        root = _with_bias(linear, build, root)
    return out if root is None else build.rowwise(torch.add, out, root)


def _sage(module: Any, name: str, build: Builder, h: int) -> int:
    sent = build.rowwise(torch.relu, build.rowwise(module.lin, h)) if module.project else h
    root = build.rowwise(module.lin_r, h) if module.root_weight else None
    out = _rooted(build, type(module.aggr_module), module.lin_l, sent, root)
    return build.rowwise(lambda x: fn.normalize(x, p=2.0, dim=-1), out) if module.normalize else out


def _graph(module: Any, name: str, build: Builder, h: int) -> int:
    return _rooted(build, type(module.aggr_module), module.lin_rel, h, build.rowwise(module.lin_root, h))


def _gin(module: Any, name: str, build: Builder, h: int) -> int:
    from unswayed.sampling.engines.plans.recognise import trace_rowwise

    network = trace_rowwise(module.nn, f"{name}.nn")
    trained = isinstance(module.eps, nn.Parameter)
    loop: Any = (lambda: 1 + module.eps) if trained else 1 + float(module.eps)
    return build.inline(network, build.conv(Sums(loop=loop), h))


def _attention(module: Any, name: str, build: Builder, h: int) -> int:
    return build.conv(Attention(module), h)


def _gated(module: Any, name: str, build: Builder, h: int) -> int:
    if type(module.act) is not nn.Sigmoid:
        raise Unsupported(f"The layer '{name}' has another gate than a sigmoid.")
    out = build.conv(Gated(module), h)
    if module.root_weight:
        out = build.rowwise(torch.add, out, build.rowwise(module.lin_skip, h))
    return _with_bias(module, build, out)


def _transformer(module: Any, name: str, build: Builder, h: int) -> int:
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
    if module.dropout > 0 and module.training:
        raise Unsupported(f"The layer '{name}' drops edges at random.")
    start, layer, mix = h, _normalised(module), Blend(1 - module.alpha, module.alpha)
    for _ in range(module.K):
        h = build.rowwise(mix, build.conv(layer, h), start)
    return h


def _sgc(module: Any, name: str, build: Builder, h: int) -> int:
    h = build.rowwise(Weight(module.lin), h)
    for _ in range(module.K):
        h = build.conv(_normalised(module), h)
    return _with_bias(module.lin, build, h)


def _tag(module: Any, name: str, build: Builder, h: int) -> int:
    """Σ A^k h W_k = z_0 + A(z_1 + A(z_2 + …)): as wide as what comes out, not as what goes in."""
    terms = [build.rowwise(linear, h) for linear in module.lins]
    out = terms.pop()
    while terms:
        out = build.rowwise(torch.add, build.conv(_normalised(module), out), terms.pop())
    return _with_bias(module, build, out)


def _cheb(module: Any, name: str, build: Builder, h: int) -> int:
    """Σ T_k(L) h W_k by Clenshaw: b_k = z_k + 2 L b_{k+1} - b_{k+2}, and z_0 + L b_1 - b_2 comes out; L is minus a sum."""
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
    second = "weight1" if module.weight2 is None else "weight2"
    spread = build.rowwise(Shrunk(module, "weight1", 1 - module.alpha), build.conv(_normalised(module), h))
    return build.rowwise(torch.add, spread, build.rowwise(Shrunk(module, second, module.alpha), start))


def _arma(module: Any, name: str, build: Builder, h: int) -> int:
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


KNOWN: dict[type, Callable[..., int]] = {
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
    gnn.GCN2Conv: _gcn2,
}


def write(module: Any, name: str, build: Builder, states: list[int]) -> int:
    """The steps of a layer whose class and settings are known exactly; where its result is."""
    if type(module) not in KNOWN:
        raise Unsupported(
            f"The layer '{name}' ({type(module).__name__}) is not one that a fast engine knows."
        )
    if len(states) != (2 if type(module) is gnn.GCN2Conv else 1):
        raise Unsupported(f"The layer '{name}' gets more than node states and edge_index.")
    _refuse_unusual(module, name)
    return KNOWN[type(module)](module, name, build, *states)
