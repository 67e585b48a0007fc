"""Several devices in one process: the votes of one, whatever each of them took."""

import threading

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.errors import InputError
from unswayed.polling import _counting
from unswayed.runners import SeveralRunner
from unswayed.sampling.engines.machine.cores import full_precision

TWO = ["cpu", "cpu"]  # a device that is named twice is asked by two threads, as two cards are
WHO: set[int] = set()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = SAGEConv(5, 8), SAGEConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.two(self.one(x, edge_index).relu(), edge_index)


class Noted(Net):
    """Notes which threads asked it, and no device shares its module."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        WHO.add(threading.get_ident())
        return super().forward(x, edge_index)


class Late(Net):
    """Fails in every thread but the main one."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if threading.current_thread() is not threading.main_thread():
            raise IndexError("a row that is not there")
        return super().forward(x, edge_index)


def row() -> us.Row:
    torch.manual_seed(0)
    data = Data(x=torch.randn(30, 5), edge_index=erdos_renyi_graph(30, 0.2))
    return us.Row(data, [1, 7, 20])


@pytest.mark.parametrize("engine", ["auto", "generic"])
def test_the_votes_are_those_of_one_device(engine: str) -> None:
    how = {"samples": 5_500, "engine": engine, "progress": False, "batch_size": 64}
    model, threat = Net(), row()
    one = us.poll(model, threat, us.Flip(0.7), **how)
    two = us.poll(model, threat, us.Flip(0.7), devices=TWO, **how)
    assert one == two
    assert np.array_equal(one.blocks, two.blocks)
    assert two.notes["audit"]["agreed"] == 300


@pytest.mark.filterwarnings("ignore:The")
def test_every_device_is_asked() -> None:
    WHO.clear()
    us.poll(
        Noted(), row(), us.Flip(0.7), devices=TWO, samples=3_000, engine="generic", audit=0, progress=False
    )
    assert len(WHO) == 2


def test_what_fails_on_a_device_comes_through() -> None:
    with pytest.raises(InputError, match="a row that is not there"):
        us.poll(Late(), row(), us.Flip(0.7), devices=TWO, samples=100, engine="generic", progress=False)


def test_votes_that_were_counted_before_a_stop_are_kept(tmp_path) -> None:
    model, threat, noise = Net(), row(), us.Flip(0.7)
    us.poll(model, threat, noise, devices=TWO, samples=2_000, store=tmp_path / "run", progress=False)
    more = us.poll(model, threat, noise, samples=4_000, store=tmp_path / "run", progress=False)
    assert more == us.poll(model, threat, noise, samples=4_000, progress=False)


@pytest.mark.parametrize("devices", ["cuda", []])
def test_devices_are_a_list(devices) -> None:
    with pytest.raises(InputError, match="must be a list"):
        SeveralRunner(devices)


@pytest.mark.parametrize(("cards", "asked"), [(1, None), (3, ("cuda:0", "cuda:1", "cuda:2"))])
def test_cuda_is_all_cards_of_the_machine(cards, asked, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    who, device = _counting(None, "cuda", None)
    assert getattr(who, "_devices", None) == asked
    assert device == ("cuda" if asked is None else "cuda:0")
    assert _counting(None, "cuda:1", None)[1] == "cuda:1"  # a card that is named is asked alone
    assert not isinstance(_counting(None, "cuda:1", None)[0], SeveralRunner)


def test_devices_leave_no_room_for_a_runner() -> None:
    with pytest.raises(InputError, match="devices alone"):
        us.poll(Net(), row(), us.Flip(0.7), devices=TWO, device="cpu")


def test_precision_is_full_until_the_last_thread_has_gone() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        first, second = full_precision(), full_precision()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "highest"
        second.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
