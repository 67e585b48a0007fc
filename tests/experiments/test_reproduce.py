"""Settings, rows, curves and the page, from a small stored run instead of a long one."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.experiments import runs
from unswayed.experiments.page import write_page
from unswayed.experiments.reproduce import named, prepare, publish
from unswayed.experiments.rows import read_rows, rows_of
from unswayed.experiments.runs import Run
from unswayed.experiments.settings import BETAS, EXPERIMENTS, Panel, Training, panels, work
from unswayed.models.floors import Floor
from unswayed.theory.noise import Flip
from unswayed.votes import Votes

from .shared import FIELDS

SAMPLES = 50_000


def store(folder, training, betas=BETAS):
    """A finished run of four targets: three right (two of them clearly), one wrong."""
    run = Run(training, folder)
    counts = np.array([[1000, 0, 0], [985, 10, 5], [600, 390, 10], [0, 1000, 0]])
    for beta in betas:
        place = run.folder / f"beta-{beta}"
        place.mkdir(parents=True)
        (place / "settings.json").write_text(json.dumps({"format": 2}))
        blocks = np.repeat(counts[None], SAMPLES // 1000, axis=0)
        starts = np.arange(0, SAMPLES, 1000)
        Votes(blocks, starts, starts + 1000, Flip(beta=beta), np.full(4, 2707)).save(place / "votes.npz")
    facts = {
        **{name: getattr(training, name) for name in ("dataset", "model", "recipe", "protocol", "seed")},
        "task": "node",
        "truth": [0, 0, 0, 0],
        "degree": [1, 7, 12, 30],
        "clean_accuracy": 0.75,
        "accuracy_edgeless": 0.5,
        "floor": 0.6,
        "floor_name": "mlp",
        "device": "a machine",
        "commit": "abc",
        "command": "unswayed reproduce figure1",
        "seconds": {"train": 2.0, "poll-0.7": 1.0},
    }
    (run.folder / "facts.json").write_text(json.dumps(facts))
    return run


@pytest.fixture
def cora():
    return Training("cora", "gcn-mean", "clean", "transductive", 0)


def test_rows_have_the_fixed_fields_and_count_what_the_certificates_say(tmp_path, cora):
    run = store(tmp_path, cora)
    rows = list(rows_of(Panel("figure1", *list(vars(cora).values())[:4], "beta"), run, SAMPLES, BETAS))
    assert [row["beta"] for row in rows] == list(BETAS)
    for row in rows:
        assert set(row) >= FIELDS | {"beta"}
        assert row["test_targets"] == 4
        assert row["certified_accuracy"]["0"] == 0.75  # the fourth target is surely wrong
    shares = {row["beta"]: row["certified_accuracy"] for row in rows}
    assert set(shares[0.5].values()) == {0.75}  # beta one half hides everything: flat
    assert shares[0.9]["30"] == 0.0
    seven = next(row for row in rows if row["beta"] == 0.7)
    assert seven["seconds"] == 3.0
    assert seven["wall"] == {"0": 1.0, "1": 0.75, "5": 0.75, "10": 0.5, "15": 0.25}


def test_more_confidence_lowers_and_more_samples_raise_the_curve(tmp_path, cora):
    run = store(tmp_path, cora)
    for varied in ("alpha", "samples"):
        panel = Panel("figure4", *list(vars(cora).values())[:4], varied)
        rows = sorted(rows_of(panel, run, SAMPLES, panel.betas), key=lambda row: row[varied])
        areas = [sum(row["certified_accuracy"].values()) for row in rows]
        assert len(areas) == 4
        assert areas == sorted(areas)
        assert areas[0] < areas[-1]


def test_publishing_writes_rows_and_curves_and_leaves_out_what_is_not_complete(tmp_path, cora):
    stored, out, said = tmp_path / "runs", tmp_path / "out", []
    store(stored, cora)
    written = publish(["figure1"], recipe="faithful", seeds=2, runs=stored, out=out, say=said.append)
    assert {path.suffix for path in written} == {".json", ".png", ".svg"}
    assert all(path.stat().st_size for path in written)
    assert len(read_rows(out / "figure1-faithful.json")) == len(BETAS)
    assert any("cora-gcn-mean-clean-transductive-1 has no votes for β = 0.5, 0.6" in words for words in said)
    assert not (stored / "cora-gcn-mean-clean-transductive-1").exists()
    text = write_page(out).read_text().replace("\u00a0", " ")
    assert "| cora | gcn-mean | clean | transductive | 1 | 0.500 |" in text  # one split has no spread
    assert "| -0.100 |" in text  # the gain over the floor, negative and said so
    assert "0.55 / 0.50 / 0.49" in text
    # trained once, polled five times
    assert "`unswayed reproduce figure1` | abc | a machine | 1 | 2 | 5 | 1 |" in text


def test_votes_are_shared_between_figures_and_each_training_is_done_once():
    wanted = work(("figure1", "figure4", "figure5"), "faithful", seeds=2)
    assert len(wanted) == 2 * 6  # three node and three graph datasets, two seeds
    assert wanted[Training("cora", "gcn-mean", "clean", "transductive", 1)] == BETAS
    assert wanted[Training("mutag", "gin", "clean", "inductive", 0)] == (0.7,)
    seeds = [training.seed for training in wanted]
    assert seeds == sorted(seeds)  # stopping early leaves whole seeds


def test_every_figure_has_panels_under_both_recipes_and_table_one_needs_no_votes():
    for recipe in ("faithful", "best"):
        assert [bool(list(panels(name, recipe))) for name in EXPERIMENTS] == [
            False,
            True,
            True,
            True,
            True,
            True,
        ]


@pytest.mark.parametrize("names", [["figure9"], [], ["figure1", "tabel1"]])
def test_unknown_experiments_are_named(names):
    with pytest.raises(InputError, match="choose from"):
        named(names)


def test_bad_settings_are_refused(tmp_path):
    with pytest.raises(InputError, match="recipe"):
        list(panels("figure1", "lucky"))
    with pytest.raises(InputError, match="seeds"):
        prepare(["figure1"], recipe="best", seeds=0, runs=tmp_path)


def test_the_teacher_and_the_floor_of_a_split_are_found_once(tmp_path, monkeypatch):
    data = Data(x=torch.ones(8, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.arange(8) % 2)
    dataset, parts = Dataset("cora", "node", 2, 2, data=data), Split(*torch.arange(6).split(2))
    taught, floors = [], []

    def soft_labels(seen, classes, *, seed, device):
        taught.append(seed)
        return torch.full((8, classes), 1 / classes)

    def floor(dataset, parts, *, teacher, **_):
        floors.append(teacher)
        return Floor("mlp", torch.zeros(1), 0.5, 0.25)

    monkeypatch.setattr(runs, "soft_labels", soft_labels)
    monkeypatch.setattr(runs, "floor", floor)
    for model, seed in (("gcn-mean", 0), ("gat", 0), ("gat", 1)):
        run = Run(Training("cora", model, "clean", "transductive", seed), tmp_path)
        assert run._floor(dataset, parts) == {"floor": 0.25, "floor_name": "mlp"}
        assert run._teacher(dataset, parts).shape == (8, 2)
    assert taught == [0, 1]
    assert len(floors) == 2


def test_the_recorded_command_says_all_that_differs_from_the_usual(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(Run, "complete", lambda self, *_, command, **__: said.append(command))
    prepare(["figure1"], recipe="faithful", seeds=1, runs=tmp_path, say=lambda _: None)
    prepare(
        ["figure3"], recipe="best", seeds=2, runs=tmp_path, device="cuda", samples=1000, datasets=["mutag"], seed=1,
        say=lambda _: None,
    )  # fmt: skip
    assert said[0] == "unswayed reproduce figure1 --recipe faithful --seeds 1"
    assert said[-1] == (
        "python -m unswayed.experiments.reproduce figure3 --recipe best --seeds 2 --samples 1000 --device cuda "
        "--datasets mutag --seed 1"
    )


def test_samples_that_no_block_ends_at_are_refused_before_any_work(tmp_path):
    with pytest.raises(InputError, match="multiple of 1000"):
        prepare(["figure1"], recipe="faithful", seeds=1, runs=tmp_path, samples=1500)
