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
