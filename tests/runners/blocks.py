"""Questions, blocks and models that fail, for tests of runners."""

import os
import pathlib
import signal
import uuid

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import unswayed as us
from unswayed.errors import UnswayedError
from unswayed.runners import Block, SerialRunner
from unswayed.sampling.question import Question


class Net(torch.nn.Module):
    """Two layers on a small graph."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def graph():
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0], [1, 2, 3, 4, 5, 6, 7, 4]])
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def ask(model=None, **settings):
    return Question(model or Net(), us.Row(graph(), [0, 3, 5]), us.Flip(beta=0.7), **settings)


def parity(rows):
    return rows.sum(axis=1) % 2


def bits(model, **settings):
    x = np.random.default_rng(0).random((2, 12)) < 0.5
    return Question(model, us.Bits(x), us.Flip(beta=0.8), classes=2, **settings)


def cut(samples, size):
    return [Block(low, min(low + size, samples)) for low in range(0, samples, size)]


def table(results):
    """{(start, stop): counts}; a block that came twice is an error."""
    found = {}
    for block, part in results:
        assert (block.start, block.stop) not in found, "counted twice"
        found[block.start, block.stop] = (part.counts.tolist(), part.audit)
    return found


def in_order(question, blocks):
    return table(SerialRunner().run(question, blocks))


def joined(found, blocks):
    """Counts of each block, whole or in pieces: a busy machine takes longer than a piece may."""
    pieces = {
        block: sorted(place for place in found if block.start <= place[0] < block.stop) for block in blocks
    }
    for block, places in pieces.items():
        assert [start for start, _ in places] + [block.stop] == [block.start] + [stop for _, stop in places]
    return [np.sum([found[place][0] for place in places], axis=0).tolist() for places in pieces.values()]


def survivors(results):
    """(what came before the error, the error)."""
    kept = {}
    try:
        for block, part in results:
            kept[block.start, block.stop] = (part.counts.tolist(), part.audit)
    except UnswayedError as error:
        return kept, error
    raise AssertionError("no error was raised")


class Fuse:
    """Answers parity, but does `harm` in the block of 30 samples, as often as there are lives in the file."""

    def __init__(self, path, harm, lives=1):
        self.path, self.harm = str(path), harm
        path.write_text(str(lives))

    def __call__(self, rows):
        lives = pathlib.Path(self.path)
        if len(rows) == 30 and (left := int(lives.read_text())) > 0:
            lives.write_text(str(left - 1))
            self.harm()
        return parity(rows)


class Counted:
    """Answers parity, and leaves a file wherever it was unpacked."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, rows):
        return parity(rows)

    def __setstate__(self, state):
        self.__dict__ = state
        (pathlib.Path(self.folder) / uuid.uuid4().hex).touch()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def raise_():
    raise ZeroDivisionError("the model broke")


def exhaust():
    raise MemoryError("no room for 1 TB")


# a caller in a process of its own, and the model that it imports
DRIVER = """
import sys, time
sys.path.insert(0, {folder!r})
import unswayed as us
from parity_model import slow
runner = us.RayRunner(address={address!r})
votes = us.poll(slow, us.Bits([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 1]]), us.Flip(beta=0.7), samples=4000, seed=3,
                classes=2, store={store!r}, runner=runner, audit=3)  # each answer takes its time
print(int(votes.counts.sum()))
"""
MODEL = """
import time
def slow(rows):
    time.sleep({pause})
    return rows[:, :3].sum(axis=1) % 2
"""
