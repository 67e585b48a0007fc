"""The documentation in a real Chromium: light, dark and on a phone, an accessibility checker finds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import browsing
from tests.browsing import complaints

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    "index",
    "quickstart",
    "guarantee",
    "howto/own-model",
    "howto/command-line",
    "howto/inputs",
    "results/index",
]
LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(DOCS), str(out)], check=True, timeout=240
    )
    return out


@pytest.fixture(scope="module")
def chromium():
    with browsing.chromium("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage") as browser:
        yield browser


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_are_accessible_and_fit(site, chromium, look):
    context = chromium.new_context(bypass_csp=True, offline=True, **LOOKS[look])
    found = {}
    for name in PAGES:
        page = context.new_page()
        page.goto((site / f"{name}.html").as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found[name] = complaints(page) + ([("wider than the window", wide)] if wide > 0 else [])
        page.close()
    context.close()
    assert {name: told for name, told in found.items() if told} == {}


@pytest.mark.parametrize("name", ["index", "howto/inputs"])
def test_tab_reaches_everything_and_shows_where_it_is(site, chromium, name):
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    met, hidden, expected = browsing.walked(page)
    context.close()
    assert hidden == []
    assert met == expected > 20


def test_paper_has_the_text_and_nothing_to_click(site, chromium):
    context = chromium.new_context(offline=True, bypass_csp=True, viewport={"width": 794, "height": 1123})
    page = context.new_page()
    page.goto((site / "howto/inputs.html").as_uri())
    page.emulate_media(media="print", color_scheme="light")
    for part in (".sidebar-drawer", ".toc-drawer", ".related-pages", ".content-icon-container"):
        assert not page.locator(part).first.is_visible()
    assert page.locator("h1").is_visible()
    cut = "[...document.querySelectorAll('.highlight pre')].filter(node => node.scrollWidth > node.clientWidth).length"
    assert page.evaluate(cut) == 0
    assert complaints(page) == []
    context.close()
