"""The page "Where certificates pay": tables and one figure, written from the rows alone into the page that explains them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.errors import InputError
from unswayed.experiments.marked_pages import fill
from unswayed.experiments.paying import (
    DRAWN,
    FLAGGED,
    FORETOLD,
    GRAPHS,
    LIMIT,
    METHODS,
    PROTOCOLS,
    STRICTER,
    Result,
)
from unswayed.experiments.paying.figure import draw
from unswayed.experiments.paying.rows import (
    AT,
    BUDGETS,
    FAMILIES,
    Group,
    gains,
    grouped,
    rows_of,
    with_new_floors,
)
from unswayed.experiments.rows import beside_earlier, read_rows, write_rows
from unswayed.experiments.spread import plus_minus, standard_error
from unswayed.models.floors.every import ALL_SEEN

Row = dict[str, Any]
TOLD = {
    "label ballots": "proved, untrained label ballots",
    "trained": "proved, trained",
    "hashed": "proved, groups of edges",
    "smoothed": "smoothed, best noise",
}
IDENTITY = ("dataset", "protocol", "method", "seed")
GAINS_AT = (1, 2, 5, 10)
SHORT_AT = (0, 1, 5, 10)
GRAPHS_AT = (0, 1, 2, 5)
FLAGS_AT = (0, 1, 5, 10)
FORETOLD_AT = (1, 5, 10)
FLOORS = ("majority", "labels", "distilled inductive", ALL_SEEN, "distilled transductive")


def publish(results: Sequence[Result], out: Path) -> list[Path]:
    """Write paying.json, the tables of paying.md and the figure into `out`; what was written."""
    earlier = read_rows(out / "paying.json") if (out / "paying.json").exists() else []
    rows = rows_of(results, earlier)
    if not rows:
        raise InputError(
            "There is no result to show yet: run the experiment first, floors included, for at least one split."
        )
    out.mkdir(parents=True, exist_ok=True)
    rows = with_new_floors(beside_earlier(out / "paying.json", rows, IDENTITY), results)
    write_rows(out / "paying.json", rows)
    return [out / "paying.json", fill(out / "paying.md", tables(rows)), *draw(rows, out / "paying")]


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Every table of the page by its name."""
    nodes = [row for row in rows if row["dataset"] not in (*GRAPHS, *FLAGGED)]
    main = [row for row in nodes if row["method"] in METHODS]
    shares = {budget: table(grouped(main, budget), TOLD) for budget in BUDGETS}
    kinds = {name: name for name in FAMILIES if name != "smoothed"}
    noises = [row for row in nodes if row["method"] in kinds]
    return {
        "short": short(main),
        "glance": glance(main),
        "floors": floors(main),
        **shares,
        "noises": table(grouped(noises, "any"), kinds),
        "limit": limit(nodes),
        "foretold": foretold(nodes),
        "drawn": drawn([row for row in nodes if row["method"] == DRAWN]),
        "graphs": graphs([row for row in rows if row["dataset"] in GRAPHS]),
        "flags": flags([row for row in rows if row["dataset"] in FLAGGED]),
        "sources": sources(rows),
    }


def short(rows: Sequence[Row]) -> str:
    """One line a graph, those with the largest gain first: the floor, what is proved of nodes that training never saw, and what is smoothed."""
    groups = grouped([row for row in rows if row["protocol"] == PROTOCOLS[0]], "any")
    proved = {name: mine for (name, _, method, _), mine in groups.items() if method == "trained"}
    smoothed = {name: mine for (name, _, method, _), mine in groups.items() if method == "smoothed"}
    gain = {name: gains(mine)[:, AT.index(5)] for name, mine in proved.items()}
    lines = [_head("graph", "degree > 5", "floor", *(f"proved, K = {k}" for k in SHORT_AT), "gain at 5", *(f"smoothed, K = {k}" for k in SHORT_AT))]  # fmt: skip
    for name in sorted(proved, key=lambda name: -float(gain[name].mean())):
        found = [_means(mine.get(name, [])) for mine in (proved, smoothed)]
        wall = np.mean([row["wall"]["5"] for row in proved[name]])
        height = np.mean([row["certified_accuracy"]["5"] for row in proved[name]]) - gain[name].mean()
        lines.append(
            _line(name, f"{wall:.2f}", f"{height:.2f}", *found[0], with_error(gain[name]), *found[1])
        )
    return "".join(lines)


def _means(rows: Sequence[Row]) -> list[str]:
    """Certified accuracy at the few sizes of the short table; dashes where nothing was run."""
    if not rows:
        return ["–"] * len(SHORT_AT)
    return [f"{np.mean([row['certified_accuracy'][str(k)] for row in rows]):.2f}" for k in SHORT_AT]


def glance(rows: Sequence[Row]) -> str:
    """For each graph and protocol: nodes above the wall, the strongest floor, and the gain of each method with its standard error."""
    lines = [_head("graph", "protocol", "method", "splits", "degree > 1", "> 5", "> 10", "floor", *(f"gain at {k}" for k in GAINS_AT))]  # fmt: skip
    for (dataset, protocol, method, _), mine in grouped(rows, "any").items():
        gain = gains(mine)
        wall = [f"{np.mean([row['wall'][k] for row in mine]):.2f}" for k in ("1", "5", "10")]
        floor = np.mean([row["certified_accuracy"]["5"] for row in mine]) - gain[:, AT.index(5)].mean()
        cells = [with_error(gain[:, AT.index(k)]) for k in GAINS_AT]
        lines.append(_line(dataset, protocol, TOLD[method], len(mine), *wall, f"{floor:.3f}", *cells))
    return "".join(lines)


def with_error(values: Any) -> str:
    """The mean with its sign, and the standard error of the mean behind it where there are several values."""
    mean = f"{np.mean(values):+.3f}"
    return f"{mean} ({standard_error(values):.3f})" if len(values) > 1 else mean


def floors(rows: Sequence[Row]) -> str:
    """Every structure-free model of every graph; the splits of a graph are the same in both protocols."""
    lines = [_head("graph", "splits", *FLOORS)]
    seen: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row["method"] != "smoothed":  # which asks fewer nodes
            seen.setdefault(row["dataset"], {})[row["seed"]] = row["floors"]
    for dataset, mine in seen.items():
        found = [
            plus_minus([one[name] for one in mine.values()])
            if all(name in one for one in mine.values())
            else "–"
            for name in FLOORS
        ]
        lines.append(_line(dataset, len(mine), *found))
    return "".join(lines)


def table(groups: dict[Group, list[Row]], told: dict[str, str]) -> str:
    """Certified accuracy at every size, and base accuracy."""
    lines = [_head("graph", "protocol", "method", "splits", "base", *(f"K = {k}" for k in AT))]
    for (dataset, protocol, method, _), mine in groups.items():
        plain = [row["base_accuracy"] for row in mine]
        base = "–" if None in plain else f"{np.mean(plain):.3f}"
        shares = [f"{np.mean([row['certified_accuracy'][str(k)] for row in mine]):.3f}" for k in AT]
        lines.append(_line(dataset, protocol, told[method], len(mine), base, *shares))
    return "".join(lines)


def limit(rows: Sequence[Row]) -> str:
    """What is proved of test nodes that training never saw, beside the same if every voter's true label were told."""
    lines = [_head("graph", "ballots", "splits", *(f"K = {k}" for k in AT))]
    told = {"label ballots": TOLD["label ballots"], "trained": TOLD["trained"], LIMIT: LIMIT}
    mine = [row for row in rows if row["method"] in told and row["protocol"] == PROTOCOLS[0]]
    reached = {row["dataset"] for row in mine if row["method"] == LIMIT}
    for (dataset, _, method, _), splits in grouped(mine, "any").items():
        if dataset in reached:
            shares = [np.mean([row["certified_accuracy"][str(k)] for row in splits]) for k in AT]
            lines.append(_line(dataset, told[method], len(splits), *(f"{share:.3f}" for share in shares)))
    return "".join(lines)


def foretold(rows: Sequence[Row]) -> str:
    """What labelled nodes alone led to expect, beside what was then proved of test nodes that training never saw."""
    kinds = ("expected", "untrained", "trained")
    heads = (f"at {k}: {kind}" for k in FORETOLD_AT for kind in kinds)
    lines = [_head("graph", "splits", "floor: expected", "found", *heads, "advice")]
    groups = grouped([row for row in rows if row["protocol"] == PROTOCOLS[0]], "any")
    for (dataset, protocol, method, _), mine in groups.items():
        if method != FORETOLD:
            continue
        splits = {row["seed"] for row in mine}
        beside = [groups.get((dataset, protocol, name, "any"), []) for name in ("label ballots", "trained")]
        held = [mine, *([row for row in own if row["seed"] in splits] for own in beside)]
        cells = [_gain(own, k) for k in FORETOLD_AT for own in held]
        lines.append(_line(dataset, len(mine), _height(mine), _height(held[1]), *cells, _advice(mine)))
    return "".join(lines)


def _height(rows: Sequence[Row]) -> str:
    """The floor that gains are held against."""
    proved = [row["certified_accuracy"]["5"] for row in rows]
    return f"{np.mean(proved) - gains(rows)[:, AT.index(5)].mean():.2f}" if rows else "–"


def _gain(rows: Sequence[Row], k: int) -> str:
    return f"{gains(rows)[:, AT.index(k)].mean():+.2f}" if rows else "–"


def _advice(rows: Sequence[Row]) -> str:
    """What to do, and up to which K it is expected to pay; on how many splits, where they differ."""
    ways = Counter(row["way"] for row in rows).most_common()
    reach = float(np.median([row["largest"] for row in rows]))
    told = [f"{way} (K ≤ {reach:.0f})" if way == "prove" and reach else way for way, _ in ways]
    often = [f" on {count}" if len(ways) > 1 else "" for _, count in ways]
    return ", ".join(map("".join, zip(told, often, strict=True)))


def drawn(rows: Sequence[Row]) -> str:
    """Label ballots of labels drawn at random: certified accuracy with its standard error, and the same by stricter rules."""
    lines = [_head("graph", "rule", "splits", *(f"K = {k}" for k in AT))]
    for (dataset, *_), mine in grouped(rows, "any").items():
        found = {"as everywhere": [row["certified_accuracy"] for row in mine]}
        found |= {name: [row["certified_if"][name] for row in mine] for name in STRICTER}
        for told, shares in found.items():
            cells = [with_error([own[str(k)] for own in shares]).lstrip("+") for k in AT]
            lines.append(_line(dataset, told, len(mine), *cells))
    return "".join(lines)


def graphs(rows: Sequence[Row]) -> str:
    """Whole graphs whose pairs vote: certified accuracy beside what counts of nodes say, and the gain."""
    lines = [_head("graphs", "splits", "floor", *(f"K = {k}" for k in GRAPHS_AT), "gain at 1", "at 5")]
    for (dataset, *_), mine in grouped(rows, "any").items():
        gain = gains(mine)
        shares = [plus_minus([row["certified_accuracy"][str(k)] for row in mine]) for k in GRAPHS_AT]
        cells = [with_error(gain[:, AT.index(k)]) for k in (1, 5)]
        lines.append(_line(dataset, len(mine), plus_minus([row["floor"] for row in mine]), *shares, *cells))
    return "".join(lines)


def flags(rows: Sequence[Row]) -> str:
    """Of rare nodes: which share stays flagged, at which precision, beside a model of features alone."""
    recalled = [f"recall, K = {k}" for k in FLAGS_AT]
    lines = [_head("graph", "protocol", "change", "splits", "features alone: precision", "recall", "ballots: precision", *recalled)]  # fmt: skip
    for budget in BUDGETS:
        for (dataset, protocol, *_), mine in grouped(rows, budget).items():
            names = ("floor_precision", "floor_recall", "precision")
            cells = [plus_minus([row[name] for row in mine]) for name in names]
            shares = [plus_minus([row["certified_recall"][str(k)] for row in mine]) for k in FLAGS_AT]
            lines.append(_line(dataset, protocol, budget, len(mine), *cells, *shares))
    return "".join(lines)


def sources(rows: Sequence[Row]) -> str:
    """Which command, commit and machine made these rows, and how long each method took."""
    told = sorted({(row["command"], row["commit"], row["device"]) for row in rows})
    lines = [
        f"- `{command}`, commit {commit}, {device}; rows in `docs/results/paying.json`\n"
        for command, commit, device in told
    ]
    for method in (*METHODS, DRAWN, "pairs", "flags"):
        mine = [row for row in rows if row["method"] == method]
        spent = [
            np.median([row["seconds"] for row in mine if row["dataset"] == name])
            for name in sorted({row["dataset"] for row in mine})
        ]
        if spent:
            range_ = f"{min(spent):.1f} to {max(spent):.1f}"
            lines.append(
                f"- {TOLD.get(method, method)}: {np.median(spent):.1f} s a split, from graph to graph {range_}\n"
            )
    return "".join(lines)


def _head(*names: str) -> str:
    return _line(*names) + "|" + "---|" * len(names) + "\n"


def _line(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"
