"""What could only end in an error of torch is refused in one sentence before anything is learnt."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from unswayed.datasets import Split, from_data
from unswayed.errors import InputError
from unswayed.models.floors import floor
from unswayed.models.training import BallotSettings, fit
from unswayed.models.training.pairs import PairSettings


def graph(**more: Any) -> Data:
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    given = {
        "x": torch.randn(12, 3),
        "edge_index": torch.cat([ring, ring.flip(0)], dim=1),
        "y": torch.arange(12) % 2,
    }
    return Data(**{**given, **more})


PARTS = Split(torch.arange(4), torch.arange(4, 7), torch.arange(7, 12))
EDGES = {
    "beyond": (torch.tensor([[0, 30], [30, 0]]), "An edge names node 30"),
    "below": (torch.tensor([[0, -1], [-1, 0]]), "below 0"),
    "no whole number": (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "whole numbers"),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_that_no_graph_has(name: str) -> None:
    edges, sentence = EDGES[name]
    with pytest.raises(InputError, match=sentence):
        from_data(graph(edge_index=edges))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "too few rows": ({"teacher": torch.rand(5, 2)}, "each of the 12 nodes"),
    "one class too many": ({"teacher": torch.rand(12, 3)}, "each of the 2 classes"),
    "rows of test nodes": ({"teacher": torch.rand(12, 2), "protocol": "inductive"}, "each of the 7 nodes"),
    "no numbers": ({"teacher": torch.full((12, 2), torch.nan)}, "NaN"),
    "no tensor": ({"teacher": "gcn"}, "not str"),
    "protocol": ({"protocol": "both"}, "transductive, inductive"),
    "seed": ({"seed": 1.5}, "seed must be a whole number"),
    "device": ({"device": "abacus"}, "no device 'abacus'"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("ask", [partial(fit, "ballots"), floor], ids=["fit", "floor"])
def test_arguments_that_no_training_can_follow(ask: Callable[..., Any], name: str) -> None:
    how, sentence = WRONG[name]
    with pytest.raises(InputError, match=sentence):
        ask(from_data(graph()), PARTS, **how)


@pytest.mark.parametrize("settings", [{}, PairSettings()])
def test_settings_of_something_else(settings: Any) -> None:
    with pytest.raises(InputError, match=rf"must be {BallotSettings.__module__}\.BallotSettings here"):
        fit("ballots", from_data(graph()), PARTS, settings=settings)
