import json
import shlex

import numpy as np
import pytest

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
    assert found["floor"] is found["base"] is None  # which are about one answer
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
        (["--top", "2", "--positive", "1"], "--positive"),
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
