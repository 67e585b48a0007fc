"""The page's tables and its figure are those of its rows."""

import json
from pathlib import Path

from unswayed.experiments.paying import (
    page,
    results,
)
from unswayed.experiments.paying.figure import draw

DOCS = Path(__file__).parents[3] / "docs" / "results"


def test_page_and_figure_are_written(kept, tmp_path):
    written = page.publish(results(kept), tmp_path / "out")
    assert [path.name for path in written] == ["paying.json", "paying.md", "paying.png", "paying.svg"]
    text = (tmp_path / "out" / "paying.md").read_text()
    assert "| highschool | inductive | proved, untrained label ballots | 2 |" in text


def test_the_published_tables_are_those_of_the_published_rows():
    published = (DOCS / "paying.md").read_text()
    for name, text in page.tables(json.loads((DOCS / "paying.json").read_text())["rows"]).items():
        assert text in published, name


def test_a_figure_of_the_same_rows_is_the_same_file(tmp_path):
    rows = json.loads((DOCS / "paying.json").read_text())["rows"]
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        draw(rows, tmp_path / name / "paying")
    for kind in ("svg", "png"):
        once, again = ((tmp_path / name / f"paying.{kind}").read_bytes() for name in ("once", "again"))
        assert once == again
