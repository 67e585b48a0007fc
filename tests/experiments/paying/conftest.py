"""A small graph without features, and what the experiment keeps of two of its splits."""

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset
from unswayed.experiments.paying import (
    bench,
    cases,
    methods,
    prepare,
    smoothing,
)


@pytest.fixture(scope="module")
def blocks():
    """Three communities of 40 without features."""
    generator = torch.Generator().manual_seed(1)
    y = torch.arange(120) % 3
    chance = torch.where(y[:, None] == y, 0.4, 0.05)
    half = torch.triu(torch.rand(120, 120, generator=generator) < chance, 1).nonzero().t()
    data = Data(x=torch.ones(120, 1), edge_index=torch.cat([half, half.flip(0)], dim=1), y=y)
    return Dataset("highschool", "node", 0, 3, data=data, labelled=0.3)


@pytest.fixture
def kept(blocks, tmp_path, monkeypatch):
    """The results of two splits."""
    monkeypatch.setattr(bench, "load", lambda name, fetch: blocks)
    monkeypatch.setattr(smoothing, "NOISES", (us.Flip(beta=0.9), us.AddDelete(p_add=0.01, p_delete=0.6)))
    monkeypatch.setattr(methods, "GROUPS", (5,))
    said = []
    wanted = cases((0, 1), ["highschool"], ["inductive"], ["floors", "label ballots", "hashed", "smoothed"])
    assert prepare(wanted, runs=tmp_path, samples=1000, say=said.append) == 0
    assert len(said) == 8
    return tmp_path
