"""One attacker against many targets, on the command line."""

import json

import pytest
import torch
from torch_geometric.data import Data

import unswayed as us

from .words import plain


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
    assert "--family" in refused["shared"]["sentence"]
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


FARTHER = """
import torch
from torch_geometric.nn import SAGEConv

class Farther(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(SAGEConv(3, 3) for _ in range(3))
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x, edge_index):
        h = self.layers[0](x, edge_index)
        if {asked}:
            h = self.layers[2](self.layers[1](h, edge_index), edge_index)
        return self.last(h)

def build():
    return Farther()
"""


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("not self.training", {"layers": 3, "degrees": False}),
        ("type(x) is torch.Tensor", None),  # which no trace shows
    ],
)
def test_a_model_sees_as_far_as_when_it_is_asked(call_json, own, here, asked, seen):
    (here / "farther.py").write_text(FARTHER.replace("{asked}", asked))
    words = [*plain(own), *DELETING, "--model", "farther.py:build", "--store", "run"]
    found = call_json("certify", *words, "--samples", "100", "--shared", "2")["shared"]
    assert json.loads((here / "run" / "run.json").read_text())["sees"] == seen
    assert (found["deletions"] is None) == (seen is None)
