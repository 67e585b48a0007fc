"""A family of certificates that the package has never heard of: one class here, and files, reports and commands serve it."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import unswayed as us
from unswayed.certificates import About, Bar, Certified, Column
from unswayed.cli.main import main


@dataclass(frozen=True, eq=False)
class Majorities(Certified):
    """A vote of the entries themselves: the label is 1 where more than half of them are there."""

    margin: np.ndarray
    kind = "majorities"
    method = "counting"
    confidence = None

    @classmethod
    def of(cls, x):
        ones, n = x.sum(axis=1), x.shape[1]
        label = (2 * ones > n).astype(np.int64)
        margin = np.where(label == 1, ones - n // 2 - 1, n // 2 - ones)
        about = About(np.arange(len(x)), np.full(len(x), n), 2, ones, {"words": {"unit": "ballot"}})
        return cls(label, margin, about, margin)

    def sizes(self, change="any"):
        room = {"any": self.about.entries, "adds": self.about.zeros, "deletes": self.about.ones}[change]
        harmless = {"any": None, "adds": 1, "deletes": 0}[change]
        return np.where(self.label == harmless, room, np.minimum(self.margin, room))

    def grid(self, adds, deletes):
        a, r = np.arange(adds + 1)[None, :, None], np.arange(deletes + 1)[None, None, :]
        hurt = np.where(self.label[:, None, None] == 1, r, a)
        return np.broadcast_to(hurt <= self.margin[:, None, None], (len(self), adds + 1, deletes + 1))

    def grounds(self, position):
        return f"The majority is safe by {self.margin[position]}."

    def evidence(self):
        return (Column("margin", self.margin, "margin", "entries above the majority"),)

    def reading(self):
        return [("Margin", "How many more entries than needed speak for the label.")]

    def explanation(self, position):
        from dataclasses import replace

        share = float(self.about.ones[position] / self.about.entries[position])
        bar = Bar("there", str(self.about.ones[position]), share)
        return replace(super().explanation(position), bars=(bar,), titles=("entries", "number", "proven"))


X = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 0, 0]], bool)


@pytest.fixture
def certs():
    return Majorities.of(X)


def brute(row, budget):
    """The largest number of changes that never moves the majority, by trying all of them."""
    label = row.sum() * 2 > len(row)
    for code in sorted(range(2 ** len(row)), key=lambda c: c.bit_count()):
        flips = np.array([code >> i & 1 for i in range(len(row))], bool)
        if (np.logical_xor(row, flips).sum() * 2 > len(row)) != label:
            return int(flips.sum()) - 1
    return budget


def test_the_toy_is_right(certs):
    assert certs.size.tolist() == [brute(row, 5) for row in X]


def test_the_protocol_gives_the_rest(certs, tmp_path):
    certs.save(tmp_path / "certs.npz")
    again = us.load(tmp_path / "certs.npz")
    assert type(again) is Majorities
    assert again[1].statement(0) == certs.statement(1)
    assert certs.accuracy([1, 1, 1], at=[0, 1]).tolist() == [2 / 3, 1 / 3]
    assert certs.recall([1, 1, 0], at=2) == 0.5
    assert certs.to_frame()["margin"].tolist() == [2, 0, 1]
    assert repr(certs) == "Majorities(3 ballots, 3 certified, median size 1)"


def test_the_report_serves_it(certs, tmp_path):
    page = us.write_report(tmp_path / "r.html", certs, truth=[1, 1, 0]).read_text()
    for words in (
        "2 of 3 ballots provably keep their right answer: no attacker who changes one of its entries can change it.",
        "How many more entries than needed",
        '"title":"margin"',
        "All 3 certificates are proofs",
        "The majority is safe by 2.",
    ):
        assert words in page
    assert "confidence 9" not in page
    assert "ceiling: the largest" not in page


def test_the_commands_serve_it(certs, tmp_path, capsys):
    path = tmp_path / "certs.npz"
    certs.named(targets=["a", "b", "c"]).save(path)
    assert main(["report", str(path), "--out", str(tmp_path / "r.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["method"], found["confidence"]) == ("majorities", "counting", None)
    assert [row["margin"] for row in found["targets"]] == [2, 0, 1]
    assert [row["adds"] for row in found["targets"]] == [0, 2, 1]
    assert main(["explain", "c", "--store", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Ballot c: proven, no change of at most 1 of its 5 attackable entries" in out
    assert "entries number share" in out
    assert main(["explain", "c", "--store", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bars"][0]["share"] == 0.2
    assert main(["report", str(path), "--alpha", "0.01"]) == 2


def test_plots_serve_it(certs):
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    certs.plot([1, 1, 0], ax=axes)
    assert axes.lines[0].get_ydata()[0] == 1
