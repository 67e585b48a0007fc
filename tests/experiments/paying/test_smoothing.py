"""What is asked under noise: label ballots, networks, and a model that reads no link."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.experiments.paying import (
    Case,
    bench,
    cases,
    prepare,
    results,
    smoothing,
)
from unswayed.experiments.paying.rows import rows_of
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.floors.every import ALL_SEEN
from unswayed.models.training.own_scores import MEMBERS


def test_ballots_under_noise_are_the_frozen_ones(blocks):
    """Summed as whole numbers they give the answers of the frozen model, for nodes without a known label."""
    known = blocks.labels.clone()
    known[60:] = -1
    table = smoothing.ballots_of(blocks, known)
    frozen = us.LabelBallots(3).freeze(blocks.graph, known=known)
    said = smoothing.Tally()(table, blocks.graph.edge_index)[60:]
    exact = frozen(blocks.graph.x, blocks.graph.edge_index)[60:]
    clear = exact.sort(dim=1).values.diff(dim=1)[:, -1] > 0.01
    assert torch.equal(said.argmax(dim=1)[clear], exact.argmax(dim=1)[clear])
    assert torch.equal(table, table.round())
    assert float(table.sum(dim=0).max()) < 2**24


def test_each_kind_of_noise_has_rows_of_its_own(kept):
    rows = [row for row in rows_of(results(kept)) if row["budget"] == "any" and row["seed"] == 0]
    found = {row["method"]: row for row in rows if row["method"].startswith("smoothed")}
    assert set(found) == {"smoothed", "smoothed Flip", "smoothed AddDelete"}
    assert found["smoothed Flip"]["beta"] == pytest.approx(0.9)
    assert found["smoothed AddDelete"]["p_delete"] == pytest.approx(0.6)
    best = {name: found["smoothed"][name] for name in ("certified_accuracy", "model")}
    assert best in [
        {name: found[kind][name] for name in best} for kind in ("smoothed Flip", "smoothed AddDelete")
    ]


def test_networks_under_noise_are_means_of_as_many_as_floors_are(blocks, monkeypatch):
    data = Data(x=torch.rand(120, 4), edge_index=blocks.graph.edge_index, y=blocks.labels)
    dataset = replace(blocks, num_features=4, data=data)
    monkeypatch.setattr(bench, "load", lambda name, fetch: dataset)
    monkeypatch.setattr(bench, "taught", lambda *_, **__: None)
    monkeypatch.setattr(smoothing, "TRAINED_UNDER", {us.Flip(beta=0.9): (us.Flip(beta=0.8),)})
    drawn = []

    def untrained(name, *_, seed, **__):
        drawn.append(build(name, 4, 3, seed=seed))
        return drawn[-1]

    monkeypatch.setattr(smoothing, "fit", untrained)
    own = bench.Bench.of(Case("cora", "inductive", 0, "smoothed"))
    ((noises, network),) = smoothing.mean_networks(own)
    assert noises == (us.Flip(beta=0.8),)
    with torch.no_grad():
        said = torch.stack([member(data.x, data.edge_index) for member in drawn])
        assert torch.allclose(network(data.x, data.edge_index), said.mean(dim=0), atol=1e-5)
    assert len(said) == MEMBERS
    assert not torch.equal(said[0], said[1])


def test_a_model_without_links_is_among_what_noise_may_choose(blocks, tmp_path, monkeypatch):
    features = torch.nn.functional.one_hot(blocks.labels).float()  # which say all, and links say nothing more
    shuffled = torch.randint(120, (2, 300), generator=torch.Generator().manual_seed(0))
    links = torch.cat([shuffled, shuffled.flip(0)], dim=1).unique(dim=1)
    data = Data(x=features, edge_index=links[:, links[0] != links[1]], y=blocks.labels)
    clear = replace(blocks, name="cora", num_features=3, data=data)
    monkeypatch.setattr(bench, "load", lambda name, fetch: clear)
    monkeypatch.setattr(smoothing, "NOISES", (us.Flip(beta=0.9), us.AddDelete(p_add=0.0, p_delete=0.95)))
    monkeypatch.setattr(smoothing, "TRAINED_UNDER", {})
    measured = {
        name: Floor(name, clear.labels, right, 1.0) for name, right in (("labels", 0.9), (ALL_SEEN, 1.0))
    }
    monkeypatch.setattr(bench, "all_floors", lambda *_, **__: measured)
    monkeypatch.setattr(bench, "taught", lambda *_, **__: None)
    wanted = cases((0,), ["cora"], ["inductive"], ["floors", "smoothed"])
    prepare(wanted, runs=tmp_path, samples=1000, say=lambda words: None)
    best = next(row for row in rows_of(results(tmp_path)) if row["method"] == "smoothed")
    assert best["model"] == "labels, no links"  # validation nodes cannot judge what has learnt them
    assert best["base_accuracy"] == best["accuracy_edgeless"] == pytest.approx(1.0)
    assert best["certified_accuracy"]["5"] == pytest.approx(1.0)
