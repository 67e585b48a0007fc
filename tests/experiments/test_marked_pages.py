"""Prose stays as it was written; figures between the marks are those of the rows."""

import shutil
from pathlib import Path

from unswayed.experiments.marked_pages import fill
from unswayed.experiments.page import write_page

DOCS = Path(__file__).parents[2] / "docs" / "results"


def test_only_what_lies_between_marks_is_changed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before <!-- a -->old<!-- end a --> after <!-- c -->\n")
    fill(page, {"a": "new", "b": "nowhere to go"})
    assert page.read_text() == "before <!-- a -->\n\nnew\n<!-- end a --> after <!-- c -->\n"


def test_a_page_that_is_not_there_is_its_marks(tmp_path):
    page = fill(tmp_path / "page.md", {"a": "one", "b": "two"})
    assert page.read_text() == "<!-- a -->\n\none\n<!-- end a -->\n<!-- b -->\n\ntwo\n<!-- end b -->\n"


def test_the_published_page_shows_the_published_rows(tmp_path):
    for path in (*DOCS.glob("figure*.json"), DOCS / "index.md"):
        shutil.copy(path, tmp_path)
    assert write_page(tmp_path).read_text() == (DOCS / "index.md").read_text()
