"""One attacker with so many deletions in all: how many nodes, by counting node by node and by the linear programme.

A node's answer depends on the edges with an end within one hop of it, and a deletion elsewhere counts for others only: that is
what the programme knows and counting does not.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.certificates import certify
from unswayed.experiments.kept_results import Arrays, Facts
from unswayed.experiments.spread import plus_minus
from unswayed.theory.noise import noise_from_dict
from unswayed.theory.shared import flipped_anywhere, flipped_within
from unswayed.votes import Votes

if TYPE_CHECKING:
    from unswayed.experiments.hiding import Result
    from unswayed.experiments.hiding.bench import Bench

AT = (0, 1, 2, 5, 10)
BUDGETS = (5, 25, 100)
ALPHA = 0.05  # for all nodes together
TARGETS, LAYERS = 1000, 2
DELETES = (0.5, 0.8, 0.9, 0.95)
Row = dict[str, Any]


def deletions(bench: "Bench") -> tuple[Arrays, Facts]:
    """The votes of a GraphSAGE for many test nodes where edges of the whole graph are deleted, and what each node can see."""
    import unswayed as us
    from unswayed.datasets import split

    data, samples = bench.plain, max(1000, bench.samples // 5)
    nodes = split(bench.dataset, bench.case.seed, test="rest").test[:TARGETS]
    fields = us.receptive_fields(data, nodes, layers=LAYERS)
    arrays: Arrays = {
        "truth": bench.dataset.labels[nodes].numpy(),
        "field": np.concatenate(fields),
        "sees": np.array([len(field) for field in fields]),
    }
    model = bench.learnt("sage")
    noises = [us.AddDelete(p_add=0, p_delete=p) for p in DELETES]
    for number, noise in enumerate(noises):
        votes = us.poll(
            model, us.AllPairs(data, nodes), noise, samples=samples, device=bench.device, progress=False
        )
        arrays[f"test-{number}"] = votes.counts.astype(np.int32)
    tried = [{"model": "sage", "noise": noise.to_dict()} for noise in noises]
    how = {"tried": tried, "samples": samples, "entries": int(votes.entries[0])}
    return arrays, {**how, **bench.about(model)}


def shared_rows(result: "Result") -> Iterator[Row]:
    """A row for each noise: at most how many nodes each budget flips, counted and by the programme."""
    fields = np.split(result.arrays["field"], np.cumsum(result.arrays["sees"])[:-1])
    for number, tried in enumerate(result.facts["tried"]):
        votes = Votes.from_counts(
            result.arrays[f"test-{number}"].astype(np.int64),
            noise_from_dict(tried["noise"]),
            result.facts["entries"],
            samples=result.facts["samples"],
        )
        certs = certify(votes, alpha=ALPHA, family=True)
        withstood = certs.accuracy(result.arrays["truth"], at=AT, change="deletes")
        sure = np.flatnonzero(~certs.abstained)
        sizes, seen = certs.sizes("deletes")[sure], [fields[i] for i in sure.tolist()]
        edges = 1 + int(result.arrays["field"].max(initial=-1))
        yield {
            **{name: tried["noise"][name] for name in ("p_add", "p_delete")},
            "model": tried["model"],
            "samples": result.facts["samples"],
            "alpha": ALPHA,
            "bounds": "strict",
            "test_targets": len(certs),
            "certified_accuracy": dict(zip(map(str, AT), withstood.tolist(), strict=True)),
            "with_a_guarantee": len(sure),
            "by_counting": {str(b): flipped_anywhere(sizes, b) for b in BUDGETS},
            "by_the_programme": {str(b): flipped_within(sizes, seen, edges, b) for b in BUDGETS},
        }


def shared_table(rows: Sequence[Row]) -> str:
    """Markdown: a line a noise, for each budget what the programme allows, and counting."""
    head = " | ".join(f"{b} deletions" for b in BUDGETS)
    lines = [f"| p_delete | nodes with a guarantee | {head} |", f"|---|---|{'---|' * len(BUDGETS)}"]
    for p in sorted({row["p_delete"] for row in rows}):
        mine = [row for row in rows if row["p_delete"] == p]
        cells = [
            " of ".join(
                plus_minus([r[how][str(b)] for r in mine], ".0f")
                for how in ("by_the_programme", "by_counting")
            )
            for b in BUDGETS
        ]
        sure = plus_minus([row["with_a_guarantee"] for row in mine], ".0f")
        lines.append(f"| {p:.2f} | {sure} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
