"""The whole-graph experiment from training to the page, on a graph small enough for a test."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from unswayed.certificates import certify
from unswayed.datasets import Dataset
from unswayed.errors import InputError
from unswayed.experiments import beyond
from unswayed.experiments.beyond import LEVELS, cases, page, prepare, results, work
from unswayed.experiments.beyond.rows import AT, chosen_rows, rows_of, votes_of
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.training.view import View
from unswayed.models.training.whole import WholeSettings, fit_whole
from unswayed.theory.noise import AddDelete
from unswayed.theory.size import is_certified

from .shared import FIELDS, communities

N, CLASSES = 120, 2
DOCS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def small() -> Iterator[Dataset]:
    """Two communities whose features say something, but not all, of the class."""
    data = communities(N)
    dataset = Dataset("small", "node", 6, CLASSES, data=data)
    with pytest.MonkeyPatch.context() as patch:
        for module in (beyond, page):
            patch.setattr(module, "LEVELS", {**LEVELS, "small": ((0.02, 0.6), (0.05, 0.8))})
        patch.setattr(work, "load", lambda name, fetch: dataset)
        patch.setattr(work, "TRAINING", WholeSettings(steps=30))
        # teachers and floors have tests of their own
        truth = torch.nn.functional.one_hot(data.y, CLASSES).float()
        patch.setattr(work, "soft_labels", lambda seen, *_, **__: truth[seen.kept])
        patch.setattr(work, "floors", lambda *_, **__: [Floor("mlp", data.y, 0.8, 0.8)])
        yield dataset


@pytest.fixture(scope="module")
def kept(small: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one split."""
    tmp_path = tmp_path_factory.mktemp("runs")
    said: list[str] = []
    assert prepare(cases([0], ["small"]), runs=tmp_path, samples=400, say=said.append) == 0
    assert len(said) == 4  # two numbers of labels, two protocols
    assert prepare(cases([0], ["small"]), runs=tmp_path, samples=400, say=said.append) == 0
    assert len(said) == 4  # nothing was done again
    return tmp_path


def test_rows_tables_and_plots_are_written(kept: Path) -> None:
    out = kept / "results"
    out.mkdir()
    (out / "beyond.md").write_text("before\n<!-- whole-graph -->\n<!-- end whole-graph -->\nafter\n")
    written = page.publish(results(kept), out)
    assert [path.name for path in written] == [
        "beyond.json",
        "beyond.md",
        "beyond-adds.svg",
        "beyond-deletes.svg",
    ]
    assert all(path.exists() for path in written)
    text = (out / "beyond.md").read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "20 adds" in text
    assert "small, 20 labels a class, inductive, 1 seed(s)" in text
    assert "best of 2 for deletes" in text
    about = json.loads((out / "beyond.json").read_text())
    assert set(about["rows"][0]) >= FIELDS | {"p_add", "p_delete"}
    assert len(about["rows"]) == len(about["best_of"]) == 8
    assert any(row["deletes"][0] > 0.5 for row in about["rows"])
    page.publish(results(kept), out)
    assert (out / "beyond.md").read_text() == text  # filling in twice changes nothing


def test_rows_are_what_the_theory_says_of_each_attack(kept: Path) -> None:
    result = results(kept)[0]
    truth, row = result.arrays["truth"], rows_of([result])[1]
    certs = certify(votes_of(result, 1), alpha=0.001)
    for kind in ("adds", "deletes"):
        for k, share in zip(AT, row[kind], strict=True):
            holds = is_certified(certs.p_top, certs.p_rest, certs.noise, **{kind: k}) & ~certs.abstained
            assert share == pytest.approx(np.mean(holds & (certs.label == truth)))


def test_the_best_level_is_at_least_each_level_at_its_share_of_alpha(kept: Path) -> None:
    result = results(kept)[0]
    alone = rows_of([result], alpha=0.0005)
    for row in chosen_rows([result], alpha=0.001):
        kind = row["level"].split()[-1]
        assert row[kind] == sorted(row[kind], reverse=True)
        assert row[kind][-1] >= max(level[kind][-1] for level in alone) - 1e-9


def test_the_published_tables_are_those_of_the_published_rows() -> None:
    kept = json.loads((DOCS / "beyond.json").read_text())
    assert page.tables([*kept["rows"], *kept["best_of"]]) in (DOCS / "beyond.md").read_text()


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'karate'"):
        list(cases([0], ["karate"]))
    with pytest.raises(InputError, match="'abductive'"):
        list(cases([0], ["cora"], ["abductive"]))
    with pytest.raises(InputError, match="no result"):
        page.publish([], tmp_path)


def test_every_split_has_both_protocols_and_pubmed_the_fewest_labels_alone() -> None:
    assert {(case.seed, case.per_class, case.protocol) for case in cases([0, 1], ["pubmed"])} == {
        (seed, 20, protocol) for seed in (0, 1) for protocol in ("inductive", "transductive")
    }
    assert len(list(cases([0, 1], ["cora", "pubmed"]))) == 12
    assert len(list(cases([0, 1], ["cora", "pubmed"], ["inductive"]))) == 6


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
