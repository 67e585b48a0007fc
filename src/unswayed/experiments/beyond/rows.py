"""From kept counts of whole graphs to rows: each level certified, and the best level of each node."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates, best_of, certify
from unswayed.experiments.beyond import Result
from unswayed.theory.noise import noise_from_dict
from unswayed.votes import Votes

AT = (0, 5, 10, 15, 20)
ALPHA = 0.001
KINDS = ("adds", "deletes")
Row = dict[str, Any]


def rows_of(results: Sequence[Result], alpha: float = ALPHA) -> list[Row]:
    """One row a level of each training; its certified accuracy against additions and deletions alone is beside it."""
    return [row for result in results for row in _levels(result, alpha)]


def _levels(result: Result, alpha: float) -> Iterator[Row]:
    truth = result.arrays["truth"]
    for place, level in enumerate(result.facts["levels"]):
        certs = certify(votes_of(result, place), alpha=alpha)
        shares = dict(zip(map(str, AT), certs.accuracy(truth, AT).tolist(), strict=True))
        yield {
            **_described(result, alpha),
            "seconds": level["seconds"],
            "p_add": level["noise"]["p_add"],
            "p_delete": level["noise"]["p_delete"],
            "certified_accuracy": shares,
            **{kind: certs.accuracy(truth, AT, change=kind).tolist() for kind in KINDS},
        }


def chosen_rows(results: Sequence[Result], alpha: float = ALPHA) -> list[Row]:
    """For each training a row for additions and one for deletions: every node at the level that serves it best.

    The level is chosen on the votes that certify, so each is certified at its share of alpha.
    """
    return [row for result in results for row in _chosen(result, alpha)]


def _chosen(result: Result, alpha: float) -> Iterator[Row]:
    count, truth = len(result.facts["levels"]), result.arrays["truth"]
    levels = [certify(votes_of(result, place), alpha=alpha / count) for place in range(count)]
    for kind in KINDS:
        best = best_of(levels, by=lambda certs, kind=kind: reach(certs, kind))  # type: ignore[misc]
        share = best.accuracy(truth, AT, change=kind).tolist()
        yield {**_described(result, alpha), "level": f"best of {count} for {kind}", kind: share}


def reach(certs: Certificates, kind: str) -> npt.NDArray[np.float64]:
    """Scores a level by the largest attack that it rules out, up to the last one reported; of equal ones the surer."""
    return np.minimum(certs.sizes(kind), AT[-1]) + certs.p_top / 2


def votes_of(result: Result, place: int) -> Votes:
    """The votes of one level as they were polled."""
    level = result.facts["levels"][place]
    return Votes.from_counts(
        result.arrays[f"counts-{place}"].astype(np.int64),
        noise_from_dict(level["noise"]),
        level["entries"],
        samples=result.facts["samples"],
        ones=level["ones"],
        targets=result.arrays["targets"],
        provenance=level["provenance"],
    )


def _described(result: Result, alpha: float) -> Row:
    """What all rows of one training say."""
    told = ("samples", "clean_accuracy", "accuracy_edgeless", "floor", "floors", "seconds", "train_seconds")
    return {
        **asdict(result.case),
        **{name: result.facts[name] for name in (*told, "device", "command", "commit")},
        "task": "node",
        "recipe": "distill",
        "threat": "all-pairs",
        "alpha": alpha,
        "bounds": "strict",
        "test_targets": len(result.arrays["truth"]),
    }
