"""One small graph through every method that needs little, and rows, page and figure from made-up results."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset, split
from unswayed.errors import InputError
from unswayed.experiments.paying import (
    DRAWN,
    LIMIT,
    Case,
    Result,
    bench,
    cases,
    methods,
    others,
    page,
    prepare,
    results,
    smoothing,
)
from unswayed.experiments.paying.rows import AT, allowed, gains, rows_of, with_new_floors
from unswayed.models import build
from unswayed.models.floors import Floor
from unswayed.models.structure_free import ALL_SEEN
from unswayed.models.training import pairs
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.flags import FlagSettings, fit_flags
from unswayed.models.training.own_scores import MEMBERS
from unswayed.models.training.pairs import PairSettings

from .shared import FIELDS

DOCS = Path(__file__).parents[2] / "docs" / "results"
OWN_FIELDS = {"method", "budget", "base_accuracy", "floors", "wall"}


@pytest.fixture(scope="module")
def blocks():
    """Three communities of 40 without features."""
    generator = torch.Generator().manual_seed(1)
    y = torch.arange(120) % 3
    chance = torch.where(y[:, None] == y, 0.4, 0.05)
    half = torch.triu(torch.rand(120, 120, generator=generator) < chance, 1).nonzero().t()
    data = Data(x=torch.ones(120, 1), edge_index=torch.cat([half, half.flip(0)], dim=1), y=y)
    return Dataset("highschool", "node", 0, 3, data=data, labelled=0.3)


@pytest.fixture
def kept(blocks, tmp_path, monkeypatch):
    """The results of two splits."""
    monkeypatch.setattr(bench, "load", lambda name, fetch: blocks)
    monkeypatch.setattr(smoothing, "NOISES", (us.Flip(beta=0.9), us.AddDelete(p_add=0.01, p_delete=0.6)))
    monkeypatch.setattr(methods, "GROUPS", (5,))
    said = []
    wanted = cases((0, 1), ["highschool"], ["inductive"], ["floors", "label ballots", "hashed", "smoothed"])
    assert prepare(wanted, runs=tmp_path, samples=1000, say=said.append) == 0
    assert len(said) == 8
    return tmp_path


def test_rows_say_everything_and_what_was_done_is_not_done_again(kept, blocks):
    said = []
    prepare(cases((0, 1), ["highschool"], ["inductive"], ["label ballots"]), runs=kept, say=said.append)
    assert said == []
    rows = rows_of(results(kept))
    assert all(set(row) >= FIELDS | OWN_FIELDS for row in rows)
    ways = ("label ballots", "hashed", "smoothed", "smoothed Flip", "smoothed AddDelete")
    # without features nothing is learnt, so both protocols have the same rows
    found = {(row["method"], row["protocol"]) for row in rows}
    assert found == set(product(ways, ("inductive", "transductive")))
    assert list(cases((0,), ["highschool"], methods=["hashed", "smoothed"])) == [
        Case("highschool", "inductive", 0, method) for method in ("hashed", "smoothed")
    ]
    assert len(list(cases((0,), ["cora"], methods=["hashed", "smoothed"]))) == 4
    assert {row["budget"] for row in rows} == {"any", "adds", "deletes"}
    for row in rows:
        shares = [row["certified_accuracy"][str(k)] for k in AT]
        assert shares == sorted(shares, reverse=True)
        assert row["floor"] == row["floors"]["majority"]
        assert row["alpha"] == (0.001 if "smoothed" in row["method"] else None)


def test_the_proved_rows_are_what_prove_says(kept, blocks):
    parts = split(blocks, 1, test="rest")
    half = parts.test[: (len(parts.test) + 1) // 2]
    told = torch.cat([parts.train, parts.val])
    known = torch.full_like(blocks.labels, -1)
    known[told] = blocks.labels[told]
    proofs = us.prove(us.LabelBallots(3).freeze(blocks.graph, known=known), us.Row(blocks.graph, half))
    row = next(
        row
        for row in rows_of(results(kept))
        if (row["method"], row["seed"], row["budget"]) == ("label ballots", 1, "deletes")
    )
    size, right = proofs.sizes("deletes"), proofs.label == blocks.labels[half].numpy()
    assert row["certified_accuracy"]["3"] == pytest.approx(np.mean(right & (size >= 3)))


def test_labels_drawn_at_random_are_told_with_ties_lost_too(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "load", lambda name, fetch: blocks)
    prepare(cases((0,), ["highschool"], methods=[DRAWN]), runs=tmp_path, say=lambda words: None)
    (kept,) = results(tmp_path)
    parts = split(blocks, 0, test="rest", draw="nodes")
    truth, size = blocks.labels[parts.test].numpy(), kept.arrays["ties are lost"]
    assert kept.arrays["truth"].tolist() == truth.tolist()
    proven = np.where(kept.arrays["label"] == truth, kept.arrays["any"], -1)
    assert (size <= proven).all()
    assert (size[truth == 2] == proven[truth == 2]).all()  # the last class loses every tie anyway
    row = next(row for row in rows_of([kept]) if row["budget"] == "any")
    assert row["certified_if"]["ties are lost"]["3"] == pytest.approx(np.mean(size >= 3))
    assert row["floor"] == row["floors"]["majority"]
    assert "| highschool | ties are lost | 1 |" in page.drawn([row])
    # its targets are others: their floors are nobody else's
    assert rows_of([replace(kept, case=Case("highschool", "inductive", 0, "label ballots"))], [row]) == []


def test_with_every_label_told_the_targets_own_stays_unsaid(kept, blocks):
    prepare(cases((0, 1), ["highschool"], methods=[LIMIT]), runs=kept, say=lambda words: None)
    rows = [row for row in rows_of(results(kept)) if row["method"] == LIMIT and row["budget"] == "any"]
    assert [(row["protocol"], row["seed"]) for row in rows] == [("inductive", 0), ("inductive", 1)]
    nodes = split(blocks, 0, test="rest").test
    half, y = nodes[: (len(nodes) + 1) // 2], blocks.labels
    one, other = blocks.graph.edge_index
    votes = torch.zeros(len(y), 3).index_put_((one, y[other]), torch.tensor(1.0), accumulate=True)[half]
    assert rows[0]["certified_accuracy"]["0"] == pytest.approx(
        float((votes.argmax(1) == y[half]).float().mean())
    )
    told = page.limit(rows_of(results(kept)))
    assert "| highschool | every label told | 2 |" in told
    assert "| highschool | proved, untrained label ballots | 2 |" in told


def test_floors_that_were_not_measured_again_are_those_of_earlier_rows(kept):
    every = results(kept)
    alone = [result for result in every if result.case.method == "label ballots"]
    assert rows_of(alone) == []
    earlier = rows_of(every)
    assert rows_of(alone, earlier) == [row for row in earlier if row["method"] == "label ballots"]
    fewer = [{**row, "test_targets": row["test_targets"] - 1, "floors": {"majority": 0.0}} for row in earlier]
    others = [{**row, "test_targets": row["test_targets"] + 1} for row in earlier]
    for known in (fewer + others, others + fewer):  # of other targets: those of the most
        assert rows_of(alone, known) == rows_of(alone, earlier)


def test_ballots_under_noise_are_the_frozen_ones(blocks):
    """Summed as whole numbers they give the answers of the frozen model, for nodes without a known label."""
    known = blocks.labels.clone()
    known[60:] = -1
    table = smoothing.ballots_of(blocks, known)
    frozen = us.LabelBallots(3).freeze(blocks.graph, known=known)
    said = smoothing.Tally()(table, blocks.graph.edge_index)[60:]
    exact = frozen(blocks.graph.x, blocks.graph.edge_index)[60:]
    clear = exact.sort(dim=1).values.diff(dim=1)[:, -1] > 0.01
    assert torch.equal(said.argmax(dim=1)[clear], exact.argmax(dim=1)[clear])
    assert torch.equal(table, table.round())
    assert float(table.sum(dim=0).max()) < 2**24


def test_page_and_figure_are_written(kept, tmp_path):
    written = page.publish(results(kept), tmp_path / "out")
    assert [path.name for path in written] == ["paying.json", "paying.md", "paying.png", "paying.svg"]
    text = (tmp_path / "out" / "paying.md").read_text()
    assert "| highschool | inductive | proved, untrained label ballots | 2 |" in text


def test_gains_are_against_the_strongest_floor_that_the_protocol_allows():
    heights = {"majority": 0.1, "labels": 0.5, "distilled inductive": 0.6, "distilled transductive": 0.8}
    assert allowed(heights, "inductive", "trained") == ["majority", "labels", "distilled inductive"]
    row = {"floors": heights, "certified_accuracy": {str(k): 0.9 for k in AT}, "method": "trained"}
    assert gains([{**row, "protocol": "inductive"}])[0, 0] == pytest.approx(0.3)
    assert gains([{**row, "protocol": "transductive"}])[0, 0] == pytest.approx(0.1)


def test_networks_that_learnt_of_validation_nodes_are_held_against_a_floor_that_did():
    heights = {"majority": 0.1, "distilled inductive": 0.6, ALL_SEEN: 0.7, "distilled transductive": 0.8}
    row = {"floors": heights, "certified_accuracy": {str(k): 0.9 for k in AT}, "protocol": "inductive"}
    for method, gain in (("trained", 0.3), ("hashed", 0.2), ("smoothed Keep", 0.2), ("smoothed", 0.2)):
        assert gains([{**row, "method": method}])[0, 0] == pytest.approx(gain)
    older = {**row, "method": "smoothed", "floors": {"majority": 0.1, "distilled inductive": 0.5}}
    assert gains([{**row, "method": "smoothed"}, older])[:, 0] == pytest.approx([0.3, 0.4])


def test_rows_of_earlier_runs_stand_beside_floors_that_were_measured_again():
    truth, said = np.array([0, 1, 0, 1]), np.array([0, 1, 0, 0])
    floors = Result(
        Case("cora", "inductive", 3, "floors"),
        {"truth": truth, "degree": truth, "labels": said, ALL_SEEN: truth},
        {},
    )
    row = {"dataset": "cora", "seed": 3, "protocol": "inductive", "method": "smoothed", "test_targets": 4, "floor": 0.1, "floors": {}}  # fmt: skip
    other = {**row, "seed": 4}
    assert with_new_floors([{**row, "method": "trained"}, row, other], [floors]) == [
        {**row, "method": "trained", "floor": 0.75, "floors": {"labels": 0.75, ALL_SEEN: 1.0}},
        {**row, "floor": 1.0, "floors": {"labels": 0.75, ALL_SEEN: 1.0}},
        other,
    ]


def test_a_run_that_is_out_of_time_begins_nothing(tmp_path):
    said = []
    assert prepare(cases((0,), ["cora"]), runs=tmp_path, stop_after=-1, say=said.append) > 0
    assert said[-1].startswith("Out of time")


def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="'karate'"):
        list(cases((0,), ["karate"]))
    with pytest.raises(InputError, match="no result"):
        page.publish([], Path("nowhere"))


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    case = Case("cora", "inductive", 3, "label ballots")
    Result(case, {"label": np.arange(3)}, {"threat": "row"}).write(tmp_path)
    back = Result.read(case.path(tmp_path), Case)
    assert (back.case, back.facts) == (case, {"threat": "row"})
    assert back.arrays["label"].tolist() == [0, 1, 2]


def test_the_published_tables_are_those_of_the_published_rows():
    published = (DOCS / "paying.md").read_text()
    for name, text in page.tables(json.loads((DOCS / "paying.json").read_text())["rows"]).items():
        assert text in published, name


def test_each_kind_of_noise_has_rows_of_its_own(kept):
    rows = [row for row in rows_of(results(kept)) if row["budget"] == "any" and row["seed"] == 0]
    found = {row["method"]: row for row in rows if row["method"].startswith("smoothed")}
    assert set(found) == {"smoothed", "smoothed Flip", "smoothed AddDelete"}
    assert found["smoothed Flip"]["beta"] == pytest.approx(0.9)
    assert found["smoothed AddDelete"]["p_delete"] == pytest.approx(0.6)
    best = {name: found["smoothed"][name] for name in ("certified_accuracy", "model")}
    assert best in [
        {name: found[kind][name] for name in best} for kind in ("smoothed Flip", "smoothed AddDelete")
    ]


def test_graphs_and_flags_have_methods_of_their_own():
    assert [case.method for case in cases((0,), ["mutag"])] == ["floors", "pairs"]
    flagged = list(cases((0,), ["tolokers"]))
    assert [(case.method, case.protocol) for case in flagged] == [
        ("flags", "inductive"),
        ("flags", "transductive"),
    ]


def test_whole_graphs_are_proved_beside_their_floor(tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)

    def one(number):
        half = torch.triu(torch.rand(8, 8, generator=generator) < 0.4, 1).nonzero().t()
        x = torch.eye(2)[torch.randint(2, (8,), generator=generator)]
        return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1), y=torch.tensor([number % 2]))

    dataset = Dataset("mutag", "graph", 2, 2, graphs=tuple(one(number) for number in range(40)))
    monkeypatch.setattr(bench, "load", lambda name, fetch: dataset)
    answers = torch.zeros(40, dtype=torch.int64)
    monkeypatch.setattr(methods, "floor", lambda *_, **__: Floor("majority", answers, 0.5, 0.5))
    monkeypatch.setattr(pairs, "PairSettings", partial(PairSettings, silent=("counts-linear",), steps=40))
    prepare(cases((0,), ["mutag"]), runs=tmp_path, say=lambda words: None)
    rows = rows_of(results(tmp_path))
    assert {(row["task"], row["method"], row["protocol"]) for row in rows} == {
        ("graph", "pairs", "inductive")
    }
    assert "| mutag | 1 |" in page.graphs(rows)


def test_flags_are_no_less_precise_on_validation_nodes_and_proved(blocks, tmp_path, monkeypatch):
    y = (blocks.labels == 1).long()
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(0)) + y[:, None] * 0.5
    rare = Dataset(
        "tolokers", "node", 3, 2, data=Data(x=x, edge_index=blocks.graph.edge_index, y=y), labelled=0.5
    )
    monkeypatch.setattr(bench, "load", lambda name, fetch: rare)
    quick = FlagSettings(network=BallotSettings(steps=20, taus=(2.0,)))
    monkeypatch.setattr(others, "fit_flags", partial(fit_flags, settings=quick))
    prepare(cases((0,), ["tolokers"], ["inductive"]), runs=tmp_path, say=lambda words: None)
    kinds = {row["budget"]: row for row in rows_of(results(tmp_path))}
    for kind in ("adds", "deletes"):  # fewer attacks: no less is proved
        assert all(
            kinds[kind]["certified_recall"][k] >= share
            for k, share in kinds["any"]["certified_recall"].items()
        )
    row = kinds["any"]
    recall = [row["certified_recall"][str(k)] for k in AT]
    assert recall == sorted(recall, reverse=True)
    assert recall[0] > row["floor_recall"] - 0.2
    assert row["floors"] == {"features alone": pytest.approx(row["floor"])}
    assert "| tolokers | inductive | any | 1 |" in page.flags([row])


def test_networks_under_noise_are_means_of_as_many_as_floors_are(blocks, monkeypatch):
    data = Data(x=torch.rand(120, 4), edge_index=blocks.graph.edge_index, y=blocks.labels)
    dataset = replace(blocks, num_features=4, data=data)
    monkeypatch.setattr(bench, "load", lambda name, fetch: dataset)
    monkeypatch.setattr(bench, "taught", lambda *_, **__: None)
    monkeypatch.setattr(smoothing, "TRAINED_UNDER", {us.Flip(beta=0.9): (us.Flip(beta=0.8),)})
    drawn = []

    def untrained(name, *_, seed, **__):
        drawn.append(build(name, 4, 3, seed=seed))
        return drawn[-1]

    monkeypatch.setattr(smoothing, "fit", untrained)
    own = bench.Bench.of(Case("cora", "inductive", 0, "smoothed"))
    ((noises, network),) = smoothing.mean_networks(own)
    assert noises == (us.Flip(beta=0.8),)
    with torch.no_grad():
        said = torch.stack([member(data.x, data.edge_index) for member in drawn])
        assert torch.allclose(network(data.x, data.edge_index), said.mean(dim=0), atol=1e-5)
    assert len(said) == MEMBERS
    assert not torch.equal(said[0], said[1])


def test_a_model_without_links_is_among_what_noise_may_choose(blocks, tmp_path, monkeypatch):
    features = torch.nn.functional.one_hot(blocks.labels).float()  # which say all, and links say nothing more
    shuffled = torch.randint(120, (2, 300), generator=torch.Generator().manual_seed(0))
    links = torch.cat([shuffled, shuffled.flip(0)], dim=1).unique(dim=1)
    data = Data(x=features, edge_index=links[:, links[0] != links[1]], y=blocks.labels)
    clear = replace(blocks, name="cora", num_features=3, data=data)
    monkeypatch.setattr(bench, "load", lambda name, fetch: clear)
    monkeypatch.setattr(smoothing, "NOISES", (us.Flip(beta=0.9), us.AddDelete(p_add=0.0, p_delete=0.95)))
    monkeypatch.setattr(smoothing, "TRAINED_UNDER", {})
    wanted = cases((0,), ["cora"], ["inductive"], ["floors", "smoothed"])
    prepare(wanted, runs=tmp_path, samples=1000, say=lambda words: None)
    best = next(row for row in rows_of(results(tmp_path)) if row["method"] == "smoothed")
    assert best["model"].endswith("no links")
    assert best["base_accuracy"] == best["accuracy_edgeless"] == pytest.approx(1.0)
    assert best["certified_accuracy"]["5"] == pytest.approx(1.0)
