"""From kept results to rows: what was polled is certified here, at the noise that the validation nodes chose."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates, certify
from unswayed.certificates.about import withstood
from unswayed.experiments.paying import (
    DRAWN,
    EVERY,
    FORETOLD,
    GRAPHS,
    LIMIT,
    METHODS,
    PROTOCOLS,
    STRICTER,
    Result,
    free_of_protocol,
)
from unswayed.models.floors.every import ALL_SEEN, fair
from unswayed.theory.noise import noise_from_dict
from unswayed.votes import Votes

AT = (0, 1, 2, 3, 5, 10, 15, 20)
CHOSEN_AT = (1, 2, 3, 5, 10)  # sizes whose mean certified accuracy on validation nodes chooses the noise
BUDGETS = ("any", "adds", "deletes")
ALPHA = 0.001
Row = dict[str, Any]
Group = tuple[str, str, str, str]
FLAG = 1
# methods whose networks learn what the teacher said of every node in sight, validation nodes among them
LEARN_ALL_SEEN = ("hashed", "smoothed")
NOT_FLOORS = ("truth", "degree", "pairs", "label", *STRICTER, *BUDGETS)
OWN_FLOORS = ("flags", DRAWN, FORETOLD)  # methods whose results hold the floors of their own targets
# noises by kind, each at its best setting, and the best of all
FAMILIES: dict[str, Callable[[Row], bool]] = {
    "smoothed": lambda noise: True,
    "smoothed Flip": lambda noise: noise["kind"] == "flip",
    "smoothed AddDelete": lambda noise: noise["kind"] == "add-delete" and noise["p_add"] > 0,
    "smoothed AddDelete, p_add = 0": lambda noise: noise["kind"] == "add-delete" and noise["p_add"] == 0,
    "smoothed Keep": lambda noise: noise["kind"] == "keep",
}


def rows_of(results: Sequence[Result], earlier: Sequence[Row] = ()) -> list[Row]:
    """A row for each graph, protocol, split, method and budget; a result without its split's floors is left out.

    Floors that were not measured again are those of earlier rows of the same split and targets, or, where only some of its test
    nodes were asked, of all of them: the nodes asked are the first of a random order.
    """
    floors = {(r.case.dataset, r.case.seed): r for r in results if r.case.method == "floors"}
    shared = [row for row in earlier if row["method"] not in OWN_FLOORS]
    before = {(row["dataset"], row["seed"], row["test_targets"]): row["floors"] for row in shared}
    all_of = {(row["dataset"], row["seed"]): row["floors"] for row in sorted(shared, key=_targets)}

    def heights(result: Result, targets: int) -> Row | None:
        place = result.case.dataset, result.case.seed
        beside = result if result.case.method in OWN_FLOORS else floors.get(place)
        return (
            before.get((*place, targets), all_of.get(place)) if beside is None else floors_of(beside, targets)
        )

    rows: list[Row] = []
    for result in results:
        case = result.case
        if case.method == "floors":
            continue
        once = case.dataset in GRAPHS or case.method in (LIMIT, DRAWN, FORETOLD)
        spread = free_of_protocol(case.dataset, case.method) and not once
        for protocol in PROTOCOLS if spread else (case.protocol,):
            for method in methods_of(result):
                rows += _rows(result, heights, protocol, method)
    return rows


def _targets(row: Row) -> int:
    targets: int = row["test_targets"]
    return targets


def methods_of(result: Result) -> list[str]:
    """The methods that a result has rows of: its own, or the kinds of noise that were tried, and the best of them."""
    if result.case.method != "smoothed":
        return [result.case.method]
    tried = [told["noise"] for told in result.facts["tried"]]
    return [name for name, fits in FAMILIES.items() if any(fits(noise) for noise in tried)]


def _rows(
    result: Result, known: Callable[[Result, int], Row | None], protocol: str, method: str
) -> Iterator[Row]:
    facts = result.facts
    for budget in BUDGETS if result.case.method != FORETOLD else BUDGETS[:1]:
        label, size, how = sizes_of(result, budget, method)
        truth = result.arrays["truth"][: len(label)]
        heights = known(result, len(label))
        if heights is None:
            return
        degree = result.arrays["degree"][: len(label)]
        limit = most_changes(result, budget, len(label))
        proven = withstood(np.where(label == truth, size, -1), AT, limit).mean(axis=1)
        yield {
            "dataset": result.case.dataset,
            "task": facts.get("task", "node"),
            "recipe": result.case.method,
            "method": method,
            "protocol": protocol,
            "threat": facts["threat"],
            "budget": budget,
            **how,
            "seed": result.case.seed,
            "test_targets": len(label),
            "clean_accuracy": how["base_accuracy"],
            **height(heights, protocol, method),
            "certified_accuracy": dict(zip(map(str, AT), proven.tolist(), strict=True)),
            "wall": {str(k): float(np.mean(degree > k)) for k in AT},
            **(flagged(result, label, size, limit) if result.case.method == "flags" else {}),
            **({"way": facts["way"], "largest": facts["largest"]} if method == FORETOLD else {}),
            **(stricter(result) if result.case.method == DRAWN and budget == "any" else {}),
            **{name: facts[name] for name in ("seconds", "device", "command", "commit")},
        }


def most_changes(result: Result, budget: str, targets: int) -> npt.NDArray[Any] | None:
    """How many such changes there are to make of each target, where so few may be that K ends there."""
    links = result.arrays["degree"][:targets]
    if "pairs" in result.arrays:
        pairs = result.arrays["pairs"]
        return {"any": pairs, "adds": pairs - links, "deletes": links}[budget]
    return links if budget == "deletes" and result.facts["threat"] == "row" else None


def flagged(
    result: Result, label: npt.NDArray[Any], size: npt.NDArray[Any], limit: npt.NDArray[Any] | None
) -> Row:
    """Precision, and the share of nodes to be flagged that stay so; the same of a model of features alone."""
    rare = result.arrays["truth"] == FLAG
    alone = result.arrays["features alone"] == FLAG
    stays = withstood(np.where(label == FLAG, size, -1), AT, limit)[:, rare].mean(axis=1)
    return {
        "precision": float(np.mean(rare[label == FLAG])),
        "certified_recall": dict(zip(map(str, AT), stays.tolist(), strict=True)),
        "floor_precision": float(np.mean(rare[alone])),
        "floor_recall": float(np.mean(alone[rare])),
    }


def stricter(result: Result) -> Row:
    """What would be proved by stricter rules: certified accuracy by their names."""
    shares = {name: withstood(result.arrays[name], AT, None).mean(axis=1).tolist() for name in STRICTER}
    return {"certified_if": {name: dict(zip(map(str, AT), own, strict=True)) for name, own in shares.items()}}


def allowed(heights: dict[str, float], protocol: str, method: str) -> list[str]:
    """The floors that have seen no more than the protocol allows, and learnt from no more nodes than the method's networks."""
    names = fair(heights, protocol)
    return [name for name in names if name != ALL_SEEN or method.startswith(LEARN_ALL_SEEN)]


def height(heights: dict[str, float], protocol: str, method: str) -> Row:
    """The floors of a row, and the strongest that it is held against; None where none was measured."""
    beside = [heights[name] for name in allowed(heights, protocol, method)]
    return {"floor": max(beside, default=None), "floors": heights}


def with_new_floors(rows: Sequence[Row], results: Sequence[Result]) -> list[Row]:
    """Earlier rows, beside the floors of their splits where these were measured again."""
    floors = {(r.case.dataset, r.case.seed): r for r in results if r.case.method == "floors"}
    return [
        {**row, **height(floors_of(beside, _targets(row)), row["protocol"], row["method"])}
        if row["method"] not in (DRAWN, FORETOLD)
        and (beside := floors.get((row["dataset"], row["seed"]))) is not None
        else row
        for row in rows
    ]


def floors_of(beside: Result, targets: int) -> dict[str, float]:
    """The share of these test targets that each structure-free model is right about."""
    if beside.case.method == FORETOLD:
        return {"expected": beside.facts["floor"]}
    truth = beside.arrays["truth"][:targets]
    answers = {name: own for name, own in beside.arrays.items() if name not in NOT_FLOORS}
    return {name: float(np.mean(own[:targets] == truth)) for name, own in answers.items()}


def sizes_of(result: Result, budget: str, method: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Row]:
    """(label, size, how) of every test target against this kind of change."""
    if "label" in result.arrays:
        model = result.facts.get("model", result.case.method)
        exact = {"alpha": None, "samples": None, "bounds": None, "beta": None}
        return (
            result.arrays["label"],
            result.arrays[budget],
            {"model": model, **_plain(result.facts), **exact},
        )
    spot = chosen_noise(result, budget, method)
    certs = _certified(result, "test", spot)
    told = result.facts["tried"][spot]
    known = {"alpha": ALPHA, "samples": result.facts["samples"], "bounds": "strict"}
    about = {"model": told["model"], **_plain(told)}
    return certs.label, certs.sizes(budget), {**about, **noise_words(told["noise"]), **known}


def _plain(told: Row) -> Row:
    """How often a model is right without noise and attack, with all edges and with none."""
    return {name: told.get(name) for name in ("base_accuracy", "accuracy_edgeless")}


def noise_words(noise: Row) -> Row:
    """The noise's own numbers."""
    return {
        name: value for name, value in noise.items() if name in ("beta", "p_add", "p_delete", "kept", "seats")
    }


def chosen_noise(result: Result, budget: str, method: str = "smoothed") -> int:
    """The noise of this kind whose certificates of the validation nodes did best, averaged over sizes; for each kind of change.

    Of several that did so, as those of a model that reads no link, the one that did best over larger sizes as well.
    """
    fits = FAMILIES[method]
    spots = [spot for spot, told in enumerate(result.facts["tried"]) if fits(told["noise"])]
    return max(spots, key=lambda spot: _merit(result, spot, budget))


@lru_cache(maxsize=1000)
def _merit(result: Result, spot: int, budget: str) -> tuple[float, float]:
    certs, truth = _certified(result, "val", spot), result.arrays["val-truth"]
    first, then = (certs.accuracy(truth, at=sizes, change=budget).mean() for sizes in (CHOSEN_AT, AT))
    return float(first), float(then)


@lru_cache(maxsize=1000)
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
    measured = {name: 0.0 for name in rows[0]["floors"] if all(name in row["floors"] for row in rows)}
    names = allowed(measured, rows[0]["protocol"], rows[0]["method"])
    best = max(names, key=lambda name: float(np.mean([row["floors"][name] for row in rows])))
    return np.array([[row["certified_accuracy"][str(k)] - row["floors"][best] for k in AT] for row in rows])


def grouped(rows: Sequence[Row], budget: str) -> dict[Group, list[Row]]:
    """The splits of each (dataset, protocol, method, budget), graphs and methods in the experiment's order."""
    found: dict[Group, list[Row]] = defaultdict(list)
    for row in rows:
        if row["budget"] == budget:
            found[row["dataset"], row["protocol"], row["method"], budget].append(row)
    methods = (*METHODS, *FAMILIES, LIMIT, DRAWN, FORETOLD, "pairs", "flags")
    return dict(
        sorted(
            found.items(),
            key=lambda item: (EVERY.index(item[0][0]), item[0][1], methods.index(item[0][2])),
        )
    )
