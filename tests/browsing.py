"""What tests in a browser share."""

from importlib import resources


def complaints(page):
    """What the accessibility checker axe finds: (rule, where) of every violation, contrast below 4.5 among them."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(rule["id"], rule["nodes"][0]["target"]) for rule in found["violations"]]
