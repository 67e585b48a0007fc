import json

import pytest

from unswayed.cli.main import main

MODEL = """
import torch
from torch_geometric.nn import SimpleConv

class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        torch.manual_seed(0)
        self.spread = SimpleConv("mean", combine_root="self_loop")
        self.read = torch.nn.Linear(features, classes)
    def forward(self, x, edge_index):
        return self.read(self.spread(x, edge_index))

def build(num_features, num_classes):
    return Net(num_features, num_classes)

def plain():
    return Net(3, 2)

def needy(secret):
    return secret

def broken():
    raise RuntimeError("out of\\nluck")

def text():
    return "no model"

class Short(Net):
    def forward(self, x, edge_index):
        return self.read(x)[:3]

class Flat(Net):
    def forward(self, x, edge_index):
        return self.read(x).sum(1)

class Wide(Net):
    def forward(self, x, edge_index):
        return torch.cat([self.read(x)] * 2, 1)

class Random(Net):
    def forward(self, x, edge_index):
        return torch.randn(len(x), 2)

class Dropping(Net):
    def forward(self, x, edge_index):
        return torch.nn.functional.dropout(self.read(x), training=True)

class Raising(Net):
    def forward(self, x, edge_index):
        raise ValueError("cannot\\nforward")

def short(): return Short(3, 2)
def flat(): return Flat(3, 2)
def wide(): return Wide(3, 2)
def random(): return Random(3, 2)
def dropping(): return Dropping(3, 2)
def raising(): return Raising(3, 2)
"""
NODES = 12


def write_files(folder):
    """A ring of twelve nodes, three features, two classes; each part of the split has both classes."""
    edges = [f"{node},{(node + 1) % NODES}" for node in range(NODES)]
    (folder / "E.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    rows = [f"{node},{1 + node % 2},{node % 3},{node / NODES}" for node in range(NODES)]
    (folder / "X.csv").write_text("node,a,b,c\n" + "\n".join(rows) + "\n")
    parts = ["train"] * 4 + ["val"] * 4 + ["test"] * 4
    rows = [f"{node},{node % 2},{part}" for node, part in zip(range(NODES), parts, strict=True)]
    (folder / "Y.csv").write_text("node,label,split\n" + "\n".join(rows) + "\n")
    (folder / "mine.py").write_text(MODEL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the user's files in it, as working directory."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNSWAYED_TRACEBACK", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


OWN = [
    "--edges",
    "E.csv",
    "--features",
    "X.csv",
    "--labels",
    "Y.csv",
    "--model",
    "mine.py:build",
    "--no-floor",
    "--samples",
    "200",
    "--beta",
    "0.9",
]


@pytest.fixture
def call(here, capsys):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def go(*words):
        capsys.readouterr()
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return go


@pytest.fixture
def own():
    return list(OWN)


@pytest.fixture
def call_json(call):
    def go(*words):
        code, out, _ = call(*words, "--json")
        assert code == 0
        return json.loads(out)

    return go
