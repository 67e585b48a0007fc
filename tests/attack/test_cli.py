"""The command: what it says, writes and returns."""

import json
import shlex

import numpy as np
import pytest

from unswayed.cli.main import main

SMALL = [
    "--dataset",
    "karate",
    "--model",
    "gcn",
    "--beta",
    "0.8",
    "--samples",
    "500",
    "--judge-samples",
    "500",
]


def test_attacks_are_told_and_drawn(capsys, tmp_path):
    page = tmp_path / "attacked.html"
    code = main(
        [
            "attack",
            *SMALL,
            "--nodes",
            "3,8",
            "--attempts",
            "2",
            "--most",
            "6",
            "--report",
            str(page),
            "--json",
        ]
    )
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    sizes = {row["target"]: row["size"] for row in said["targets"]}
    assert said["attacks"]["breaches"] == []
    tried = said["attacks"]["within"]
    assert set(tried) == {"random", "greedy", "gradient"}
    assert set(tried.values()) == {2 * sum(size >= 1 for size in sizes.values())}
    assert said["attacks"]["attacked"]
    assert all(hit["size"] > sizes[name] for name, hit in said["attacks"]["attacked"].items())
    assert "Attack found" in page.read_text()


def test_people_are_told_in_words(capsys):
    assert main(["attack", *SMALL, "--nodes", "3", "--attempts", "1", "--kind", "random", "--no-beyond"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 random attacks; none succeeded" in said


def test_the_recorded_command_attacks_the_same_targets_again(capsys):
    words = ["--nodes", "3", "--attempts", "1", "--kind", "random", "--kind", "greedy", "--no-beyond"]
    assert main(["attack", *SMALL, *words, "--bounds", "tight", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*shlex.split(first["command"])[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    for found in (first, again):
        del found["notes"]["spent"]  # how long it took
    assert again == first


def test_a_breach_is_an_exit_code(monkeypatch, capsys):
    from unswayed.attack import harness

    monkeypatch.setattr(harness._Siege, "_changed", lambda self, target, entries: True)
    monkeypatch.setattr("unswayed.certificates.smoothed.certified_size", lambda *a, **k: np.array([2]))
    assert main(["attack", *SMALL, "--nodes", "3", "--attempts", "1", "--no-beyond"]) == 1
    assert "3 SUCCEEDED" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "wrong", [["--kind", "clever"], ["--attempts", "-1"], ["--judge-samples", "5"], ["--nodes", "99"]]
)
def test_bad_words_are_refused(wrong, capsys):
    assert main(["attack", *SMALL, *wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err
