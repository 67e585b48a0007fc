from types import SimpleNamespace

import pytest
import torch

from unswayed.cli.certify import ASKED, _runner, command_of, words_of
from unswayed.cli.inputs import karate_club, load_factory, read_dataset, read_noise
from unswayed.cli.targets import read_targets
from unswayed.theory.noise import AddDelete, Flip


def test_noise_is_flip_unless_both_probabilities_are_given():
    assert read_noise(None, None, None) == Flip(beta=0.7)
    assert read_noise(0.9, None, None) == Flip(beta=0.9)
    assert read_noise(None, 0.1, 0.2) == AddDelete(p_add=0.1, p_delete=0.2)


def test_karate_club_has_all_it_needs():
    club = karate_club()
    assert club.graph.num_nodes == 34
    assert club.graph.edge_index.shape[1] == 2 * 78
    data, parts = read_dataset("karate", None, None, None, 0)
    assert set(data.labels[parts.train].tolist()) == {0, 1, 2, 3}


def test_files_without_a_split_get_a_random_one_and_say_so(here, capsys):
    text = (here / "Y.csv").read_text().replace(",split", "")
    for part in ("train", "val", "test"):
        text = text.replace(f",{part}", "")
    (here / "Y.csv").write_text(text)
    _, parts = read_dataset(None, here / "E.csv", here / "X.csv", here / "Y.csv", 3)
    together = torch.cat([parts.train, parts.val, parts.test])
    assert len(together.unique()) == len(together) == 12
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "Y.csv has no split column: of its 12 labelled nodes 4 are drawn to learn from, 2 to choose with and 6"
        in said
    )
    _, again = read_dataset(None, here / "E.csv", here / "X.csv", here / "Y.csv", 3)
    assert torch.equal(parts.test, again.test)


@pytest.mark.parametrize(
    ("words", "ids"), [("test", [8, 9, 10, 11]), ("val", [4, 5, 6, 7]), (" 3, 1 ", [3, 1])]
)
def test_targets_by_part_or_number(here, words, ids):
    data, parts = read_dataset(None, here / "E.csv", here / "X.csv", here / "Y.csv", 0)
    found = read_targets(data, parts, words)
    assert found.ids.tolist() == ids
    assert found.truth.tolist() == [node % 2 for node in ids]
    assert len(read_targets(data, parts, "all").ids) == 12


def test_who_has_no_label_is_asked_about_and_every_label_is_learnt_from(here, capsys):
    lines = [line.rpartition(",")[0] for line in (here / "Y.csv").read_text().splitlines()]
    (here / "Y.csv").write_text("\n".join([*lines[:-1], "11,"]) + "\n")
    files = (here / "E.csv", here / "X.csv", here / "Y.csv")
    data, parts = read_dataset(None, *files, 0, nodes="unlabelled")
    assert read_targets(data, parts, "unlabelled").ids.tolist() == parts.test.tolist() == [11]
    assert sorted(torch.cat([parts.train, parts.val]).tolist()) == list(range(11))
    said = " ".join(capsys.readouterr().err.split())
    assert "Y.csv has the labels 0 (6), 1 (5); 1 without." in said
    assert "and none to test" in said


def test_nodes_called_as_parts_are_can_be_picked(here, capsys):
    for name in ("E.csv", "X.csv", "Y.csv"):
        text = (here / name).read_text().replace("\n0,", "\ntest,").replace("\n1,", '\n"all, of it",')
        (here / name).write_text(text.replace(",1\n", ',"all, of it"\n').replace(",0\n", ",test\n"))
    (here / "Y.csv").write_text((here / "Y.csv").read_text().replace(',"all, of it",', ",1,"))
    data, parts = read_dataset(None, here / "E.csv", here / "X.csv", here / "Y.csv", 0)
    assert read_targets(data, parts, "test").ids.tolist() == [8, 9, 10, 11]
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "--nodes test means all test nodes; the node that is called test is --nodes test, (with a comma)."
        in told
    )
    assert read_targets(data, parts, "test,").names == ("test",)
    assert read_targets(data, parts, "all, of it").names == ("all, of it",)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("factory", ["build", "plain", "Net"])
def test_factories_get_what_they_ask_for(here, factory):
    (here / "mine.py").write_text(
        (here / "mine.py")
        .read_text()
        .replace("features, classes", "num_features=3, num_classes=2")
        .replace("Linear(num_features=3, num_classes=2)", "Linear(num_features, num_classes)")
    )
    data, _ = read_dataset(None, here / "E.csv", here / "X.csv", here / "Y.csv", 0)
    model = load_factory(f"{here / 'mine.py'}:{factory}", data)
    assert not model.training
    assert model(data.graph.x, data.graph.edge_index).shape == (12, 2)


def test_runners():
    assert _runner("serial", None, "cpu") is None
    assert _runner("ray", "auto", "cpu").address == "auto"


def test_the_command_names_what_matters_and_only_that():
    words = words_of({"dataset": "cora", "beta": 0.8, "device": "cuda", "runner": "ray", "family": True})
    assert command_of(words, SimpleNamespace(model="sage")) == (
        "unswayed certify --dataset cora --model sage --beta 0.8 --samples 10000 --alpha 0.001 --family --seed 0"
    )
    assert set(words) == set(ASKED)
