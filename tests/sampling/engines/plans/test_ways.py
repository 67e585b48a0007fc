"""A trace counts only where a real call takes the same way through the module's own code, decision by decision."""

import gc
import sys
import threading

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans.recognise import recognise
from unswayed.sampling.engines.plans.ways import way

F, C = 4, 3
CROWD = (
    9  # links of the target from which on a guarded module says the opposite: about one sample in a hundred
)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = SAGEConv(F, 8), SAGEConv(8, C)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index)


class Guarded(Plain):
    """Says the opposite where the target has many links; what stands for a tensor without being one is never told."""

    def real(self, edge_index: Tensor) -> bool:
        raise NotImplementedError

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = super().forward(x, edge_index)
        return -out if self.real(edge_index) and (edge_index[0] == 0).sum() >= CROWD else out


class ByType(Guarded):
    def real(self, edge_index: Tensor) -> bool:
        return type(edge_index) is Tensor


class ByWords(Guarded):
    def real(self, edge_index: Tensor) -> bool:
        return repr(edge_index).startswith("tensor")


class ByCalling(Guarded):
    def real(self, edge_index: Tensor) -> bool:
        return not callable(edge_index)


class ByParts(Guarded):
    def real(self, edge_index: Tensor) -> bool:
        return not hasattr(edge_index, "tracer")


class ByTable(Plain):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return {Tensor: self.turned}.get(type(edge_index), lambda out, _: out)(
            super().forward(x, edge_index), edge_index
        )

    def turned(self, out: Tensor, edge_index: Tensor) -> Tensor:
        return -out if (edge_index[0] == 0).sum() >= CROWD else out


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(F, C)

    def forward(self, h: Tensor) -> Tensor:
        return self.lin(h.tanh() if self.training else h)


class Usual(nn.Module):
    """Loops, settings, a network inside a layer, and a `train` of its own: nothing that another call would do otherwise."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rounds, self.residual = nn.ModuleList([SAGEConv(F, F) for _ in range(2)]), True
        self.last = GINConv(Inner())

    def train(self, mode: bool = True) -> "Usual":
        return super().train(mode)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        from math import sqrt

        for conv in self.rounds:
            h = conv(x, edge_index).relu()
            x = x + h if self.residual else h
        return self.last(x / sqrt(2), edge_index)


def graph() -> Data:
    torch.manual_seed(2)
    return Data(x=torch.randn(14, F), edge_index=erdos_renyi_graph(14, 0.3), num_nodes=14)


@pytest.mark.parametrize("kind", [ByType, ByWords, ByCalling, ByParts, ByTable])
def test_votes_are_those_of_a_module_that_a_trace_would_send_another_way(kind: type[nn.Module]) -> None:
    model, threat, noise = kind().eval(), us.Row(graph(), [0]), us.Flip(0.8)
    votes, one_by_one = (
        us.poll(model, threat, noise, samples=600, audit=0, batch_size=1, engine=engine)
        for engine in ("auto", "generic")
    )
    plain = us.poll(Plain().eval(), threat, noise, samples=600, audit=0)
    assert not np.array_equal(plain.counts, one_by_one.counts)  # some samples have many links
    assert votes == one_by_one
    assert "another way" in votes.notes["why"]
    with pytest.raises(Unsupported, match="another way"):
        us.poll(model, threat, noise, samples=100, engine="fast")


@pytest.mark.parametrize("kind", [Plain, Usual])
def test_usual_modules_are_asked_by_fast_engines(kind: type[nn.Module]) -> None:
    votes = us.poll(kind().eval(), us.Row(graph(), [0, 3]), us.Flip(0.8), samples=100)
    assert votes.notes["engine"] != "generic"


def test_a_way_is_every_step_inside_a_forward_and_nothing_else() -> None:
    model, data, before = ByType().eval(), graph(), sys.gettrace()
    shown = way(model, lambda: recognise(model))
    taken = way(model, lambda: model(data.x, data.edge_index))
    assert taken == way(model, lambda: [model.eval(), model(data.x, data.edge_index)])
    assert shown != taken
    assert {code.co_name for code, *_ in taken} == {"forward", "real"}
    assert sys.gettrace() is before
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        way(model, lambda: 1 / 0)
    assert sys.gettrace() is before


def test_threads_that_look_at_the_same_time_see_their_own_way_alone() -> None:
    """Some releases of Python crash where instructions of the same code are traced in two threads."""
    model, data = ByType().eval(), graph()
    expected, found = way(model, lambda: model(data.x, data.edge_index)), []

    def look(times: int) -> None:
        for _ in range(times):
            found.append(way(model, lambda: model(data.x, data.edge_index)))
            model(data.x, data.edge_index)

    threads = [threading.Thread(target=look, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80


def test_whoever_is_told_of_garbage_is_no_part_of_a_way() -> None:
    """Somebody may want to know of every collection, and one may happen in the midst of a forward."""
    model, data, told = Plain().eval(), graph(), []

    def hear(phase: str, about: dict[str, int]) -> None:
        told.append(phase)

    often = gc.get_threshold()
    gc.callbacks.append(hear)
    gc.set_threshold(1)
    try:
        taken = way(model, lambda: model(data.x, data.edge_index))
    finally:
        gc.set_threshold(*often)
        gc.callbacks.remove(hear)
    assert {code.co_name for code, *_ in taken} == {"forward"}
    assert taken == way(model, lambda: recognise(model))
