"""Small things that a newcomer reads: widths, numbers as typed, singular and plural, what an interrupt leaves."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.cli.frontier_tables import _advice
from unswayed.cli.unsmoothed import base_accuracy
from unswayed.report.frontier import Point
from unswayed.report.html import render
from unswayed.report.summary import summarise


def test_the_frontier_fits_eighty_columns(call, own, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = call(
        "frontier", *(word for word in own if word not in ("--beta", "0.9")), "--want-size", "1"
    )
    assert code == 0
    table = out[: out.index("unswayed certify")]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert "← take" in table
    assert "Trying beta 0.65 on 4 validation targets" in err
    assert "0.6500000" not in out + err


def test_the_frontier_never_recommends_what_it_calls_impossible(call, call_json, own):
    few = [word for word in own if word not in ("--beta", "0.9", "--samples", "200")]
    code, out, err = call("frontier", *few, "--samples", "15", "--want-size", "5")
    assert code == 0
    assert "15 samples are too few" in " ".join(err.split())
    assert "none is recommended" in " ".join(out.split())
    assert "← take" not in out
    assert "unswayed certify" not in out
    found = call_json("frontier", *few, "--samples", "15", "--want-size", "5")
    assert found["command"] is None
    assert not any(row["recommended"] for row in found["rows"])


def test_a_floor_of_few_targets_says_so(call, own):
    words = [word for word in own if word != "--no-floor"]
    _, out, _ = call("certify", *words, "--nodes", "8,9,10")
    assert "3 nodes are too few to compare models by" in " ".join(out.split())


@pytest.mark.parametrize("family", [True, False])
def test_one_is_not_many(family, call, own):
    _, out, err = call("certify", *own, "--nodes", "8", *(["--family"] if family else []))
    told = " ".join((out + err).split())
    assert "Polling 1 target," in told
    assert not re.search(r"\b1 (targets|nodes|certificates)\b|[Aa]ll 1\b", told)
    certs = us.certify(us.Votes.from_counts([[99, 1]], us.Flip(0.7), 9), family=family)
    assert "1 target," in repr(certs)


def test_an_interrupt_says_what_is_kept(call, own, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    words = [*(word for word in own if word not in ("--model", "mine.py:build")), "--model", "sage"]
    with monkeypatch.context() as patch:
        patch.setattr("unswayed.models.training.fit", stop)
        code, _, err = call("certify", *words, "--store", "run")
    assert code == 130
    assert "Stopped during training, of which nothing is kept" in err
    with monkeypatch.context() as patch:
        patch.setattr("unswayed.cli.plan.poll", stop)
        code, _, err = call("certify", *words, "--store", "run")
    assert code == 130
    assert "Stopped. Whatever was stored with --store is kept" in err


def test_the_title_names_the_files(call, own, here):
    call("certify", *own, "--report", "r.html")
    assert "mine.py:build on E.csv" in (here / "r.html").read_text()


def test_legends_list_what_is_drawn():
    votes = us.Votes.from_counts([[990, 10], [985, 15]], us.Flip(0.7), 9)
    right, wrong = (render(summarise(us.certify(votes), truth=truth)) for truth in ([0, 0], [0, 1]))
    legend = '<i class="swatch-wrong">'
    assert legend not in right
    assert legend in wrong
    assert '<i class="swatch-none">' not in right


def test_pictures_name_classes_and_nodes():
    import torch
    from torch_geometric.data import Data

    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), y=torch.tensor([0, 1, 1]), num_nodes=3)
    data.node_names = ["ann", "bob", "cem"]
    threat = us.Row(data, ["bob"])
    votes = us.Votes.from_counts(
        np.array([[10, 990]]), us.Flip(0.7), 2, targets=[1], classes=["honest", "fraud"],
        provenance={"threat": threat.describe()},
    )  # fmt: skip
    page = render(summarise(us.certify(votes), data=data), data)
    assert '"names":{"0":"ann","1":"bob","2":"cem"}' in page
    assert "label(picture.label[v]).slice(0, 3)" in page


def test_a_model_that_is_silent_where_the_truth_is_unknown_is_not_right():
    class Silent(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.full((len(x), 2), torch.nan).index_fill(0, torch.tensor([0]), 1.0)

    graph = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    plan = SimpleNamespace(
        targets=SimpleNamespace(truth=torch.tensor([0, -1, -1, 1])),
        dataset=SimpleNamespace(class_names=None, num_classes=2),
        noise=us.Flip(beta=0.8),
        device="cpu",
        threshold=None,
    )
    assert base_accuracy(plan, us.Row(graph, [0, 1, 2, 3]), Silent()) == 0.5  # of two known


def test_a_noise_that_proves_nearly_all_does_not_prove_all():
    point = Point(us.Flip(beta=0.8), (1.0, 0.997), ceiling=5)
    assert "proves 99.7% of the validation targets right" in _advice(point, 0.997, "K = 1", None)


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_frontier_cuts_no_number_and_its_command_says_what_stays_flagged(
    call, own, monkeypatch, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    words = [word for word in own if word not in ("--beta", "0.9")]
    code, out, err = call("frontier", *words, "--betas", "0.7,0.9", "--want-size", "1", "--positive", "0")
    assert code == 0, err
    table = out[: out.index("For K")]
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= width
    assert "k=1" in table
    assert "truly 0" in " ".join(table.split())
    assert out.rstrip().endswith("--positive 0")


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("certify", ("--csv", "E.csv")),
        ("certify", ("--report", "./X.csv")),
        ("certify", ("--csv", "mine.py")),
        ("certify", ("--csv", "r.html", "--report", "r.html")),
        ("prove", ("--csv", "Y.csv")),
    ],
)
def test_nothing_that_is_read_is_written_over(call, own, here, command, wrong):
    before = {path: path.read_bytes() for path in here.iterdir()}
    code, _, err = call(command, *(own if command == "certify" else own[:6]), *wrong)
    assert code == 2
    assert "choose another name" in err
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before


def test_nothing_that_is_not_ours_is_written_over(call, own, here):
    assert call("certify", *own, "--store", "run", "--report", "r.html", "--csv", "t.csv")[0] == 0
    before = (here / "E.csv").read_bytes()
    for wrong in (("--out", "E.csv"), ("--csv", "E.csv")):
        code, _, err = call("report", "run", *wrong)
        assert code == 2
        assert "E.csv is there already and is no report or table" in err
    assert (here / "E.csv").read_bytes() == before
    assert call("report", "run", "--out", "r.html", "--csv", "t.csv")[0] == 0


def test_a_report_leaves_the_votes_it_is_of(call, here):
    votes = us.Votes.from_counts([[900, 100]], us.Flip(beta=0.9), 9)
    votes.save(here / "votes.npz")
    code, _, err = call("report", "votes.npz", "--out", "votes.npz")
    assert code == 2
    assert "choose another name" in err
    assert us.load(here / "votes.npz") == votes
