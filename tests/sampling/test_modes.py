"""A module keeps evaluation mode until the last who asks it has gone, and then has its own mode back."""

import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import unswayed as us
from unswayed.sampling.modes import HELD, evaluating


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.norm = SAGEConv(3, 2), nn.Dropout(0.5), nn.BatchNorm1d(3)
        self.norm.eval()

    def forward(self, x, edge_index):
        return self.conv(self.drop(self.norm(x)), edge_index)


def modes(model):
    return [module.training for module in model.modules()]


def test_the_first_who_leaves_does_not_take_the_mode_from_the_others():
    net = Net().train()
    net.norm.eval()
    own = modes(net)
    first, second = evaluating(net), evaluating(nn.Sequential(net))  # another wrapper of the same module
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not any(modes(net))
    second.__exit__(None, None, None)
    assert modes(net) == own
    assert not HELD


def test_a_failure_gives_the_mode_back():
    net = Net().train()
    with pytest.raises(ValueError, match="no"), evaluating(net):
        raise ValueError("no")
    assert net.training
    assert not HELD


def test_polls_in_several_threads_are_those_of_one():
    torch.manual_seed(0)
    ends = torch.randint(0, 12, (2, 20))
    data = Data(x=torch.randn(12, 3), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    net, found = Net().train(), {}
    own = modes(net)

    def ask(name, samples, times=1):
        for _ in range(times):
            found[name] = us.poll(
                net,
                us.Row(data, [0, 5]),
                us.Flip(0.8),
                samples=samples,
                audit=0,
                engine="generic",
                progress=False,
            ).counts

    ask("alone", 600)
    threads = [threading.Thread(target=ask, args=args) for args in (("long", 600), ("short", 8, 5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(found["long"], found["alone"])
    assert modes(net) == own
