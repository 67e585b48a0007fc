"""From stored votes to results rows: pure, cheap, and the same on every machine."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.certificates import certify
from unswayed.experiments.runs import Run
from unswayed.experiments.settings import ALPHA, ALPHAS, SAMPLES, SIZES, Panel
from unswayed.files import write_atomically

Row = dict[str, Any]


def rows_of(panel: Panel, run: Run, samples: int, betas: Sequence[float]) -> Iterator[Row]:
    """The rows of one panel for one seed at these noise levels: one for each value of what it varies."""
    facts = run.facts() if betas else {}
    for beta in betas:
        votes = run.votes(beta)
        for alpha, drawn in _settings(panel, samples):
            certs = certify(votes.first(drawn), alpha=alpha)
            shares = certs.accuracy(np.array(facts["truth"]), at=SIZES)
            yield {
                **{name: facts[name] for name in ("dataset", "task", "model", "recipe", "protocol")},
                "threat": "row" if facts["task"] == "node" else "all-pairs",
                "beta": beta,
                "alpha": alpha,
                "samples": drawn,
                "seed": facts["seed"],
                "bounds": certs.bounds,
                "test_targets": len(certs),
                "clean_accuracy": facts["clean_accuracy"],
                "floor": facts["floor"],
                "floor_name": facts["floor_name"],
                "accuracy_edgeless": facts["accuracy_edgeless"],
                "certified_accuracy": {str(k): float(v) for k, v in zip(SIZES, shares, strict=True)},
                "wall": {str(k): _wall(facts, k) for k in (0, 1, 5, 10, 15)},
                "seconds": facts["seconds"]["train"] + facts["seconds"].get(f"poll-{beta}", 0.0),
                "seconds_training": facts["seconds"]["train"],
                "device": facts["device"],
                "command": facts["command"],
                "commit": facts["commit"],
            }


def _settings(panel: Panel, samples: int) -> list[tuple[float, int]]:
    if panel.varied == "alpha":
        return [(alpha, samples) for alpha in ALPHAS]
    if panel.varied == "samples":
        return [(ALPHA, drawn) for drawn in SAMPLES if drawn <= samples]
    return [(ALPHA, samples)]


def _wall(facts: Row, size: int) -> float:
    """The share of targets with more than `size` edges: the others' label cannot depend on a certified row at all."""
    return float(np.mean(np.array(facts["degree"]) > size))


def write_rows(path: Path, rows: list[Row], **beside: Any) -> None:
    """Write `{"rows": [...]}`, and what else belongs to it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps({"rows": rows, **beside}, indent=1) + "\n").encode())


def beside_earlier(path: Path, rows: Sequence[Row], identity: Sequence[str], kind: str = "rows") -> list[Row]:
    """These rows, after those of the file that none of them replaces: work of several days and machines is one table.

    Two rows are of the same thing where they agree in everything that `identity` names. Each tells its own commit and device.
    """

    def what(row: Row) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in identity)

    earlier = json.loads(path.read_text()).get(kind, []) if path.exists() else []
    anew = {what(row) for row in rows}
    return sorted(
        [row for row in earlier if what(row) not in anew] + list(rows), key=lambda row: repr(what(row))
    )


def read_rows(path: Path) -> list[Row]:
    """The rows of one results file."""
    rows: list[Row] = json.loads(path.read_text())["rows"]
    return rows
