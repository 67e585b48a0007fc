"""What a package index shows: addresses that exist, and no link that only a clone can follow."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def metadata():
    """As the build backend makes it, plugins included; nothing is fetched."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    return ProjectMetadata(str(ROOT), PluginManager()).core


@pytest.fixture(scope="module")
def home(metadata):
    return metadata.urls["Documentation"]


def test_the_readme_has_absolute_links_alone(metadata):
    assert metadata.readme_content_type == "text/markdown"
    links = LINK.findall(metadata.readme)
    assert len(links) > 15
    assert all(link.startswith("https://") for link in links)
    assert metadata.readme.startswith("# unswayed")


def test_every_page_and_picture_that_it_names_is_built(metadata, home):
    named = [link.removeprefix(home) for link in LINK.findall(metadata.readme) if link.startswith(home)]
    pages = [name.partition("#")[0] for name in named if not name.startswith("_images/")]
    pictures = [name.removeprefix("_images/") for name in named if name.startswith("_images/")]
    assert len(pages) > 15
    assert pictures
    for page in pages:
        assert (ROOT / "docs" / page).with_suffix(".md").exists(), page
    text = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
    for picture in pictures:  # the site keeps a picture there if a page shows it
        assert re.search(rf"!\[[^\]]*\]\((?:[^)]*/)?{re.escape(picture)}\)", text), picture


def test_no_word_of_the_readme_is_lost(metadata):
    plain = re.compile(r"\[([^\]]+)\]\([^)]*\)")
    assert plain.sub(r"\1", metadata.readme) == plain.sub(r"\1", (ROOT / "README.md").read_text())


def test_all_addresses_of_the_documentation_are_one(metadata, home):
    hosts = re.findall(r"https://[\w.-]+", (ROOT / "pyproject.toml").read_text())
    assert set(hosts) == {home.partition("/en/")[0]}
    assert all(url.startswith(home) for url in metadata.urls.values())
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    assert told == ["version", "readme"]
