"""Rows of results: written whole, and joined with those of earlier days."""

import json
from pathlib import Path

from unswayed.experiments.rows import beside_earlier, read_rows, write_rows

IDENTITY = ("dataset", "seed")


def row(dataset: str, seed: int, value: float, commit: str = "old") -> dict:
    return {"dataset": dataset, "seed": seed, "value": value, "commit": commit}


def test_rows_measured_again_replace_their_own_and_leave_the_others(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, [row("cora", 0, 0.1), row("cora", 0, 0.2), row("photo", 0, 0.3)])
    anew = [row("cora", 0, 0.5, "new"), row("cora", 1, 0.6, "new")]
    joined = beside_earlier(path, anew, IDENTITY)
    assert joined == [anew[0], anew[1], row("photo", 0, 0.3)]
    assert len(read_rows(path)) == 3  # nothing is written by joining


def test_several_rows_of_one_thing_stay_together_in_their_order(tmp_path: Path) -> None:
    levels = [row("cora", 0, value) for value in (0.9, 0.1, 0.5)]
    assert beside_earlier(tmp_path / "none.json", levels, IDENTITY) == levels


def test_another_list_of_the_same_file_is_joined_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, [row("cora", 0, 0.1)], best_of=[row("photo", 0, 0.3)])
    assert beside_earlier(path, [], IDENTITY, "best_of") == json.loads(path.read_text())["best_of"]
