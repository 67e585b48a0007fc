"""Every test that the page on the guarantee cites exists."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "guarantee.md"
CITED = re.compile(r"`((?:tests/)?)([\w/]+\.py)::(\w+)`")


def test_cited_tests_exist():
    cited = CITED.findall(PAGE.read_text())
    assert len(cited) > 30
    for place, file, name in cited:
        path = TESTS / file if place or "/" in file else TESTS / "theory" / file
        assert f"def {name}(" in path.read_text(), f"{file}::{name}"
