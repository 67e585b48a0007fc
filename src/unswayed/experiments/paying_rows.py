"""From kept results to rows: what was polled is certified here, at the noise that the validation nodes chose."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates, certify
from unswayed.certificates.about import withstood
from unswayed.experiments.paying import FREE_OF_PROTOCOL, PROTOCOLS, Result
from unswayed.theory.noise import noise_from_dict
from unswayed.votes import Votes

AT = (0, 1, 2, 3, 5, 10, 15, 20)
CHOSEN_AT = (1, 2, 3, 5, 10)  # sizes whose mean certified accuracy on validation nodes chooses the noise
BUDGETS = ("any", "adds", "deletes")
ALPHA = 0.001
Row = dict[str, Any]


def rows_of(results: Sequence[Result]) -> list[Row]:
    """A row for each graph, protocol, split, method and budget; a result without its split's floors is left out."""
    floors = {(r.case.dataset, r.case.seed): r for r in results if r.case.method == "floors"}
    rows: list[Row] = []
    for result in results:
        beside = floors.get((result.case.dataset, result.case.seed))
        if result.case.method == "floors" or beside is None:
            continue
        free = result.case.method in FREE_OF_PROTOCOL
        for protocol in PROTOCOLS if free else (result.case.protocol,):
            rows += _rows(result, beside, protocol)
    return rows


def _rows(result: Result, beside: Result, protocol: str) -> Iterator[Row]:
    facts = result.facts
    for budget in BUDGETS:
        label, size, how = sizes_of(result, budget)
        truth = result.arrays["truth"][: len(label)]
        heights = floors_of(beside, len(label))
        degree = result.arrays["degree"][: len(label)]
        own_links = degree if budget == "deletes" and facts["threat"] == "row" else None
        proven = withstood(np.where(label == truth, size, -1), AT, own_links).mean(axis=1)
        yield {
            "dataset": result.case.dataset,
            "task": "node",
            "recipe": result.case.method,
            "method": result.case.method,
            "protocol": protocol,
            "threat": facts["threat"],
            "budget": budget,
            **how,
            "seed": result.case.seed,
            "test_targets": len(label),
            "clean_accuracy": facts["base_accuracy"],
            "base_accuracy": facts["base_accuracy"],
            "floor": max(heights[name] for name in allowed(heights, protocol)),
            "floors": heights,
            "accuracy_edgeless": facts.get("accuracy_edgeless"),
            "certified_accuracy": dict(zip(map(str, AT), proven.tolist(), strict=True)),
            "wall": {str(k): float(np.mean(degree > k)) for k in AT},
            **{name: facts[name] for name in ("seconds", "device", "command", "commit")},
        }


def allowed(heights: dict[str, float], protocol: str) -> list[str]:
    """The floors that have seen no more than the protocol allows."""
    return [name for name in heights if protocol in name or "distilled" not in name]


def floors_of(beside: Result, targets: int) -> dict[str, float]:
    """The share of these test targets that each structure-free model is right about."""
    truth = beside.arrays["truth"][:targets]
    answers = {name: own for name, own in beside.arrays.items() if name not in ("truth", "degree")}
    return {name: float(np.mean(own[:targets] == truth)) for name, own in answers.items()}


def sizes_of(result: Result, budget: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Row]:
    """(label, size, how) of every test target against this kind of change."""
    if "label" in result.arrays:
        model = result.facts.get("model", result.case.method)
        exact = {"model": model, "alpha": None, "samples": None, "bounds": None, "beta": None}
        return result.arrays["label"], result.arrays[budget], exact
    spot = chosen_noise(result, budget)
    certs = _certified(result, "test", spot)
    noise = result.facts["tried"][spot]["noise"]
    known = {"alpha": ALPHA, "samples": result.facts["samples"], "bounds": "strict"}
    named = {"model": result.facts["tried"][spot]["model"]}
    return certs.label, certs.sizes(budget), {**named, **noise_words(noise), **known}


def noise_words(noise: Row) -> Row:
    """The noise's own numbers."""
    return {name: value for name, value in noise.items() if name in ("beta", "p_add", "p_delete")}


def chosen_noise(result: Result, budget: str) -> int:
    """The noise whose certificates of the validation nodes did best, averaged over sizes; chosen for each kind of change."""
    truth = result.arrays["val-truth"]

    def score(spot: int) -> float:
        return float(_certified(result, "val", spot).accuracy(truth, at=CHOSEN_AT, change=budget).mean())

    return max(range(len(result.facts["tried"])), key=score)


def _certified(result: Result, part: str, spot: int) -> Certificates:
    votes = Votes.from_counts(
        result.arrays[f"{part}-{spot}"].astype(np.int64),
        noise_from_dict(result.facts["tried"][spot]["noise"]),
        result.facts["entries"],
        samples=result.facts["samples"],
        ones=result.arrays[f"{part}-ones"],
    )
    return certify(votes, alpha=ALPHA)


def gains(rows: Sequence[Row]) -> npt.NDArray[np.float64]:
    """float[splits, sizes]: certified accuracy above the floor that is strongest over these splits, split by split."""
    names = allowed(rows[0]["floors"], rows[0]["protocol"])
    best = max(names, key=lambda name: float(np.mean([row["floors"][name] for row in rows])))
    return np.array([[row["certified_accuracy"][str(k)] - row["floors"][best] for k in AT] for row in rows])
