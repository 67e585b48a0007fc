"""Whole graphs whose pairs vote, and nodes that are to stay flagged."""

from functools import partial

import pytest
import torch
from torch_geometric.data import Data

from unswayed.datasets import Dataset
from unswayed.experiments.paying import (
    bench,
    cases,
    methods,
    others,
    page,
    prepare,
    results,
)
from unswayed.experiments.paying.rows import AT, rows_of
from unswayed.models.floors import Floor
from unswayed.models.training import pairs
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.flags import FlagSettings, fit_flags
from unswayed.models.training.pairs import PairSettings


def test_graphs_and_flags_have_methods_of_their_own():
    assert [case.method for case in cases((0,), ["mutag"])] == ["floors", "pairs"]
    flagged = list(cases((0,), ["tolokers"]))
    assert [(case.method, case.protocol) for case in flagged] == [
        ("flags", "inductive"),
        ("flags", "transductive"),
    ]


@pytest.mark.slow
def test_whole_graphs_are_proved_beside_their_floor(tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)

    def one(number):
        chance = 1.0 if number < 10 else 0.4  # the first graphs have every link already
        half = torch.triu(torch.rand(8, 8, generator=generator) < chance, 1).nonzero().t()
        x = torch.eye(2)[torch.randint(2, (8,), generator=generator)]
        return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1), y=torch.tensor([number % 2]))

    dataset = Dataset("mutag", "graph", 2, 2, graphs=tuple(one(number) for number in range(40)))
    monkeypatch.setattr(bench, "load", lambda name, fetch: dataset)
    answers = torch.zeros(40, dtype=torch.int64)
    monkeypatch.setattr(methods, "floor", lambda *_, **__: Floor("majority", answers, 0.5, 0.5))
    monkeypatch.setattr(pairs, "PairSettings", partial(PairSettings, silent=("counts-linear",), steps=40))
    prepare(cases((0,), ["mutag"]), runs=tmp_path, say=lambda words: None)
    rows = rows_of(results(tmp_path))
    assert {(row["task"], row["method"], row["protocol"]) for row in rows} == {
        ("graph", "pairs", "inductive")
    }
    assert "| mutag | 1 |" in page.graphs(rows)
    assert all(0 <= row["accuracy_edgeless"] <= 1 and 0 <= row["base_accuracy"] <= 1 for row in rows)
    of = {row["budget"]: row["certified_accuracy"] for row in rows}
    for kind in ("adds", "deletes"):  # who can do less moves no more, also where there is nothing to add
        assert all(of[kind][k] >= of["any"][k] for k in of["any"])


def test_flags_are_no_less_precise_on_validation_nodes_and_proved(blocks, tmp_path, monkeypatch):
    y = (blocks.labels == 1).long()
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(0)) + y[:, None] * 0.5
    rare = Dataset(
        "tolokers", "node", 3, 2, data=Data(x=x, edge_index=blocks.graph.edge_index, y=y), labelled=0.5
    )
    monkeypatch.setattr(bench, "load", lambda name, fetch: rare)
    quick = FlagSettings(network=BallotSettings(steps=20, taus=(2.0,)))
    monkeypatch.setattr(others, "fit_flags", partial(fit_flags, settings=quick))
    prepare(cases((0,), ["tolokers"], ["inductive"]), runs=tmp_path, say=lambda words: None)
    kinds = {row["budget"]: row for row in rows_of(results(tmp_path))}
    for kind in ("adds", "deletes"):  # fewer attacks: no less is proved
        assert all(
            kinds[kind]["certified_recall"][k] >= share
            for k, share in kinds["any"]["certified_recall"].items()
        )
    row = kinds["any"]
    recall = [row["certified_recall"][str(k)] for k in AT]
    assert recall == sorted(recall, reverse=True)
    assert recall[0] > row["floor_recall"] - 0.2
    assert set(row["floors"]) == {"features alone", "majority"}
    assert row["floor"] == max(row["floors"].values())
    assert "| tolokers | inductive | any | 1 |" in page.flags([row])
