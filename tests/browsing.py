"""What tests in a browser share."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources

import pytest


@contextmanager
def chromium(*options: str) -> Iterator[object]:
    """This machine's Chromium, without a window; where there is none, tests are passed over, but not in CI."""
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=list(options))
        yield browser
        browser.close()


def complaints(page):
    """What the accessibility checker axe finds: (rule, where) of every violation, contrast below 4.5 among them."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]]
