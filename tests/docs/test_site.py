"""The documentation in a real Chromium: light, dark and on a phone, an accessibility checker finds nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=where, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


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
