"""The whole-graph experiment from training to the page, on a graph small enough for a test."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from unswayed.datasets import Dataset
from unswayed.experiments import beyond, beyond_report
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.training.view import View
from unswayed.models.training.whole import WholeSettings, fit_whole
from unswayed.theory.noise import AddDelete

N, CLASSES = 120, 2
REQUIRED = {
    "dataset", "task", "model", "recipe", "protocol", "threat", "p_add", "p_delete", "alpha", "samples", "seed", "bounds",
    "test_targets", "clean_accuracy", "floor", "accuracy_edgeless", "certified_accuracy", "seconds", "device", "command",
    "commit",
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Two communities whose features say something, but not all, of the class."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(N) % CLASSES
    x = torch.randn(N, 6, generator=generator) * 0.7
    x[:, 0] += 2.0 * y
    ends = torch.randint(0, N, (2, 400), generator=generator)
    alike = y[ends[0]] == y[ends[1]]
    data = Data(x=x, y=y, edge_index=to_undirected(ends[:, alike & (ends[0] != ends[1])]))
    dataset = Dataset("small", "node", 6, CLASSES, data=data)
    for module in (beyond, beyond_report):
        monkeypatch.setattr(module, "load", lambda name: dataset)
        monkeypatch.setattr(module, "LEVELS", {"small": ((0.02, 0.6), (0.05, 0.8))})
    truth = torch.nn.functional.one_hot(y, CLASSES).float()  # teachers and floors have tests of their own
    monkeypatch.setattr(beyond, "soft_labels", lambda *_, **__: truth)
    monkeypatch.setattr(beyond, "floors", lambda *_, **__: [Floor("mlp", y, 0.8, 0.8)])
    return dataset


def test_from_training_to_the_page(small: Dataset, tmp_path: Path) -> None:
    options = SimpleNamespace(
        data=None, out=tmp_path / "votes", seeds=1, datasets=["small"], protocols=["transductive"], steps=30,
        samples=400, device="cpu", stop_after=1e9,
    )  # fmt: skip
    beyond.poll_all(options)  # type: ignore[arg-type]
    runs = json.loads((tmp_path / "votes" / "runs.json").read_text())["runs"]
    assert len(runs) == 4  # two numbers of labels, two levels
    out = tmp_path / "results"
    out.mkdir()
    (out / "beyond.md").write_text("before\n<!-- whole-graph -->\n<!-- end whole-graph -->\nafter\n")
    beyond_report.report_all(tmp_path / "votes", out, alpha=0.01)
    page = (out / "beyond.md").read_text()
    assert page.startswith("before")
    assert page.endswith("after\n")
    assert "20 adds" in page
    assert "best of 2 for deletes" in page
    kept = json.loads((out / "beyond.json").read_text())
    rows = kept["rows"]
    assert set(rows[0]) >= REQUIRED
    for row in [*rows, *kept["best_of"]]:
        for kind in ("adds", "deletes"):
            values = row.get(kind, [1.0])
            assert values == sorted(values, reverse=True)
            assert 0 <= values[-1] <= values[0] <= 1
    assert any(row.get("deletes", [0])[0] > 0.5 for row in rows)
    assert (out / "beyond-adds.svg").exists()
    beyond_report.report_all(tmp_path / "votes", out, alpha=0.01)
    assert (out / "beyond.md").read_text() == page  # filling in twice changes nothing


def test_no_case_begins_after_the_time_is_up(
    small: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = beyond.parser().parse_args(
        ["poll", "--out", str(tmp_path), "--stop-after", "0", "--datasets", "small"]
    )
    beyond.poll_all(options)
    assert "out of time" in capsys.readouterr().out
    assert not (tmp_path / "runs.json").exists()


def test_training_under_whole_graph_noise_learns_and_repeats(small: Dataset) -> None:
    data = small.graph
    everyone = torch.arange(N)
    seen = View(data, everyone[:20], everyone[20:60], everyone)
    targets = torch.nn.functional.one_hot(data.y, CLASSES).float()
    noises = [AddDelete(p_add=0.02, p_delete=0.6)]

    def trained() -> torch.nn.Module:
        torch.manual_seed(0)
        model = build("sage", 6, CLASSES, seed=3)
        return fit_whole(
            model, seen, targets, noises, seed=1, settings=WholeSettings(steps=40, check_every=10)
        )

    one, two = trained(), trained()
    assert not one.training
    with torch.no_grad():
        answers = one(data.x, data.edge_index)
        assert torch.equal(answers, two(data.x, data.edge_index))
    assert float((answers.argmax(dim=1) == data.y).float().mean()) > 0.85
    assert np.isfinite(answers.numpy()).all()
