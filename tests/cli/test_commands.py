import json
import re
import shlex

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us


def test_certify_says_what_the_library_says(call_json, own, here):
    found = call_json("certify", *own, "--store", "run", "--alpha", "0.01")
    certs = us.certify(us.load("run"), alpha=0.01)
    assert [row["size"] for row in found["targets"]] == certs.size.tolist()
    assert [row["label"] for row in found["targets"]] == certs.label.tolist()
    assert [row["target"] for row in found["targets"]] == ["8", "9", "10", "11"]
    accuracy = found["certified_accuracy"]
    assert list(accuracy.values()) == certs.accuracy([0, 1, 0, 1], at=[int(k) for k in accuracy]).tolist()
    assert found["floor"] is None


def test_certify_prints_a_table_a_curve_and_the_weakest(call, own):
    code, out, err = call("certify", *own, "--report", "r.html")
    assert code == 0
    for words in (
        "provably",
        "certified accuracy",
        "attack size k",
        "The weakest nodes",
        "The report is in r.html",
    ):
        assert words in out
    assert "K can reach at most" in err


def test_the_audit_is_told_in_json_and_report_and_so_is_its_absence(call_json, own, here):
    few = call_json("certify", *own, "--audit", "7", "--report", "r.html")
    assert few["notes"]["audit"] == {"asked": 7, "agreed": 7, "ties": 0}
    assert "--audit 7" in few["command"]
    assert "Of 7 counted answers asked again one graph at a time, 7 agreed" in (here / "r.html").read_text()
    none = call_json("certify", *own, "--audit", "0", "--report", "r.html", "--store", "run")
    assert none["notes"]["audit"] is None
    assert "--audit 0" in none["command"]
    assert "not audited" in (here / "r.html").read_text()
    assert "not audited" in us.certify(us.load("run")).statement(0)
    assert call_json("certify", *own)["notes"]["audit"]["asked"] == 300


def test_the_printed_command_does_the_same_again(call_json, own):
    first = call_json("certify", *own, "--nodes", "1,2", "--family")
    words = shlex.split(first["command"])
    assert words[:2] == ["unswayed", "certify"]
    again = call_json(*words[1:], "--no-floor")
    assert again["targets"] == first["targets"]
    assert again["family"] is True


def test_a_stored_run_resumes_without_asking_again(call_json, call, own, monkeypatch):
    first = call_json("certify", *own, "--store", "run")
    from unswayed.runners import SerialRunner

    def refuse(self, question, blocks):
        assert not list(blocks), "asked again"
        return iter(())

    monkeypatch.setattr(SerialRunner, "run", refuse)
    assert call_json("certify", *own, "--store", "run") == first


def test_more_samples_after_a_look_come_with_a_warning(call, own):
    call("certify", *own, "--store", "run")
    more = [word if word != "200" else "400" for word in own]
    assert "voids the confidence" in call("certify", *more, "--store", "run")[2]
    call("certify", *own, "--store", "other")
    code, _, err = call("certify", *more, "--store", "other", "--bounds", "anytime")
    assert code == 0
    assert "voids" not in err


def test_built_in_models_take_weights(call, call_json, own, here):
    from safetensors.torch import save_file

    from unswayed.models import build

    save_file(build("gcn", 3, 2).state_dict(), here / "W.safetensors")
    words = [word if word != "mine.py:build" else "gcn" for word in own]
    found = call_json("certify", *words, "--weights", "W.safetensors")
    assert len(found["targets"]) == 4


def test_asymmetric_noise_and_all_pairs(call_json, own):
    words = [*own[:-2], "--p-add", "0.01", "--p-delete", "0.3", "--threat", "all-pairs"]
    found = call_json("certify", *words, "--report", "r.html")
    assert found["noise"]["kind"] == "add-delete"
    assert "--p-add 0.01 --p-delete 0.3" in found["command"]


def test_asymmetric_noise_tells_additions_from_deletions(call, call_json, own):
    words = [*own[:-2], "--p-add", "0.01", "--p-delete", "0.4", "--store", "run"]
    found = call_json("certify", *words)
    certs = us.certify(us.load("run"))
    grid = certs.grid(20, 20)
    deletes = np.minimum(grid[:, 0].sum(axis=1) - 1, certs.about.ones)  # more are not there to be deleted
    assert [row["deletes"] for row in found["targets"]] == deletes.tolist()
    assert [row["adds"] for row in found["targets"]] == (grid[:, :, 0].sum(axis=1) - 1).tolist()
    assert max(row["deletes"] for row in found["targets"]) > max(row["size"] for row in found["targets"])
    assert found["certified_accuracy_deletes"]["0"] == found["certified_accuracy"]["0"]
    _, out, err = call("certify", *words)
    assert "deletions alone" in out
    assert "additions alone 0, deletions alone" in " ".join(err.split())


def test_no_target_exceeds_the_ceiling_where_some_attacks_do_not_exist(call_json, own, here):
    (here / "E.csv").write_text("source,target\n0,1\n1,2\n2,3\n")  # the test nodes have no link to delete
    words = [*own[:-2], "--p-add", "0.45", "--p-delete", "0.001"]
    found = call_json("certify", *words)
    assert 0 < max(row["size"] for row in found["targets"]) <= found["ceiling"]


def test_sampling_stops_where_a_size_is_settled(call, call_json, own):
    words = [word if word != "200" else "5000" for word in own]
    found = call_json("certify", *words, "--until-size", "0", "--store", "run")
    assert found["bounds"] == "anytime"
    assert all(row["samples"] < 5000 for row in found["targets"])
    assert "--until-size 0" in found["command"]
    votes = us.load("run")
    assert votes.adaptive
    assert [row["size"] for row in found["targets"]] == us.certify(votes, bounds="anytime").size.tolist()
    code, _, err = call("report", "run")
    assert code == 0
    assert "unfinished" not in err
    assert call_json("certify", *words, "--until-size", "0", "--store", "run")["targets"] == found["targets"]


def test_a_budget_of_time_keeps_what_was_counted(call, call_json, own):
    words = [word if word != "200" else "200000" for word in own]
    found = call_json("certify", *words, "--budget", "0.2", "--store", "run")
    assert found["bounds"] == "anytime"
    assert 0 < found["targets"][0]["samples"] < 200_000
    assert "--budget 0.2" in found["command"]
    assert us.load("run").adaptive
    assert call("certify", *words, "--budget", "0")[0] == 2
    assert "--bounds paper" in call("certify", *words, "--budget", "1", "--bounds", "paper")[2]


def three_classes(folder):
    parts = ["train"] * 6 + ["val"] * 3 + ["test"] * 3
    rows = [f"{node},{node % 3},{part}" for node, part in zip(range(12), parts, strict=True)]
    (folder / "Y.csv").write_text("node,label,split\n" + "\n".join(rows) + "\n")


def test_staying_among_the_most_probable_goes_everywhere(call, call_json, own, here):
    """Certify, report and explain know of top-k certificates by the protocol alone."""
    three_classes(here)
    found = call_json("certify", *own, "--top", "2", "--store", "run", "--report", "r.html")
    certs = us.certify_top(us.load("run"), 2)
    assert [row["size"] for row in found["targets"]] == certs.size.tolist()
    assert (found["kind"], found["k"]) == ("top", 2)
    assert "--top 2" in found["command"]
    assert max(row["size"] for row in found["targets"]) <= found["ceiling"]
    assert "2 most probable" in (here / "r.html").read_text()
    assert [row["size"] for row in call_json("report", "run")["targets"]] == certs.size.tolist()
    told = call_json("explain", "9", "--store", "run")
    assert "2 most probable" in told["statement"]
    assert "2 most probable" in " ".join(call("explain", "9", "--store", "run")[1].split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--top", "3"], "from 1 to 2"),
        (["--top", "2", "--bounds", "paper"], "strict or anytime"),
        (["--top", "2", "--until-size", "3"], "--budget"),
        (["--alpha", "0.5"], "below 0.5"),
    ],
)
def test_what_cannot_be_certified_is_refused_before_sampling(call, own, here, words, said, monkeypatch):
    import unswayed.cli.plan as plan

    monkeypatch.setattr(plan, "poll", lambda *a, **k: pytest.fail("asked"))
    three_classes(here)
    code, _, err = call("certify", *own, *words)
    assert code == 2
    assert said in " ".join(err.split())


def test_a_default_model_fits_the_task(call_json, here):
    from unswayed.cli.certify import make_plan, words_of

    files = {"edges": here / "E.csv", "features": here / "X.csv", "labels": here / "Y.csv"}
    assert make_plan(words_of(files), None).model == "gcn-mean"


@pytest.mark.parametrize(("want", "warned"), [(1, False), (40, True)])
def test_warns_before_sampling_when_the_wanted_size_is_out_of_reach(call, own, want, warned, monkeypatch):
    import unswayed.cli.plan as plan

    said = []
    poll = plan.poll
    monkeypatch.setattr(plan, "warn", said.append)
    monkeypatch.setattr(plan, "poll", lambda *a, **k: (said.append("POLL"), poll(*a, **k))[1])
    assert call("certify", *own, "--want-size", str(want))[0] == 0
    assert said[-1] == "POLL"
    assert (len(said) == 2) == warned
    assert not warned or "out of reach" in said[0]


def test_the_ceiling_that_is_told_is_never_exceeded(call_json, own):
    found = call_json("certify", *own)
    assert max(row["size"] for row in found["targets"]) <= found["ceiling"]


def test_report_of_a_store_needs_neither_model_nor_data(call, own, here):
    call("certify", *own, "--store", "run")
    for file in ("E.csv", "X.csv", "Y.csv", "mine.py"):
        (here / file).unlink()
    code, out, _ = call("report", "run", "--out", "r.html")
    assert code == 0
    page = (here / "r.html").read_text()
    assert "r.html" in out
    assert "mine.py:build on E" in page
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


def test_explain_from_a_store_and_afresh_agree(call_json, own):
    call_json("certify", *own, "--store", "run")
    stored = call_json("explain", "9", "--store", "run")
    plain = [word for word in own if word != "--no-floor"]
    fresh = call_json("explain", "9", *plain)
    assert stored["votes"] == fresh["votes"]
    assert stored["size"] == fresh["size"]
    promise = [
        told["statement"].partition(" Of ")[0] for told in (stored, fresh)
    ]  # audits are of different runs
    assert promise[0] == promise[1]
    assert "agreed" in stored["statement"]


def test_explain_is_readable(call, own):
    call("certify", *own, "--store", "run")
    code, out, _ = call("explain", "9", "--store", "run")
    assert code == 0
    for words in ("The ceiling", "at least", "at most", "K = "):
        assert words in out


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


def test_demo_speaks_json(call_json, monkeypatch, offline):
    from unswayed.cli import demo

    monkeypatch.setattr(demo, "SAMPLES", 1000)
    monkeypatch.setitem(demo.QUICK, "steps", 25)
    told = call_json("demo", "--dataset", "blocks")
    assert list(told["certified_accuracy"]) == [
        "proved, label ballots", "proved, trained network", "smoothed, label ballots",
    ]  # fmt: skip
    assert told["certified_accuracy"]["proved, label ballots"]["5"] > told["floor"]


def test_demo_knows_its_datasets(call):
    code, _, err = call("demo", "--dataset", "mutag")
    assert code == 2
    assert "highschool, blocks or cora" in err


def test_names_of_own_nodes_are_used(call_json, own, here):
    for file in ("E.csv", "X.csv", "Y.csv"):
        lines = (here / file).read_text().splitlines()
        ends = 2 if file == "E.csv" else 1
        named = [
            ",".join([f"n{cell}" if place < ends else cell for place, cell in enumerate(line.split(","))])
            for line in lines[1:]
        ]
        (here / file).write_text("\n".join([lines[0], *named]) + "\n")
    found = call_json("certify", *own, "--nodes", "n3,n5")
    assert [row["target"] for row in found["targets"]] == ["n3", "n5"]


def test_unknown_labels_are_no_truth(call_json, own, here):
    (here / "Y.csv").write_text("node,label\n" + "".join(f"{node},{node % 2}\n" for node in range(11)))
    found = call_json("certify", *own, "--nodes", "11")
    assert found["targets"][0]["truth"] is None
    assert "share_certified" in found


def test_json_is_strict(call, own):
    _, out, _ = call("certify", *own, "--json")
    json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert np.isfinite(json.loads(out)["targets"][0]["p_top"])


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


def test_one_attacker_and_many_targets(call_json, call, own):
    found = call_json(
        "certify", *own, "--threat", "all-pairs", "--family", "--shared", "25", "--report", "r.html"
    )
    assert found["shared"]["budget"] == 25
    assert found["shared"]["at_most"] == sum(0 <= row["size"] < 25 for row in found["targets"])
    assert "25 changes in total can flip at most" in found["shared"]["sentence"]
    with open("r.html", encoding="utf-8") as page:
        assert "25 changes in total can flip at most" in page.read()
    refused = call_json("certify", *own, "--shared", "25")
    assert refused["shared"]["at_most"] is None
    assert "family=True" in refused["shared"]["sentence"]
    assert call_json("certify", *own)["shared"] is None
    _, out, _ = call("certify", *own, "--family", "--shared", "3")
    assert "covers that row alone" in " ".join(out.split())


ODD = """
import torch

class Odd(torch.nn.Module):
    def forward(self, x, edge_index):
        return torch.einsum("nf->nf", x[:, :2])

def build():
    return Odd().eval()
"""
DELETING = ("--threat", "all-pairs", "--p-add", "0", "--p-delete", "0.9", "--family", "--samples", "2000")


def test_one_attacker_who_deletes_is_bounded_by_what_each_node_sees(call_json, call, own, here):
    """A ring: a network of two rounds sees the four edges around a node, so one edge counts for few of the nodes."""
    words = [*plain(own), *DELETING, "--p-delete", "0.05", "--nodes", "all", "--model", "sage"]
    found = call_json("certify", *words, "--shared", "2", "--store", "run", "--report", "r.html")["shared"]
    ring = torch.tensor([(i, (i + 1) % 12) for i in range(12)]).T
    data = Data(edge_index=torch.cat([ring, ring.flip(0)], dim=1), num_nodes=12)
    fields = us.receptive_fields(data, range(12), layers=2)
    assert {len(field) for field in fields} == {4}
    certs = us.certify(us.load("run"), family=True)
    assert (found["how"], found["at_most"]) == ("anywhere", certs.shared(2))
    fewer = found["deletions"]
    assert fewer["how"] == "fields"
    assert fewer["at_most"] == certs.shared(2, change="deletes", fields=fields)
    assert 0 < fewer["at_most"] < certs.shared(2, change="deletes")
    assert found["sentence"].endswith(fewer["sentence"])
    assert "counted one by one" in found["sentence"]
    assert found["sentence"].count("nothing is promised") <= 1
    assert "2 deletions in total can flip at most" in fewer["sentence"]
    assert "by a linear programme" in fewer["sentence"]
    assert fewer["sentence"] in (here / "r.html").read_text(encoding="utf-8")
    assert call_json("report", "run", "--shared", "2")["shared"] == found
    assert fewer["sentence"] in " ".join(
        call("certify", *words, "--shared", "2", "--store", "run")[1].split()
    )


@pytest.mark.parametrize(
    "other",
    [
        ("--model", "odd.py:build"),  # nobody knows how far it sees
        ("--p-add", "0.01"),  # noise brings edges from anywhere
        ("--threat", "row"),
    ],
)
def test_deletions_are_not_counted_by_sight_where_that_is_not_allowed(call_json, own, here, other):
    (here / "odd.py").write_text(ODD)
    words = [*plain(own), *DELETING, "--model", "sage", *other]
    found = call_json("certify", *words, "--shared", "2")["shared"]
    assert found["deletions"] is None
    assert "programme" not in found["sentence"]


def test_what_a_run_remembers_of_its_models_sight_is_checked(call, call_json, own, here):
    call_json("certify", *plain(own), *DELETING, "--model", "gcn", "--store", "run")
    path = here / "run" / "run.json"
    kept = json.loads(path.read_text())
    assert kept["sees"] == {"layers": 2, "degrees": True}
    path.write_text(json.dumps({**kept, "sees": {"layers": "2", "degrees": True}}))
    code, _, err = call("report", "run")
    assert code != 0
    assert "damaged" in err
    del kept["sees"]  # a run from before it was kept
    path.write_text(json.dumps(kept))
    assert call_json("report", "run", "--shared", "2")["shared"]["deletions"] is None


def plain(own):
    """The words without their noise."""
    at = own.index("--beta")
    return own[:at] + own[at + 2 :]


def test_kept_seats_are_certified(call_json, own):
    found = call_json("certify", *plain(own), "--keep", "2/5")
    assert found["noise"] == {"kind": "keep", "kept": 2, "seats": 5}
    assert "--keep 2/5" in found["command"]
    assert all(row["adds"] >= row["size"] for row in found["targets"])


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


def test_what_stays_flagged_is_told_everywhere(call, call_json, own, here):
    code, out, _ = call("certify", *own, "--positive", "1", "--store", "run", "--report", "r.html")
    assert code == 0
    assert "1 stays flagged" in out
    assert "that are truly 1" in " ".join(out.split())
    assert "Stays flagged" in (here / "r.html").read_text()
    found = call_json("report", "run", "--out", "again.html")
    certs = us.certify(us.load("run"))
    sizes = [int(k) for k in found["recall"]]
    assert list(found["recall"].values()) == certs.recall([0, 1, 0, 1], 1, at=sizes).tolist()
    assert list(found["precision"].values()) == certs.precision([0, 1, 0, 1], 1, at=sizes).tolist()
    assert "Stays flagged" in (here / "again.html").read_text()


def test_a_model_of_one_logit_is_certified_with_a_threshold(call, call_json, own, here):
    (here / "mine.py").write_text((here / "mine.py").read_text() + "\ndef one(): return Net(3, 1)\n")
    words = [word.replace(":build", ":one") for word in own]
    code, _, err = call("certify", *words)
    assert code == 2
    assert "threshold=0 for a logit" in err
    found = call_json("certify", *words, "--threshold", "0", "--positive", "1")
    assert set(found["recall"]) == set(found["precision"])
    assert "--threshold 0.0 --positive 1" in found["command"]


def test_a_model_of_one_logit_is_swept_and_attacked_with_the_same_threshold(call, call_json, own, here):
    words = [word for word in own if word not in ("--model", "mine.py:build", "--beta", "0.9")]
    words += ["--model", "mine.py:flat", "--threshold", "0", "--positive", "1"]
    swept = call_json("frontier", *words, "--betas", "0.8,0.9", "--want-size", "0")
    assert "--threshold 0.0 --positive 1" in swept["command"]
    tried = ["--no-beyond", "--attempts", "1", "--judge-samples", "100", "--kind", "random"]
    attacks = [word for word in words if word != "--no-floor"]
    code, out, err = call("attack", *attacks, "--beta", "0.9", *tried)
    assert code == 0, err
    assert "none succeeded" in out


def test_one_account_can_be_asked_about_though_it_is_not_positive(call, own):
    code, out, err = call("certify", *own, "--positive", "1", "--nodes", "8")
    assert code == 0
    assert "None of the targets is truly 1" in " ".join(err.split())
    assert "stays flagged" not in out


def test_above_the_threshold_is_the_positive_label_wherever_its_name_sorts(call, call_json, own, here):
    mine = (here / "mine.py").read_text()
    (here / "mine.py").write_text(mine + "\ndef one(): return Net(3, 1)\n")
    words, shares = [word.replace(":build", ":one") for word in own], {}
    lines = (here / "Y.csv").read_text().splitlines()
    for positive in ("fraud", "z-fraud"):
        named = [line.replace(",1,", f",{positive},").replace(",0,", ",ok,") for line in lines]
        (here / "Y.csv").write_text("\n".join(named) + "\n")
        code, _, err = call("certify", *words, "--threshold", "0")
        assert code == 2
        assert f"--positive: {min(positive, 'ok')} or" in " ".join(err.split())
        found = call_json("certify", *words, "--threshold", "0", "--positive", positive)
        place = sorted([positive, "ok"]).index(positive)
        shares[positive] = (found["base"], [row["label"] == place for row in found["targets"]])
    assert shares["fraud"] == shares["z-fraud"]


def test_a_factory_is_trained_under_noise_and_kept(call, call_json, own, here):
    words = [*own, "--recipe", "noise", "--store", "run"]
    code, _, err = call("certify", *words)
    assert code == 0
    assert "Training mine.py:build on E (noise, transductive; one thread, so that" in " ".join(err.split())
    assert "as its factory makes it" not in err
    assert (here / "run" / "weights.safetensors").exists()
    code, _, err = call("certify", *words)  # goes on with the weights that were kept
    assert code == 0
    assert "Training" not in err
    found = call_json("certify", *words, "--report", "r.html")
    assert "--recipe noise" in found["command"]
    why = "one thread, so that equal seeds give equal weights on any number of cores"
    assert found["training"]["threads"] == why
    assert why in (here / "r.html").read_text()


ATTRIBUTES = """
import torch
from torch_geometric.nn import GraphConv

class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GraphConv(3, 2)
    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(x, edge_index, edge_weight)

def likeness(i, j, x):
    return 1 / (1 + (x[i] - x[j]).abs().sum(dim=1))

def even(i, j):
    return ((i + j) % 2).float()
"""


@pytest.mark.parametrize(("threat", "links"), [("row", "in"), ("all-pairs", "all")])
def test_directed_edges_are_certified_as_such(call_json, own, here, threat, links):
    found = call_json("certify", *own, "--directed", "--threat", threat, "--store", "run")
    dataset, _ = us.datasets.read_csv("E.csv", "X.csv", "Y.csv", directed=True)
    assert not dataset.graph.is_undirected()
    threat = us.Directed(dataset.graph, [8, 9, 10, 11], links)
    votes = us.load("run")
    assert votes.provenance["threat"]["arcs"] == threat.describe()["arcs"]
    assert votes.provenance["threat"]["links"] == links
    assert [row["size"] for row in found["targets"]] == us.certify(votes).size.tolist()
    assert "--directed" in found["command"]


@pytest.mark.parametrize("function", ["likeness", "even"])
def test_edges_have_the_attributes_that_a_function_gives_them(call_json, own, here, function):
    (here / "weights.py").write_text(ATTRIBUTES)
    words = [word.replace("mine.py:build", "weights.py:Weighted") for word in own]
    found = call_json("certify", *words, "--edge-attr", f"weights.py:{function}", "--store", "run")
    namespace = {}
    exec(ATTRIBUTES, namespace)
    dataset, _ = us.datasets.read_csv("E.csv", "X.csv", "Y.csv")
    x, given = dataset.graph.x, namespace[function]
    attributes = given if function == "even" else lambda i, j: given(i, j, x)
    threat = us.Row(dataset.graph, [8, 9, 10, 11], edge_attr=attributes)
    votes = us.poll(namespace["Weighted"](), threat, us.load("run").noise, samples=us.load("run").samples[0])
    assert votes.counts.tolist() == us.load("run").counts.tolist()
    assert f"--edge-attr weights.py:{function}" in found["command"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--directed", "--threat", "inject", "--hide", "0.9/0.5"], "knows neither --directed"),
        (["--directed", "--recipe", "noise"], "noise of undirected edges"),
        (["--edge-attr", "mine.py:build", "--recipe", "noise"], "trains without edge attributes"),
        (["--edge-attr", "none.py:f"], "There is no file none.py; --edge-attr takes file.py:function."),
        (["--edge-attr", "mine.py:none"], "mine.py has no function 'none'"),
    ],
)
def test_what_directions_and_attributes_do_not_go_with_is_said(call, own, more, sentence):
    words = plain(own) if "--hide" in more else own
    code, _, err = call("certify", *words, *more)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_directions_and_attributes_are_for_ones_own(call):
    code, _, err = call("certify", "--dataset", "karate", "--directed")
    assert (code, "for your own --edges" in err) == (2, True)
    code, _, err = call("certify", "--dataset", "karate", "--edge-attr", "a.py:f")
    assert (code, "for a model of your own" in err) == (2, True)


def test_fake_nodes_are_certified_against_from_the_command_line(call_json, own, here):
    asked = ("certify", *plain(own), "--threat", "inject", "--hide", "0.9/0.25")
    few = call_json(*asked, "--links", "1", "--store", "run")
    assert few["noise"] == us.Hide(0.9, 0.25, links=1).to_dict()
    for words in ("--threat inject", "--hide 0.9/0.25", "--links 1"):
        assert words in few["command"]
    many = call_json(*asked)
    assert many["noise"]["links"] is None
    sizes = [[row["size"] for row in found["targets"]] for found in (few, many)]
    assert all(a >= b for a, b in zip(*sizes, strict=True))
    assert us.certify(us.load("run")).size.tolist() == sizes[0]


def test_fake_nodes_are_of_one_kind_and_nothing_is_said_of_deletions(call, call_json, own, here):
    asked = ("certify", *plain(own), "--threat", "inject", "--hide", "0.9/0.25", "--store", "run")
    _, out, err = call(*asked, "--report", "r.html")
    assert "additions alone" not in out + err
    assert "deletions alone" not in out + err
    found = call_json(*asked)
    for told in (found, found["targets"][0], call_json("explain", "9", "--store", "run")):
        assert not any(name.endswith(("adds", "deletes")) for name in told)
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "median K of additions alone" not in page
    assert "Adds and deletes" not in page
    facts = json.loads(page.split('id="facts">')[1].split("</script>")[0])
    assert {"adds", "deletes"}.isdisjoint(facts["columns"])
    assert {"adds", "deletes"}.isdisjoint(us.certify(us.load("run")).to_frame().columns)
    _, out, _ = call("certify", *own)
    assert "deletions alone" in out


def test_no_answer_is_no_rival_where_that_is_asked_for(call_json, own, here):
    found = call_json("certify", *own, "--rivals", "labels", "--store", "run")
    assert found["rivals"] == "labels"
    assert "--rivals labels" in found["command"]
    assert call_json("report", "run", "--out", "r.html")["rivals"] == "labels"
    certs = us.certify(us.load("run"), rivals="labels")
    assert [row["size"] for row in found["targets"]] == certs.size.tolist()


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
