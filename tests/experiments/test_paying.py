"""One small graph through every method that needs little, and rows, page and figure from made-up results."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset, split
from unswayed.errors import InputError
from unswayed.experiments import paying_methods, paying_page
from unswayed.experiments.paying import Case, Result, cases, prepare, results
from unswayed.experiments.paying_rows import AT, allowed, gains, rows_of

FIELDS = {
    "dataset", "task", "model", "recipe", "protocol", "threat", "alpha", "samples", "seed", "bounds", "test_targets",
    "clean_accuracy", "floor", "accuracy_edgeless", "certified_accuracy", "seconds", "device", "command", "commit",
    "method", "budget", "base_accuracy", "floors", "wall",
}  # fmt: skip


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
    monkeypatch.setattr(paying_methods, "load", lambda name, fetch: blocks)
    monkeypatch.setattr(paying_methods, "NOISES", (us.Flip(beta=0.9), us.AddDelete(p_add=0.01, p_delete=0.6)))
    monkeypatch.setattr(paying_methods, "GROUPS", (5,))
    said = []
    wanted = cases((0, 1), ["highschool"], ["inductive"], ["floors", "label ballots", "hashed", "smoothed"])
    assert prepare(wanted, runs=tmp_path, samples=1000, say=said.append) == 0
    assert len(said) == 8
    return tmp_path


def test_rows_say_everything_and_what_was_done_is_not_done_again(kept, blocks):
    said = []
    prepare(cases((0, 1), ["highschool"], ["inductive"], ["label ballots"]), runs=kept, say=said.append)
    assert said == []
    rows = rows_of(results(kept))
    assert all(set(row) >= FIELDS for row in rows)
    assert {(row["method"], row["protocol"]) for row in rows} == {
        ("label ballots", "inductive"), ("label ballots", "transductive"), ("hashed", "inductive"), ("smoothed", "inductive"),
    }  # fmt: skip
    assert {row["budget"] for row in rows} == {"any", "adds", "deletes"}
    for row in rows:
        shares = [row["certified_accuracy"][str(k)] for k in AT]
        assert shares == sorted(shares, reverse=True)
        assert row["floor"] == row["floors"]["majority"]
        assert row["alpha"] == (0.001 if row["method"] == "smoothed" else None)


def test_the_proved_rows_are_what_prove_says(kept, blocks):
    parts = split(blocks, 1, test="rest")
    half = parts.test[: (len(parts.test) + 1) // 2]
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(blocks.labels, -1)
    known[told] = blocks.labels[told]
    proofs = us.prove(us.LabelBallots(3).freeze(blocks.graph, known=known), us.Row(blocks.graph, half))
    row = next(
        row
        for row in rows_of(results(kept))
        if (row["method"], row["seed"], row["budget"]) == ("label ballots", 1, "deletes")
    )
    size, right = proofs.sizes("deletes"), proofs.label == blocks.labels[half].numpy()
    assert row["certified_accuracy"]["3"] == pytest.approx(np.mean(right & (size >= 3)))


def test_ballots_under_noise_are_the_frozen_ones(blocks):
    """Summed as whole numbers they give the answers of the frozen model, for nodes without a known label."""
    known = blocks.labels.clone()
    known[60:] = -1
    table = paying_methods.ballots_of(blocks, known)
    frozen = us.LabelBallots(3).freeze(blocks.graph, known=known)
    said = paying_methods.Tally()(table, blocks.graph.edge_index)[60:]
    exact = frozen(blocks.graph.x, blocks.graph.edge_index)[60:]
    clear = exact.sort(dim=1).values.diff(dim=1)[:, -1] > 0.01
    assert torch.equal(said.argmax(dim=1)[clear], exact.argmax(dim=1)[clear])
    assert torch.equal(table, table.round())
    assert float(table.sum(dim=0).max()) < 2**24


def test_page_and_figure_are_written(kept, tmp_path):
    written = paying_page.publish(results(kept), tmp_path / "out")
    assert [path.name for path in written] == ["paying.json", "paying.md", "paying.png", "paying.svg"]
    page = (tmp_path / "out" / "paying.md").read_text()
    assert "| highschool | inductive | proved, untrained label ballots | 2 |" in page


def test_gains_are_against_the_strongest_floor_that_the_protocol_allows():
    heights = {"majority": 0.1, "labels": 0.5, "distilled inductive": 0.6, "distilled transductive": 0.8}
    assert allowed(heights, "inductive") == ["majority", "labels", "distilled inductive"]
    row = {"floors": heights, "certified_accuracy": {str(k): 0.9 for k in AT}}
    assert gains([{**row, "protocol": "inductive"}])[0, 0] == pytest.approx(0.3)
    assert gains([{**row, "protocol": "transductive"}])[0, 0] == pytest.approx(0.1)


def test_a_run_that_is_out_of_time_begins_nothing(tmp_path):
    said = []
    assert prepare(cases((0,), ["cora"]), runs=tmp_path, stop_after=-1, say=said.append) > 0
    assert said[-1].startswith("Out of time")


def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="'karate'"):
        list(cases((0,), ["karate"]))
    with pytest.raises(InputError, match="no result"):
        paying_page.publish([], Path("nowhere"))


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    case = Case("cora", "inductive", 3, "label ballots")
    Result(case, {"label": np.arange(3)}, {"threat": "row"}).write(tmp_path)
    back = Result.read(case.path(tmp_path), Case)
    assert (back.case, back.facts) == (case, {"threat": "row"})
    assert back.arrays["label"].tolist() == [0, 1, 2]
