"""From the counts of whole-graph runs to rows, tables and plots; nothing here is random."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates, best_of, certify
from unswayed.datasets import load, split
from unswayed.experiments.beyond import COMMAND, LEVELS
from unswayed.experiments.spread import plus_minus
from unswayed.theory.noise import noise_from_dict
from unswayed.theory.size import is_certified
from unswayed.votes import Votes

AT = (0, 5, 10, 15, 20)
BESIDE = ("adaptive", "sparse_smoothing_comparison")  # what benchmarks of these names left beside it
GROUP = ("dataset", "per_class", "protocol")
FloatArray = npt.NDArray[np.float64]
Row = dict[str, Any]


def report_all(folder: Path, out: Path, alpha: float) -> None:
    """Write beyond.json, beyond.md and the plots into `out` from what `poll` left in `folder`."""
    out.mkdir(parents=True, exist_ok=True)
    runs = json.loads((folder / "runs.json").read_text())["runs"]
    with np.load(folder / "votes.npz") as kept:
        counts = {run["key"]: kept[run["key"]].astype(np.int64) for run in runs}
    rows = [row for group in grouped(runs) for row in rows_of(group, counts, alpha)]
    levels = [row for row in rows if "level" not in row]
    about = {"rows": levels, "best_of": [row for row in rows if "level" in row], "at": list(AT)}
    (out / "beyond.json").write_text(json.dumps(about, indent=1) + "\n")
    text = tables(rows)
    print(text)
    fill(out / "beyond.md", "whole-graph", text)
    for name in BESIDE:
        if (kept := out / "benchmarks" / f"{name}.json").exists():
            fill(out / "beyond.md", name, json.loads(kept.read_text())["table"])
    plots(rows, out)


def fill(page: Path, name: str, text: str) -> None:
    """Put the text between the marks `<!-- name -->` and `<!-- end name -->` of a page, if it has them."""
    begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    whole = page.read_text() if page.exists() else f"{begin}\n{end}\n"
    if begin in whole and end in whole:
        before, rest = whole.split(begin)
        page.write_text(f"{before}{begin}\n\n{text}\n{end}{rest.split(end)[1]}")


def grouped(runs: Sequence[Row]) -> Iterator[list[Row]]:
    """The runs of one training, level by level."""
    keys = sorted({tuple(run[name] for name in (*GROUP, "seed")) for run in runs})
    for key in keys:
        yield [run for run in runs if tuple(run[name] for name in (*GROUP, "seed")) == key]


def rows_of(group: list[Row], counts: dict[str, npt.NDArray[np.int64]], alpha: float) -> Iterator[Row]:
    """One row a level, then the best level per node, chosen for additions and for deletions."""
    first = group[0]
    dataset = load(first["dataset"])
    parts = split(dataset, first["seed"], test="rest", per_class=first["per_class"])
    truth = dataset.labels[parts.test].numpy()
    shared = {
        "task": "node",
        "recipe": "distill",
        "threat": "all-pairs",
        "alpha": alpha,
        "bounds": "strict",
        "test_targets": len(truth),
        "command": f"{COMMAND} poll",
        "commit": commit(),
    }
    votes = [votes_of(run, counts[run["key"]], parts.test.numpy()) for run in group]
    for run, polled in zip(group, votes, strict=True):
        certs = certify(polled, alpha=alpha)
        known = {"p_add": run["noise"]["p_add"], "p_delete": run["noise"]["p_delete"]}
        sizes = dict(zip(map(str, AT), certs.accuracy(truth, AT).tolist(), strict=True))
        against = {"adds": curve(certs, truth, adds=True), "deletes": curve(certs, truth, adds=False)}
        yield {**described(run), **shared, **known, "certified_accuracy": sizes, **against}
    levels = [certify(polled, alpha=alpha / len(votes)) for polled in votes]
    for adds in (True, False):
        name = "adds" if adds else "deletes"
        chosen = best_of(levels, by=reach(adds))
        share = [
            float(
                np.mean(
                    np.where(chosen.label == truth, reached(chosen.certificates, chosen.choice, adds), -1)
                    >= k
                )
            )
            for k in AT
        ]
        yield {**described(first), **shared, "level": f"best of {len(levels)} for {name}", name: share}


def described(run: Row) -> Row:
    """What the run says of itself."""
    names = (
        "dataset",
        "per_class",
        "seed",
        "protocol",
        "model",
        "samples",
        "clean_accuracy",
        "accuracy_edgeless",
    )
    return {name: run[name] for name in (*names, "floor", "floors", "seconds", "train_seconds", "device")}


def votes_of(run: Row, counts: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> Votes:
    """The votes as they were polled."""
    return Votes.from_counts(
        counts,
        noise_from_dict(run["noise"]),
        run["entries"],
        samples=run["samples"],
        ones=run["ones"],
        targets=targets,
        provenance=run["provenance"],
    )


def reach(adds: bool) -> Callable[[Certificates], FloatArray]:
    """Scores a level by the largest number of additions (or deletions) it rules out, up to the last one reported."""

    def score(certs: Certificates) -> FloatArray:
        best = np.where(certs.abstained, -1.0, 0.0)
        for k in range(1, AT[-1] + 1):
            attack = {"adds": k} if adds else {"deletes": k}
            best[is_certified(certs.p_top, certs.p_rest, certs.noise, **attack) & ~certs.abstained] = k
        return best + certs.p_top / 2  # a surer level where the reach is equal

    return score


def reached(levels: Sequence[Certificates], choice: npt.NDArray[np.int64], adds: bool) -> FloatArray:
    """The reach of each node at its own level."""
    every = np.floor(np.stack([reach(adds)(certs) for certs in levels]))
    picked: FloatArray = every[choice, np.arange(len(choice))]
    return picked


def curve(certs: Certificates, truth: npt.NDArray[np.int64], *, adds: bool) -> list[float]:
    """Certified accuracy against 0, 5, 10, 15, 20 additions (or deletions) alone."""
    good = np.where(certs.label == truth, np.floor(reach(adds)(certs)), -1)
    return [float((good >= k).mean()) for k in AT]


def commit() -> str:
    """The commit the package was run from, where there is a repository."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return asked.stdout.strip() or "unknown"


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
            f"### {key[0]}, {key[1]} labels a class, {key[2]}, {len(seeds)} seed(s), {mine[0]['test_targets']} nodes\n\n"
            f"Floor (structure-free, any attack): **{floors}**. The same weights on the clean graph: {clean}.\n"
        )
        for kind in ("adds", "deletes"):
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


def plots(rows: Sequence[Row], out: Path) -> None:
    """For additions and deletions, the curves of every level with 50 labels a class (20 where there is no more)."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = [name for name in LEVELS if any(row["dataset"] == name for row in rows)]
    for kind in ("adds", "deletes"):
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
                title=f"{name}, {labels} labels a class",
                xlabel={"adds": "edges added", "deletes": "edges deleted"}[kind],
            )
            axis.set_ylim(0, 1)
        axes[0][0].set_ylabel("certified accuracy")
        axes[0][-1].legend(fontsize=7, title="p_add / p_delete", title_fontsize=7)
        figure.tight_layout()
        figure.savefig(out / f"beyond-{kind}.svg", metadata={"Date": None})
        plt.close(figure)
