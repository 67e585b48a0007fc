"""The experiment on added links and fake nodes from its work to its page, on a graph small enough for a test."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import unswayed as us
from unswayed.datasets import Dataset
from unswayed.errors import InputError
from unswayed.experiments import hiding
from unswayed.experiments.hiding import FAKES, LINKS, SHARED, bench, cases, methods, page, prepare, results
from unswayed.experiments.hiding.page import AT, beside_one_floor, certified, rows_of, tables
from unswayed.experiments.hiding.shared import BUDGETS, DELETES
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.training.own_scores import MEMBERS, joined

from .shared import FIELDS, communities

N, CLASSES = 120, 2


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = communities(N)
    runs = tmp_path_factory.mktemp("runs")
    torch.manual_seed(0)
    sage = build("sage", 6, CLASSES, seed=0).eval()
    ballots = us.BallotNetwork(6, CLASSES, voters="features")
    with pytest.MonkeyPatch.context() as patch:
        dataset = Dataset("photo", "node", 6, CLASSES, data=data)
        patch.setattr(bench, "load", lambda name, fetch: dataset)
        patch.setattr(hiding, "METHODS", {"photo": LINKS, "cora": (*FAKES, SHARED)})
        patch.setattr(bench, "taught", lambda seen, *_, **__: torch.eye(CLASSES)[seen.data.y])
        patch.setattr(
            bench.OwnScores,
            "best",
            lambda self, *_, **__: [joined([self.fresh(seed).state_dict() for seed in range(MEMBERS)])],
        )
        patch.setattr(bench, "LEADS", (0.0, 1.6))
        for module in (bench, methods):
            patch.setattr(module, "fit", lambda name, *_, **__: ballots.eval() if name == "ballots" else sage)
        patch.setattr(methods, "fit_hashed", lambda *_, groups, **__: us.Hashed(sage, groups).eval())
        patch.setattr(methods, "all_floors", lambda *_, **__: {"labels": Floor("mlp", data.y, 0.8, 0.8)})
        patch.setattr(bench, "TARGETS", 8)
        patch.setattr(methods, "CHOOSING", 6)
        patch.setattr(methods, "GROUPS", (4, 9))
        for name in ("KEEPS", "DELETES", "HIDES"):
            patch.setattr(methods, name, getattr(methods, name)[:2])
        patch.setattr(us, "poll", partial(us.poll, audit=0))
        said: list[str] = []
        assert prepare(cases([0]), runs=runs, samples=1000, say=said.append) == 0
        assert len(said) == len(LINKS) + len(FAKES) + 1
        yield runs


def test_rows_and_page_are_written(kept: Path) -> None:
    out = kept / "results"
    assert [path.name for path in page.publish(results(kept), out)] == ["hiding.json", "hiding.md"]
    rows = json.loads((out / "hiding.json").read_text())["rows"]
    spread = [row for row in rows if row["method"] == SHARED]
    assert len(spread) == len(DELETES)
    for row in spread:
        assert all(row["by_the_programme"][str(b)] <= row["by_counting"][str(b)] for b in BUDGETS)
    others = len(rows) - len(spread)
    assert others == len(LINKS) - 2 + len(FAKES) - 2 + 2 * 2  # of what was hidden, three numbers of links
    assert all(set(row) >= FIELDS for row in rows)
    for row in rows:
        curve = [row["certified_accuracy"][str(k)] for k in AT]
        assert curve == sorted(curve, reverse=True)
        assert row["floor"] == 1.0
    text = (out / "hiding.md").read_text()
    assert "## Photo" in text
    assert "up to 1 link each" in text
    assert "`Keep`" in text
    assert "one attacker, many nodes" in text


def test_what_was_polled_is_certified_as_such(kept: Path) -> None:
    hidden = next(r for r in results(kept) if r.case.method == "hide")
    few, any_number = (certified(hidden, "test", 1, links) for links in (1, None))
    assert few.noise == us.Hide(*methods.HIDES[1], links=1)
    assert np.all(few.size >= any_number.size)
    row = next(r for r in rows_of(results(kept)) if r["method"] == "keep")
    assert us.Keep(row["kept"], row["seats"]) in [us.Keep(*pair) for pair in methods.KEEPS]


def test_nothing_is_shown_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result"):
        page.publish([], tmp_path)
    with pytest.raises(InputError, match="no dataset 'mars'"):
        list(cases([0], ["mars"]))
    with pytest.raises(InputError, match="no method 'luck'"):
        list(cases([0], methods=["luck"]))


def test_what_was_said_once_of_neighbours_is_proved_of_nodes_it_never_saw(kept: Path) -> None:
    """Fake nodes say nothing, since nothing was said of them; they make a node's own word louder, and that is all."""
    found = {r.case.method: r for r in results(kept)}
    votes, ballots = found["snapshot votes"].arrays, found["snapshot ballots"].arrays
    assert np.all(votes["adds"] >= 0)
    assert np.mean(votes["adds"] == N) > 0.5
    assert np.all(ballots["adds"] < N)


def test_rows_of_one_split_stand_beside_the_same_floor() -> None:
    few = {"dataset": "cora", "seed": 0, "protocol": "inductive", "floors": {"labels": 0.6}, "floor": 0.6}
    more = {"labels": 0.5, "distilled inductive": 0.7, "distilled transductive": 0.9}
    other = {**few, "seed": 1}
    rows = beside_one_floor([few, {**few, "floors": more, "floor": 0.7}, other])
    assert [row["floor"] for row in rows] == [0.7, 0.7, 0.6]
    assert rows[0]["floors"] == {**more, "labels": 0.6}


def test_tables_say_over_how_many_splits(kept: Path) -> None:
    rows = [row for row in rows_of(results(kept)) if row["dataset"] == "photo"]
    twice = [*rows, *({**row, "seed": 1} for row in rows)]
    assert "2 splits" in tables(twice)
    assert "±" in tables(twice)
