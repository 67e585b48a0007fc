"""What was counted is looked at again: report, explain, frontier, demo and the list of datasets."""

import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.datasets import KarateClub

import unswayed as us
from unswayed.rounding import percent

from .words import plain


def test_report_of_a_store_needs_neither_model_nor_data(call, own, here):
    call("certify", *own, "--store", "run")
    for file in ("E.csv", "X.csv", "Y.csv", "mine.py"):
        (here / file).unlink()
    code, out, _ = call("report", "run", "--out", "r.html")
    assert code == 0
    page = (here / "r.html").read_text()
    assert "r.html" in out
    assert "mine.py:build on E.csv" in page
    assert '"near":{"' in page


def test_report_of_an_unfinished_run_says_so(call, own, monkeypatch):
    from unswayed.runners import SerialRunner

    run = SerialRunner.run

    def interrupted(self, question, blocks):
        yield next(iter(run(self, question, blocks)))
        raise KeyboardInterrupt

    monkeypatch.setattr(SerialRunner, "run", interrupted)
    long = [word if word != "200" else "3000" for word in own]
    assert call("certify", *long, "--store", "run")[0] == 130
    code, _, err = call("report", "run")
    assert code == 0
    assert re.search(r"run is unfinished: (32|1,000) of 3,000 samples", " ".join(err.split()))
    monkeypatch.undo()


@pytest.mark.parametrize("look", [["report", "run"], ["explain", "9", "--store", "run"]])
def test_more_samples_than_were_certified_are_warned_of_wherever_they_are_looked_at(call, own, look):
    more = [word if word != "200" else "400" for word in own]
    assert call("certify", *more, "--store", "run")[0] == 0
    assert "certified before" not in call(*look)[2]
    assert "certified before" in call("certify", *own, "--store", "run")[2]  # with fewer
    err = " ".join(call(*look)[2].split())
    assert "holds 400 samples" in err
    assert (
        "certified before, at 200 samples. Changing the number after seeing the result voids the confidence"
        in err
    )


def test_report_of_votes_made_from_python(call, here):
    (here / "run").mkdir()
    us.Votes.from_counts([[99, 1], [50, 50]], us.Flip(beta=0.7), 9).save(here / "v.npz")
    assert call("report", "v.npz", "-o", "r.html")[0] == 0
    assert "Certified robustness" in (here / "r.html").read_text()


def test_report_at_another_confidence(call, call_json, own, here):
    call_json("certify", *own, "--store", "run")
    assert "spends the confidence" not in call("report", "run", "--alpha", "0.001")[2]
    err = call("report", "run", "--alpha", "0.01", "--bounds", "tight", "--out", "r.html")[2]
    assert "Choosing alpha and bounds after looking at a result spends the confidence" in " ".join(
        err.split()
    )
    assert "spends the confidence" in (here / "r.html").read_text()
    loose, tight = (call_json("report", "run", "--alpha", alpha) for alpha in ("0.2", "0.0001"))
    assert loose["alpha"] == 0.2
    assert all(a["p_top"] > b["p_top"] for a, b in zip(loose["targets"], tight["targets"], strict=True))


@pytest.mark.parametrize("more", [["--alpha", "0.01"], ["--bounds", "tight"], ["--rivals", "labels"]])
def test_certifying_a_store_again_at_another_level_is_warned_of_as_in_a_report(call, own, more):
    call("certify", *own, "--store", "run")
    assert "spends the confidence" not in call("certify", *own, "--store", "run")[2]
    err = call("certify", *own, "--store", "run", *more)[2]
    assert f"choosing {more[0][2:]} after looking at a result spends the confidence" in " ".join(err.split())


def test_explain_from_a_store_and_afresh_agree(call_json, own):
    call_json("certify", *own, "--store", "run")
    stored = call_json("explain", "9", "--store", "run")
    plain = [word for word in own if word != "--no-floor"]
    fresh = call_json("explain", "9", *plain)
    assert stored["votes"] == fresh["votes"]
    assert stored["size"] == fresh["size"]
    # audits are of different runs
    promise = [told["statement"].partition(" Of ")[0] for told in (stored, fresh)]
    assert promise[0] == promise[1]
    assert "agreed" in stored["statement"]


def test_explain_is_readable(call, own):
    call("certify", *own, "--store", "run")
    code, out, _ = call("explain", "9", "--store", "run")
    assert code == 0
    for words in ("The ceiling", "at least", "at most", "K = "):
        assert words in out


def test_explain_of_nothing_tells_of_stores(call):
    code, _, err = call("explain", "113")
    assert code == 2
    assert "unswayed explain 113 --store FOLDER" in " ".join(err.split())


def test_explain_refuses_strangers(call, own):
    call("certify", *own, "--store", "run")
    code, _, err = call("explain", "77", "--store", "run")
    assert code == 2
    assert "'77'" in err
    assert "8, 9" in err


def test_frontier_recommends_on_validation_targets(call_json, own):
    words = [*own[:-2], "--betas", "0.6,0.9,0.97", "--want-size", "0", "--count", "3"]
    found = call_json("frontier", *words)
    assert [round(row["beta"], 6) for row in found["rows"]] == [0.6, 0.9, 0.97]
    best = max(row["certified_accuracy"]["0"] for row in found["rows"])
    chosen = [row for row in found["rows"] if row["recommended"]]
    assert len(chosen) == 1
    assert chosen[0]["certified_accuracy"]["0"] == best
    assert f"--beta {round(chosen[0]['beta'], 6)}" in found["command"]
    assert "--nodes" not in found["command"]


def test_frontier_for_deletions_alone(call, call_json, own):
    words = [*own[:-2], "--p-adds", "0.01", "--p-deletes", "0.1,0.4", "--want-deletes", "2"]
    found = call_json("frontier", *words)
    assert (found["want_adds"], found["want_deletes"]) == (0, 2)
    best = max(row["certified_accuracy_wanted"] for row in found["rows"])
    assert best > 0
    assert [row["certified_accuracy_wanted"] for row in found["rows"] if row["recommended"]] == [best]
    out = call("frontier", *words)[1]
    assert "+0 −2" in out
    assert "0 additions and 2 deletions" in " ".join(out.split())


def test_frontier_never_uses_the_noise_that_certifies(call, own, monkeypatch):
    import unswayed.cli.plan as plan

    asked = []
    poll = plan.poll
    monkeypatch.setattr(
        plan, "poll", lambda *a, **k: (asked.append((a[1].targets.tolist(), k["purpose"])), poll(*a, **k))[1]
    )
    code, out, _ = call(
        "frontier", *own[:-2], "--p-adds", "0.01,0.1", "--p-deletes", "0.3", "--want-size", "1"
    )
    assert code == 0
    assert asked == [([4, 5, 6, 7], "select")] * 2
    assert "← take" in out
    assert "unswayed certify" in out


def test_frontier_on_graphs_asks_about_strangers(call, monkeypatch, here):
    from torch_geometric.data import Data

    from unswayed.cli import inputs, models
    from unswayed.datasets import Dataset, split
    from unswayed.models import build, training

    graph = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    many = tuple(Data(**graph.to_dict(), y=torch.tensor([place % 2])) for place in range(60))
    toys = Dataset("toys", "graph", 2, 2, graphs=many)
    monkeypatch.setattr(inputs, "fetch", lambda name: toys)
    shown = []

    def fit(name, dataset, parts, **more):
        shown.append(parts)
        return build("gin", 2, 2, task="graph")

    monkeypatch.setattr(training, "fit", fit)
    monkeypatch.setattr(models, "make_floor", lambda plan: shown.append(plan.split))
    words = "frontier --dataset toys --model gin --recipe noise --betas 0.9 --samples 50 --want-size 0"
    code, _, err = call(*words.split())
    assert code == 0, err
    assert "also trained on" not in err
    asked = set(split(toys, 0).val.tolist())
    assert len(shown) == 2  # the floor's and the network's
    assert all(asked.isdisjoint([*parts.train.tolist(), *parts.val.tolist()]) for parts in shown)
    certify = words.replace("frontier", "certify").replace(" --betas 0.9", "").replace(" --want-size 0", "")
    assert "also trained on or chosen with" in call(*certify.split(), "--nodes", "val", "--no-floor")[2]


def test_demo_on_cora_falls_back_to_the_karate_club(call, monkeypatch, here, offline):
    from unswayed.cli import demo

    monkeypatch.setitem(demo.CORA, "samples", 200)
    code, out, err = call("demo", "--dataset", "cora")
    assert code == 0, err
    assert "could not be fetched" in err.replace("\n", " ")
    assert str(here / "unswayed-report.html") in out
    assert "floor" in out
    assert (here / "unswayed-report.html").stat().st_size < 3_000_000


@pytest.fixture
def offline(monkeypatch):
    from unswayed.cli import inputs
    from unswayed.errors import WorldError

    def fail(*_, **__):
        raise WorldError("no network.")

    monkeypatch.setattr(inputs, "find", lambda entry: None)
    monkeypatch.setattr(inputs, "load", fail)


def test_demo_without_a_network_runs_on_a_made_up_graph_and_ends_in_what_it_means(
    call, monkeypatch, here, offline
):
    from unswayed.cli import demo

    monkeypatch.setattr(demo, "SAMPLES", 1000)
    monkeypatch.setitem(demo.QUICK, "steps", 25)
    code, out, err = call("demo")
    assert code == 0, err
    assert "made-up graph instead" in err.replace("\n", " ")
    assert "here certificates pay" in out
    assert "unswayed demo --dataset cora" in out.splitlines()[-1]
    assert (here / "unswayed-report.html").stat().st_size < 3_000_000


def test_a_demo_says_how_to_get_at_its_commands(here, monkeypatch):
    from unswayed.cli import demo

    folder = here / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "activate").write_text("")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr(sys, "prefix", str(folder.parent))
    monkeypatch.setenv("PATH", "/usr/bin")
    assert demo._first().split(maxsplit=4)[-1] == "source .venv/bin/activate\n"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin")
    assert demo._first() == ""
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert demo._first() == ""


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_table_of_a_demo_cuts_nothing_off(width):
    from rich.console import Console

    from unswayed.cli import demo
    from unswayed.report.terminal import fitting

    club = KarateClub()[0]
    proofs = us.prove(us.LabelBallots(4).freeze(club, known=club.y), us.Row(club, [0, 1, 2]))
    votes = us.Votes.from_counts([[10_000, 0]] * 3, us.Flip(beta=0.7), 50)
    found = {"proved, trained network": proofs, "smoothed, label ballots": us.certify(votes)}
    shown = demo.Shown(found, np.zeros(3, int), 0.25)
    place = Console(width=width, record=True, file=io.StringIO())
    place.print(fitting(place, 2, lambda most: demo._table(shown, most)))
    said = place.export_text()
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    assert percent(shown.shares("smoothed, label ballots")[-1]) in said
    assert ("99.9% each" in said) == (width >= 80)


def test_a_demo_calls_nothing_all_that_is_not():
    from unswayed.cli import demo

    almost = SimpleNamespace(confidence=None, accuracy=lambda truth, at: np.full(len(at), 259 / 260))
    told = demo.Shown({"proved": almost}, None, 0.001).sentence
    assert told.startswith(
        "99.6% right → 99.6% proved right against any 5 changed links → 0.1% without links"
    )


def test_demo_speaks_json(call_json, monkeypatch, offline):
    from unswayed.cli import demo

    monkeypatch.setattr(demo, "SAMPLES", 1000)
    monkeypatch.setitem(demo.QUICK, "steps", 25)
    told = call_json("demo", "--dataset", "blocks")
    assert list(told["certified_accuracy"]) == [
        "proved, label ballots", "proved, trained network", "smoothed, label ballots",
    ]  # fmt: skip
    assert told["certified_accuracy"]["proved, label ballots"]["5"] > told["floor"]


def test_the_karate_club_needs_no_fetching_and_is_among_what_there_is(call):
    code, out, err = call("data", "fetch", "karate")
    assert (code, out) == (0, "")
    assert "karate needs no download" in err
    for words in (("data", "fetch", "cara"), ("prove", "--dataset", "cara")):
        code, _, err = call(*words)
        assert code == 2
        assert "imdb-binary, karate, or give" in " ".join(err.split())


def test_what_cannot_be_fetched_is_said_once(call, monkeypatch):
    from unswayed.datasets import sources
    from unswayed.errors import WorldError

    def fail(about, fetch):
        raise WorldError(f"{about.name} could not be fetched: no network.")

    monkeypatch.setattr(sources, "locate", fail)
    code, _, err = call("data", "fetch", "polblogs")
    assert (code, err) == (1, "unswayed: polblogs could not be fetched: no network.\n")
    code, _, err = call("data", "fetch", "polblogs", "cora")
    assert code == 1
    assert err.count("no network") == 2
    assert err.endswith("Of 2 datasets these could not be fetched: polblogs, cora.\n")


def test_demo_knows_its_datasets(call):
    code, _, err = call("demo", "--dataset", "mutag")
    assert code == 2
    assert "highschool, blocks or cora" in err


def test_a_damaged_dataset_is_listed_beside_the_others(call, here, monkeypatch):
    monkeypatch.setenv("UNSWAYED_DATA", str(here))
    from unswayed.datasets import catalog

    entry = catalog.entry("mutag")
    raw = here / entry.folder / "raw"
    raw.mkdir(parents=True)
    for file in entry.files:
        (raw / file).write_text("damaged")
    code, out, _ = call("data", "list", "--json")
    assert code == 0
    rows = {row["dataset"]: row for row in json.loads(out)["rows"]}
    assert list(rows) == list(catalog.NAMES)
    assert "sha256" in rows["mutag"]["problem"]
    assert "sha256" in call("data", "list")[1]


def test_the_frontier_tries_every_kind_of_noise(call_json, own):
    words = [*plain(own), "--count", "2", "--betas", "0.7", "--all-noises", "--want-adds", "1"]
    found = call_json("frontier", *words)
    kinds = [row["kind"] for row in found["rows"]]
    assert {"flip", "add-delete", "keep"} == set(kinds)
    assert sum(row["recommended"] for row in found["rows"]) == 1
    best = max(found["rows"], key=lambda row: row["certified_accuracy_wanted"])
    chosen = next(row for row in found["rows"] if row["recommended"])
    assert chosen["certified_accuracy_wanted"] == best["certified_accuracy_wanted"]
    more = call_json("frontier", *plain(own), "--count", "2", "--betas", "0.7", "--keeps", "2/5,1/5")
    assert [row["kind"] for row in more["rows"]] == ["flip", "keep", "keep"]


def test_a_frontier_tells_additions_from_deletions(call_json, call, own):
    asked = (
        "frontier",
        *plain(own),
        "--count",
        "2",
        "--p-adds",
        "0.01",
        "--p-deletes",
        "0.6",
        "--want-size",
        "1",
    )
    row = call_json(*asked)["rows"][0]
    assert (
        row["certified_accuracy_adds"]["0"]
        == row["certified_accuracy_deletes"]["0"]
        == row["certified_accuracy"]["0"]
    )
    _, out, _ = call(*asked)
    assert "+1" in out
    assert "−1" in out
