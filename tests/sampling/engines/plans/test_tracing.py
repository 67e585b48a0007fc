"""Modules are traced while others of the same process are asked."""

import threading

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from unswayed.errors import Unsupported
from unswayed.sampling.digest import describe_model
from unswayed.sampling.engines.plans.recognise import recognise


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.scale = GCNConv(5, 8), GCNConv(8, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index) * self.scale


def test_a_module_is_traced_in_one_thread_while_others_are_asked_and_traced() -> None:
    x, edges = torch.randn(6, 5), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    asked, usual = Net().eval(), nn.Module.__call__
    with torch.no_grad():
        expected = asked(x, edges)
    failures: list[object] = []
    done = threading.Event()

    def ask() -> None:
        with torch.no_grad():
            while not done.is_set():
                try:
                    if not torch.equal(asked(x, edges), expected):
                        failures.append("another answer")
                except Exception as error:
                    failures.append(error)

    def trace() -> None:
        try:
            for _ in range(40):
                assert len(recognise(Net().eval()).rounds) == 2
        except Exception as error:
            failures.append(error)

    asking, tracing = threading.Thread(target=ask), [threading.Thread(target=trace) for _ in range(2)]
    for thread in (asking, *tracing):
        thread.start()
    for thread in tracing:
        thread.join()
    done.set()
    asking.join()
    assert failures == []
    assert nn.Module.__call__ is usual


class Guarded(Net):
    """Answers otherwise where there are few edges; whoever stands for a tensor without being one would never be told."""

    def few(self, x: Tensor, edge_index: Tensor) -> bool:
        raise NotImplementedError

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = super().forward(x, edge_index)
        return -out if self.few(x, edge_index) else out


class Looking(Guarded):
    def few(self, x: Tensor, edge_index: Tensor) -> bool:
        return isinstance(edge_index, Tensor) and edge_index.shape[1] < 4


class Asking(Guarded):
    def few(self, x: Tensor, edge_index: Tensor) -> bool:
        return torch.is_tensor(edge_index) and edge_index.numel() == 0


class Catching(Guarded):
    def few(self, x: Tensor, edge_index: Tensor) -> bool:
        try:
            return bool((edge_index[0] == 0).sum() < 2)
        except Exception:
            return False


class Counting(Guarded):
    def few(self, x: Tensor, edge_index: Tensor) -> bool:
        try:
            return len(edge_index[0]) < 4 or int(edge_index.max()) < 3
        except Exception:
            return False


class OfData(Net):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        out = super().forward(data.x, data.edge_index)
        return -out if isinstance(data.edge_index, Tensor) and data.edge_index.shape[1] < 4 else out


class Either(Net):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index) if isinstance(data, Data) else torch.zeros(1)


class Numbered(Net):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        places = torch.arange(edge_index.shape[1])  # compiled: whatever calls itself a tensor is read as one
        return super().forward(x, edge_index) + places.sum()


@pytest.mark.parametrize("kind", [Looking, Asking, Catching, Counting, OfData, Numbered])
def test_a_module_that_decides_by_what_it_is_handed_is_not_traced(kind: type[Net]) -> None:
    with pytest.raises(Unsupported):
        recognise(kind().eval())


def test_a_module_that_looks_at_types_alone_is_traced_the_way_it_takes() -> None:
    assert len(recognise(Either().eval()).rounds) == 2


class WithConstant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(5, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index) * torch.tensor([1.0, 2.0])


def test_a_module_is_left_as_it_was() -> None:
    module = WithConstant().eval()
    before, described = dict(vars(module)), describe_model(module)
    recognise(module)
    assert vars(module) == before
    assert describe_model(module) == described
