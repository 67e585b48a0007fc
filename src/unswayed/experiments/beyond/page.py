"""Tables and plots of "Beyond the paper", written from the rows alone into the page that explains them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.errors import InputError
from unswayed.experiments.beyond import LEVELS, Result
from unswayed.experiments.beyond.rows import AT, KINDS, chosen_rows, rows_of
from unswayed.experiments.marked_pages import fill
from unswayed.experiments.rows import beside_earlier, write_rows
from unswayed.experiments.saved_figures import save
from unswayed.experiments.spread import plus_minus

BESIDE = ("adaptive", "sparse_smoothing_comparison")  # what benchmarks of these names left beside it
GROUP = ("dataset", "per_class", "protocol")
IDENTITY = (*GROUP, "model", "seed")
Row = dict[str, Any]


def publish(results: Sequence[Result], out: Path) -> list[Path]:
    """Write beyond.json, the tables of beyond.md and the plots into `out`; what was written."""
    rows, chosen = rows_of(results), chosen_rows(results)
    if not rows:
        raise InputError("There is no result to show yet: run the experiment first, for at least one split.")
    rows = beside_earlier(out / "beyond.json", rows, IDENTITY)
    chosen = beside_earlier(out / "beyond.json", chosen, IDENTITY, "best_of")
    write_rows(out / "beyond.json", rows, best_of=chosen, at=list(AT))
    return [
        out / "beyond.json",
        write_page(out / "beyond.md", [*rows, *chosen]),
        *draw([*rows, *chosen], out),
    ]


def write_page(page: Path, rows: Sequence[Row]) -> Path:
    """Fill the tables, and those that benchmarks left beside them, into the page."""
    kept = {name: page.parent / "benchmarks" / f"{name}.json" for name in BESIDE}
    beside = {name: json.loads(path.read_text())["table"] for name, path in kept.items() if path.exists()}
    return fill(page, {"whole-graph": tables(rows), **beside})


def level_of(row: Row) -> str:
    """The noise of a row, in words."""
    return row.get("level") or f"{row['p_add']:.2g} / {row['p_delete']:.2g}"


def tables(rows: Sequence[Row]) -> str:
    """Markdown: for each dataset, number of labels and protocol, one table of additions and one of deletions."""
    text = []
    for key in sorted({tuple(row[name] for name in GROUP) for row in rows}):
        mine = [row for row in rows if tuple(row[name] for name in GROUP) == key]
        seeds = sorted({row["seed"] for row in mine})
        floors = plus_minus([next(r["floor"] for r in mine if r["seed"] == s) for s in seeds])
        clean = plus_minus([next(r["clean_accuracy"] for r in mine if r["seed"] == s) for s in seeds])
        text.append(
            f"### {key[0]}, {key[1]} labels a class, {key[2]}, {len(seeds)} seed(s), {mine[0]['test_targets']} nodes, {mine[0]['samples']:,} samples\n\n"
            f"Floor (structure-free, any attack): **{floors}**. The same weights on the clean graph: {clean}.\n"
        )
        for kind in KINDS:
            text.append(table(mine, kind))
    return "\n".join(text)


def table(rows: Sequence[Row], kind: str) -> str:
    """One table: a line a level, a column an attack size."""
    head = f"| p_add / p_delete | {' | '.join(f'{k} {kind}' for k in AT)} |\n|---|{'---|' * len(AT)}\n"
    lines = []
    for level in dict.fromkeys(level_of(row) for row in rows if kind in row):
        values = np.array([row[kind] for row in rows if kind in row and level_of(row) == level])
        lines.append(f"| {level} | {' | '.join(plus_minus(column.tolist()) for column in values.T)} |\n")
    return head + "".join(lines)


def draw(rows: Sequence[Row], out: Path) -> list[Path]:
    """For additions and deletions, the curves of every level with 50 labels a class (20 where there is no more)."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = [name for name in LEVELS if any(row["dataset"] == name for row in rows)]
    for kind in KINDS:
        figure, axes = plt.subplots(
            1, len(names), figsize=(4.2 * len(names), 3.4), squeeze=False, sharey=True
        )
        for axis, name in zip(axes[0], names, strict=True):
            labels = max(row["per_class"] for row in rows if row["dataset"] == name)
            mine = [r for r in rows if r["dataset"] == name and r["per_class"] == labels and kind in r]
            mine = [r for r in mine if r["protocol"] == mine[0]["protocol"]]
            for level in dict.fromkeys(level_of(row) for row in mine):
                values = np.array([row[kind] for row in mine if level_of(row) == level])
                axis.plot(AT, values.mean(axis=0), marker="o", markersize=3, label=level)
            axis.axhline(np.mean([r["floor"] for r in mine]), color="black", linestyle="--", label="floor")
            axis.set(
                title=f"{name}, {labels} labels a class, {mine[0]['protocol']}",
                xlabel={"adds": "edges added", "deletes": "edges deleted"}[kind],
            )
            axis.set_ylim(0, 1)
        axes[0][0].set_ylabel("certified accuracy")
        axes[0][-1].legend(fontsize=7, title="p_add / p_delete", title_fontsize=7)
        figure.tight_layout()
        save(figure, out / f"beyond-{kind}.svg")
        plt.close(figure)
    return [out / f"beyond-{kind}.svg" for kind in KINDS]
