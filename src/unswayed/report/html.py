"""One self-contained HTML file: opens from disk, asks nothing of the network, escapes every word it was given."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from html import escape
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed._version import __version__
from unswayed.certificates import Certified
from unswayed.certificates.presenting import plural
from unswayed.files import check_ours, write_atomically
from unswayed.report import charts
from unswayed.report.advice import advice
from unswayed.report.aiming import aim, attack
from unswayed.report.alone import median_of, walls, withstands_all
from unswayed.report.neighbourhood import pictures, with_attacks
from unswayed.report.summary import Summary, summarise
from unswayed.report.words import confidence, headline, reading, staying, verdict
from unswayed.rounding import at_least, near, nice_sizes, percent
from unswayed.spelling import check_keywords


def write_report(path: str | os.PathLike[str], certs: Certified, *, data: Any = None, **about: Any) -> Path:
    """Write the report of `certs` to one HTML file that needs nothing else, and return its path.

    Keywords, all optional: `data` (the graph, or graphs: adds pictures and degrees), `truth` (true labels),
    `floor` (accuracy of a structure-free model, or an object with `accuracy` and `name`), `attacked` (smallest
    successful attack found per target, −1 for none), `command` (how to reproduce it), `title`, `names` and
    `class_names` (of targets and labels), `base` (accuracy of the model itself, not smoothed), `settings` (further lines for the table of settings), `positive` (the class that should
    stay flagged: adds certified recall and precision).
    """
    where = Path(path)
    check_ours(where)
    check_keywords("write_report", about, [*signature(summarise).parameters][1:])
    if data is not None and getattr(certs, "unit", "") == "graph":  # no certificate? refused below
        from unswayed.sampling.inputs import unpacked  # late: a report without pictures needs no torch

        data = unpacked(data)
    write_atomically(where, render(summarise(certs, data=data, **about), data).encode())
    return where


def render(summary: Summary, data: Any = None) -> str:
    """The whole page as text; equal inputs give equal pages."""
    script = _template("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    heat = charts.heat_map(summary)
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        "title": escape(summary.title),
        "style": _template("report.css"),
        "headline": escape(headline(summary)),
        "verdict": escape(verdict(summary)),
        "advice": escape(advice(summary)),
        "confidence": escape(confidence(summary)),
        "tiles": _tiles(summary),
        "curve": charts.curve(summary),
        "curve_title": "Certified accuracy" if summary.truth is not None else "Share certified",
        "curve_key": _key(summary),
        "histogram": charts.histogram(summary),
        "histogram_key": _histogram_key(summary),
        "numbers": _numbers(summary),
        "heat": _heat_section(heat),
        "flags": _flags_section(summary),
        "unit": summary.unit,
        "reading": _definitions(reading(summary)),
        "settings": _definitions(settings(summary).items()),
        "command": _command(summary),
        "version": escape(__version__),
        "facts": _json(facts(summary, data)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _template("report.html"))


def _template(name: str) -> str:
    return resources.files("unswayed.report").joinpath("templates", name).read_text("utf-8")


def _json(value: Any) -> str:
    """JSON that no HTML parser can mistake for markup, wherever it is embedded."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def facts(summary: Summary, data: Any) -> dict[str, Any]:
    """What the page's script works on: one list per column of the table, the weakest target first."""
    certs, order = summary.certs, summary.order
    columns: dict[str, Any] = {
        "id": certs.targets[order].tolist(),
        "name": list(certs.about.take(order).target_names) or None,
        "label": certs.label[order].tolist(),
        "truth": None if summary.truth is None else summary.truth[order].tolist(),
        "size": certs.size[order].tolist(),
        **{change: sizes[order].tolist() for change, sizes in summary.sides.items()},
        "all": {change: withstands_all(summary, change)[order].tolist() for change in summary.sides},
        "degree": None if summary.degree is None else summary.degree[order].tolist(),
        "wall": walls(summary)[order].tolist(),
        "attacked": None if summary.attacked is None else summary.attacked[order].tolist(),
        "entries": certs.about.entries[order].tolist(),
        "tally": [certs.tally(int(place)) for place in order],
    }
    return {
        "unit": summary.unit,
        "attack": attack(summary, "{k}"),
        "attackOne": attack(summary, 1),
        "assurance": certs.assurance(),
        "outcome": certs.outcome("{label}"),
        "atOnce": certs.at_once(),
        "degreeName": "degree" if summary.unit == "node" else "edges",
        "classes": [summary.label_name(place) for place in range(certs.about.classes)],
        "columns": columns,
        "evidence": _evidence(certs, order),
        "picture": _named(with_attacks(_pictures(data, summary), data, certs, order), certs),
    }


def _evidence(certs: Certified, order: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """The family's own columns; shown digits are rounded against the certificate, like everything else."""
    shown = [column for column in certs.evidence() if column.title and column.values.ndim == 1]
    return [
        {
            "name": column.name,
            "title": column.title,
            "names": list(column.names) or None,
            "digits": 4 if np.issubdtype(column.values.dtype, np.floating) else 0,
            "values": column.rounded(4)[order].tolist(),
        }
        for column in shown
    ]


def _pictures(data: Any, summary: Summary) -> dict[str, Any] | None:
    """The surroundings of the targets, the weakest first."""
    if isinstance(data, list | tuple):
        return _listed(data, summary)
    return pictures(data, summary.certs.targets[summary.order])


def _named(picture: dict[str, Any] | None, certs: Certified) -> dict[str, Any] | None:
    """The pictures of nodes with the nodes' names, where they have some."""
    if picture is None or picture["kind"] != "nodes":
        return picture
    names = {node: certs.about.node_name(int(node)) for node in picture["label"]}
    own = {str(target): certs.about.target_name(i) for i, target in enumerate(certs.targets.tolist())}
    told = {node: name for node, name in (names | own).items() if name != node}
    return {**picture, "names": told} if told else picture


def _listed(graphs: Any, summary: Summary) -> dict[str, Any] | None:
    """Graphs come in the order of the targets; the table is sorted by weakness."""
    order, targets = summary.order, summary.certs.targets
    if len(graphs) == len(targets):
        return pictures([graphs[int(place)] for place in order], targets[order])
    return pictures(list(graphs), targets[order])


def settings(summary: Summary) -> dict[str, str]:
    """Everything that decides the result, by name."""
    certs = summary.certs
    return {
        "Targets": f"{plural(len(certs), summary.unit)}, {certs.about.classes} classes",
        **certs.settings(),
        **summary.settings,
        "Made by": f"unswayed {__version__}",
    }


def _definitions(items: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in items)


def _tiles(summary: Summary) -> str:
    total, silent = len(summary.certs), int(summary.certs.abstained.sum())
    right = "right and proven, no attack" if summary.truth is not None else "have a proven label"
    tiles = [
        (percent(float(summary.share(0))), right),
        (
            str(summary.median) if summary.median >= 0 else "–",
            f"median K: half of the {summary.unit}s reach it",
        ),
        *_alone(summary),
        (f"{silent:,} of {total:,}", "abstain: nothing is promised"),
    ]
    if summary.ceiling is not None:
        tiles.append((str(summary.ceiling), "ceiling: the largest K these settings can prove"))
    if summary.base is not None:
        tiles.insert(1, (percent(summary.base), "the model itself, not smoothed, not attacked"))
    if summary.floor is not None:
        tiles.insert(1, (percent(summary.floor), f"floor: {summary.floor_name}, ignores the structure"))
    return "".join(f"<li><b>{escape(value)}</b><span>{escape(text)}</span></li>" for value, text in tiles)


def _alone(summary: Summary) -> list[tuple[str, str]]:
    if not summary.sides:
        return []
    middles = (median_of(summary, change) for change in ("adds", "deletes"))
    told = " and ".join("all" if size is None else str(size) if size >= 0 else "–" for size in middles)
    return [(told, "median K of additions alone, and of deletions alone")]


def _key(summary: Summary) -> str:
    items = [("line-curve", "certified" if summary.truth is None else "right and certified")]
    if summary.doubtful:
        items.append(("swatch-band", "at least this, with 95% confidence"))
    if summary.floor is not None and summary.truth is not None:
        items.append(("line-floor", f"floor: {summary.floor_name}"))
    if summary.attacked is not None:
        items.append(("line-attack", "not broken by the attacks found"))
    return _legend(items)


def _histogram_key(summary: Summary) -> str:
    items = [("swatch-bar", "right label" if summary.truth is not None else "proven")]
    if bool((~summary.right & ~summary.certs.abstained).any()):
        known = summary.truth is None or bool((summary.truth >= 0).all())
        items.append(("swatch-wrong", "wrong label" if known else "wrong label, or of unknown truth"))
    if summary.certs.abstained.any():
        items.append(("swatch-none", "abstains"))
    return _legend(items)


def _legend(items: list[tuple[str, str]]) -> str:
    return "".join(f'<li><i class="{kind}"></i>{escape(text)}</li>' for kind, text in items)


def _numbers(summary: Summary) -> str:
    facts = summary.curve
    rows = zip(facts.sizes.tolist(), facts.share.tolist(), facts.low.tolist(), strict=True)
    return "".join(
        f"<tr><td>{size}</td><td>{near(share, 3)}</td><td>{at_least(low, 3)}</td></tr>"
        for size, share, low in rows
    )


def _heat_section(chart: str) -> str:
    if not chart:
        return ""
    return (
        '<figure class="card"><h2>Additions against deletions</h2><p class="hint">The share (in %) of targets that are '
        "proven against so many added and so many deleted edges at once: the stronger the colour, the larger it is"
        f".</p>{chart}</figure>"
    )


def _flags_section(summary: Summary) -> str:
    """What stays flagged, as a sentence and a table; "" where no class was named."""
    if summary.positive is None:
        return ""
    sizes = np.union1d(nice_sizes(summary.top), aim(summary)[1])  # the sentence speaks of the latter
    recall, right = summary.recall(sizes).tolist(), summary.precision_shown(sizes, 3)
    shown = ["–"] * len(sizes) if right is None else right
    rows = "".join(
        f"<tr><td>{size}</td><td>{near(share, 3)}</td><td>{least}</td></tr>"
        for size, share, least in zip(sizes.tolist(), recall, shown, strict=True)
    )
    return (
        f'<section class="card" aria-labelledby="flags"><h2 id="flags">Stays flagged</h2><p>{escape(staying(summary))}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="what stays flagged at every size"><table class="plain"><thead><tr>'
        '<th scope="col">changes k</th><th scope="col">stays flagged (recall)</th><th scope="col">precision at least</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _command(summary: Summary) -> str:
    if not summary.command:
        return "<p>This report was made from Python; the provenance above says what was asked.</p>"
    # none breaks at its hyphens
    words = " ".join(f"<span>{word}</span>" for word in escape(summary.command).split(" "))
    return f'<pre tabindex="0"><code id="command">{words}</code></pre><button type="button" id="copy">Copy</button>'
