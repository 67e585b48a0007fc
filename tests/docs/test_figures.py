"""Figures that the README repeats are those of the results."""

from pathlib import Path

import numpy as np
import pytest

from unswayed.experiments.rows import read_rows

ROOT = Path(__file__).parents[2]
GRAPHS = {
    "amherst41": "(amherst41)",
    "cornell5": "(cornell5)",
    "highschool": "high school",
    "primaryschool": "primary school",
    "emaileucore": "(EmailEUCore)",
    "polblogs": "(PolBlogs)",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_what_the_readme_says_was_proved_is_in_the_rows(name):
    rows = [
        row
        for row in read_rows(ROOT / "docs/results/paying.json")
        if (row["dataset"], row["protocol"], row["method"], row["budget"])
        == (name, "inductive", "trained", "any")
    ]
    assert len(rows) == {"highschool": 40, "primaryschool": 40, "polblogs": 20}.get(name, 5)
    shares = [np.mean([row["certified_accuracy"][k] for row in rows]) for k in ("0", "5", "10", "15")]
    expected = [*shares, np.mean([row["floor"] for row in rows])]
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if f"{GRAPHS[name]} |" in line)
    said = [float(cell) for cell in line.strip("| ").split("|")[1:]]
    assert np.abs(np.array(said) - expected).max() <= 0.0051
