"""Modules are traced while others of the same process are asked."""

import threading

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from unswayed.sampling.engines.recognise import recognise


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
                assert len(recognise(Net().eval()).convs) == 2
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
