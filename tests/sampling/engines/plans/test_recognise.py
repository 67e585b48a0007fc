"""What the recogniser refuses, and that it names the obstacle."""

import functools
from typing import Any

import pytest
import torch
import torch.nn.functional as fn
import torch_geometric.nn as gnn
from torch import Tensor, nn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans.recognise import recognise

from ..zoo import ZOO, Two


@pytest.mark.parametrize("name", ZOO)
def test_common_styles_are_understood(name: str) -> None:
    plan = recognise(ZOO[name](6, 3).eval())
    assert plan.depth == (1 if name == "one-layer" else 2)
    assert plan.steps[0].kind == "input"


class Odd(nn.Module):
    """A module that does one odd thing between two layers."""

    def __init__(self, odd: Any) -> None:
        super().__init__()
        self.first, self.second, self.odd = gnn.GCNConv(6, 8), gnn.GCNConv(8, 3), odd

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.odd(self.first(x, edge_index)), edge_index)


class Scaled(gnn.GCNConv):
    """A subclass may do anything, so its class is not trusted."""


ODD = {
    "softmax over nodes": (lambda h: fn.softmax(h, dim=0), "dim=-1"),
    "mean over nodes": (lambda h: h - h.mean(dim=0), "not known to act on each node alone"),
    "sorting": (lambda h: torch.sort(h, dim=0)[0], "not known to act on each node alone"),
    "indexing": (lambda h: h[:1], "not known to act on each node alone"),
    "transposing": (lambda h: h.t(), "not known to act on each node alone"),
    "branching": (lambda h: h if h.sum() > 0 else -h, "torch.fx cannot trace"),
    "concatenating nodes": (lambda h: torch.cat([h, h], dim=0), "along dimension 0"),
    "instance norm": (nn.InstanceNorm1d(8), "InstanceNorm1d"),
    "batch statistics": (nn.BatchNorm1d(8, track_running_stats=False), "BatchNorm1d"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_may_mix_nodes_is_refused(name: str) -> None:
    odd, message = ODD[name]
    with pytest.raises(Unsupported, match=message):
        recognise(Odd(odd).eval())


LAYERS = {
    "unknown class": (lambda: gnn.FeaStConv(6, 8), "first.*FeaStConv"),
    "subclass": (lambda: Scaled(6, 8), "first.*Scaled"),
    "cached": (lambda: gnn.GCNConv(6, 8, cached=True), "cached"),
    "improved": (lambda: gnn.GCNConv(6, 8, improved=True), "improved"),
    "median": (lambda: gnn.SAGEConv(6, 8, aggr="median"), "aggregates with MedianAggregation"),
    "largest degree": (
        lambda: gnn.ChebConv(6, 8, 2, normalization=None),
        "largest degree of the whole graph",
    ),
    "edge features": (lambda: gnn.GATConv(6, 8, edge_dim=2), "edge features"),
    "other direction": (lambda: gnn.GCNConv(6, 8, flow="target_to_source"), "flow"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_are_not_known_exactly_are_refused_by_name(name: str) -> None:
    make, message = LAYERS[name]
    with pytest.raises(Unsupported, match=message):
        recognise(Two(make(), gnn.GCNConv(8, 3)).eval())


def test_hooks_are_refused() -> None:
    model = ZOO["gcn"](6, 3).eval()
    model.first.register_forward_hook(lambda module, args, out: out * 2)
    with pytest.raises(Unsupported, match=r"first.*hook"):
        recognise(model)
    other = ZOO["gcn"](6, 3).eval()
    other.second.register_message_forward_hook(lambda module, args, out: out * 2)
    with pytest.raises(Unsupported, match=r"second.*hook"):
        recognise(other)


def _fresh() -> Any:
    return ZOO["sage"](6, 3).eval()


def altered(part: str, name: str) -> nn.Module:
    """Plain SAGE whose part has a method of its own that does the opposite."""
    model = _fresh()
    owner = model.get_submodule(part)
    plain = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: -plain(*args, **kwargs))
    return model


METHODS = ("forward", "message", "update", "propagate", "aggregate", "message_and_aggregate", "edge_update")
PLACES = [
    *(("first", name) for name in METHODS),
    ("first.lin_l", "forward"),
    ("first.aggr_module", "forward"),
    ("first", "_index_select"),
    ("skip", "forward"),
    ("", "forward"),
]


@pytest.mark.parametrize(("part", "name"), PLACES)
def test_methods_set_on_the_instance_are_never_taken_for_those_of_the_class(part: str, name: str) -> None:
    recognise(_fresh())
    with pytest.raises(Unsupported, match=f"{name} of its own, set on the instance"):
        recognise(altered(part, name))


def test_a_method_put_into_a_known_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gnn.SAGEConv.message
    monkeypatch.setattr(gnn.SAGEConv, "message", functools.wraps(plain)(lambda self, x_j: -plain(self, x_j)))
    with pytest.raises(Unsupported, match="message of its own, put into its class"):
        recognise(_fresh())


class Calling(Two):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return -super().__call__(*args, **kwargs)


def test_a_module_with_its_own_call_is_refused() -> None:
    with pytest.raises(Unsupported, match="__call__"):
        recognise(Calling(gnn.GCNConv(6, 8), gnn.GCNConv(8, 3)).eval())


class Centring(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(dim=0)


def test_other_parts_inside_a_known_layer_are_refused() -> None:
    model = _fresh()
    model.first.lin_l = Centring()
    with pytest.raises(Unsupported, match="Centring"):
        recognise(model)
    model = ZOO["gcn"](6, 3).eval()
    model.first.bias = nn.Parameter(torch.zeros(12, 8))
    with pytest.raises(Unsupported, match="bias"):
        recognise(model)


def test_compiled_modules_are_not_looked_into() -> None:
    graph = torch.randn(12, 6), torch.randint(0, 12, (2, 30))
    traced = torch.jit.trace(ZOO["gcn"](6, 3).eval(), graph, check_trace=False)
    with pytest.raises(Unsupported, match="traced"):
        recognise(traced)


def test_writing_into_a_state_that_is_used_again_is_refused() -> None:
    class Again(Odd):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = self.first(x, edge_index)
            return self.second(fn.relu(h, inplace=True) + h, edge_index)

    with pytest.raises(Unsupported, match="used again"):
        recognise(Again(None).eval())


def test_a_state_of_the_nodes_by_index_is_refused() -> None:
    class Embedded(Odd):
        def __init__(self) -> None:
            super().__init__(None)
            self.table = nn.Parameter(torch.zeros(20, 8))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.second(self.first(x, edge_index) + self.table, edge_index)

    with pytest.raises(Unsupported, match="table"):
        recognise(Embedded().eval())


def test_the_readout_attribute_is_put_back() -> None:
    class Pooled(Odd):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            return self.odd(self.second(self.first(x, edge_index), edge_index), batch)

    model = Pooled(gnn.global_add_pool)
    assert recognise(model).steps[-1].pool == "sum"
    assert model.odd is gnn.global_add_pool
