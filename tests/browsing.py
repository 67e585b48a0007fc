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


FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"
# Everything that the Tab key should reach; what a list of arrows reaches has tabindex -1.
EXPECTED = f"""() => [...document.querySelectorAll({FOCUSABLE!r})].filter(node =>
    node.tabIndex >= 0 && !node.disabled && node.checkVisibility({{visibilityProperty: true}})).length"""
REACHED = """() => {
    const node = document.activeElement;
    if (node === document.body) return null;
    window.walked = window.walked || new Set();
    const fresh = !window.walked.has(node);
    window.walked.add(node);
    const style = getComputedStyle(node);
    const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
    return [fresh, shown, node.outerHTML.slice(0, 80)];
}"""


def walked(page):
    """What the Tab key meets on its way round the page: (how many, those that do not show that they have the focus, how many it should)."""
    expected, met, hidden = page.evaluate(EXPECTED), 0, []
    for _ in range(expected + 20):  # a trap would go round and round
        page.keyboard.press("Tab")
        found = page.evaluate(REACHED)
        if found is None or not found[0]:
            break
        met += 1
        hidden += [] if found[1] else [found[2]]
    return met, hidden, expected


def complaints(page):
    """What the accessibility checker axe finds: (rule, where) of every violation, contrast below 4.5 among them."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]]
