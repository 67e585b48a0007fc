"""The page "Added links and fake nodes": rows from kept results, what was polled certified here, and their tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates, certify
from unswayed.errors import InputError
from unswayed.experiments.hiding import METHODS, SHARED, Result
from unswayed.experiments.hiding.shared import shared_rows, shared_table
from unswayed.experiments.marked_pages import fill
from unswayed.experiments.rows import beside_earlier, write_rows
from unswayed.experiments.spread import plus_minus
from unswayed.theory.noise import noise_from_dict
from unswayed.votes import Votes

AT = (0, 1, 2, 5, 10)
ALPHA = 0.001
LINKED = (None, 5, 1)  # links that a fake node may have; None: any number
TOLD = {
    "keep labels": "labels smoothed, a few links kept (`Keep`)",
    "delete labels": "labels smoothed, links deleted (`AddDelete(p_add=0)`)",
    "hash labels": "labels proved, groups of edges (`Hashed`)",
    "label ballots": "labels proved, ballots",
    "hide labels": "labels smoothed, nodes and edges hidden (`Hide`)",
    "label votes": "labels proved, ballots of features",
    "keep": "smoothed, a few links kept (`Keep`)",
    "delete": "smoothed, links deleted (`AddDelete(p_add=0)`)",
    "hide": "smoothed, nodes and edges hidden (`Hide`)",
    "hashed": "proved, groups of edges (`Hashed`)",
    "hashed by nodes": "proved, groups of nodes (`Hashed`)",
    "ballots": "proved, ballots",
    "snapshot ballots": "proved, what was once said of neighbours",
    "snapshot votes": "proved, what was once said of neighbours",
}
IDENTITY = ("dataset", "protocol", "method", "links", "seed")
Row = dict[str, Any]


def publish(results: Sequence[Result], out: Path) -> list[Path]:
    """Write hiding.json and the tables of hiding.md into `out`; what was written."""
    rows = list(rows_of(results))
    if not rows:
        raise InputError(
            "There is no result to show yet: run the experiment first, floors included, for at least one split."
        )
    out.mkdir(parents=True, exist_ok=True)
    rows = beside_one_floor(beside_earlier(out / "hiding.json", rows, IDENTITY))
    write_rows(out / "hiding.json", rows)
    return [out / "hiding.json", fill(out / "hiding.md", {"tables": tables(rows)})]


def rows_of(results: Sequence[Result]) -> Iterator[Row]:
    """A row for each graph, split, method and, of what was hidden, number of links; a split without floors is left out."""
    floors = {(r.case.dataset, r.case.seed): r for r in results if r.case.method == "label floor"}
    floors |= {(r.case.dataset, r.case.seed): r for r in results if r.case.method == "floors"}
    for result in results:
        beside = floors.get((result.case.dataset, result.case.seed))
        if "floor" in result.case.method or beside is None:
            continue
        if result.case.method == SHARED:
            yield from (
                {**_described(result, beside), "threat": "all-pairs", "budget": "deletes", **own}
                for own in shared_rows(result)
            )
            continue
        fakes = METHODS[result.case.dataset] != METHODS["photo"]
        for links in LINKED if result.case.method.startswith("hide") else (None,):
            label, size, how = sizes_of(result, links)
            yield {**_described(result, beside), **how, **_proven(result, label, size)} | (
                {"links": links} if fakes else {}
            )


def beside_one_floor(rows: Sequence[Row]) -> list[Row]:
    """Every row beside the strongest floors that were ever measured on its split: some were when only a few floors had been trained."""
    best: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        own = best.setdefault((row["dataset"], row["seed"]), {})
        own.update({name: max(height, own.get(name, 0.0)) for name, height in row["floors"].items()})
    return [{**row, **_height(best[row["dataset"], row["seed"]], row["protocol"])} for row in rows]


def _height(floors: dict[str, float], protocol: str) -> Row:
    """The floors of a row, and the strongest that its protocol allows."""
    fair = [name for name in floors if protocol in name or "distilled" not in name]
    return {"floor": max(floors[name] for name in fair), "floors": dict(floors)}


def _proven(result: Result, label: npt.NDArray[Any], size: npt.NDArray[Any]) -> Row:
    right = label == result.arrays["truth"]
    return {
        "certified_accuracy": {str(k): float(np.mean(right & (size >= k))) for k in AT},
        "certified_share": {str(k): float(np.mean(size >= k)) for k in AT},
    }


def _described(result: Result, beside: Result) -> Row:
    truth, facts = beside.arrays["truth"], result.facts
    heights = {name: float(np.mean(own == truth)) for name, own in beside.arrays.items() if name != "truth"}
    threat = "inject" if METHODS[result.case.dataset] != METHODS["photo"] else "row"
    return {
        "dataset": result.case.dataset,
        "task": "node",
        "recipe": result.case.method,
        "method": result.case.method,
        "protocol": result.case.protocol,
        "threat": "all-pairs" if result.case.method in ("hashed", "hash labels") else threat,
        "budget": "adds",
        "seed": result.case.seed,
        "test_targets": len(truth),
        "clean_accuracy": facts["base_accuracy"],
        **_height(heights, result.case.protocol),
        "accuracy_edgeless": facts.get("accuracy_edgeless"),
        **{name: facts[name] for name in ("seconds", "device", "command", "commit")},
    }


def sizes_of(result: Result, links: int | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Row]:
    """(label, additions withstood, how) of every test target."""
    if "label" in result.arrays:
        told = {"model": result.facts["model"], "groups": result.facts.get("groups")}
        none = {"alpha": None, "samples": None, "bounds": None, "beta": None}
        return result.arrays["label"], result.arrays["adds"], {**told, **none}
    truth = result.arrays["val-truth"]
    levels = range(len(result.facts["tried"]))

    def score(spot: int) -> float:
        return float(certified(result, "val", spot, links).accuracy(truth, at=AT[1:], change="adds").mean())

    spot = max(levels, key=score)
    certs, noise = certified(result, "test", spot, links), result.facts["tried"][spot]["noise"]
    how = {
        "model": result.facts["tried"][spot]["model"],
        "alpha": ALPHA,
        "samples": result.facts["samples"],
        "bounds": "strict",
    }
    return certs.label, certs.sizes("adds"), {**how, **{k: v for k, v in noise.items() if k != "kind"}}


def certified(result: Result, part: str, spot: int, links: int | None) -> Certificates:
    """The certificates of the validation or the test nodes under one noise."""
    noise = noise_from_dict(result.facts["tried"][spot]["noise"])
    if result.case.method.startswith("hide"):
        noise = replace(noise, links=links)  # type: ignore[type-var]
    votes = Votes.from_counts(
        result.arrays[f"{part}-{spot}"].astype(np.int64),
        noise,
        result.facts["entries"],
        samples=result.facts["samples"],
        ones=result.arrays[f"{part}-ones"],
    )
    return certify(votes, alpha=ALPHA)


def tables(rows: Sequence[Row]) -> str:
    """Markdown: a table a graph."""
    parts = []
    for name in METHODS:
        mine = [row for row in rows if row["dataset"] == name and row["method"] != SHARED]
        if mine:
            splits = len({row["seed"] for row in mine})
            what = "20 labels a class, links added" if name == "photo" else "fake nodes"
            parts.append(
                f"## {name.capitalize()}: {what}, {splits} split{'s'[: splits > 1]}\n\n{table(mine)}\n"
            )
    if one := [row for row in rows if row["method"] == SHARED]:
        splits = len({row["seed"] for row in one})
        parts.append(
            f"## Cora: one attacker, many nodes, {splits} split{'s'[: splits > 1]}\n\n{shared_table(one)}\n"
        )
    return "\n".join(parts)


def table(rows: Sequence[Row]) -> str:
    """A line a method, a column a number of additions, floors last."""
    fakes = "links" in rows[0]
    head = " | ".join(f"{k}" for k in AT)
    lines = [f"| | {head} |", f"|---|{'---|' * len(AT)}"]
    for method in METHODS[rows[0]["dataset"]]:
        for links in LINKED:
            mine = [r for r in rows if r["method"] == method and r.get("links") == links]
            if mine:
                told = TOLD[method] + (f", {_links(links)}" if fakes else "")
                cells = [plus_minus([r["certified_accuracy"][str(k)] for r in mine]) for k in AT]
                lines.append(f"| {told} | {' | '.join(cells)} |")
    seeds = sorted({row["seed"] for row in rows})
    for name in dict.fromkeys(name for row in rows for name in row["floors"]):
        own = {row["seed"]: row["floors"][name] for row in rows if name in row["floors"]}
        lines.append(
            f"| floor, {name} | {plus_minus([own[seed] for seed in seeds if seed in own])} | | | | |"
        )
    return "\n".join(lines) + "\n"


def _links(links: int | None) -> str:
    return "any number of links each" if links is None else f"up to {links} link{'s'[: links > 1]} each"
